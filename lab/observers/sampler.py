"""Samples all observers of a host once a second, at absolute deadlines, so that nothing drifts."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from lab.errors import MachineError
from lab.machine import Machine
from lab.observers import diskstats, mariadb
from lab.observers.files import read_files
from lab.observers.hostcsv import HostCsv
from lab.observers.pools import PoolWatch, watch_pools
from lab.observers.settings import MariadbSettings, ObserverName, ObserverSettings
from lab.observers.source import Source, file_source

_PERIOD_NS = 1_000_000_000
_QUERY_TIMEOUT_S = 0.8  # a database that takes longer must not keep the others waiting for their second

Row = list[float | None]


def next_due_ns(start_ns: int, now_ns: int) -> int:
    """Return the first whole second after `now_ns`, counted from `start_ns`; seconds missed are left out."""
    return start_ns + (max(0, now_ns - start_ns) // _PERIOD_NS + 1) * _PERIOD_NS


class Sampler:
    """The observers of one host. What cannot be read stays empty, and is said once."""

    def __init__(
        self,
        machine: Machine,
        sources: list[Source],
        pools: PoolWatch | None = None,
        database: MariadbSettings | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._machine, self._sources, self._pools, self._say = machine, sources, pools, say
        self._paths = list(dict.fromkeys(path for source in sources for path in source.paths))
        self._query = mariadb.command(database) if database else None
        self._database = Source(
            "mariadb", mariadb.COLUMNS, lambda texts: mariadb.parse(texts[0]), earlier=mariadb.earlier
        )
        self._said: set[ObserverName | None] = set()

    @property
    def columns(self) -> list[str]:
        """The columns of `host.csv` after `t_ns`."""
        found = [(source.name, source.columns) for source in self._sources]
        if self._pools:
            found.append(("zpool", self._pools.columns))
        if self._query:
            found.append(("mariadb", self._database.columns))
        return [f"{observer}.{column.name}" for observer, columns in found for column in columns]

    async def run(self, file: HostCsv, run_start_ns: int, stop: asyncio.Event) -> None:
        """Write a row a second until `stop`; `run_start_ns` is the monotonic instant that `t_ns` counts from.

        A host that does not answer gives empty rows. Raises OutputError when the disk takes no more.
        """
        start_ns = time.monotonic_ns()
        try:
            if self._pools:
                try:
                    await self._pools.start(self._say)
                except MachineError as error:
                    self._complain("zpool", str(error))
            while not stop.is_set():
                at_ns, values = await self.once()
                file.sample(at_ns - run_start_ns, values)
                now_ns = time.monotonic_ns()
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), (next_due_ns(start_ns, now_ns) - now_ns) / 1e9)
        finally:
            if self._pools:
                await self._pools.stop()

    async def once(self) -> tuple[int, Row]:
        """Return one sample and its monotonic instant: the middle of the time that the reading took."""
        (at_ns, row), asked = await asyncio.gather(self._from_files(), self._from_database())
        if self._pools:
            row += self._pools.sample()
        return at_ns, row + asked

    async def _from_files(self) -> tuple[int, Row]:
        before_ns = time.monotonic_ns()
        texts: dict[str, str | None] = {}
        try:
            read = await read_files(self._machine, self._paths)
            texts = dict(zip(self._paths, read, strict=True))
        except MachineError as error:
            self._complain(None, str(error))
        at_ns = (before_ns + time.monotonic_ns()) // 2
        row: Row = []
        for source in self._sources:
            found = [texts.get(path) for path in source.paths]
            row += source.sample(found, at_ns)
            if texts and not any(found):
                self._complain(source.name, f"{source.paths[0]} cannot be read here; its columns stay empty")
        return at_ns, row

    async def _from_database(self) -> Row:
        if self._query is None:
            return []
        before_ns = time.monotonic_ns()
        text = None
        try:
            text = (await self._machine.run(self._query, timeout_s=_QUERY_TIMEOUT_S)).out
        except MachineError as error:
            self._complain("mariadb", str(error))
        return self._database.sample([text], (before_ns + time.monotonic_ns()) // 2)

    def _complain(self, observer: ObserverName | None, text: str) -> None:
        if observer not in self._said:
            self._said.add(observer)
            self._say(f"{observer}: {text}" if observer else text)


async def sampler_of(machine: Machine, settings: ObserverSettings, say: Callable[[str], None]) -> Sampler:
    """Return the sampler of `settings`, whose columns are fixed from here on. Raises MachineError.

    `say` is told, one sentence each, what of it this host has not.
    """
    devices: tuple[str, ...] = ()
    if "diskstats" in settings.observe:
        (text,) = await read_files(machine, diskstats.PATHS)
        listed = await machine.run(["ls", "/sys/block"])
        devices = diskstats.watched(text or "", listed.out.split(), settings.disks)
    sources = [source for name in settings.observe if (source := file_source(name, devices))]
    pools = await watch_pools(machine, settings.pools, say) if "zpool" in settings.observe else None
    database = settings.mariadb if "mariadb" in settings.observe else None
    return Sampler(machine, sources, pools, database, say)
