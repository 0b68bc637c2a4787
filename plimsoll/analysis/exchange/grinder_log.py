"""One data log of The Grinder, plain or gzip, read in blocks; what cannot be read is named by its line."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from plimsoll.analysis.exchange.grinder_layout import (
    SEPARATOR,
    TEST,
    Layout,
    NoLayoutError,
    TestRows,
    parse_header,
)
from plimsoll.analysis.exchange.lines import CutOffError, ImportingError, read_file_lines
from plimsoll.common.hostile import printable

_BLOCK_LINES = 1 << 14
_BLOCK_CHARACTERS = 1 << 22  # what stands in the file may be anything
_MOST_NAMED = 10
_HEADER = "Thread,"


class DataLog:
    """Reads one data log; iterate over it, once, for blocks of tests, shape (n,), in the order of the file.

    `broken` names the first lines that could not be read, `broken_count` counts all; `cut_off` says how the
    file ended, if it did so in the middle: its last line is then left out, since a cut-off number is one too.
    """

    def __init__(self, path: Path, advance: Callable[[int], None] = lambda _: None) -> None:
        """`advance` is called with the bytes of the file that were read since its last call."""
        self.path = path
        self.broken: list[str] = []
        self.broken_count = self.line = self.tests = 0
        self.cut_off: str | None = None
        self.http = False
        self._advance = advance

    def __iter__(self) -> Iterator[TestRows]:
        """Yield the tests. Raises ImportingError if this is no data log of The Grinder."""
        lines = self._lines()
        header = next(lines, None)
        if header is None:
            raise ImportingError(
                f"{self.path}: is empty, as the data log of a worker that never started is; leave it out"
            )
        first = next(lines, None)
        place = self._layout(header, first)
        if first is not None:
            yield from self._block([first], place)
        for block in _blocks(lines):
            yield from self._block(block, place)

    def _layout(self, header: str, first: str | None) -> Layout:
        try:
            place = parse_header(header, first)
        except NoLayoutError as error:
            raise ImportingError(f"{self.path}: {error}") from None
        self.http = place.http
        return place

    def _lines(self) -> Iterator[str]:
        """Yield whole lines."""
        last: bytes | None = None
        try:
            for line in read_file_lines(self.path, self._advance):
                if last is not None:
                    yield last.decode("utf-8", errors="replace")
                last = line
        except CutOffError as error:
            self.cut_off = str(error)
        if last is None:
            return
        if last.endswith(b"\n"):
            yield last.decode("utf-8", errors="replace")
        elif self.cut_off is None:
            self.cut_off = "its last line is cut off"

    def _block(self, lines: list[str], place: Layout) -> Iterator[TestRows]:
        values = np.empty((0, 0))
        if not lines[0].isspace():  # of nothing but blank lines loadtxt warns
            with suppress(ValueError, OverflowError):
                values = np.loadtxt(lines, delimiter=SEPARATOR, comments=None, ndmin=2)
        tests = place.tests(values) if len(values) == len(lines) else None
        if tests is None:
            tests = self._one_by_one(lines, place)
        else:
            self.line += len(lines)
        self.tests += len(tests)
        yield tests

    def _one_by_one(self, lines: list[str], place: Layout) -> TestRows:
        """Return the tests of the lines that can be read."""
        good = []
        for line in lines:
            self.line += 1
            values = line.strip().split(SEPARATOR)
            try:
                test = place.tests(np.array([[float(value) for value in values]]))
            except ValueError:
                test = None
            if test is not None:
                good.append(test)
            elif not line.strip() or line.startswith(_HEADER):  # of logs that somebody joined
                continue
            else:
                self._note(place.fault(values))
        return np.concatenate(good) if good else np.empty(0, dtype=TEST)

    def _note(self, why: str) -> None:
        self.broken_count += 1
        if len(self.broken) < _MOST_NAMED:
            self.broken.append(printable(f"{self.path.name}: line {self.line + 1}: {why}"))


def _blocks(lines: Iterator[str]) -> Iterator[list[str]]:
    block: list[str] = []
    characters = 0
    for line in lines:
        block.append(line)
        characters += len(line)
        if len(block) >= _BLOCK_LINES or characters >= _BLOCK_CHARACTERS:
            yield block
            block, characters = [], 0
    if block:
        yield block
