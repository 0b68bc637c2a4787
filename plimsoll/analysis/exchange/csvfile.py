"""Records as CSV: a header, then a line a request; absent values are empty fields."""

import csv
import io
from collections.abc import Iterator
from typing import Any

from plimsoll.analysis.exchange.columns import COLUMNS, ColumnValues, columns
from plimsoll.analysis.exchange.format import Format, by_blocks
from plimsoll.common.hostile import printable
from plimsoll.rundir.read import RunDirectory

_ROWS = 1 << 14
# What a spreadsheet takes for the beginning of a formula, also in full width.
_FORMULA = tuple("=+-@＝＋－＠")


def csv_blocks(run: RunDirectory) -> Iterator[tuple[int, bytes]]:
    """Yield how many records a piece of the file holds, and the piece."""
    yield 0, (",".join(COLUMNS) + "\n").encode()
    for block in run.requests.blocks(_ROWS):
        rows = [_cells(column) for column in columns(run, block).values()]
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(zip(*rows, strict=True))
        yield len(block), text.getvalue().encode("utf-8")


def cell(text: str) -> str:
    """Return `text` as a cell that no spreadsheet takes for a formula: then an apostrophe stands before it.

    Control characters, line ends among them, are spelled out.
    """
    shown = printable(text)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) else shown


def _cells(column: ColumnValues) -> list[Any]:
    values = column.values.astype(int) if column.values.dtype == bool else column.values
    cells: list[Any] = values.tolist()
    if column.texts is not None:
        shown = [cell(text) for text in column.texts] or [""]
        cells = [shown[at] for at in cells]
    if column.absent is not None and column.absent.any():
        absent = column.absent.tolist()
        cells = [None if missing else value for value, missing in zip(cells, absent, strict=True)]
    return cells


CSV = Format("csv", "a row a request", by_blocks(csv_blocks))
