"""The observers that read files of /proc: what they read, and the columns they make of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lab.observers import arcstats, cpu, diskstats, memory, pressure
from lab.observers.counters import Column, Pair, Reading
from lab.observers.settings import ObserverName


@dataclass
class Source:
    """One observer, and the last reading that it had."""

    name: ObserverName
    columns: tuple[Column, ...]
    read: Callable[[tuple[str, ...]], Reading]
    paths: tuple[str, ...] = ()
    earlier: Callable[[Reading, Reading | None], Reading | None] = lambda _, before: before
    _before: Reading | None = field(default=None, init=False)
    _before_ns: int = field(default=0, init=False)

    def sample(self, texts: Sequence[str | None], at_ns: int) -> list[float | None]:
        """Return the figures of the columns, from texts read at the monotonic instant `at_ns`.

        A text that could not be read counts as empty. The next sample compares with the last reading that
        there was, so that after a gap a rate is that of the whole gap.
        """
        reading = self.read(tuple(text or "" for text in texts))
        if not reading:
            return [None] * len(self.columns)
        pair = Pair(reading, self.earlier(reading, self._before), (at_ns - self._before_ns) / 1e9)
        self._before, self._before_ns = reading, at_ns
        return [column.formula(pair) for column in self.columns]


def file_source(name: ObserverName, devices: Sequence[str] = ()) -> Source | None:
    """Return the observer `name` if it is one that reads files; `devices` are those of diskstats."""
    match name:
        case "arcstats":
            return Source(name, arcstats.COLUMNS, arcstats.read, arcstats.PATHS)
        case "diskstats":
            return Source(name, diskstats.columns(devices), diskstats.read, diskstats.PATHS)
        case "pressure":
            return Source(name, pressure.COLUMNS, pressure.read, pressure.PATHS)
        case "cpu":
            return Source(name, cpu.COLUMNS, cpu.read, cpu.PATHS)
        case "memory":
            return Source(name, memory.COLUMNS, memory.read, memory.PATHS)
        case _:
            return None
