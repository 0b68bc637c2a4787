"""Two experiments on one machine exclude each other: the lock goes with whoever holds it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from lab.errors import LabError, MachineError
from lab.machine import Machine, Process

PATH = "/run/lock/plimsoll-lab.lock"
# Held by a process of the machine itself, which the guard ends when we die or the connection breaks.
# $1 is the lock, $2 what the next one is told. It is opened to be read: another user's may be.
_HOLD = r"""[ -e "$1" ] || : >>"$1" || exit 3
exec 9<"$1" || exit 3
flock -n 9 || { cat "$1.by" 2>/dev/null; exit 75; }
printf '%s\n' "$2" >"$1.by" 2>/dev/null
echo held
exec sleep infinity
"""
_BUSY = 75
_PATIENCE_S = 15.0  # that the guard of a predecessor who was killed has to let go


def hold_command(who: str) -> list[str]:
    """Return the command that holds the lock for `who`. Pure."""
    return ["sh", "-c", _HOLD, "sh", PATH, who]


@contextlib.asynccontextmanager
async def held(machine: Machine, who: str) -> AsyncIterator[None]:
    """Hold the lock of `machine` for `who`. Raises LabError where somebody else has it."""
    process = await _taken(machine, who)
    try:
        yield
    finally:
        with contextlib.suppress(LabError):
            await process.stop()


async def _taken(machine: Machine, who: str) -> Process:
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        process = await machine.start(hold_command(who))
        said = ""
        async for line in process.lines():
            if line.text == "held":
                return process
            said = line.text or said
        if await process.wait() != _BUSY:
            raise MachineError(machine.name, f"cannot take the lock {PATH}", hold_command(who)[:2], said)
        if time.monotonic() > until_s:
            raise LabError(
                f"{machine.name}: another experiment is at work here ({said or 'unknown'}): "
                "wait until it has ended, or end it"
            )
        await asyncio.sleep(1)
