"""A Machine that runs nothing: it notes each command, and answers as it was told."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import CommandResult, Line

Answer = Callable[[Sequence[str]], tuple[int, str, str]]


class ScriptedProcess:
    """Writes its lines, and ends; with `status` None it runs until it is stopped."""

    def __init__(self, lines: Sequence[Line], status: int | None) -> None:
        self._lines, self._status = lines, status
        self._ended = asyncio.Event()
        self.stopped = False
        if status is not None:
            self._ended.set()

    async def lines(self) -> AsyncIterator[Line]:
        for line in self._lines:
            yield line
        await self._ended.wait()

    async def wait(self) -> int:
        await self._ended.wait()
        return 143 if self._status is None else self._status

    async def stop(self, grace_s: float = 5.0) -> int:
        self.stopped = True
        self._ended.set()
        return await self.wait()


class ScriptedMachine:
    """`answer` gives status, output and errors of what is run, `begun` the processes that are started."""

    name = "scripted"

    def __init__(
        self,
        answer: Answer = lambda command: (0, "", ""),
        begun: Callable[[Sequence[str]], ScriptedProcess] = lambda command: ScriptedProcess([], None),
    ) -> None:
        self._answer, self._begun = answer, begun
        self.commands: list[tuple[str, ...]] = []
        self.processes: list[ScriptedProcess] = []

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> CommandResult:
        self.commands.append(tuple(command))
        status, out, err = self._answer(command)
        if check and status:
            raise MachineError(self.name, f"ended with status {status}", command, err, status)
        return CommandResult(tuple(command), status, out, err)

    async def start(self, command: Sequence[str]) -> ScriptedProcess:
        self.commands.append(tuple(command))
        self.processes.append(self._begun(command))
        return self.processes[-1]

    async def read_text(self, path: str) -> str:
        raise MachineError(self.name, f"{path} cannot be read")

    async def close(self) -> None:
        pass
