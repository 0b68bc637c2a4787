"""The parts of an observer; each observer is a file of this package, and a line in `registry`."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from plimsoll.lab.machine import Machine
from plimsoll.lab.observers.counters import Column, Pair, Reading
from plimsoll.lab.observers.settings import ObserverOptions

Say = Callable[[str], None]


@dataclass
class Source:
    """An observer that reads the files at `paths`, and its last reading."""

    name: str
    columns: tuple[Column, ...]
    read: Callable[[tuple[str, ...]], Reading]
    paths: tuple[str, ...] = ()
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
        pair = Pair(reading, self._before, (at_ns - self._before_ns) / 1e9)
        self._before, self._before_ns = reading, at_ns
        return [column.formula(pair) for column in self.columns]


class Stream(Protocol):
    """An observer that a process of its own feeds, as long as the observing lasts."""

    name: str
    columns: tuple[Column, ...]

    async def start(self, say: Say) -> None:
        """Start the process. Raises MachineError."""
        ...

    def sample(self) -> list[float | None]:
        """Return the figures that came since the last call."""
        ...

    async def stop(self) -> None:
        """End the process."""
        ...


@dataclass(frozen=True)
class Observer:
    """An entry of the registry.

    `name`: its name in lab.yml, and before the dot of its columns in `host.csv`.
    `columns`: as they are documented; `DEVICE` or `POOL` stands for what a host has several of.
    `prepare`: returns what is sampled on a machine, None where there is nothing; `say` gets the reason, once.
    """

    name: str
    columns: tuple[Column, ...]
    prepare: Callable[[Machine, ObserverOptions, Say], Coroutine[Any, Any, Source | Stream | None]]


def file_observer(
    name: str,
    columns: tuple[Column, ...],
    read: Callable[[tuple[str, ...]], Reading],
    paths: tuple[str, ...],
) -> Observer:
    """Return an observer whose columns are the same on every host; `read` gets the texts of `paths`."""

    async def prepare(_machine: Machine, _options: ObserverOptions, _say: Say) -> Source:
        return Source(name, columns, read, paths)

    return Observer(name, columns, prepare)
