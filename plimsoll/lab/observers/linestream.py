"""A process on the host that prints a line a second, as long as the observing lasts."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Machine, Process
from plimsoll.lab.observers.observer import Say

_LONGEST = 200


class LineStream:
    """One running process: `take` gets each line of its output. Why it ended is said once."""

    def __init__(
        self,
        name: str,
        machine: Machine,
        command: Sequence[str],
        take: Callable[[str], None],
        shown: str = "its process",
    ) -> None:
        """`shown` is what the message at its end calls it."""
        self._name, self._machine, self._command = name, machine, command
        self._take, self._shown = take, shown
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self, say: Say) -> None:
        """Start it. Raises MachineError."""
        self._process = await self._machine.start(self._command)
        self._reading = asyncio.create_task(self._read(self._process, say))

    async def stop(self) -> None:
        """End it."""
        if self._reading:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
        if self._process:
            with suppress(MachineError):  # where the connection broke, the process ended with it
                await self._process.stop()

    async def _read(self, process: Process, say: Say) -> None:
        why = f"{self._shown} ended by itself"
        try:
            async for line in process.lines():
                if line.stream == "out":
                    self._take(line.text)
                elif line.text.strip():
                    why = line.text.strip()[:_LONGEST]
        except MachineError as error:
            why = str(error)
        say(f"{self._name}: {why}; its columns stay empty from now on")
