"""One night: the experiment, new or resumed, then the judgement, then one exit code.

The programs that it runs are stopped when the night is, also when the night is killed.
"""

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event

from pydantic import ValidationError

from plimsoll.common.errors import PlimsollError
from plimsoll.common.hostile import redact
from plimsoll.lab.experiment.folder import ExperimentFolder, folders
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.notices import RunResult
from plimsoll.lab.experiment.problems import read_lab
from plimsoll.lab.schedule.installation import Schedule, ScheduleFolders, environment, read_environment
from plimsoll.lab.schedule.nights import (
    TO_RESUME,
    Night,
    NightOutcome,
    Nights,
    find_missed,
    hold_lock,
    mark_killed,
    skip_note,
    still_running,
)
from plimsoll.lab.schedule.timers import due_instants

Clock = Callable[[], datetime]
_YOUNG = timedelta(days=1)  # an older interrupted experiment is not resumed
PATIENCE_S = 3600.0  # to wait for another experiment on the same machines
_EACH_S = 60.0
_LONGEST = 2000
_JUDGED = (0, 1, 3)  # the exit codes of regress after which there is a history


@dataclass
class ExperimentEnd:
    """The end of an experiment. `folder`: None where it did not begin; `busy`: others were at work."""

    status: int
    folder: Path | None
    said: str
    busy: bool = False


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def run_night(
    schedule: Schedule,
    place: ScheduleFolders,
    by_timer: bool,
    clock: Clock = now,
    patience_s: float = PATIENCE_S,
) -> Night | None:
    """Run a night and record it. None: by the timer, and no night is due that was not done.

    Raises PlimsollError for what keeps it from being recorded.
    """
    nights = Nights(place.folder(schedule.name))
    began = clock()
    with hold_lock(place.folder(schedule.name)) as lock:
        if lock is None:
            return _overlaps(schedule, nights, by_timer, began)
        nights.change(mark_killed)
        due = _find_due(schedule, nights.read(), began) if by_timer else None
        if by_timer and due is None:
            return None
        known = nights.read()
        calendar = schedule.nights
        until = due - timedelta(microseconds=1) if due else began
        late = find_missed(known, calendar, calendar.tzinfo(), schedule.installed_at, until)
        before = still_running(known, due) if due else None
        if before is not None:
            skipped = Night(
                due=due, began=began, ended=began, outcome="skipped", exit=0, said=skip_note(before)
            )
            nights.add(*late, skipped)
            return skipped
        night = Night(due=due, began=began, outcome="running")
        nights.add(*late, night)
        night = _run(schedule, place, night, lock, patience_s)
        night.ended = clock()
        nights.settle(night)
        return night


def exit_code(experiment: int, regress: int | None) -> int:
    """Return a night's exit code. `regress`: None where there was nothing to judge. Pure.

    2: something must be corrected in the settings. 1: something is worse, and that is sure, whatever else
    the experiment did not come to. 3: it did not finish, or its runs do not allow a verdict.
    """
    if experiment == 2 or regress == 2:
        return 2
    if regress == 1:
        return 1
    return 3 if experiment or regress != 0 else 0


def outcome(experiment: int, regress: int | None) -> NightOutcome:
    """Return the outcome of a night with these exit codes. Pure."""
    code = exit_code(experiment, regress)
    if code == 3:
        return "undecided" if experiment == 0 and regress == 3 else "failed"
    return ("passed", "regression", "wrong")[code]


_PR_SET_PDEATHSIG = 1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ChildPrograms:
    """Runs programs one after the other. `stopped` is set once this process is to end."""

    def __init__(self, environment: Mapping[str, str], folder: str, lock: int) -> None:
        """`lock`: a descriptor that they inherit; `folder`: where they work."""
        self.stopped = Event()
        self._environment, self._folder, self._lock = dict(environment), folder, lock
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, words: Sequence[str], out: Path, err: Path) -> int:
        """Run `words` to the end; return how it ended, 128 + the signal that killed it. Raises OSError.

        Its output goes to files, not through this process, so it can go on writing, and tidy up, without it.
        """
        if self.stopped.is_set():
            return 128 + signal.SIGINT
        parent = os.getpid()
        with out.open("wb") as stdout, err.open("wb") as stderr:
            self._process = subprocess.Popen(  # noqa: S603 words of our own, by a list
                words,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,  # Ctrl-C at a terminal reaches it once, from this process
                pass_fds=(self._lock,),
                preexec_fn=lambda: _end_with(parent),
            )
            status = self._process.wait()
        self._process = None
        return 128 - status if status < 0 else status

    def stop(self, *_: object) -> None:
        """Ask the running program to end, as Ctrl-C does."""
        self.stopped.set()
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Let Ctrl-C, TERM and a closed terminal stop what runs in the block."""
        before: list[Callable[..., object] | int | None] = [signal.signal(one, self.stop) for one in _SIGNALS]
        try:
            yield
        finally:
            for one, handler in zip(_SIGNALS, before, strict=True):
                signal.signal(one, handler)


def _end_with(parent: int) -> None:
    """Be sent SIGINT when `parent` dies, also by kill -9."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT))
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGINT)


def _run(schedule: Schedule, place: ScheduleFolders, night: Night, lock: int, patience_s: float) -> Night:
    out = Path(schedule.out)
    try:
        further = read_environment(place.folder(schedule.name) / "environment")
        out.mkdir(parents=True, exist_ok=True)
        children = ChildPrograms(environment(os.environ, further), schedule.folder, lock)
        begins = not any(one.regress in _JUDGED for one in Nights(place.folder(schedule.name)).read())
        with children.stoppable():
            return _nightly(schedule, night, children, patience_s, begins)
    except PlimsollError as error:
        return night.model_copy(update={"outcome": "wrong", "exit": 2, "said": _short(str(error))})
    except OSError as error:
        said = f"{error.filename}: {error.strerror}"
        return night.model_copy(update={"outcome": "wrong", "exit": 2, "said": _short(said)})


def _nightly(
    schedule: Schedule, night: Night, children: ChildPrograms, patience_s: float, begins: bool
) -> Night:
    waited_s = 0.0
    while True:
        begun = _find_cut_off(schedule, night.began or now())
        done = _experiment(schedule, children, begun)
        if not done.busy or waited_s >= patience_s or children.stopped.is_set():
            break
        children.stopped.wait(min(_EACH_S, patience_s))
        waited_s += _EACH_S
    night = night.model_copy(
        update={
            "folder": done.folder and str(done.folder),
            "resumed": begun is not None,
            "experiment": done.status,
        }
    )
    if children.stopped.is_set():
        said = "interrupted; the next night continues it"
        return night.model_copy(update={"outcome": "interrupted", "exit": 3, "said": said})
    if done.busy:
        return night.model_copy(update={"outcome": "skipped", "exit": 0, "said": f"skipped: {done.said}"})
    if done.folder is None:
        code = exit_code(done.status, None)
        return night.model_copy(
            update={"outcome": outcome(done.status, None), "exit": code, "said": done.said}
        )
    status, said = _regress(schedule, children, done.folder, begins)
    if children.stopped.is_set():
        said = "interrupted during the judgement"
        return night.model_copy(update={"outcome": "interrupted", "exit": 3, "said": said, "regress": status})
    if done.status:
        said = f"The experiment ended with {done.status}: {done.said}\n{said}"
    return night.model_copy(
        update={
            "regress": status,
            "outcome": outcome(done.status, status),
            "exit": exit_code(done.status, status),
            "said": _short(said),
        }
    )


def _find_cut_off(schedule: Schedule, at: datetime) -> Path | None:
    """Return the experiment of this lab.yml that was cut off, if it is young and the file is the same."""
    lab = read_lab(Path(schedule.lab))
    for folder in folders(Path(schedule.folder) / lab.out, lab.name):
        try:
            stamp = folder.path.name.rpartition("-")[2]
            began = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            same = folder.settings() == Lab.model_validate_json(lab.model_dump_json())
            if folder.journal.has_ended or at - began > _YOUNG or not same:
                return None
        except (PlimsollError, ValueError):
            return None
        return folder.path
    return None


def _experiment(schedule: Schedule, children: ChildPrograms, begun: Path | None) -> ExperimentEnd:
    out, err = (Path(schedule.out) / name for name in ("experiment.json", "experiment.log"))
    what = ["--resume", str(begun)] if begun else [schedule.lab]
    before = _experiments(schedule)
    status = children.run([*schedule.program, "run", "--json", "--no-progress", *what], out, err)
    result = _result(out)
    if result is None:  # it was killed
        last_line = err.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
        new = [path for path in _experiments(schedule) if path not in before]
        return ExperimentEnd(status, next(iter(new), begun), _short(last_line))
    folder = Path(schedule.folder) / result.directory if result.directory else None
    if folder is None or not ExperimentFolder(folder).journal.path.exists():
        folder = begun
    return ExperimentEnd(status, folder, _short(result.error or ""), result.exit_reason == "busy")


def _experiments(schedule: Schedule) -> list[Path]:
    """Return the experiments of this lab.yml that have begun, the last one first."""
    lab = read_lab(Path(schedule.lab))
    there = folders(Path(schedule.folder) / lab.out, lab.name)
    return [folder.path for folder in there if folder.journal.path.exists()]


def _result(path: Path) -> RunResult | None:
    """Return the output of `plimsoll run --json` in `path`, None if it printed none."""
    try:
        return RunResult.model_validate_json(path.read_bytes())
    except ValidationError:
        return None


def _regress(schedule: Schedule, children: ChildPrograms, folder: Path, begins: bool) -> tuple[int, str]:
    """Judge the night in `folder`. The history `begins` with the first one; later it has to be there."""
    place = Path(schedule.out)
    new = ["--new"] if begins and not Path(schedule.history).exists() else []
    files = [
        f"--{kind}={place / name}"
        for kind, name in (("junit", "junit.xml"), ("markdown", "summary.md"), ("html", "history.html"))
    ]
    words = [
        *schedule.program,
        "regress",
        "--history",
        schedule.history,
        *new,
        *files,
        *schedule.options,
        "--",
        str(folder),
    ]
    out, err = place / "regress.txt", place / "regress.log"
    status = children.run(words, out, err)
    said = out.read_text(encoding="utf-8", errors="replace").strip()
    if status not in (0, 1) or not said:
        said = "\n".join(
            text for text in (said, err.read_text(encoding="utf-8", errors="replace").strip()) if text
        )
    return status, _short(said)


def _find_due(schedule: Schedule, nights: list[Night], at: datetime) -> datetime | None:
    """Return the last night that is due and was not done. Pure, except for the machine's time zone."""
    calendar = schedule.nights
    since = max(schedule.installed_at, at - timedelta(days=400))
    due = max(due_instants(calendar, calendar.tzinfo(), since, at), default=None)
    done = {night.due for night in nights if night.outcome not in TO_RESUME}
    return None if due in done else due


def _overlaps(schedule: Schedule, nights: Nights, by_timer: bool, at: datetime) -> Night | None:
    known = nights.read()
    due = _find_due(schedule, known, at) if by_timer else None
    if by_timer and due is None:
        return None
    running = next((night for night in reversed(known) if night.outcome == "running"), None)
    said = skip_note(running) if running else "skipped: another night is still running"
    night = Night(due=due, began=at, ended=at, outcome="skipped", exit=0, said=said)
    nights.add(night)
    return night


def _short(text: str) -> str:
    text = redact(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
