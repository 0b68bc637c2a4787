"""The load of a run: the command of each member, when it begins, and the saturator's phases."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.programs import plimsoll_command, replay_program
from plimsoll.lab.clones.clone import Target
from plimsoll.lab.errors import LabError, last_words
from plimsoll.lab.experiment.folder import OUTPUT_FILE
from plimsoll.lab.experiment.labfile import (
    BEGIN_APART_S,
    ON_K6,
    REPLAY,
    UPGRADES,
    Lab,
    Member,
    Phases,
    ReplayOptions,
    ScenarioChoice,
)
from plimsoll.lab.experiment.order import PlannedRun
from plimsoll.lab.experiment.scenarios import ScenarioTraits, TraitsByScenario
from plimsoll.lab.experiment.slices import find_slices
from plimsoll.lab.machine import Machine, Process
from plimsoll.lab.saturators.saturator import Saturator
from plimsoll.rundir.find import find_runs
from plimsoll.rundir.names import FACTS_FILE
from plimsoll.rundir.read import read_json
from plimsoll.scenarios.running.settings import BEGIN_VARIABLE

_BEGIN_S = 600.0  # until a scenario has begun: the first that needs k6 builds it
_STOP_S = 60.0  # for a scenario to end in good order once asked to
_LOOK_S = 0.02
BEGIN_FILE = "begin"  # in the folder of a member: it waits with its first iteration until this is there


@dataclass(frozen=True)
class Beginning:
    """The second of the run, warm-up included, at which a member begins.

    `with_saturator`: as soon as the saturator works, which takes it a moment; at `at_s` where none does.
    """

    at_s: float
    with_saturator: bool = False

    @property
    def sentence(self) -> str:
        """When it begins, in words."""
        return f"begins at {self.at_s:g} s" + (", with the saturator" if self.with_saturator else "")


@dataclass(frozen=True)
class MemberCommand:
    """The command of a member of a run, whose run directory is made below `folder`.

    `begins`: when it does, None where that is with the run.
    """

    member: Member
    folder: str
    command: list[str]
    begins: Beginning | None = None

    @property
    def says(self) -> str:
        """What is done, for people."""
        return "run the scenario" + (f", which {self.begins.sentence}" if self.begins else "")


def build_loads(
    lab: Lab, run: PlannedRun, kinds: TraitsByScenario, target: Target, attempt: str, ours: bool
) -> list[MemberCommand]:
    """Return what loads the clone in `run`, below the folder `attempt`, in the order in which it is started.

    A crowd comes first: what is timed within it begins when it is there.
    """
    choice = lab.scenario(run.scenario)
    loads = []
    for member in sorted(choice.members, key=lambda each: not each.is_crowd):
        folder = f"{attempt}/{member.called}" if choice.together else attempt
        command = member_command(lab, run, member, kinds[choice.called_in_full(member)], target, folder, ours)
        begins = find_beginning(lab, choice, member)
        waits = ["env", f"{BEGIN_VARIABLE}={folder}/{BEGIN_FILE}"] if begins else []
        loads.append(MemberCommand(member, folder, [*waits, *command], begins))
    return loads


def member_command(
    lab: Lab, run: PlannedRun, member: Member, kind: ScenarioTraits, target: Target, out: str, ours: bool
) -> list[str]:
    """Return the command that does `member`'s part of `run`, its run directory below `out`.

    `kind`: the traits of its scenario. `ours`: the lab made the clone.
    """
    duration_s = lab.member_duration_s(lab.scenario(run.scenario), member) if kind.timed else None
    common = [
        *("--target", target.url),
        *(["--connect-to", target.connect_to] if target.connect_to else []),
        *("--backend", run.backend, "--repeat", str(run.repeat), "--out", out),
    ]
    if member.scenario == REPLAY:
        return [replay_program(), "run", *replay_words(lab, member.options, duration_s, run.block), *common]
    given: list[str] = []
    for key, value in member.options.items():
        flag = "--" + key.replace("_", "-")
        if isinstance(value, bool):
            given += [flag] if value else []
        else:
            given += [flag, ",".join(value) if isinstance(value, list) else str(value)]
    if duration_s is not None:
        given += ["--duration-s", f"{duration_s:g}"]
    if "seed" not in member.options:
        given += ["--seed", str(lab.seed)]
    leave = ["--i-may-change-this-site"] if ours and kind.changes else []
    return [*plimsoll_command(), "scenario", member.scenario, *common, *given, *leave, "--no-progress"]


def replay_words(lab: Lab, given: dict[str, Any], duration_s: float | None, block: int | None) -> list[str]:
    """Return the arguments of `plimsoll replay`; `duration_s` is its length, warm-up included.

    In a block, they are those of its slice of the log.
    """
    slices = find_slices(given, duration_s) if block else None
    options = ReplayOptions.model_validate(given)
    pace = ["--rate", f"{options.rate:g}"] if options.rate else ["--speed", options.speed]
    if options.users:
        pace = ["--users", str(options.users)]
    return [
        *options.log,
        *(["--format", options.format] if options.format else []),
        *pace,
        *("--loops", str(options.loops if duration_s is not None else options.loops or 1)),
        *(["--duration", f"{duration_s:g}s"] if duration_s is not None else []),
        *(["--from", slices.start(block)] if slices and block else []),
        *("--warmup", f"{lab.warmup_s:g}s", "--seed", str(lab.seed), "--quiet"),
        *options.flags,
    ]


def find_beginning(lab: Lab, choice: ScenarioChoice, member: Member) -> Beginning | None:
    """Return when `member` begins; None where that is with the run.

    What ends by itself is there to be timed under the saturator: begun with the run, it could be over before
    that works, or have its first part in the warm-up, which no figure shows.
    """
    if member.begin_s is not None:
        return Beginning(member.begin_s) if member.begin_s else None
    ends = member.scenario in UPGRADES or "iterations" in member.options or lab.duration_s(choice) is None
    if not choice.together or not ends or member.is_crowd or member.scenario in ON_K6:
        return None
    return Beginning(lab.warmup_s + lab.phases_of(choice).before_s, with_saturator=True)


def beginnings(lab: Lab, called: str) -> dict[str, float]:
    """Return the second at which each member of entry `called` begins, by its name, if not with the run."""
    choice = lab.scenario(called)
    found = {member.called: find_beginning(lab, choice, member) for member in choice.members}
    return {name: begins.at_s for name, begins in found.items() if begins}


class RunClock:
    """The run's own clock: nanoseconds since its start, by this machine's monotonic one."""

    def __init__(self, started_at: datetime) -> None:
        """`started_at` is run.json's. The two clocks are read once, together."""
        since_ns = time.time_ns() - int(started_at.timestamp() * 1_000_000) * 1000
        self.start_ns = time.monotonic_ns() - since_ns

    def now_ns(self) -> int:
        """Return the nanoseconds since the run's start."""
        return self.since_ns(time.monotonic_ns())

    def since_ns(self, at_ns: int) -> int:
        """Return the nanoseconds from the run's start to an instant of this machine's monotonic clock."""
        return at_ns - self.start_ns

    async def until(self, t_s: float) -> None:
        """Wait until that second of the run, which may be over."""
        await asyncio.sleep(max(t_s - self.now_ns() / 1e9, 0))


class Events:
    """The events of a run that its own writer does not note: kept beside it, and merged in at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock: RunClock | None = None
        self.saturated = asyncio.Event()  # set as soon as the saturator has started

    def note(self, event: dict[str, Any]) -> None:
        """Append `event` with the instant at which it came, or which its `at_ns` names (monotonic).

        Before the run's start there is no instant.
        """
        at_ns = event.get("at_ns", time.monotonic_ns())
        t_ns = self.clock.since_ns(at_ns) if self.clock else 0
        event = {key: value for key, value in event.items() if key != "at_ns"}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"t_ns": t_ns, **event}, ensure_ascii=False, allow_nan=False) + "\n")
        if event.get("phase") == "start":
            self.saturated.set()

    def require_saturated(self, since_s: float) -> None:
        """Raise LabError if the saturator has not started, though its phase began at second `since_s`.

        Such a run would pass for one under the saturator.
        """
        late_s = self.clock.now_ns() / 1e9 - since_s if self.clock else 0.0
        if late_s > 0 and not self.saturated.is_set():
            raise LabError(
                f"the saturator was still getting ready {late_s:.0f} s after its phase began, when the load "
                "ended: make the phase longer (phases.during_s), or see what keeps the host so busy"
            )


class ScenarioProcess:
    """A running scenario: its output goes to a file, and its last words are kept."""

    def __init__(self, process: Process, path: Path) -> None:
        self._process, self.path, self.words = process, path, ""
        self._reading = asyncio.create_task(self._read())

    def is_over(self) -> bool:
        """Return whether it has ended."""
        return self._reading.done()

    async def wait(self) -> int:
        """Wait until it has ended, and return its status."""
        await asyncio.shield(self._reading)
        return await self._process.wait()

    async def stop(self) -> None:
        """Stop it gracefully, or kill it if that takes too long."""
        if not self.is_over():
            await self._process.stop(_STOP_S)
        await self.wait()

    async def _read(self) -> None:
        with self.path.open("w", encoding="utf-8", errors="replace") as file:
            async for line in self._process.lines():
                file.write(line.text + "\n")
                file.flush()
                if line.stream == "err" and line.text.strip():
                    self.words = last_words(line.text)


@dataclass(eq=False)
class MemberRun:
    """A member's part of a run, or all of it.

    `called` is what messages call it, `directory` its run directory, `clock` that run's. `stopped`: the lab
    ended it in good order, as the others had ended. `began_ns`: when one that begins later was let begin,
    by this machine's monotonic clock.
    """

    load: MemberCommand
    called: str
    program: ScenarioProcess = field(init=False)
    directory: Path = field(init=False)
    clock: RunClock = field(init=False)
    stopped: bool = field(default=False, init=False)
    began_ns: int | None = field(default=None, init=False)

    async def start(self, here: Machine) -> None:
        """Start its program. Raises MachineError."""
        folder = Path(self.load.folder)
        folder.mkdir(exist_ok=True)
        self.program = ScenarioProcess(await here.start(self.load.command), folder / OUTPUT_FILE)

    async def begin(self) -> None:
        """Wait until its own clock runs. Raises LabError."""
        try:
            self.directory, started_at = await wait_for_run(
                Path(self.load.folder), self.program.is_over, _BEGIN_S
            )
        except LabError as error:
            words = self.program.words or "it printed nothing"
            raise LabError(f"{self.called}: {error}: {words}") from None
        self.clock = RunClock(started_at)

    async def let_begin(self, clock: RunClock, saturated: asyncio.Event | None) -> None:
        """Start a member that begins later when it is due, by the run's `clock`. Raises LabError.

        `saturated` is set once the saturator works; None where nothing saturates the disks.
        """
        begins = self.load.begins
        if begins is None:
            return
        if begins.with_saturator and saturated is not None:
            await saturated.wait()
        else:
            await clock.until(begins.at_s)
        path = Path(self.load.folder) / BEGIN_FILE
        try:
            path.touch()
        except OSError as error:
            raise LabError(f"{self.called}: {path} cannot be written: {error.strerror}") from None
        self.began_ns = time.monotonic_ns()

    async def end(self) -> None:
        """Wait until it has ended. Raises LabError unless its run is complete."""
        await self.program.wait()
        facts = read_json(self.directory / FACTS_FILE)
        status = facts.get("status")
        if status != "complete" and not (self.stopped and status == "interrupted"):
            # The run's own reason has the site's words; a program may end with its library's.
            words = facts.get("reason") or self.program.words or f"see {self.program.path}"
            raise LabError(f"{self.called}: the run is {status}: {words}")

    async def dismiss(self) -> None:
        """Stop it gracefully if it still runs, since all others have ended: its run is complete."""
        self.stopped = not self.program.is_over()
        await self.program.stop()


class RunLoad:
    """All parts of one run, which has one clock: that of the part that begins last."""

    def __init__(self, parts: Sequence[MemberRun], endless: bool) -> None:
        """`endless`: it ends when all parts have that end by themselves; a crowd is stopped then."""
        self._parts = parts
        self._asked = [part for part in parts if not (endless and part.load.member.is_crowd)]
        self._started: list[MemberRun] = []

    async def begin(self, here: Machine) -> RunClock:
        """Start every part, and return the clock of all. Raises LabError.

        What is timed within a crowd begins when the crowd is there.
        """
        crowd = [part for part in self._parts if part.load.member.is_crowd]
        for parts in (crowd, [part for part in self._parts if part not in crowd]):
            for part in parts:
                await part.start(here)
                self._started.append(part)
            await in_step(part.begin() for part in parts)
        first, last = (pick(self._parts, key=lambda part: part.clock.start_ns) for pick in (min, max))
        apart_s = (last.clock.start_ns - first.clock.start_ns) / 1e9
        if apart_s > BEGIN_APART_S:
            raise LabError(
                f"{last.called} began {apart_s:.0f} s after {first.called}, and at most {BEGIN_APART_S:g} s "
                "are allowed: is this machine too busy to start them?"
            )
        return last.clock

    async def let_begin(self, clock: RunClock, saturated: asyncio.Event | None) -> None:
        """Start each part that begins later when it is due. Raises LabError."""
        await in_step(part.let_begin(clock, saturated) for part in self._parts)

    async def end(self) -> None:
        """Wait until all parts have ended. Raises LabError as soon as one has that is not complete."""
        ending = {part.called: asyncio.create_task(part.end()) for part in self._parts}
        try:
            while any(not ending[part.called].done() for part in self._asked):
                running = [task for task in ending.values() if not task.done()]
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            await in_step(part.dismiss() for part in self._parts)
            await asyncio.gather(*ending.values())
        finally:
            for task in ending.values():
                task.cancel()

    async def stop(self) -> None:
        """Stop all that still runs gracefully, at the same time."""
        await asyncio.gather(*(part.program.stop() for part in self._started), return_exceptions=True)


async def in_step(waiting: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all; if one raises, cancel the others and raise its error."""
    tasks = [asyncio.create_task(each) for each in waiting]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def wait_for_run(attempt: Path, ended: Callable[[], bool], timeout_s: float) -> tuple[Path, datetime]:
    """Wait for the run directory. Raises LabError where the program ends without one, or takes too long."""
    until_s = time.monotonic() + timeout_s
    while time.monotonic() < until_s:
        over = ended()
        if found := find_begun_run(attempt):
            return found
        if over:
            raise LabError("it ended before the run began")
        await asyncio.sleep(_LOOK_S)
    raise LabError(f"it did not begin within {timeout_s:g} s")


def find_begun_run(attempt: Path) -> tuple[Path, datetime] | None:
    """Return the run directory below `attempt` and its `started_at`, None where it is not begun yet."""
    for run in find_runs(attempt):
        try:
            started_at = read_json(run / FACTS_FILE).get("started_at")
            return run, datetime.fromisoformat(started_at).astimezone(UTC)
        except (RunDirectoryError, ValueError, TypeError, AttributeError):
            continue
    return None


async def saturate(saturator: Saturator, clock: RunClock, warmup_s: float, phases: Phases) -> None:
    """Start the saturator when the phase before it is over, and stop it after its own.

    Where the phase has no end, it goes on until this is cancelled. Raises LabError where it gave up.
    """
    await clock.until(warmup_s + phases.before_s)
    try:
        await saturator.start()
        if phases.during_s is None:
            await asyncio.Event().wait()
        else:
            await clock.until(warmup_s + phases.before_s + phases.during_s)
    finally:
        await saturator.stop()
    if saturator.failure:
        raise LabError(f"the saturator gave up: {saturator.failure}")
