"""A machine that runs nothing, records what it is asked to run, and reports success."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from plimsoll.lab.experiment.transcript import Record
from plimsoll.lab.machine import Done, Line, Process
from plimsoll.lab.steps.step import Command


class DryMachine:
    """A Machine. What is started on it ends at once, `ends` times; then it runs, and `started` is set."""

    def __init__(
        self, name: str, tell: Record, statuses: Mapping[tuple[str, ...], int], ends: int = 0
    ) -> None:
        """`statuses`: what commands end with whose last words ask for something; all others end well."""
        self.name, self._tell, self._statuses = name, tell, statuses
        self._ends = ends
        self.started = asyncio.Event()

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> Done:
        """Tell it."""
        words = tuple(command)
        self._tell(Command("", words, stdin=None if stdin is None else stdin.decode(errors="replace")))
        asked = [status for last, status in self._statuses.items() if words[-len(last) :] == last]
        return Done(words, asked[0] if asked else 0, "", "")

    async def start(self, command: Sequence[str]) -> Process:
        """Tell it."""
        self._tell(Command("", tuple(command)))
        process = _Lasting()
        if self._ends:
            self._ends -= 1
            await process.stop()
        else:
            self.started.set()
        return process

    async def read_text(self, path: str) -> str:
        """Return nothing."""
        return ""

    async def close(self) -> None:
        """There is nothing to close."""


class _Lasting:
    def __init__(self) -> None:
        self._stopped = asyncio.Event()

    async def lines(self) -> AsyncIterator[Line]:
        """Yield nothing, until it is stopped."""
        await self._stopped.wait()
        return
        yield

    async def wait(self) -> int:
        """Wait until it is stopped."""
        await self._stopped.wait()
        return 0

    async def stop(self, grace_s: float = 5.0) -> int:
        """End it."""
        self._stopped.set()
        return 0
