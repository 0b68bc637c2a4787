"""Writes `host.csv`: each row reaches the operating system whole and at once, so that a kill loses none."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from plimsoll.common.files import write_error


def row(fields: Iterable[object]) -> bytes:
    """Return one line of CSV. Pure."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(fields)
    return text.getvalue().encode("utf-8", errors="replace")


def shown(value: float | None) -> str:
    """Return a figure as it is written: empty for none, whole where it is, else six significant digits.

    Bytes and counts keep all their digits. Pure.
    """
    if value is None or not math.isfinite(value):
        return ""
    return str(int(value)) if value == int(value) else f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"


class HostCsv:
    """The file, whose columns are fixed when it is made. Its methods raise OutputError."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        """Make `path`, which must not be there: a run has one."""
        self.path = path
        self.columns = tuple(columns)
        try:
            self._file = path.open("xb", buffering=0)
        except OSError as error:
            raise write_error(path, error) from None
        self._append(("t_ns", *self.columns))

    def sample(self, t_ns: int, values: Sequence[float | None]) -> None:
        """Append a row: `t_ns` since the start of the run, and a figure or None for each column."""
        if len(values) != len(self.columns):
            raise ValueError(f"{len(values)} figures for {len(self.columns)} columns")
        self._append((t_ns, *(shown(value) for value in values)))

    def close(self) -> None:
        """End the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, fields: Iterable[object]) -> None:
        try:
            self._file.write(row(fields))
        except OSError as error:
            raise write_error(self.path, error) from None
