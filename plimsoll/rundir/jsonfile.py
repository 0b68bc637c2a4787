"""The JSON files of a run directory: regular, bounded, and every number in them a figure."""

import json
from pathlib import Path
from typing import Any

from plimsoll.common.errors import DamagedFileError
from plimsoll.common.files import read_regular
from plimsoll.common.hostile import LARGEST_FIGURE, printable

_LARGEST_BYTES = 16 << 20  # of a file; in memory that may be twenty times as much
_LARGEST_SUM = LARGEST_FIGURE * 1e15  # of more measures than any run takes
_LONGEST_DIGITS = 20  # 64 bits: counts of bytes, identities of pools


def read_json(path: Path) -> Any:
    """Return what the JSON file `path` holds, or None if it is absent. Raises RunDirectoryError."""
    try:
        text = read_regular(path, _LARGEST_BYTES).decode("utf-8", errors="replace")
        value = json.loads(text, parse_int=_whole)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        raise DamagedFileError(f"{path}: is no JSON; it was cut off or written by something else") from None
    if key := _no_figure(value):
        raise DamagedFileError(
            f"{path}: {printable(key)}: is no figure (NaN, infinite, or beyond all measure): put back the "
            "file that the run wrote, or leave the run out"
        )
    return value


def _whole(text: str) -> float:
    return int(text) if len(text) <= _LONGEST_DIGITS else float(text)


def _no_figure(value: Any) -> str | None:
    """Return the key of a number that nothing can be computed with, None where there is none. Pure."""
    left = [("", value)]
    while left:
        key, one = left.pop()
        if isinstance(one, float) and not abs(one) <= _LARGEST_SUM:  # neither is NaN
            return key or "the number"
        if isinstance(one, dict):
            left += [(f"{key}.{name}" if key else name, inner) for name, inner in one.items()]
        elif isinstance(one, list):
            left += [(f"{key}.{place}" if key else str(place), inner) for place, inner in enumerate(one)]
    return None
