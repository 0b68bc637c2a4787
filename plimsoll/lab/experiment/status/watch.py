"""The status of an experiment, read from its folder: cheap enough for every second, no effect on the run."""

import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from plimsoll.common.files import objects
from plimsoll.lab.experiment.design import Design, measured_rigs, preconditioned_rigs
from plimsoll.lab.experiment.folder import OUTPUT_FILE, ExperimentFolder, set_aside_label
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.load import beginnings
from plimsoll.lab.experiment.status.forecast import ExperimentProgress, OpenPart, Part, left_s, precondition_s
from plimsoll.lab.experiment.status.running import Activity, AttemptReader, plan_phases
from plimsoll.lab.experiment.volumes import is_finished, missing_cells
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
_OPEN: dict[str, tuple[Part, str]] = {  # a line of the journal that begins a part, and its key with the name
    "making": ("make", "backend"),
    "fileio cell": ("cell", "backend"),
    "fsync cell": ("fsync", "backend"),
    "run begun": ("before", "run"),
    "load begun": ("load", "run"),
    "load ended": ("after", "run"),
}
State = Literal["not begun", "running", "stopped", "finished", "unfinished"]


class Failure(BaseModel):
    """A try of a run that failed."""

    run: str = Field(description="name of the run")
    backend: str = Field(description="its backend")
    at: datetime = Field(description="when, UTC")
    why: str = Field(description="the reason")
    output: str | None = Field(None, description="the file with its output")


class Runs(BaseModel):
    """How many runs there are, and how they stand."""

    total: int = Field(description="planned runs")
    finished: int = Field(description="those in `runs/`")
    left: int = Field(description="those still to do")
    set_aside: int = Field(description="those that are not tried again")
    failed_tries: int = Field(description="how many tries failed")


class VolumeCells(BaseModel):
    """The cells of fileio on all volumes."""

    total: int = Field(description="cells on all volumes")
    finished: int = Field(description="those that are measured")
    failed: dict[str, str] = Field(description="why, by volume, since it was begun last")


class PreconditionedVolumes(BaseModel):
    """The volumes that are to be full and used."""

    volumes: int = Field(description="how many there are")
    done: int = Field(description="on how many no round is left")
    steady: int = Field(description="how many are steady")
    rounds: dict[str, int] = Field(description="the last round on each; 0 is the filling")


class Status(BaseModel):
    """The status of an experiment."""

    experiment: str = Field(description="its name")
    directory: str = Field(description="its folder")
    state: State = Field(
        description="`not begun`, `running`, `stopped` (killed or interrupted), `finished`, `unfinished` "
        "(ended, not all finished)"
    )
    begun_at: datetime | None = Field(description="when it began, UTC")
    ended_at: datetime | None = Field(description="when it ended, UTC")
    runs: Runs = Field(description="how many runs, and how they stand")
    precondition: PreconditionedVolumes | None = Field(
        None, description="[volumes to be filled](precondition.md); null without `precondition`"
    )
    fileio: VolumeCells | None = Field(
        None,
        description="cells of [fileio](fileio.md#in-an-experiment) on all volumes; null without `fileio`",
    )
    now: Activity | None = Field(description="what is being done, null if nothing runs")
    last_failure: Failure | None = Field(description="the last try that failed")
    set_aside: dict[str, str] = Field(description="why, by name")
    ends_at: datetime | None = Field(description="when it ends, UTC")
    left_s: float | None = Field(description="seconds until then")
    resume: str | None = Field(
        description="the command that goes on; null where nothing is left or it runs already"
    )
    report: str | None = Field(description="the path of the report")


class StatusReader:
    """Reads the status again and again; what was read once is not read again."""

    def __init__(
        self, folder: ExperimentFolder, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Begin. Raises SettingsError where the folder holds no settings."""
        self._folder, self._clock = folder, clock
        self._lab = folder.settings()
        self._design = Design.of(self._lab, folder.extended_runs())
        self._runs = self._design.runs
        rigs = {variant.name: variant.rig for variant in self._design.variants.values()}
        self._progress, self._tail = ExperimentProgress(rigs=rigs), Tail(folder.journal.path)
        self._finished: set[str] = set()
        self._aside: dict[str, str] = {}
        self._lacking, self._rounds = missing_cells(self._lab, folder.fileio), read_rounds(folder.rounds)
        self._running: AttemptReader | None = None

    def read(self) -> Status:
        """Return the status as it is now."""
        is_locked = self._folder.journal.is_locked
        if lines := self._tail.lines():
            self._take(lines)
        now, progress = self._clock(), self._progress
        state = self._state(is_locked)
        left = [
            run
            for run in self._runs.values()
            if run.name not in self._finished
            and self._aside.keys().isdisjoint((run.backend, set_aside_label(run.backend, run.scenario)))
        ]
        running = state == "running"
        # Volumes that will still be measured before this experiment ends.
        in_use = {variant.rig for name, variant in self._design.variants.items() if name not in self._aside}
        due = in_use - progress.not_measured.keys()
        cells = {rig: each for rig, each in self._lacking.items() if rig in due}
        open_part = self._open(now) if running else None
        on = {self._design.rig(run) for run in left}
        filling_s = precondition_s(self._design, self._rounds, self._filled_now(now), on)
        seconds = (
            left_s(self._design, left, progress.made, progress.spent, open_part, cells, filling_s)
            if running
            else None
        )
        report = self._folder.path / REPORT_FILE
        return Status(
            experiment=self._lab.name,
            directory=str(self._folder.path),
            state=state,
            begun_at=progress.begun_at,
            ended_at=progress.ended_at,
            runs=Runs(
                total=len(self._runs),
                finished=len(self._finished),
                left=len(left),
                set_aside=len(self._runs) - len(self._finished) - len(left),
                failed_tries=len(progress.failures),
            ),
            precondition=count_filled_volumes(self._lab, self._rounds),
            fileio=self._count_cells(),
            now=self._read_activity(now) if running else None,
            last_failure=self._last_failure(),
            set_aside=self._aside,
            ends_at=None if seconds is None else now + timedelta(seconds=seconds),
            left_s=seconds,
            resume=self._resume(state, bool(left or self._lacking)),
            report=str(report) if report.is_file() else None,
        )

    def _take(self, lines: list[bytes]) -> None:
        for value in objects(lines):
            self._progress.add(value)
        self._finished |= {
            name for name in self._runs if name not in self._finished and self._folder.is_finished(name)
        }
        self._aside = self._folder.journal.set_aside
        self._lacking = missing_cells(self._lab, self._folder.fileio)
        self._rounds = read_rounds(self._folder.rounds)

    def _count_cells(self) -> VolumeCells | None:
        if self._lab.fileio is None:
            return None
        total = len(self._lab.fileio.all_cells) * len(measured_rigs(self._lab))
        left = sum(map(len, self._lacking.values()))
        return VolumeCells(total=total, finished=total - left, failed=self._progress.not_measured)

    def _state(self, is_locked: bool) -> State:
        if self._progress.begun_at is None:
            return "not begun"
        if self._progress.ended_at is not None:
            whole = len(self._finished) == len(self._runs) and not self._lacking
            return "finished" if whole else "unfinished"
        return "running" if is_locked else "stopped"

    def _resume(self, state: State, left: bool) -> str | None:
        if state in ("running", "finished"):
            return None
        flag = "--resume" if left else "--retry-set-aside"
        return f"plimsoll run {flag} {shlex.quote(str(self._folder.path))}"

    def _filled_now(self, now: datetime) -> tuple[str, float] | None:
        """Return the volume that is being filled or overwritten, and for how long."""
        line = self._progress.last
        if line.get("what") not in ("precondition filling", "precondition round"):
            return None
        return str(line.get("backend")), self._progress.elapsed_s(now)

    def _open(self, now: datetime) -> OpenPart | None:
        line = self._progress.last
        if (begun := _OPEN.get(str(line.get("what")))) is None:
            return None
        part, key = begun
        return OpenPart(part, str(line.get(key)), self._progress.elapsed_s(now))

    def _read_activity(self, now: datetime) -> Activity:
        progress = self._progress
        what = _DOING.get(str(progress.last.get("what")), "starting")
        doing = Activity.model_validate(
            {"what": what, "since_s": progress.elapsed_s(now), "step": progress.step}
        )
        doing.backend = progress.last.get("backend") if what in _OF_VOLUMES else None
        if what in ("preconditioning", "fileio"):
            doing.step = progress.last.get("says") or progress.step
        run = self._runs.get(str(progress.last.get("run")))
        if run is None or what not in ("preparing", "measuring", "ending"):
            self._running = None
            return doing
        doing.run, doing.number, doing.try_ = run.name, run.number, progress.tries[run.name]
        doing.backend, doing.scenario, doing.repeat = run.backend, run.scenario, run.repeat
        if what == "measuring" and (name := progress.attempts.get(run.name)):
            attempt = self._folder.path / "attempts" / Path(name).name
            if self._running is None or self._running.attempt != attempt:
                variant = self._design.variants[run.backend]
                self._running = AttemptReader(
                    attempt, plan_phases(variant, run), beginnings(variant.lab, run.scenario)
                )
            self._running.read(now, doing)
        return doing

    def _last_failure(self) -> Failure | None:
        if not self._progress.failures:
            return None
        line, at, attempt = self._progress.failures[-1]
        path = self._folder.path / "attempts" / Path(attempt).name / OUTPUT_FILE if attempt else None
        return Failure(
            run=str(line.get("run")),
            backend=str(line.get("backend")),
            at=at,
            why=str(line.get("why")),
            output=str(path) if path and path.is_file() else str(self._folder.commands),
        )


def count_filled_volumes(lab: Lab, every: Sequence[VolumeRound]) -> PreconditionedVolumes | None:
    """Return how far the volumes are; None where none is to be filled."""
    if (wanted := lab.precondition) is None:
        return None
    rounds = {rig: last_filling(every, rig) for rig in preconditioned_rigs(lab)}
    return PreconditionedVolumes(
        volumes=len(rounds),
        done=sum(is_finished(each, wanted) for each in rounds.values()),
        steady=sum(bool(each) and each[-1].steady is True for each in rounds.values()),
        rounds={rig: each[-1].round for rig, each in rounds.items() if each},
    )
