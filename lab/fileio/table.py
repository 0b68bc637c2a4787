"""The table of the matrix, as text."""

from collections.abc import Sequence

from lab.fileio.cell import Cell
from plimsoll.common.hostile import printable
from plimsoll.common.sizes import size_text
from plimsoll.common.units import count, decimal

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


def row(cell: Cell) -> tuple[str, ...]:
    """Return the table's row of a cell. Pure."""
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


def table(cells: Sequence[Cell]) -> str:
    """Return the table, a line a cell below its head. Pure."""
    rows = [COLUMNS, *(row(cell) for cell in cells)]
    widths = [max(len(one[i]) for one in rows) for i in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if i in _LEFT else text.rjust(width)
            for i, (text, width) in enumerate(zip(one, widths, strict=True))
        ).rstrip()
        for one in rows
    )
