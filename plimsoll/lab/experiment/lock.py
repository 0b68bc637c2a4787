"""Two experiments on one machine exclude each other: the lock goes with whoever holds it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from plimsoll.lab.errors import LabError, MachineError
from plimsoll.lab.machine import Line, Machine, Process

PATH = "/run/lock/plimsoll-lab.lock"
# Held by a process on that machine, which the guard ends when this program dies or the connection breaks.
# $1 is the lock, $2 the holder's name for others. It is opened read-only: it may be another user's.
_HOLD = r"""[ -e "$1" ] || : >>"$1" || exit 3
exec 9<"$1" || exit 3
flock -n 9 || { cat "$1.by" 2>/dev/null; exit 75; }
printf '%s\n' "$2" >"$1.by" 2>/dev/null
echo held
exec sleep infinity
"""
_BUSY = 75
_PATIENCE_S = 15.0  # for the guard of a killed predecessor to release the lock


def hold_command(who: str) -> list[str]:
    """Return the command that holds the lock for `who`. Pure."""
    return ["sh", "-c", _HOLD, "sh", PATH, who]


class BusyError(LabError):
    """Another experiment uses this machine."""


class Lock:
    """The lock of one machine, for `who`. Goes with the connection: `hold` it again before each run."""

    def __init__(self, machine: Machine, who: str) -> None:
        self.machine, self._who = machine, who
        self._process: Process | None = None
        self._gone: asyncio.Future[None] | None = None

    async def hold(self) -> None:
        """Take the lock, unless this object holds it. Raises BusyError where somebody else does."""
        if self._gone is not None and not self._gone.done():
            return
        until_s = time.monotonic() + _PATIENCE_S
        while (by := await self._taken()) is not None:
            if time.monotonic() > until_s:
                raise BusyError(
                    f"{self.machine.name}: another experiment uses this machine ({by}): "
                    "wait until it ends, or stop it"
                )
            await asyncio.sleep(1)

    async def release(self) -> None:
        """Release the lock; it may be gone."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(LabError):
                await process.stop()
        if self._gone is not None:
            with contextlib.suppress(LabError):
                await self._gone

    async def _taken(self) -> str | None:
        """Try once. Return who holds it, None where this object now does."""
        command = hold_command(self._who)
        process = await self.machine.start(command)
        lines, said = process.lines(), ""
        async for line in lines:
            if line.text == "held":
                self._process, self._gone = process, asyncio.ensure_future(_end(lines))
                return None
            said = line.text or said
        if await process.wait() != _BUSY:
            raise MachineError(self.machine.name, f"cannot lock {PATH}", command[:2], said)
        return said or "unknown"


@contextlib.asynccontextmanager
async def held(machine: Machine, who: str) -> AsyncIterator[Lock]:
    """Hold the lock of `machine` for `who`. Raises LabError where somebody else has it."""
    lock = Lock(machine, who)
    try:
        await lock.hold()
        yield lock
    finally:
        await lock.release()


async def _end(lines: AsyncIterator[Line]) -> None:
    async for _ in lines:
        pass
