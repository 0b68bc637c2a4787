"""The Grinder's data logs: one pass over all of a run's, the reader of one in blocks, its columns.

Four columns and `Test time`, `Errors` are always there, the HTTP plugin adds seven, and scripts add their own
(`registerDataLogExpression`), before or after the plugin's. Names of those are free text, and no comma in
them is escaped.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.exchange.importing import ImportingError, LogFile
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted

SEPARATOR = ","
_BLOCK_LINES = 1 << 14
_BLOCK_CHARACTERS = 1 << 22  # what stands in the file may be anything
_MOST_TESTS = 10_000
GrinderRows = NDArray[np.void]


class DataLog(LogFile):
    """Reads one data log; iterate over it, once, for blocks of tests, shape (n,), in the file's order."""

    http = False

    def __iter__(self) -> Iterator[GrinderRows]:
        """Yield the tests. Raises ImportingError if this is not a data log of The Grinder."""
        lines = (line.decode("utf-8", errors="replace") for line in self.whole_lines())
        header = next(lines, None)
        if header is None:
            raise ImportingError(
                f"{self.path}: is empty, as the data log of a worker that never started is; leave it out"
            )
        first = next(lines, None)
        try:
            layout = parse_header(header, first)
        except NoLayoutError as error:
            raise ImportingError(f"{self.path}: {error}") from None
        self.http = layout.http
        for block in _blocks(lines if first is None else chain([first], lines)):
            yield self._tests(block, layout)

    def _tests(self, lines: list[str], layout: "Layout") -> GrinderRows:
        values = np.empty((0, 0))
        if not lines[0].isspace():  # of nothing but blank lines loadtxt warns
            with suppress(ValueError, OverflowError):
                values = np.loadtxt(lines, delimiter=SEPARATOR, comments=None, ndmin=2)
        tests = layout.tests(values) if len(values) == len(lines) else None
        if tests is None:
            tests = self._one_by_one(lines, layout)
        else:
            self.line += len(lines)
        self.requests += len(tests)
        return tests

    def _one_by_one(self, lines: list[str], layout: "Layout") -> GrinderRows:
        """Return the tests of the lines that can be read."""
        good = []
        for line in lines:
            self.line += 1
            values = line.strip().split(SEPARATOR)
            try:
                test = layout.tests(np.array([[float(value) for value in values]]))
            except ValueError:
                test = None
            if test is not None:
                good.append(test)
            elif line.strip() and not line.startswith("Thread,"):  # a header: somebody joined logs
                self.note_broken(self.line + 1, f": {layout.fault(values)}")
        return np.concatenate(good) if good else np.empty(0, dtype=TEST)


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


@dataclass
class Survey:
    """The logs of one run, all of them. Instants are milliseconds since the epoch."""

    logs: list[DataLog] = field(default_factory=list)
    first_ms: int = 1 << 62
    last_ms: int = 0
    threads: int = 0
    tests: int = 0
    hasty: int = 0  # whose first byte came within a millisecond
    silent: Counter[int] = field(default_factory=Counter)  # by test: no error, and no status, beside others'
    spans_ms: list[tuple[int, int, Path]] = field(default_factory=list)

    def apart(self) -> str | None:
        """Return two logs one of which begins after the other has ended; None if there are no such two."""
        spans = sorted(self.spans_ms)
        for (_, end, path), (begin, _, later) in pairwise(spans):
            if begin > end:
                return f"{printable(later.name)} begins after {printable(path.name)} has ended"
        return None


def survey(paths: Sequence[Path], advance: Callable[[int], None]) -> Survey:
    """Read all of `paths` once. Raises ImportingError, a line for each that is not a Grinder data log."""
    whole, wrong = Survey(), []
    for path in paths:
        log = DataLog(path, advance)
        try:
            _read(log, whole)
        except ImportingError as error:
            wrong.append(str(error))
    if not wrong and not whole.tests:
        first = next((one for log in whole.logs for one in log.broken), "")
        wrong.append(f"{paths[0]}: holds no test" + (f" ({first})" if first else ""))
    if wrong:
        raise ImportingError("\n".join(wrong))
    return whole


def _read(log: DataLog, whole: Survey) -> None:
    threads: set[int] = set()
    first_ms, last_ms = 1 << 62, 0
    for tests in log:
        if not len(tests):
            continue
        first_ms = min(first_ms, int(tests["start_ms"].min()))
        last_ms = max(last_ms, int((tests["start_ms"] + tests["time_ms"]).max()))
        threads.update(np.unique(tests["thread"]).tolist())
        if log.http:
            answered = tests["status"] > 0
            whole.hasty += int((answered & (tests["first_ms"] == 0)).sum())
            numbers, counts = np.unique(tests["test"][~answered & (tests["errors"] == 0)], return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                if number in whole.silent or len(whole.silent) < _MOST_TESTS:
                    whole.silent[number] += count
    whole.logs.append(log)
    whole.tests += log.requests
    whole.threads += len(threads)
    if log.requests:
        whole.first_ms, whole.last_ms = min(whole.first_ms, first_ms), max(whole.last_ms, last_ms)
        whole.spans_ms.append((first_ms, last_ms, log.path))


def describe_logs(whole: Survey, composite: set[int], name: Callable[[int], str]) -> list[str]:
    """Return what whoever imports should know of the logs."""
    notes = []
    if apart := whole.apart():
        notes.append(f"{apart}: are they of one run, and did the clocks of their machines agree?")
    for number, count in whole.silent.most_common(5):
        if number not in composite:
            notes.append(
                f"{counted(count, 'test')} {number} ({printable(name(number))}) had no HTTP status: if it "
                f"encloses other tests, leave it out of the requests with --composite {number}"
            )
    if whole.hasty:
        notes.append(
            f"{counted(whole.hasty, 'first byte')} came within the first millisecond, which the data log "
            "writes as 0: the figures of first bytes are without them"
        )
    return notes


_COLUMNS = {
    "Thread": "thread",
    "Run": "run",
    "Test": "test",
    "Start time (ms since Epoch)": "start_ms",
    "Test time": "time_ms",
    "Errors": "errors",
    "HTTP response code": "status",
    "HTTP response length": "length",
    "HTTP response errors": "",  # the status says it
    "Time to resolve host": "resolve_ms",
    "Time to establish connection": "connect_ms",
    "Time to first byte": "first_ms",
    "New connections": "connections",
}
_NEEDED = ("thread", "run", "test", "start_ms", "time_ms", "errors")
# What a value may be. Java's: test numbers may be negative; an instant ends with the year 2116.
_RANGES = {
    "thread": (0, 0xFFFF),
    "run": (-1, 1 << 31),
    "test": (-(1 << 31), 1 << 31),
    "start_ms": (1, (1 << 62) // 1_000_000),
    "time_ms": (0, 1 << 40),
    "errors": (0, 1 << 31),
    "status": (0, 999),
    "length": (0, 1 << 52),
    "resolve_ms": (0, 1 << 40),
    "connect_ms": (0, 1 << 40),
    "first_ms": (0, 1 << 40),
    "connections": (0, 1 << 31),
}
TEST = np.dtype([(name, "<i8") for name in _RANGES])


def done_ms(tests: GrinderRows) -> NDArray[np.int64]:
    """Return when each of the tests ended, milliseconds since the epoch."""
    ended: NDArray[np.int64] = tests["start_ms"] + tests["time_ms"]
    return ended


class NoLayoutError(ValueError):
    """A first line that is not the header of a data log; the message says why."""


@dataclass(frozen=True)
class Layout:
    """The place of each column of `TEST` in a line of `width` values; `http`: the plugin's are there."""

    places: dict[str, int]
    width: int
    http: bool

    def tests(self, values: NDArray[np.float64]) -> GrinderRows | None:
        """Return `values`, shape (n, width), as tests, shape (n,); None if one is out of its range."""
        if values.shape[1] != self.width:
            return None
        tests = np.zeros(len(values), dtype=TEST)
        for name, place in self.places.items():
            column, (least, most) = values[:, place], _RANGES[name]
            whole = column == np.floor(column)
            if not bool(((column >= least) & (column <= most) & whole).all()):  # NaN is neither
                return None
            tests[name] = column
        return tests

    def fault(self, values: Sequence[str]) -> str:
        """Return what is wrong with the values of one line, in a few words."""
        if len(values) != self.width:
            return f"has {len(values)} columns, the others {self.width}"
        for name, place in self.places.items():
            least, most = _RANGES[name]
            try:
                number = float(values[place])
            except ValueError:
                number = float("nan")
            if not (least <= number <= most and number % 1 == 0):
                return f"its {_title(name)} is {values[place].strip()[:40]!r}"
        return "holds a value that is not a number"


def parse_header(header: str, first: str | None) -> Layout:
    """Return the layout that `header` names. `first` is the line after it, None where there is none.

    A script's own column may have commas in its name: where the first line has fewer values than the header
    has commas, the script's columns are taken together. Raises NoLayoutError.
    """
    titles = [title.strip() for title in header.strip().split(SEPARATOR)]
    known = {at: _COLUMNS[title] for at, title in enumerate(titles) if title in _COLUMNS}
    named = [name for name in known.values() if name]
    if titles[0] != "Thread":
        raise NoLayoutError("its first line is not a header of The Grinder's data log (Thread, Run, Test, …)")
    if missing := [name for name in _NEEDED if name not in named]:
        raise NoLayoutError(
            f"its header has no column {_title(missing[0])!r}: this reads The Grinder 3's data log"
        )
    if len(set(named)) < len(named):
        raise NoLayoutError("its header has a column twice")
    own = [at for at in range(len(titles)) if at not in known]
    width = len(titles)
    if first is not None and own:
        width = min(first.count(SEPARATOR) + 1, width)
    if width < len(titles):
        if width <= len(known) or own[-1] - own[0] != len(own) - 1:
            raise NoLayoutError(
                f"its header names {len(titles)} columns, its first line has {width}: "
                "is there a comma in the name of a script's own column?"
            )
        narrower = len(titles) - width
        known = {at if at < own[0] else at - narrower: name for at, name in known.items()}
    places = {name: at for at, name in known.items() if name}
    return Layout(places, width, "status" in places)


def _title(name: str) -> str:
    return next(title for title, column in _COLUMNS.items() if column == name)
