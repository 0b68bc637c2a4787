"""Samples all observers of a host once a second, at absolute deadlines, so that nothing drifts."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.observers.files import read_files
from plimsoll.lab.observers.hostcsv import HostCsv
from plimsoll.lab.observers.observer import Say, Source, Stream
from plimsoll.lab.observers.registry import ObserverSettings, observer

_PERIOD_NS = 1_000_000_000

Row = list[float | None]


def next_due_ns(start_ns: int, now_ns: int) -> int:
    """Return the first whole second after `now_ns`, counted from `start_ns`; seconds missed are left out."""
    return start_ns + (max(0, now_ns - start_ns) // _PERIOD_NS + 1) * _PERIOD_NS


class Sampler:
    """The observers of one host. What cannot be read stays empty, and is reported once."""

    def __init__(
        self, machine: Machine, observed: Sequence[Source | Stream], say: Say = lambda _: None
    ) -> None:
        self._machine, self._say = machine, say
        self._files = [one for one in observed if isinstance(one, Source)]
        self._streams = [one for one in observed if not isinstance(one, Source)]
        self._paths = list(dict.fromkeys(path for source in self._files for path in source.paths))
        self._complained: set[str] = set()

    @property
    def columns(self) -> list[str]:
        """The columns of `host.csv` after `t_ns`."""
        observed: list[Source | Stream] = [*self._files, *self._streams]
        return [f"{one.name}.{column.name}" for one in observed for column in one.columns]

    async def run(self, file: HostCsv, run_start_ns: int, stop: asyncio.Event) -> None:
        """Write a row a second until `stop`; `run_start_ns` is the monotonic instant that `t_ns` counts from.

        A host that does not answer gives empty rows. Raises OutputError when the disk takes no more.
        """
        start_ns = time.monotonic_ns()
        try:
            for stream in self._streams:
                try:
                    await stream.start(self._say)
                except MachineError as error:
                    self._complain(stream.name, str(error))
            while not stop.is_set():
                at_ns, values = await self.once()
                file.sample(at_ns - run_start_ns, values)
                now_ns = time.monotonic_ns()
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), (next_due_ns(start_ns, now_ns) - now_ns) / 1e9)
        finally:
            for stream in self._streams:
                await stream.stop()

    async def once(self) -> tuple[int, Row]:
        """Return one sample and its monotonic instant: the middle of the time that the reading took."""
        at_ns, row = await self._read_files()
        for stream in self._streams:
            row += stream.sample()
        return at_ns, row

    async def _read_files(self) -> tuple[int, Row]:
        before_ns = time.monotonic_ns()
        texts: dict[str, str | None] = {}
        try:
            read = await read_files(self._machine, self._paths)
            texts = dict(zip(self._paths, read, strict=True))
        except MachineError as error:
            self._complain(None, str(error))
        at_ns = (before_ns + time.monotonic_ns()) // 2
        row: Row = []
        for source in self._files:
            found = [texts.get(path) for path in source.paths]
            row += source.sample(found, at_ns)
            if texts and not any(found):
                self._complain(source.name, f"{source.paths[0]} cannot be read here; its columns stay empty")
        return at_ns, row

    def _complain(self, observer: str | None, text: str) -> None:
        if (observer or "") not in self._complained:
            self._complained.add(observer or "")
            self._say(f"{observer}: {text}" if observer else text)


async def sampler_of(machine: Machine, settings: ObserverSettings, say: Say) -> Sampler:
    """Return the sampler of `settings`, whose columns are fixed from here on. Raises MachineError.

    `say` gets a sentence for each thing that this host lacks.
    """
    said: list[str] = []
    observed = [await observer(name).prepare(machine, settings, said.append) for name in settings.observe]
    for sentence in said_once(said):
        say(sentence)
    return Sampler(machine, [one for one in observed if one is not None], say)


def said_once(said: Sequence[str]) -> list[str]:
    """Return sentences `OBSERVER: TEXT`, those of one text as one that names all observers. Pure."""
    names: dict[str, list[str]] = {}
    for sentence in said:
        name, _, text = sentence.partition(": ")
        names.setdefault(text, []).append(name)
    return [f"{', '.join(each)}: {text}" for text, each in names.items()]
