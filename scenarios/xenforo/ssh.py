"""Runs one command over SSH and hands on its output as it comes. By key or agent; the host must be known."""

import asyncio
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

from scenarios.recognise import Trouble
from scenarios.xenforo.remote import Remote

_CHUNK = 1 << 14
_LOOK_S = 0.5  # how often it is asked whether to stop


@dataclass(frozen=True)
class Access:
    """How to log in: None means what ssh itself would take."""

    remote: Remote
    key: Path | None
    known_hosts: Path | None


@dataclass(frozen=True)
class Ended:
    """How a command ended. `stopped`: we ended it; `silent`: nothing came for too long."""

    exit_status: int | None
    signal: str
    stopped: bool = False
    silent: bool = False


class Connection:
    """A connection that runs commands; all calls are blocking."""

    def __init__(self, access: Access, timeout_s: float) -> None:
        """Connect. Raises what `connect_trouble` explains."""
        self._timeout_s = timeout_s
        self._runner = asyncio.Runner()
        try:
            self._connection = self._runner.run(_connected(access, min(timeout_s, 30.0)))
        except BaseException:
            self._runner.close()
            raise

    def run(self, command: str, each: Callable[[int, bytes], None], stopped: Callable[[], bool]) -> Ended:
        """Run `command`; `each` gets its output and errors, merged, with the instant (monotonic ns)."""
        return self._runner.run(_run(self._connection, command, each, stopped, self._timeout_s))

    def close(self) -> None:
        """End the connection."""
        self._connection.abort()
        self._runner.close()


def connect_options(access: Access, timeout_s: float) -> dict[str, Any]:
    """Return what asyncssh's connect is given: keys and agent only, no host that is not known. Pure."""
    options: dict[str, Any] = {
        "host": access.remote.host,
        "preferred_auth": ["publickey"],
        "password": None,
        "connect_timeout": timeout_s,
        "login_timeout": timeout_s,
        "keepalive_interval": 15,
    }
    if access.remote.user:
        options["username"] = access.remote.user
    if access.remote.port:
        options["port"] = access.remote.port
    if access.key:
        options["client_keys"] = [str(access.key)]
    if access.known_hosts:
        options["known_hosts"] = str(access.known_hosts)
    return options


def connect_trouble(error: Exception, access: Access) -> Trouble:
    """Explain why there is no connection, with the remedy. Pure."""
    where = str(access.remote)
    if isinstance(error, asyncssh.HostKeyNotVerifiable):
        return Trouble(
            "connect_failed",
            f"{where}: its host key is not in {access.known_hosts or '~/.ssh/known_hosts'}: "
            "connect once with ssh and compare the key, or give --ssh-known-hosts",
        )
    if isinstance(error, asyncssh.PermissionDenied):
        return Trouble(
            "login_failed", f"{where}: no key was accepted: give --ssh-key, or load one into the agent"
        )
    if isinstance(error, asyncssh.KeyImportError | asyncssh.KeyEncryptionError):
        return Trouble("login_failed", f"{access.key}: {error}: load a key with a passphrase into ssh-agent")
    if isinstance(error, ConnectionRefusedError):
        return Trouble("connect_refused", f"{where}: nobody listens there")
    if isinstance(error, TimeoutError):
        return Trouble("timeout", f"{where}: no answer")
    if isinstance(error, socket.gaierror):
        return Trouble("connect_failed", f"{where}: no such host")
    return Trouble("connect_failed", f"{where}: {error or type(error).__name__}")


async def _connected(access: Access, timeout_s: float) -> asyncssh.SSHClientConnection:
    return await asyncssh.connect(**connect_options(access, timeout_s))


async def _run(
    connection: asyncssh.SSHClientConnection,
    command: str,
    each: Callable[[int, bytes], None],
    stopped: Callable[[], bool],
    timeout_s: float,
) -> Ended:
    process = await connection.create_process(
        command, encoding=None, stdin=asyncssh.DEVNULL, stderr=asyncssh.STDOUT
    )
    silent_since_s = time.monotonic()
    reading = asyncio.ensure_future(process.stdout.read(_CHUNK))
    try:
        while True:
            done, _ = await asyncio.wait([reading], timeout=_LOOK_S)
            if done:
                data = reading.result()
                if not data:
                    break
                each(time.monotonic_ns(), data)
                silent_since_s = time.monotonic()
                reading = asyncio.ensure_future(process.stdout.read(_CHUNK))
            elif stopped():
                process.terminate()
                return Ended(None, "", stopped=True)
            elif time.monotonic() - silent_since_s > timeout_s:
                return Ended(None, "", silent=True)
    finally:
        reading.cancel()
    completed = await process.wait(check=False)
    signal = str(completed.exit_signal[0]) if completed.exit_signal else ""
    return Ended(None if signal else completed.exit_status, signal)
