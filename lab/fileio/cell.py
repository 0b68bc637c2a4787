"""One cell of the matrix, measured, and the file that keeps finished ones: JSON Lines, one a line."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lab.fileio.histogram import p999
from lab.fileio.output import Output
from lab.fileio.settings import BLOCK_BYTES, FileioSettings, Matrix, Test
from plimsoll.common.errors import OutputError

_LARGEST_BYTES = 64 << 20

Key = tuple[str, int, int, int, str, int, bool]


@dataclass(frozen=True)
class Cell:
    """A finished cell. sysbench prints rates only: reads and writes are its events, shared alike."""

    volume: str
    threads: int
    file_size_bytes: int
    block_bytes: int
    test: str
    time_s: int
    direct: bool
    reads: int
    writes: int
    fsyncs: int
    throughput_mib_per_s: float
    iops: float
    execution_s: float
    events: int
    p999_ms: float | None
    p999_low_ms: float | None
    p999_high_ms: float | None

    @property
    def key(self) -> Key:
        """The key of what was measured: two cells with the same key are the same cell."""
        return (
            self.volume,
            self.threads,
            self.file_size_bytes,
            self.block_bytes,
            self.test,
            self.time_s,
            self.direct,
        )


def key_of(matrix: Matrix, volume: str, test: Test, threads: int) -> Key:
    """Return the key that a cell of `volume` will have."""
    return (volume, threads, matrix.file_size, BLOCK_BYTES, test, matrix.time_s, matrix.direct)


def cell_of(settings: FileioSettings, test: Test, threads: int, output: Output) -> Cell:
    """Return the cell that sysbench's output makes. Pure."""
    slow = p999(output.buckets, output.max_ms)
    rates = output.reads_per_s + output.writes_per_s + output.fsyncs_per_s
    # Not execution_s: sysbench ends that a little earlier than the interval that its rates are made of.
    counted_s = output.events / rates if rates else 0.0
    return Cell(
        *key_of(settings, settings.name, test, threads),
        reads=round(output.reads_per_s * counted_s),
        writes=round(output.writes_per_s * counted_s),
        fsyncs=round(output.fsyncs_per_s * counted_s),
        throughput_mib_per_s=round(output.read_mib_per_s + output.written_mib_per_s, 2),
        iops=round(output.reads_per_s + output.writes_per_s, 2),
        execution_s=output.execution_s,
        events=output.events,
        p999_ms=slow.value_ms if slow else None,
        p999_low_ms=slow.low_ms if slow else None,
        p999_high_ms=slow.high_ms if slow else None,
    )


def read_cells(path: Path) -> list[Cell]:
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


def append_cell(path: Path, cell: Cell) -> None:
    """Add a finished cell to `path`, on the disk when this returns. Raises OutputError."""
    # A line that a crash cut off is ended first, so that it spoils no other.
    data = "\n" + json.dumps(asdict(cell), allow_nan=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _unusable(path, "written", error) from None


def latest(cells: Iterable[Cell], keys: Iterable[Key]) -> list[Cell]:
    """Return the cells with these keys, in the order of `keys`; of two with one key, the later. Pure."""
    by_key = {cell.key: cell for cell in cells}
    return [by_key[key] for key in keys if key in by_key]


def _unusable(path: Path, what: str, error: OSError) -> OutputError:
    return OutputError(f"{path}: cannot be {what}: {error.strerror}; choose another file with --out")


def _cell(line: bytes) -> Cell | None:
    try:
        value = json.loads(line)
        cell = Cell(**value)
    except (ValueError, TypeError, RecursionError):
        return None
    return cell if all(_fits(field.type, getattr(cell, field.name)) for field in fields(Cell)) else None


def _fits(kind: Any, value: object) -> bool:
    if kind == (float | None):
        return value is None or _fits(float, value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
    return type(value) is kind
