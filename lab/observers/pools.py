"""Keeps `zpool iostat` running on the host, and passes its lines on."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from lab.errors import MachineError
from lab.machine import Machine, Process
from lab.observers import zpool
from lab.observers.counters import Column
from lab.observers.observer import Observer, Say
from lab.observers.settings import ObserverOptions

_PROBE_TIMEOUT_S = 20.0


class PoolWatch:
    """One running `zpool iostat`; a Stream."""

    name = "zpool"

    def __init__(self, machine: Machine, pools: Sequence[str], form: zpool.IostatForm) -> None:
        self.columns: tuple[Column, ...] = zpool.columns(pools)
        self._machine, self._command = machine, zpool.command(form, pools)
        self._lines = zpool.Lines(form)
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self, say: Say) -> None:
        """Start the process. Raises MachineError."""
        self._process = await self._machine.start(self._command)
        self._reading = asyncio.create_task(self._read(self._process, say))

    def sample(self) -> list[float | None]:
        """Return the figures that came since the last call."""
        pair = self._lines.take()
        return [column.formula(pair) for column in self.columns]

    async def stop(self) -> None:
        """End the process."""
        if self._reading:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        if self._process:
            with suppress(MachineError):  # where the connection broke, the process ended with it
                await self._process.stop()

    async def _read(self, process: Process, say: Say) -> None:
        try:
            async for line in process.lines():
                if line.stream == "out":
                    self._lines.add(line.text)
        except MachineError as error:
            say(f"zpool: {error}")
        else:
            say("zpool: zpool iostat ended by itself; its columns stay empty from now on")


async def watch_pools(machine: Machine, pools: Sequence[str], say: Say) -> PoolWatch | None:
    """Return the watch over `pools`, or over all imported ones; None, and the reason, where there is none."""
    try:
        if not pools:
            listed = await machine.run(zpool.list_command(), timeout_s=_PROBE_TIMEOUT_S, check=False)
            pools = listed.out.split("\n")[:-1] if listed.status == 0 else ()
        if not pools:
            say("zpool: no pool is imported here, so there is none to observe")
            return None
        for form in zpool.FORMS:
            probed = await machine.run(zpool.probe(form, pools), timeout_s=_PROBE_TIMEOUT_S, check=False)
            if probed.status == 0:
                return PoolWatch(machine, pools, form)
    except MachineError as error:
        say(f"zpool: {error}")
        return None
    say(f"zpool: zpool iostat printed: {probed.err.strip()[:200]}")
    return None


async def _prepare(machine: Machine, options: ObserverOptions, say: Say) -> PoolWatch | None:
    return await watch_pools(machine, options.pools, say)


OBSERVER = Observer("zpool", zpool.COLUMNS, _prepare)
