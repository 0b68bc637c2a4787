"""The file that keeps finished cells of all kinds: JSON Lines, one a line."""

import json
import os
from collections.abc import Hashable, Iterable
from pathlib import Path

from plimsoll.common.errors import OutputError
from plimsoll.rundir.volumes import AnyCell, cell_in

_LARGEST_BYTES = 64 << 20


def read_cells(path: Path) -> list[AnyCell]:
    """Return the finished cells in `path`; none if there is no such file. What is no whole cell is left out.

    Raises OutputError.
    """
    try:
        with path.open("rb") as file:
            lines = file.read(_LARGEST_BYTES).splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unusable(path, "read", error) from None
    return [cell for line in lines if (cell := _cell(line))]


def append_cell(path: Path, cell: AnyCell) -> None:
    """Add a finished cell to `path`, on the disk when this returns. Raises OutputError."""
    # A line that a crash cut off is ended first, so that it spoils no other.
    data = "\n" + json.dumps(cell.as_json(), allow_nan=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _unusable(path, "written", error) from None


def latest(cells: Iterable[AnyCell], keys: Iterable[Hashable]) -> list[AnyCell]:
    """Return the cells with these keys, in the order of `keys`; of two with one key, the later. Pure."""
    by_key: dict[Hashable, AnyCell] = {cell.key: cell for cell in cells}
    return [by_key[key] for key in keys if key in by_key]


def _unusable(path: Path, what: str, error: OSError) -> OutputError:
    return OutputError(f"{path}: cannot be {what}: {error.strerror}; choose another file with --out")


def _cell(line: bytes) -> AnyCell | None:
    try:
        return cell_in(json.loads(line))
    except (ValueError, RecursionError):
        return None
