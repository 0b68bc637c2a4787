"""What became of the nights: their record and lock, what was missed, how a schedule fares."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from plimsoll.common.errors import OutputError, PlimsollError, SettingsError
from plimsoll.common.hostile import printable
from plimsoll.common.validation import sentence_of
from plimsoll.lab.experiment.problems import read_lab
from plimsoll.lab.schedule import timers
from plimsoll.lab.schedule.installation import (
    InstalledSchedule,
    Schedule,
    ScheduleFolders,
    carry_out,
    cron_lines,
    read_environment,
    read_schedule,
    run,
    systemctl,
    unit_texts,
)
from plimsoll.lab.schedule.timers import Calendar, due_instants, next_due
from plimsoll.lab.steps.step import Command, Write

_KEPT = 400
GRACE = timedelta(minutes=5)  # a night that begins later than this counts as missed
_FURTHEST = timedelta(days=400)
NightOutcome = Literal[
    "running",  # or was killed: whoever holds the lock knows
    "passed",
    "regression",
    "undecided",
    "failed",
    "wrong",
    "interrupted",
    "killed",
    "skipped",
    "missed",
]
NEEDS_ATTENTION = frozenset({"regression", "undecided", "failed", "wrong", "interrupted", "killed"})
TO_RESUME = frozenset({"interrupted", "killed"})  # after these, the night is not done


class Night(BaseModel):
    """One night. `due` is None where it was begun by hand; exit codes are None where nothing was run."""

    model_config = ConfigDict(extra="ignore")

    due: AwareDatetime | None
    began: AwareDatetime | None = None
    ended: AwareDatetime | None = None
    outcome: NightOutcome
    folder: str | None = None
    resumed: bool = False
    experiment: int | None = None
    regress: int | None = None
    exit: int | None = None
    said: str = ""


class _File(BaseModel):
    format: Literal[1] = 1
    nights: list[Night] = []


class Nights:
    """The file nights.json in a timer's folder: the last 400 nights, the latest at the end."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "nights.json"
        self._lock = folder / "nights.lock"

    def read(self) -> list[Night]:
        """Return the nights. Raises SettingsError."""
        try:
            return _File.model_validate_json(self.path.read_bytes()).nights
        except FileNotFoundError:
            return []
        except OSError as error:
            raise SettingsError(f"{self.path}: cannot be read: {error.strerror}") from None
        except ValidationError as error:
            raise SettingsError(
                f"{self.path}: was not written by this version: {sentence_of(error)}; move it away"
            ) from None

    def change(self, how: Callable[[list[Night]], Iterable[Night]]) -> None:
        """Put `how(nights)` in their place, whole; two processes take turns. Raises PlimsollError."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise OutputError(f"{self._lock}: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            kept = list(how(self.read()))[-_KEPT:]
            text = _File(nights=kept).model_dump_json(indent=1) + "\n"
            carry_out([Write("the nights", self.path, text)])
        finally:
            os.close(descriptor)

    def add(self, *nights: Night) -> None:
        """Append `nights`."""
        self.change(lambda before: [*before, *nights])

    def settle(self, night: Night) -> None:
        """Put `night` in the place of the one that began when it did."""
        self.change(
            lambda before: [
                night if one.began == night.began and one.outcome == "running" else one for one in before
            ]
        )


def find_missed(
    nights: Iterable[Night], calendar: Calendar, zone: tzinfo, since: datetime, until: datetime
) -> list[Night]:
    """Return the nights due after `since`, up to `until`, that nobody recorded: missed, or skipped while an
    earlier one ran. Pure.
    """  # noqa: D205 one sentence
    nights = list(nights)
    known = {night.due for night in nights}
    since = max(since, until - _FURTHEST)
    found = []
    for due in due_instants(calendar, zone, since, until):
        if due in known:
            continue
        before = still_running(nights, due)
        if before is None:
            found.append(Night(due=due, outcome="missed", said="nothing ran"))
        else:
            found.append(Night(due=due, outcome="skipped", said=skip_note(before)))
    return found


def still_running(nights: Iterable[Night], due: datetime) -> Night | None:
    """Return the night that was running at `due`, None where there was none. Pure."""
    for night in nights:
        if night.began is not None and night.began <= due and night.outcome not in ("skipped", "killed"):
            over = due < night.ended if night.ended else night.outcome == "running"
            if over and night.due != due:
                return night
    return None


def mark_killed(nights: list[Night]) -> list[Night]:
    """Return `nights` for when nobody holds the lock: one noted as running was killed. Pure."""
    said = {"outcome": "killed", "said": "killed, or the machine went down; the next night continues it"}
    return [night.model_copy(update=said) if night.outcome == "running" else night for night in nights]


def skip_note(night: Night) -> str:
    """Return the note on a night that did not begin because of `night`."""
    return f"skipped: still running since {night.began:%Y-%m-%d %H:%M:%S} UTC"


def is_night_running(folder: Path) -> bool:
    """Return whether a night of the timer in `folder` runs. Changes nothing."""
    if not (folder / "lock").exists():
        return False
    with hold_lock(folder) as lock:
        return lock is None


@contextlib.contextmanager
def hold_lock(folder: Path) -> Iterator[int | None]:
    """Hold the lock of the timer in `folder`; yields its descriptor, None where somebody else holds it.

    A process that inherits the descriptor holds it too: while an experiment that outlives this process
    runs, no other begins. Raises OutputError.
    """
    path = folder / "lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield descriptor
    finally:
        os.close(descriptor)


@dataclass
class ScheduleStatus:
    """`problems` make `status` end with 1, `notes` do not. Instants are UTC; None where there is none."""

    name: str
    schedule: Schedule | None = None
    next: datetime | None = None
    last: Night | None = None
    running: Night | None = None
    missed: list[Night] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find_status(name: str, place: ScheduleFolders, found: InstalledSchedule, at: datetime) -> ScheduleStatus:
    """Return the status of the timer `name`. Changes nothing. Raises PlimsollError."""
    result = ScheduleStatus(name)
    try:
        schedule = read_schedule(place, name)
    except SettingsError as error:
        half = (
            f"only partly installed: run plimsoll schedule install again, or plimsoll schedule remove {name}"
        )
        result.problems.append(str(error) if found.schedule else half)
        return result
    result.schedule = schedule
    result.problems += [*_find_unit_problems(schedule, place, found), *_find_missing(schedule, place)]
    result.notes += lingering(schedule)
    known = Nights(place.folder(name)).read()
    _fares(result, schedule, known, is_night_running(place.folder(name)), at)
    return result


def _fares(
    result: ScheduleStatus, schedule: Schedule, known: list[Night], running: bool, at: datetime
) -> None:
    calendar = schedule.nights
    zone = calendar.tzinfo()
    result.next = next_due(calendar, zone, at)
    if running:
        result.running = next((night for night in reversed(known) if night.outcome == "running"), None)
    else:
        known = mark_killed(known)
    begun = [i for i, night in enumerate(known) if night.outcome not in ("missed", "running", "skipped")]
    result.last = known[begun[-1]] if begun else None
    unseen = find_missed(known, calendar, zone, schedule.installed_at, at - GRACE)
    result.missed = [night for night in [*known, *unseen] if night.outcome == "missed"]
    since = result.last.due or result.last.began if result.last else None
    late = [night for night in unseen if since is None or (night.due and night.due > since)]
    if late_missed := [night for night in late if night.outcome == "missed"]:
        result.problems.append(
            _count_missed(late_missed, "since the last night" if result.last else "since it was installed")
        )
    elif result.missed:
        result.notes.append(_count_missed(result.missed, "made up for by later nights"))
    skipped = [
        night for night in [*known[begun[-1] + 1 if begun else 0 :], *late] if night.outcome == "skipped"
    ]
    if skipped:
        result.problems.append(f"{_count_nights(skipped)} {skipped[-1].said}")
    if result.last is not None and result.last.outcome in NEEDS_ATTENTION:
        result.problems.append(
            f"the last night: {result.last.outcome}: {result.last.said.partition(chr(10))[0]}"
        )


def _count_nights(nights: list[Night]) -> str:
    return f"{len(nights)} night{'s' if len(nights) > 1 else ''}"


def _count_missed(nights: list[Night], further: str) -> str:
    count = f"{_count_nights(nights)} missed, {further}"
    last = nights[-1].due
    since = boot_time()
    if last is not None and since is not None and last < since:
        return f"{count}: this machine was started later, at {since:%Y-%m-%d %H:%M} UTC"
    when = f", the last at {last:%Y-%m-%d %H:%M} UTC" if last else ""
    return f"{count}{when}: the machine was off, or the timer stopped"


def boot_time() -> datetime | None:
    """Return the time at which this machine was started, None if it is unknown."""
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
        return datetime.fromtimestamp(
            next(int(line.split()[1]) for line in lines if line.startswith("btime ")), UTC
        )
    except (OSError, StopIteration, ValueError):
        return None


def lingering(schedule: Schedule) -> list[str]:
    """Return the warning that a user's timers end with the last session, where they do."""
    if schedule.kind != "user":
        return []
    uid = str(os.geteuid())
    asked = Command("", ("loginctl", "show-user", uid, "--property=Linger", "--value"), may_fail=True)
    if run(asked).strip() == "yes":
        return []
    return ["nights run only while you are logged in: to run them always, use loginctl enable-linger"]


def _find_unit_problems(schedule: Schedule, place: ScheduleFolders, found: InstalledSchedule) -> list[str]:
    again = "install it again"
    if schedule.kind == "cron":
        if found.crontab is None:
            return ["crontab is no longer installed"]
        there = timers.crontab_block(found.crontab, schedule.name)
        if there is None:
            return [f"its lines are gone from the crontab: {again}"]
        same = there == cron_lines(schedule, place)
        return [] if same else [f"its lines in the crontab have changed or are from another version: {again}"]
    problems = []
    for path, text in unit_texts(schedule, place).items():
        try:
            if path.read_text(encoding="utf-8", errors="replace") != text:
                problems.append(f"{path}: was edited, or is from another version: {again}")
        except OSError:
            problems.append(f"{path}: is gone: {again}")
    timer = f"{timers.unit_name(schedule.name)}.timer"
    asked = (*systemctl(schedule.kind), "show", timer, "--property=ActiveState,UnitFileState")
    try:
        facts = dict(line.split("=", 1) for line in run(Command("", asked)).splitlines() if "=" in line)
    except PlimsollError as error:
        return [*problems, f"cannot ask systemd: {error}"]
    if facts.get("UnitFileState") != "enabled":
        problems.append(f"{timer}: is not enabled: {again}")
    if facts.get("ActiveState") != "active":
        problems.append(f"{timer}: is not running: {again}")
    return problems


def _find_missing(schedule: Schedule, place: ScheduleFolders) -> list[str]:
    """Return the problems with the program, lab.yml and the file of passwords."""
    problems = []
    if shutil.which(schedule.program[0]) is None:
        problems.append(f"{schedule.program[0]}: is gone: plimsoll was moved or removed; install it again")
    if not Path(schedule.folder).is_dir():
        problems.append(f"{schedule.folder}: is gone: nights run in it; install it again from another folder")
    try:
        read_lab(Path(schedule.lab))
    except PlimsollError as error:
        problems += str(error).splitlines()
    try:
        read_environment(place.folder(schedule.name) / "environment")
    except PlimsollError as error:
        problems += str(error).splitlines()
    return problems


_LONGEST = 4000


def when(at: datetime | None, of: Schedule | None) -> str:
    """Return `at` in the zone of the timer."""
    if at is None or of is None:
        return "not known"
    zone: tzinfo = of.nights.tzinfo()
    return f"{at.astimezone(zone):%a %Y-%m-%d %H:%M %Z}"


def schedule_json(status: ScheduleStatus) -> dict[str, Any]:
    """Return the status for --json: instants in UTC."""

    def night_json(one: Night | None) -> Any:
        return one and one.model_dump(mode="json")

    return {
        "name": status.name,
        "schedule": status.schedule and status.schedule.model_dump(mode="json"),
        "next": status.next and status.next.isoformat(),
        "last": night_json(status.last),
        "running": night_json(status.running),
        "missed": [one.due and one.due.isoformat() for one in status.missed],
        "problems": status.problems,
        "notes": status.notes,
    }


def schedule_lines(status: ScheduleStatus) -> list[str]:
    """Return the lines for a terminal."""
    of = status.schedule
    lines = [f"{status.name}: {'all is well' if not status.problems else 'something is wrong'}"]
    if of is not None:
        lines += [f"  lab      {of.lab}", f"  when     {of.calendar} ({of.kind})"]
        lines.append(f"  next     {when(status.next, of)}")
        if status.running is not None:
            lines.append(f"  running  since {when(status.running.began, of)}")
        last = status.last
        said = "none yet" if last is None else f"{when(last.due or last.began, of)}: {last.outcome}"
        lines.append(f"  last     {said}")
        if last is not None and last.said:
            lines.append(f"           {last.said.splitlines()[0]}")
        lines.append(f"  results  {of.out}")
    lines += [f"  wrong    {problem}" for problem in status.problems]
    lines += [f"  note     {note}" for note in status.notes]
    return [printable(line, _LONGEST) for line in lines]
