"""Keeps a command running on the host that prints its figures, and passes its lines on."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from lab.errors import MachineError
from lab.machine import Machine, Process
from lab.observers.counters import Column, Pair
from lab.observers.observer import Say

END = "\x1e"  # a line of its own after each round; ASCII's record separator, which no program prints


class Taker(Protocol):
    """Takes lines as they come, and gives what they say once a second."""

    def add(self, line: str) -> None:
        """Take a line of standard output."""
        ...

    def take(self) -> Pair:
        """Return the figures since the last call."""
        ...


def rounds(commands: str, every_s: int, words: Sequence[str]) -> list[str]:
    """Return a command that runs `commands` of a shell again and again, with `END` after each round. Pure.

    They find `words` in "$@". The shell and what it runs end with the process group.
    """
    script = f"while :; do {commands}; printf '\\036\\n'; sleep {every_s}; done"
    return ["sh", "-c", script, "sh", *words]


class Watch:
    """One running command; a Stream."""

    def __init__(
        self,
        name: str,
        columns: tuple[Column, ...],
        machine: Machine,
        command: Sequence[str],
        taker: Taker,
        shown: str,
    ) -> None:
        """`shown` is what messages call the command."""
        self.name, self.columns = name, columns
        self._machine, self._command, self._taker, self._shown = machine, command, taker, shown
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self, say: Say) -> None:
        """Start the process. Raises MachineError."""
        self._process = await self._machine.start(self._command)
        self._reading = asyncio.create_task(self._read(self._process, say))

    def sample(self) -> list[float | None]:
        """Return the figures that came since the last call."""
        pair = self._taker.take()
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
                    self._taker.add(line.text)
        except MachineError as error:
            say(f"{self.name}: {error}")
        else:
            say(f"{self.name}: {self._shown} ended by itself; its columns stay empty from now on")
