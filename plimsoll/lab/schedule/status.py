"""The status of a timer: what is installed, next and last night, what was missed, what is wrong."""

import os
import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.lab.experiment.settings import read_lab
from plimsoll.lab.schedule import crontab, units
from plimsoll.lab.schedule.calendar import next_due
from plimsoll.lab.schedule.definition import Timer, TimerFolders, cron_lines, read, unit_texts
from plimsoll.lab.schedule.environment import read_environment
from plimsoll.lab.schedule.nights import BAD, GRACE, Night, Nights, missed, nobody_runs, runs
from plimsoll.lab.schedule.plan import InstalledTimer, systemctl
from plimsoll.lab.schedule.steps import run
from plimsoll.lab.steps.step import Command


@dataclass
class Status:
    """`problems` make `status` end with 1, `notes` do not. Instants are UTC; None where there is none."""

    name: str
    schedule: Timer | None = None
    next: datetime | None = None
    last: Night | None = None
    running: Night | None = None
    missed: list[Night] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def status(name: str, place: TimerFolders, found: InstalledTimer, at: datetime) -> Status:
    """Return the status of the timer `name`. Changes nothing. Raises PlimsollError."""
    result = Status(name)
    try:
        schedule = read(place, name)
    except SettingsError as error:
        result.problems.append(f"{error}" if found.schedule else _half(name))
        return result
    result.schedule = schedule
    result.problems += [*_installed(schedule, place, found), *_there(schedule, place)]
    result.notes += lingering(schedule)
    known = Nights(place.folder(name)).read()
    _fares(result, schedule, known, runs(place.folder(name)), at)
    return result


def _fares(result: Status, schedule: Timer, known: list[Night], running: bool, at: datetime) -> None:
    calendar = schedule.nights
    zone = calendar.tzinfo()
    result.next = next_due(calendar, zone, at)
    if running:
        result.running = next((night for night in reversed(known) if night.outcome == "running"), None)
    else:
        known = nobody_runs(known)
    begun = [i for i, night in enumerate(known) if night.outcome not in ("missed", "running", "skipped")]
    result.last = known[begun[-1]] if begun else None
    unseen = missed(known, calendar, zone, schedule.installed_at, at - GRACE)
    result.missed = [night for night in [*known, *unseen] if night.outcome == "missed"]
    since = result.last.due or result.last.began if result.last else None
    late = [night for night in unseen if since is None or (night.due and night.due > since)]
    if late_missed := [night for night in late if night.outcome == "missed"]:
        result.problems.append(
            _missed(late_missed, "since the last night" if result.last else "since it was installed")
        )
    elif result.missed:
        result.notes.append(_missed(result.missed, "made up for by later nights"))
    skipped = [
        night for night in [*known[begun[-1] + 1 if begun else 0 :], *late] if night.outcome == "skipped"
    ]
    if skipped:
        result.problems.append(f"{_counted(skipped)} {skipped[-1].said}")
    if result.last is not None and result.last.outcome in BAD:
        result.problems.append(
            f"the last night: {result.last.outcome}: {result.last.said.partition(chr(10))[0]}"
        )


def _counted(nights: list[Night]) -> str:
    return f"{len(nights)} night{'s' if len(nights) > 1 else ''}"


def _missed(nights: list[Night], further: str) -> str:
    count = f"{_counted(nights)} missed, {further}"
    last = nights[-1].due
    since = booted_at()
    if last is not None and since is not None and last < since:
        return f"{count}: this machine was started later, at {since:%Y-%m-%d %H:%M} UTC"
    when = f", the last at {last:%Y-%m-%d %H:%M} UTC" if last else ""
    return f"{count}{when}: the machine was off, or the timer stopped"


def booted_at() -> datetime | None:
    """Return the time at which this machine was started, None if it is unknown."""
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
        return datetime.fromtimestamp(
            next(int(line.split()[1]) for line in lines if line.startswith("btime ")), UTC
        )
    except (OSError, StopIteration, ValueError):
        return None


def lingering(schedule: Timer) -> list[str]:
    """Return the warning that a user's timers end with the last session, where they do."""
    if schedule.kind != "user":
        return []
    uid = str(os.geteuid())
    asked = Command("", ("loginctl", "show-user", uid, "--property=Linger", "--value"), may_fail=True)
    if run(asked).strip() == "yes":
        return []
    return ["nights run only while you are logged in: to run them always, use loginctl enable-linger"]


def _half(name: str) -> str:
    return f"only partly installed: run plimsoll schedule install again, or plimsoll schedule remove {name}"


def _installed(schedule: Timer, place: TimerFolders, found: InstalledTimer) -> list[str]:
    """Return the problems with the units or the crontab."""
    again = "install it again"
    if schedule.kind == "cron":
        if found.crontab is None:
            return ["crontab is no longer installed"]
        there = crontab.block(found.crontab, schedule.name)
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
    timer = f"{units.unit(schedule.name)}.timer"
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


def _there(schedule: Timer, place: TimerFolders) -> list[str]:
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
