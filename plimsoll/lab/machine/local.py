"""This machine."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine.guard import guarded
from plimsoll.lab.machine.guarded import GuardedProcess, Reader, begun_or_ended, run_guarded
from plimsoll.lab.machine.linesplit import text_of
from plimsoll.lab.machine.machine import Done, Process


class LocalMachine:
    """A Machine: this one."""

    def __init__(self, name: str = "local", become: bool = False) -> None:
        """`become`: run commands as root, by `sudo -n`."""
        self.name, self._become = name, become
        self._channels: list[_LocalChannel] = []
        self._processes: list[GuardedProcess] = []

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> Done:
        """Run `command` to its end. Raises MachineError."""
        channel = await self._channel(command, None if stdin is None else len(stdin))
        return await run_guarded(self.name, command, channel, stdin, timeout_s, check)

    async def start(self, command: Sequence[str]) -> Process:
        """Start `command`. Raises MachineError."""
        process = GuardedProcess(await self._channel(command, None))
        self._processes = [one for one in self._processes if one.runs] + [process]
        return process

    async def read_text(self, path: str) -> str:
        """Return the content of the file at `path`. Raises MachineError."""
        if self._become:
            return (await self.run(["cat", "--", path])).out
        try:
            return text_of(await asyncio.to_thread(Path(path).read_bytes))
        except OSError as error:
            raise MachineError(self.name, f"{path} cannot be read: {error.strerror}") from None

    async def close(self) -> None:
        """End what still runs."""
        await asyncio.gather(*(process.stop() for process in self._processes if process.runs))
        for channel in self._channels:
            channel.close()
        await asyncio.gather(*(channel.status() for channel in self._channels))

    async def _channel(self, command: Sequence[str], stdin_bytes: int | None) -> "_LocalChannel":
        channel = await begun_or_ended(self._begun(command, stdin_bytes))
        self._channels = [one for one in self._channels if one.runs] + [channel]
        return channel

    async def _begun(self, command: Sequence[str], stdin_bytes: int | None) -> "_LocalChannel":
        try:
            process = await asyncio.create_subprocess_exec(
                *guarded(command, stdin_bytes, self._become),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
            raise MachineError(self.name, f"cannot be started: {error}", command) from None
        return _LocalChannel(process)


class _LocalChannel:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin and process.stdout and process.stderr  # noqa: S101 all are pipes: for the types
        self._process, self._input = process, process.stdin
        self.out: Reader = process.stdout
        self.err: Reader = process.stderr

    @property
    def runs(self) -> bool:
        return self._process.returncode is None

    async def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._input.write(data)
            await self._input.drain()

    async def status(self) -> int:
        status = await self._process.wait()
        self._input.close()
        return status if status >= 0 else 128 - status

    def close(self) -> None:
        self._input.close()
