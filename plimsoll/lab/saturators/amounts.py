"""Amounts of bytes as programs print them, and lines that tell how far a program is. Pure."""

import re

from plimsoll.lab.machine import Line

_MOST_BYTES = 1 << 62
_UNIT = re.compile(r"([KMGTP])?(i?)(B|bytes?)?", re.IGNORECASE | re.ASCII)


def amount_bytes(number: str, unit: str | None = None) -> int | None:
    """Return the bytes of `1,024`, or of `1.5` with the unit `GiB`; None where it is no such amount.

    K, M, G, T and P, alone or as KiB, are powers of 1024; kB, MB and so on are powers of 1000.
    """
    found = _UNIT.fullmatch((unit or "").strip())
    try:
        value = float(number.replace(",", "").replace("_", ""))
    except ValueError:
        return None
    if not found or not 0 <= value < _MOST_BYTES:
        return None
    base = 1000 if found[1] and found[3] and not found[2] else 1024
    power = "KMGTP".index(found[1].upper()) + 1 if found[1] else 0
    amount = round(value * base**power)
    return amount if amount < _MOST_BYTES else None


class LineFigures:
    """Reads the bytes so far from the lines that `form` is found in: by its groups `bytes` and `unit`.

    `each`: a line tells of its own bytes alone.
    """

    def __init__(self, form: re.Pattern[str], each: bool = False) -> None:
        self._form, self._each, self._sum = form, each, 0

    def read(self, line: Line) -> int | None:
        """Return the bytes so far, None where the line does not say it."""
        found = self._form.search(line.text)
        if not found or found["bytes"] is None:
            return None
        amount = amount_bytes(found["bytes"], found.groupdict().get("unit"))
        if amount is None or not self._each:
            return amount
        self._sum += amount
        return self._sum
