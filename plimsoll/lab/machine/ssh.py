"""Another machine, over SSH."""

import asyncio
import contextlib
import shlex
import signal
from collections.abc import Sequence

import asyncssh

from plimsoll.common.ssh import Access, connect_options, connect_trouble
from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine.guard import guarded
from plimsoll.lab.machine.guarded import GuardedProcess, Reader, begun_or_ended, run_guarded
from plimsoll.lab.machine.machine import Done, Process


class SshMachine:
    """A Machine: another one. It connects when it is first asked for something, and again after a break."""

    def __init__(
        self, name: str, access: Access, become: bool = False, connect_timeout_s: float = 30.0
    ) -> None:
        """`name` is the host's in lab.yml; with `become` commands run as root, by `sudo -n`."""
        self.name = name
        self._access, self._become, self._timeout_s = access, become, connect_timeout_s
        self._connection: asyncssh.SSHClientConnection | None = None
        self._connecting = asyncio.Lock()

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
        connection = await self._connected()
        return await begun_or_ended(self._begun(connection, command, stdin_bytes))

    async def _begun(
        self, connection: asyncssh.SSHClientConnection, command: Sequence[str], stdin_bytes: int | None
    ) -> "_SshChannel":
        try:
            process = await connection.create_process(
                command_line(command, stdin_bytes, self._become), encoding=None
            )
        except (asyncssh.Error, OSError) as error:
            raise MachineError(self.name, f"cannot be started: {error}", command) from None
        return _SshChannel(process, self.name, command)

    async def _connected(self) -> asyncssh.SSHClientConnection:
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
    return shlex.join(guarded(command, stdin_bytes, become))


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
