"""Levels of factors in words: as figures show them, and as names of files may have them. Pure."""

import re
from collections.abc import Sequence

from plimsoll.common.units import parse_size, size_text
from plimsoll.lab.experiment.factors.settings import Value

_MB = 1_000_000
_LONGEST = 60  # of a variant's name: it is part of the name of a folder
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_SAYS_LITTLE = re.compile(r"[0-9.-]+|on|off|default|no-limit|all|none")


def label_of(key: str, value: Value) -> str:
    """Return a level as figures show it: `16K`, `180 MB/s`, `on`. `key` is what it is the value of."""
    if value is None:
        return "no limit" if key.endswith("_per_s") else "default"
    if isinstance(value, bool):
        return "on" if value else "off"
    if key.endswith("bytes_per_s"):
        return _rate(value)
    return f"{value:g}" if isinstance(value, int | float) and abs(value) < _MB else str(value)


def _rate(value: str | float) -> str:
    try:
        rate = parse_size(value) if isinstance(value, str) else int(value)
    except ValueError:
        return str(value)
    if rate % (1 << 20) and rate >= _MB // 10:
        return f"{rate / _MB:g} MB/s"
    return f"{size_text(rate)}/s"


def name_of(factor: str, label: str) -> str:
    """Return a level as part of a name: lower-case letters, digits and single hyphens."""
    name = _NOT_IN_NAMES.sub("-", label.lower()).strip("-") or "x"
    return f"{_NOT_IN_NAMES.sub('-', factor)}-{name}" if _SAYS_LITTLE.fullmatch(name) else name


def joined(backend: str, levels: Sequence[str]) -> str:
    """Return the name of a backend at `levels`, not too long for the name of a folder."""
    return "-".join([backend, *levels])[:_LONGEST].rstrip("-")


def unlike(name: str, taken: set[str], longest: int = _LONGEST) -> str:
    """Return `name`, or where it is `taken`, `name` with a number behind it."""
    found, number = name, 1
    while found in taken:
        number += 1
        end = f"-{number}"
        found = name[: longest - len(end)].rstrip("-") + end
    return found
