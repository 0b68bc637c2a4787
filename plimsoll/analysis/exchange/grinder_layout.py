"""The columns of The Grinder's data log, which its header names. Pure.

Four columns and `Test time`, `Errors` are always there, the HTTP plugin adds seven, and scripts add their own
(`registerDataLogExpression`), before or after the plugin's. Names of those are free text, and no comma in
them is escaped.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SEPARATOR = ","
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
TestRows = NDArray[np.void]


def done_ms(tests: TestRows) -> NDArray[np.int64]:
    """Return when each of the tests ended, milliseconds since the epoch."""
    ended: NDArray[np.int64] = tests["start_ms"] + tests["time_ms"]
    return ended


class NoLayoutError(ValueError):
    """A first line that is no header of a data log; the message says why."""


@dataclass(frozen=True)
class Layout:
    """The place of each column of `TEST` in a line of `width` values; `http`: the plugin's are there."""

    places: dict[str, int]
    width: int
    http: bool

    def tests(self, values: NDArray[np.float64]) -> TestRows | None:
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
        return "holds a value that is no number"


def parse_header(header: str, first: str | None) -> Layout:
    """Return the layout that `header` names. `first` is the line after it, None where there is none.

    A script's own column may have commas in its name: where the first line has fewer values than the header
    has commas, the script's columns are taken together. Raises NoLayoutError.
    """
    titles = [title.strip() for title in header.strip().split(SEPARATOR)]
    known = {at: _COLUMNS[title] for at, title in enumerate(titles) if title in _COLUMNS}
    named = [name for name in known.values() if name]
    if titles[0] != "Thread":
        raise NoLayoutError("its first line is no header of The Grinder's data log (Thread, Run, Test, …)")
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
