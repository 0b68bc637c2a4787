"""Runs one command over SSH and hands on its output as it comes. By key or agent; the host must be known."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

import asyncssh

from plimsoll.common.ssh import Access, connect_options

_CHUNK = 1 << 14
_LOOK_S = 0.5  # between two checks whether to stop


@dataclass(frozen=True)
class Ended:
    """The end of a command. `stopped`: the scenario ended it; `silent`: nothing came for too long."""

    exit_status: int | None
    signal: str
    stopped: bool = False
    silent: bool = False


class SshSession:
    """A connection that runs commands; all calls are blocking."""

    def __init__(self, access: Access, timeout_s: float) -> None:
        """Connect. Raises what `plimsoll.common.ssh.connect_trouble` explains."""
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
