"""The tables of finished cells, as text."""

from collections.abc import Collection, Sequence

from plimsoll.common.hostile import printable
from plimsoll.common.units import count, decimal, size_text
from plimsoll.rundir.volumes import AnyCell, Figure, FsyncCell, MatrixCell

COLUMNS = (
    "Volume",
    "Threads",
    "File size",
    "Block size",
    "Test",
    "Reads",
    "Writes",
    "Throughput (MiB/s)",
    "IOPS",
    "Execution time (s)",
    "p99.9 (ms)",
)
_LEFT = {0, 4}

_PERCENTILES: tuple[Figure, ...] = ("p50", "p90", "p99", "p99.9", "max")
FSYNC_COLUMNS = (
    "Volume",
    "Recipe",
    "Call",
    "Test",
    "Engine",
    "Block size",
    "Threads",
    "Calls",
    *(f"{name} (ms)" for name in _PERCENTILES),
    "Writes/s",
    "Writes' p99.9 (ms)",
)
_FSYNC_LEFT = {0, 1, 2, 3, 4}


def row(cell: MatrixCell) -> tuple[str, ...]:
    """Return the table's row of a cell of sysbench's. Pure."""
    return (
        printable(cell.volume, 60),
        count(cell.threads),
        size_text(cell.file_size_bytes),
        size_text(cell.block_bytes),
        printable(cell.test, 20),
        count(cell.reads),
        count(cell.writes),
        decimal(cell.throughput_mib_per_s, 2),
        decimal(cell.iops, 2),
        decimal(cell.execution_s, 4),
        decimal(cell.p999_ms, 3),
    )


def fsync_row(cell: FsyncCell) -> tuple[str, ...]:
    """Return the table's row of a cell of fsyncs. Pure."""
    return (
        printable(cell.volume, 60),
        cell.preset or "–",
        cell.call,
        cell.test,
        cell.engine,
        size_text(cell.block_bytes),
        count(cell.threads),
        count(cell.syncs),
        *(decimal(cell.sync_ms.get(name), 3) for name in _PERCENTILES),
        decimal(cell.iops, 1),
        decimal(cell.write_ms.get("p99.9"), 3),
    )


def table(cells: Sequence[AnyCell]) -> str:
    """Return a table of each kind of cells that there is, a line a cell below its head. Pure."""
    matrix = [row(cell) for cell in cells if isinstance(cell, MatrixCell)]
    fsyncs = [fsync_row(cell) for cell in cells if isinstance(cell, FsyncCell)]
    found = [_text(COLUMNS, matrix, _LEFT)] if matrix or not fsyncs else []
    return "\n\n".join([*found, *([_text(FSYNC_COLUMNS, fsyncs, _FSYNC_LEFT)] if fsyncs else [])])


def _text(columns: Sequence[str], below: Sequence[Sequence[str]], left: Collection[int]) -> str:
    rows = [columns, *below]
    widths = [max(len(one[i]) for one in rows) for i in range(len(columns))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if i in left else text.rjust(width)
            for i, (text, width) in enumerate(zip(one, widths, strict=True))
        ).rstrip()
        for one in rows
    )
