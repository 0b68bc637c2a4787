"""Runs one command on many hosts, so many at a time."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Line, Machine

_MOST_CHARACTERS = 1 << 20  # that are kept of one host's output


@dataclass(frozen=True)
class HostOutcome:
    """The outcome of the command on one host. `trouble` is empty where all went well."""

    host: str
    status: int | None
    trouble: str
    duration_s: float
    lines: tuple[Line, ...] = ()
    left_out: int = 0  # lines that were not kept

    @property
    def well(self) -> bool:
        """True if the command ended with status 0."""
        return not self.trouble


async def run_everywhere(
    machines: Sequence[Machine],
    command: Sequence[str],
    parallel: int,
    timeout_s: float,
    each: Callable[[HostOutcome], None],
) -> None:
    """Run `command` on all; `each` gets every outcome as it comes. Cancelled, it ends what runs."""
    waiting = iter(machines)
    async with asyncio.TaskGroup() as group:
        for _ in range(min(parallel, len(machines))):
            group.create_task(_work(waiting, command, timeout_s, each))


async def _work(
    waiting: Iterator[Machine], command: Sequence[str], timeout_s: float, each: Callable[[HostOutcome], None]
) -> None:
    for machine in waiting:
        try:
            each(await run_on(machine, command, timeout_s))
        finally:
            await machine.close()


async def run_on(machine: Machine, command: Sequence[str], timeout_s: float) -> HostOutcome:
    """Run `command` on one host; `timeout_s` counts from when it is logged in to. Cancelled, it ends it."""
    begun_s = time.monotonic()
    kept = _Kept()
    status = None
    try:
        process = await machine.start(command)
        try:
            async with asyncio.timeout(timeout_s):
                async for line in process.lines():
                    kept.add(line)
                status = await process.wait()
            trouble = f"ended with status {status}" if status else ""
        except TimeoutError:
            await process.stop()
            trouble = f"did not end within {timeout_s:g} s (--timeout-s)"
        except asyncio.CancelledError:
            await process.stop()
            raise
    except MachineError as error:
        trouble = error.what
    return HostOutcome(
        machine.name, status, trouble, time.monotonic() - begun_s, tuple(kept.lines), kept.left_out
    )


class _Kept:
    """The first lines, so that one host cannot fill the memory."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.left_out = 0
        self._room = _MOST_CHARACTERS

    def add(self, line: Line) -> None:
        self._room -= len(line.text) + 1
        if self._room < 0:
            self.left_out += 1
        else:
            self.lines.append(line)
