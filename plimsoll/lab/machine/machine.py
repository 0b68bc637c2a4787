"""A machine that runs commands: this one, or another over SSH."""

import asyncio
import contextlib
import shlex
import signal
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

import asyncssh

from plimsoll.common.ssh import Access, connect_options, connect_trouble
from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine.process import (
    Channel,
    CommandResult,
    GuardedProcess,
    Process,
    Reader,
    begin_or_end,
    decode_output,
    guard_command,
    run_guarded,
)


class Machine(Protocol):
    """A machine that runs commands: lists of arguments, never a line for a shell.

    A command runs in a session of its own. What it leaves running in its process group ends with it, and
    all of it ends when this program dies or the connection breaks.
    """

    name: str  # "local", or the host's name in lab.yml

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> CommandResult:
        """Run `command` to its end.

        Raises MachineError where it cannot be run, takes longer than `timeout_s` seconds, writes more than
        16 MiB, or (with `check`) its status is not 0.
        """
        ...

    async def start(self, command: Sequence[str]) -> Process:
        """Start `command`. Raises MachineError where the machine cannot be reached."""
        ...

    async def read_text(self, path: str) -> str:
        """Return the content of the file at `path`, also below /proc. Raises MachineError."""
        ...

    async def close(self) -> None:
        """End the connection, where there is one, and what still runs over it."""
        ...


class WrappedMachine:
    """A Machine that passes everything on to `machine`, which is somebody else's to close."""

    def __init__(self, machine: Machine) -> None:
        self.name, self._machine = machine.name, machine

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> CommandResult:
        """See Machine."""
        return await self._machine.run(command, stdin=stdin, timeout_s=timeout_s, check=check)

    async def start(self, command: Sequence[str]) -> Process:
        """See Machine."""
        return await self._machine.start(command)

    async def read_text(self, path: str) -> str:
        """See Machine."""
        return await self._machine.read_text(path)

    async def close(self) -> None:
        """Leave the machine open."""


class _Guarding(ABC):
    """What machines have in common that run commands under a guard."""

    name: str

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> CommandResult:
        """Run `command` to its end. Raises MachineError."""
        channel = await self._channel(command, None if stdin is None else len(stdin))
        return await run_guarded(self.name, command, channel, stdin, timeout_s, check)

    @abstractmethod
    async def _channel(self, command: Sequence[str], stdin_bytes: int | None) -> Channel: ...


class LocalMachine(_Guarding):
    """A Machine: this one."""

    def __init__(self, name: str = "local", become: bool = False) -> None:
        """`become`: run commands as root, by `sudo -n`."""
        self.name, self._become = name, become
        self._channels: list[_LocalChannel] = []
        self._processes: list[GuardedProcess] = []

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
            return decode_output(await asyncio.to_thread(Path(path).read_bytes))
        except OSError as error:
            raise MachineError(self.name, f"{path} cannot be read: {error.strerror}") from None

    async def close(self) -> None:
        """End what still runs."""
        await asyncio.gather(*(process.stop() for process in self._processes if process.runs))
        for channel in self._channels:
            channel.close()
        await asyncio.gather(*(channel.status() for channel in self._channels))

    async def _channel(self, command: Sequence[str], stdin_bytes: int | None) -> "_LocalChannel":
        channel = await begin_or_end(self._begin(command, stdin_bytes))
        self._channels = [one for one in self._channels if one.runs] + [channel]
        return channel

    async def _begin(self, command: Sequence[str], stdin_bytes: int | None) -> "_LocalChannel":
        try:
            process = await asyncio.create_subprocess_exec(
                *guard_command(command, stdin_bytes, self._become),
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


class SshMachine(_Guarding):
    """A Machine: another one. It connects when it is first asked for something, and again after a break."""

    def __init__(
        self, name: str, access: Access, become: bool = False, connect_timeout_s: float = 30.0
    ) -> None:
        """`name` is the host's in lab.yml; with `become` commands run as root, by `sudo -n`."""
        self.name = name
        self._access, self._become, self._timeout_s = access, become, connect_timeout_s
        self._connection: asyncssh.SSHClientConnection | None = None
        self._connecting = asyncio.Lock()

    async def start(self, command: Sequence[str]) -> Process:
        """Start `command`. Raises MachineError."""
        return GuardedProcess(await self._channel(command, None))

    async def read_text(self, path: str) -> str:
        """Return the content of the file at `path`. Raises MachineError."""
        return (await self.run(["cat", "--", path])).out

    async def close(self) -> None:
        """End the connection: the guards end what ran over it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            await connection.wait_closed()

    async def _channel(self, command: Sequence[str], stdin_bytes: int | None) -> "_SshChannel":
        connection = await self._connect()
        return await begin_or_end(self._begin(connection, command, stdin_bytes))

    async def _begin(
        self, connection: asyncssh.SSHClientConnection, command: Sequence[str], stdin_bytes: int | None
    ) -> "_SshChannel":
        try:
            process = await connection.create_process(
                command_line(command, stdin_bytes, self._become), encoding=None
            )
        except (asyncssh.Error, OSError) as error:
            raise MachineError(self.name, f"cannot be started: {error}", command) from None
        return _SshChannel(process, self.name, command)

    async def _connect(self) -> asyncssh.SSHClientConnection:
        async with self._connecting:
            if self._connection is None or self._connection.is_closed():
                try:
                    options = connect_options(self._access, self._timeout_s)
                    self._connection = await asyncssh.connect(**options)
                except (asyncssh.Error, OSError, ValueError) as error:
                    raise MachineError(self.name, connect_trouble(error, self._access).sentence) from None
            return self._connection


def command_line(command: Sequence[str], stdin_bytes: int | None = None, become: bool = False) -> str:
    """Return `command` under the guard as one line for the account's shell. Pure."""
    return shlex.join(guard_command(command, stdin_bytes, become))


def script_command(script: Path, *words: str) -> list[str]:
    """Return the command that runs `script` where only Python is: its text goes along."""
    return ["python3", "-c", _text(script), *words]


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


class _SshChannel:
    def __init__(
        self, process: "asyncssh.SSHClientProcess[bytes]", machine: str, command: Sequence[str]
    ) -> None:
        self._process, self._machine, self._command = process, machine, command
        self.out: Reader = _SshReader(process.stdout)
        self.err: Reader = _SshReader(process.stderr)

    async def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError, asyncssh.Error):
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    async def status(self) -> int:
        await self._process.wait_closed()
        if self._process.exit_signal:
            return 128 + _number(self._process.exit_signal[0])
        if self._process.exit_status is None:
            raise MachineError(self._machine, "the connection broke before the command ended", self._command)
        return self._process.exit_status

    def close(self) -> None:
        with contextlib.suppress(OSError, asyncssh.Error):
            self._process.stdin.write_eof()


class _SshReader:
    """A stream of a channel; a connection that broke is its end."""

    def __init__(self, reader: "asyncssh.SSHReader[bytes]") -> None:
        self._reader = reader

    async def read(self, n: int = -1, /) -> bytes:
        try:
            return await self._reader.read(n)
        except asyncssh.Error:
            return b""


def _number(name: str) -> int:
    try:
        return int(signal.Signals[f"SIG{name}"])
    except KeyError:
        return 0
