"""One look at the folder of an experiment: cheap enough for every second, and without effect on the run."""

import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from plimsoll.common.files import objects
from plimsoll.lab.experiment.design import Design, PlannedRun, measured_rigs, preconditioned_rigs
from plimsoll.lab.experiment.folder import OUTPUT_FILE, ExperimentFolder, aside_name
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.load import beginnings
from plimsoll.lab.experiment.status.forecast import Course, OpenPart, left_s, precondition_s
from plimsoll.lab.experiment.status.running import Doing, RunningRun, stretches_of
from plimsoll.lab.experiment.volumes import is_over, lacking
from plimsoll.rundir.names import REPORT_FILE
from plimsoll.rundir.records import Tail
from plimsoll.rundir.volumes import VolumeRound, last_filling, read_rounds

_DOING = {
    "making": "making",
    "precondition begun": "preconditioning",
    "precondition filling": "preconditioning",
    "precondition round": "preconditioning",
    "fileio begun": "fileio",
    "fileio files": "fileio",
    "fileio cell": "fileio",
    "fsync cell": "fileio",
    "run begun": "preparing",
    "load begun": "measuring",
    "load ended": "ending",
    "run failed": "waiting",
    "removing": "removing",
}
_OF_VOLUMES = ("making", "preconditioning", "fileio")
_OPEN = {"run begun": "before", "load begun": "load", "load ended": "after"}
State = Literal["not begun", "running", "stopped", "finished", "unfinished"]


class Failure(BaseModel):
    """A try of a run that failed."""

    run: str
    backend: str
    at: datetime
    why: str
    output: str | None = None


class Runs(BaseModel):
    """How many runs there are, are finished, left, and set aside; and how many tries failed."""

    total: int
    finished: int
    left: int
    set_aside: int
    failed_tries: int


class VolumeCells(BaseModel):
    """The cells of fileio on all volumes, and the volumes on which it failed this time, with the reason."""

    total: int
    finished: int
    failed: dict[str, str]


class PreconditionedVolumes(BaseModel):
    """The volumes that are to be full and used: how many, on how many that is done, and which are steady.

    `rounds`: the last round on each, by volume; 0 is the filling.
    """

    volumes: int
    done: int
    steady: int
    rounds: dict[str, int]


class Status(BaseModel):
    """The whole. `resume` is the command that goes on, null where nothing is left or it runs already."""

    experiment: str
    directory: str
    state: State
    begun_at: datetime | None
    ended_at: datetime | None
    runs: Runs
    precondition: PreconditionedVolumes | None = None
    fileio: VolumeCells | None = None
    now: Doing | None
    last_failure: Failure | None
    set_aside: dict[str, str]
    ends_at: datetime | None
    left_s: float | None
    resume: str | None
    report: str | None


def _now() -> datetime:
    return datetime.now(UTC)


class Watch:
    """Looks at an experiment again and again; what was read once is not read again."""

    def __init__(self, folder: ExperimentFolder, clock: Callable[[], datetime] = _now) -> None:
        """Begin. Raises SettingsError where the folder holds no settings."""
        self._folder, self._clock = folder, clock
        self._lab = folder.settings()
        self._plan = Design.of(self._lab, folder.planned())
        self._runs = self._plan.runs
        rigs = {variant.name: variant.rig for variant in self._plan.variants.values()}
        self._course, self._tail = Course(rigs=rigs), Tail(folder.journal.path)
        self._finished: set[str] = set()
        self._aside: dict[str, str] = {}
        self._lacking, self._rounds = lacking(self._lab, folder.fileio), read_rounds(folder.rounds)
        self._running: RunningRun | None = None

    def look(self) -> Status:
        """Return the status as it is now."""
        is_held = self._folder.journal.is_held
        if lines := self._tail.lines():
            self._take(lines)
        now, course = self._clock(), self._course
        state = self._state(is_held)
        left = [
            run for run in self._runs.values() if run.name not in self._finished and not self._is_aside(run)
        ]
        running = state == "running"
        cells = {rig: each for rig, each in self._lacking.items() if self._is_to_be_measured(rig)}
        open_part = self._open(now) if running else None
        on = {self._plan.rig(run) for run in left}
        filling_s = precondition_s(self._plan, self._rounds, self._filled_now(now), on)
        seconds = (
            left_s(self._plan, left, course.made, course.spent, open_part, cells, filling_s)
            if running
            else None
        )
        report = self._folder.path / REPORT_FILE
        return Status(
            experiment=self._lab.name,
            directory=str(self._folder.path),
            state=state,
            begun_at=course.begun_at,
            ended_at=course.ended_at,
            runs=Runs(
                total=len(self._runs),
                finished=len(self._finished),
                left=len(left),
                set_aside=len(self._runs) - len(self._finished) - len(left),
                failed_tries=len(course.failures),
            ),
            precondition=preconditioned(self._lab, self._rounds),
            fileio=self._volumes(),
            now=self._doing(now) if running else None,
            last_failure=self._last_failure(),
            set_aside=self._aside,
            ends_at=None if seconds is None else now + timedelta(seconds=seconds),
            left_s=seconds,
            resume=self._resume(state, bool(left or self._lacking)),
            report=str(report) if report.is_file() else None,
        )

    def _take(self, lines: list[bytes]) -> None:
        for value in objects(lines):
            self._course.add(value)
        self._finished |= {
            name for name in self._runs if name not in self._finished and self._folder.finished(name)
        }
        self._aside = self._folder.journal.set_aside
        self._lacking = lacking(self._lab, self._folder.fileio)
        self._rounds = read_rounds(self._folder.rounds)

    def _is_aside(self, run: PlannedRun) -> bool:
        return not self._aside.keys().isdisjoint((run.backend, aside_name(run.backend, run.scenario)))

    def _is_to_be_measured(self, rig: str) -> bool:
        """Return whether the volume of `rig` will be measured before this experiment ends."""
        on = [name for name, variant in self._plan.variants.items() if variant.rig == rig]
        return rig not in self._course.not_measured and not all(name in self._aside for name in on)

    def _volumes(self) -> VolumeCells | None:
        if self._lab.fileio is None:
            return None
        total = len(self._lab.fileio.all_cells) * len(measured_rigs(self._lab))
        left = sum(map(len, self._lacking.values()))
        return VolumeCells(total=total, finished=total - left, failed=self._course.not_measured)

    def _state(self, is_held: bool) -> State:
        if self._course.begun_at is None:
            return "not begun"
        if self._course.ended_at is not None:
            whole = len(self._finished) == len(self._runs) and not self._lacking
            return "finished" if whole else "unfinished"
        return "running" if is_held else "stopped"

    def _resume(self, state: State, left: bool) -> str | None:
        if state in ("running", "finished"):
            return None
        flag = "--resume" if left else "--retry-set-aside"
        return f"plimsoll run {flag} {shlex.quote(str(self._folder.path))}"

    def _filled_now(self, now: datetime) -> tuple[str, float] | None:
        """Return the volume that is being filled or overwritten, and for how long."""
        line, since = self._course.last, self._course.last_at
        if since is None or line.get("what") not in ("precondition filling", "precondition round"):
            return None
        return str(line.get("backend")), max((now - since).total_seconds(), 0.0)

    def _open(self, now: datetime) -> OpenPart | None:
        line, since = self._course.last, self._course.last_at
        elapsed_s = max((now - since).total_seconds(), 0.0) if since else 0.0
        what = str(line.get("what"))
        if what == "making":
            return OpenPart("make", str(line.get("backend")), elapsed_s)
        if what == "fileio cell":
            return OpenPart("cell", str(line.get("backend")), elapsed_s)
        if what == "fsync cell":
            return OpenPart("fsync", str(line.get("backend")), elapsed_s)
        part = _OPEN.get(what)
        return OpenPart(part, str(line.get("run")), elapsed_s) if part else None  # type: ignore[arg-type]

    def _doing(self, now: datetime) -> Doing:
        course = self._course
        what = _DOING.get(str(course.last.get("what")), "starting")
        since_s = max((now - course.last_at).total_seconds(), 0.0) if course.last_at else 0.0
        doing = Doing.model_validate({"what": what, "since_s": since_s, "step": course.step})
        doing.backend = course.last.get("backend") if what in _OF_VOLUMES else None
        if what in ("preconditioning", "fileio"):
            doing.step = course.last.get("says") or course.step
        run = self._runs.get(str(course.last.get("run")))
        if run is None or what not in ("preparing", "measuring", "ending"):
            self._running = None
            return doing
        doing.run, doing.number, doing.try_ = run.name, run.number, course.tries[run.name]
        doing.backend, doing.scenario, doing.repeat = run.backend, run.scenario, run.repeat
        attempt = self._attempt(run.name)
        if what == "measuring" and attempt is not None:
            if self._running is None or self._running.attempt != attempt:
                variant = self._plan.variants[run.backend]
                self._running = RunningRun(
                    attempt, stretches_of(variant, run), beginnings(variant.lab, run.scenario)
                )
            self._running.look(now, doing)
        return doing

    def _attempt(self, run: str) -> Path | None:
        name = self._course.attempts.get(run)
        return self._folder.path / "attempts" / Path(name).name if name else None

    def _last_failure(self) -> Failure | None:
        if not self._course.failures:
            return None
        line, at, attempt = self._course.failures[-1]
        path = self._folder.path / "attempts" / Path(attempt).name / OUTPUT_FILE if attempt else None
        return Failure(
            run=str(line.get("run")),
            backend=str(line.get("backend")),
            at=at,
            why=str(line.get("why")),
            output=str(path) if path and path.is_file() else str(self._folder.commands),
        )


def preconditioned(lab: Lab, every: Sequence[VolumeRound]) -> PreconditionedVolumes | None:
    """Return how far the volumes are; None where none is to be filled."""
    if (wanted := lab.precondition) is None:
        return None
    rounds = {rig: last_filling(every, rig) for rig in preconditioned_rigs(lab)}
    return PreconditionedVolumes(
        volumes=len(rounds),
        done=sum(is_over(each, wanted) for each in rounds.values()),
        steady=sum(bool(each) and each[-1].steady is True for each in rounds.values()),
        rounds={rig: each[-1].round for rig, each in rounds.items() if each},
    )
