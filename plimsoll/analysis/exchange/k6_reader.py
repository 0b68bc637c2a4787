"""Lines become k6's samples; what cannot be read is named by its line, and does not stop the rest."""

import csv
from collections.abc import Iterator

from plimsoll.analysis.exchange.k6_sample import BrokenLineError, K6Definition, K6Sample, from_json, from_row
from plimsoll.analysis.exchange.lines import CutOffError
from plimsoll.common.hostile import printable

_CSV_START = "metric_name,timestamp,metric_value"
_MOST_NAMED = 10


class K6Reader:
    """Reads the lines of one output of k6, JSON or CSV; iterate over it, once.

    `broken` names the first lines that could not be read, `broken_count` counts all; `cut_off` says how the
    output ended, if it did so in the middle; `whole_seconds` says that a CSV has no finer times.
    """

    def __init__(self, lines: Iterator[bytes]) -> None:
        self.broken: list[str] = []
        self.broken_count = self.line = 0
        self.cut_off: str | None = None
        self.whole_seconds = False
        self._last_broken = 0
        self._lines = lines
        self._ended_whole = True

    def __iter__(self) -> Iterator[K6Sample | K6Definition]:
        """Yield what the lines hold."""
        try:
            first = next(self._counted(), None)
            if first is None:
                return
            if first.decode("utf-8", errors="replace").startswith(_CSV_START):
                yield from self._rows(first)
            else:
                yield from self._json(first)
        except CutOffError as error:
            self.cut_off = f"after line {self.line} {error}"

    def _counted(self) -> Iterator[bytes]:
        for line in self._lines:
            self.line += 1
            self._ended_whole = line.endswith(b"\n")
            yield line

    def _json(self, first: bytes) -> Iterator[K6Sample | K6Definition]:
        line: bytes | None = first
        lines = self._counted()
        while line is not None:
            try:
                if (item := from_json(line)) is not None:
                    yield item
            except BrokenLineError as error:
                self._note(str(error))
            line = next(lines, None)
        self._settle()

    def _rows(self, first: bytes) -> Iterator[K6Sample]:
        header = first.decode("utf-8", errors="replace").strip().split(",")
        rows = csv.reader(line.decode("utf-8", errors="replace") for line in self._counted())
        while True:
            try:
                row = next(rows, None)
                if row is None:
                    break
                if row:
                    sample = from_row(row, header)
                    self.whole_seconds = len(row[1]) == len("1795228600")
                    yield sample
            except (BrokenLineError, csv.Error) as error:
                self._note(str(error))
        self._settle()

    def _note(self, why: str) -> None:
        self.broken_count += 1
        self._last_broken = self.line
        if len(self.broken) < _MOST_NAMED:
            self.broken.append(printable(f"line {self.line}: {why}"))

    def _settle(self) -> None:
        """Take a broken last line without a line feed for what a killed k6 was about to write."""
        if not self._ended_whole and self.broken_count and self._last_broken == self.line:
            self.broken_count -= 1
            self.cut_off = f"line {self.line} is cut off"
            if self.broken and self.broken[-1].startswith(f"line {self.line}:"):
                self.broken.pop()
