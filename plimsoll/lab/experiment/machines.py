"""The machines of an experiment: connected to once, locked; those that record, recall, or do nothing."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from plimsoll.lab.errors import LabError, MachineError
from plimsoll.lab.experiment.labfile import LOCAL, Backend, Lab
from plimsoll.lab.machine import CommandResult, Line, LocalMachine, Machine, Process, WrappedMachine
from plimsoll.lab.steps.step import Check, Command

LOCK_PATH = "/run/lock/plimsoll-lab.lock"

# Held by a process on that machine, which the guard ends when this program dies or the connection breaks.
# $1 is the lock, $2 the holder's name for others. It is opened read-only: it may be another user's.
_HOLD = r"""[ -e "$1" ] || : >>"$1" || exit 3
exec 9<"$1" || exit 3
flock -n 9 || { cat "$1.by" 2>/dev/null; exit 75; }
printf '%s\n' "$2" >"$1.by" 2>/dev/null
echo held
exec sleep infinity
"""
_IS_FREE = '[ ! -e "$1" ] || flock -n "$1" true || { cat "$1.by" >&2; exit 1; }'
_BUSY_STATUS = 75
_LOCK_PATIENCE_S = 15.0  # for the guard of a killed predecessor to release the lock
Record = Callable[[Command], None]
_Question = tuple[tuple[str, ...], bytes | None]


class Machines:
    """The machines of an experiment, each connected to once."""

    def __init__(self, lab: Lab) -> None:
        self.here = LocalMachine(LOCAL)
        self._others = {host.name: host.machine() for host in lab.hosts}

    def of(self, backend: Backend) -> Machine:
        """Return the machine with the backend's disks."""
        return self.here if backend.host == LOCAL else self._others[backend.host]

    def used(self, lab: Lab) -> list[Machine]:
        """Return the machines whose disks are used, each once."""
        return list({backend.host: self.of(backend) for backend in lab.backends}.values())

    async def close(self) -> None:
        """End all connections, and what still runs over them."""
        machines: list[Machine] = [*self._others.values(), self.here]
        for machine in machines:
            await machine.close()


class BusyError(LabError):
    """Another experiment uses this machine."""


class Lock:
    """The lock of one machine, for `who`. It is lost with the connection: `take` it again before each run."""

    def __init__(self, machine: Machine, who: str) -> None:
        self.machine, self._who = machine, who
        self._process: Process | None = None
        self._gone: asyncio.Future[None] | None = None

    async def take(self) -> None:
        """Take the lock, unless this object holds it. Raises BusyError where somebody else does."""
        if self._gone is not None and not self._gone.done():
            return
        until_s = time.monotonic() + _LOCK_PATIENCE_S
        while (by := await self._try_to_take()) is not None:
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

    async def _try_to_take(self) -> str | None:
        """Try once. Return who holds it, None where this object now does."""
        command = hold_command(self._who)
        process = await self.machine.start(command)
        lines, said = process.lines(), ""
        async for line in lines:
            if line.text == "held":
                self._process, self._gone = process, asyncio.ensure_future(_end(lines))
                return None
            said = line.text or said
        if await process.wait() != _BUSY_STATUS:
            raise MachineError(self.machine.name, f"cannot lock {LOCK_PATH}", command[:2], said)
        return said or "unknown"


@contextlib.asynccontextmanager
async def lock_machine(machine: Machine, who: str) -> AsyncIterator[Lock]:
    """Hold the lock of `machine` for `who`. Raises LabError where somebody else has it."""
    lock = Lock(machine, who)
    try:
        await lock.take()
        yield lock
    finally:
        await lock.release()


async def _end(lines: AsyncIterator[Line]) -> None:
    async for _ in lines:
        pass


def lock_check() -> Check:
    """Check whether the lock is free; if it is not, the check says who holds it. Pure."""
    words = ("sh", "-c", _IS_FREE, "sh", LOCK_PATH)
    return Check("another experiment uses this machine: wait until it ends", words)


def hold_command(who: str) -> list[str]:
    """Return the command that holds the lock for `who`. Pure."""
    return ["sh", "-c", _HOLD, "sh", LOCK_PATH, who]


class RecordedMachine(WrappedMachine):
    """A Machine that records the commands run on `machine`: those that `which` accepts, by default all."""

    def __init__(
        self, machine: Machine, record: Record, which: Callable[[Sequence[str]], bool] = lambda _: True
    ) -> None:
        super().__init__(machine)
        self._record, self._which = record, which

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> CommandResult:
        """Run `command` to its end. Raises MachineError."""
        if self._which(command):
            said = None if stdin is None else stdin.decode(errors="replace")
            self._record(Command("", tuple(command), stdin=said))
        return await self._machine.run(command, stdin=stdin, timeout_s=timeout_s, check=check)

    async def start(self, command: Sequence[str]) -> Process:
        """Start `command`. Raises MachineError."""
        if self._which(command):
            self._record(Command("", tuple(command)))
        return await self._machine.start(command)


class AskedOnce(WrappedMachine):
    """A Machine that answers from memory what was asked before. Not for two who ask at the same time."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self._known: dict[_Question, CommandResult | MachineError] = {}

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> CommandResult:
        """Run `command` to its end, or recall what came of it. Raises MachineError."""
        question = (tuple(command), stdin)
        if question not in self._known:
            try:
                done = await self._machine.run(command, stdin=stdin, timeout_s=timeout_s, check=False)
                self._known[question] = done
            except MachineError as error:
                self._known[question] = error
        known = self._known[question]
        if isinstance(known, MachineError):
            raise known
        if check and known.status:
            raise MachineError(
                self.name, f"ended with status {known.status}", command, known.err, known.status
            )
        return known


class DryMachine:
    """A Machine that runs nothing, records what it is asked to run, and reports success.

    What is started on it ends at once, `ends` times; then it runs, and `started` is set.
    """

    def __init__(
        self, name: str, record: Record, statuses: Mapping[tuple[str, ...], int], ends: int = 0
    ) -> None:
        """`statuses`: what commands end with whose last words ask for something; all others end well."""
        self.name, self._record, self._statuses = name, record, statuses
        self._ends = ends
        self.started = asyncio.Event()

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> CommandResult:
        """Record `command`."""
        words = tuple(command)
        self._record(Command("", words, stdin=None if stdin is None else stdin.decode(errors="replace")))
        asked = [status for last, status in self._statuses.items() if words[-len(last) :] == last]
        return CommandResult(words, asked[0] if asked else 0, "", "")

    async def start(self, command: Sequence[str]) -> Process:
        """Record `command`."""
        self._record(Command("", tuple(command)))
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
