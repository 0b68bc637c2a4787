"""A schedule as it is installed: its files, what is there of it, the steps that install and remove it.

The steps are data: `--dry-run` prints the very ones that are carried out.
"""

import os
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, ValidationError

from plimsoll.analysis.regress.levels import need_otava
from plimsoll.common.errors import OutputError, SettingsError
from plimsoll.common.files import replace_text
from plimsoll.common.validation import sentence_of
from plimsoll.lab.errors import LabError, MachineError
from plimsoll.lab.names import StrictModel
from plimsoll.lab.schedule import timers
from plimsoll.lab.schedule.timers import Calendar, parse_calendar
from plimsoll.lab.steps.step import Command, LocalStep, Remove, Write

Kind = Literal["system", "user", "cron"]
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class Schedule(StrictModel):
    """The file schedule.json. All paths are absolute; `folder` is where relative ones in lab.yml begin."""

    format: Literal[1] = 1
    name: str
    lab: str
    folder: str
    kind: Kind
    calendar: str
    out: str
    history: str
    resume_missed: bool
    options: tuple[str, ...]
    program: tuple[str, ...]
    installed_at: AwareDatetime

    @property
    def nights(self) -> Calendar:
        """The days and times at which it is due."""
        return parse_calendar(self.calendar)


@dataclass(frozen=True)
class ScheduleFolders:
    """The folders of timers: `state` has a folder for each timer; the others have units."""

    state: Path
    system_units: Path
    user_units: Path

    def folder(self, name: str) -> Path:
        """Return the folder of the timer `name`."""
        return self.state / name

    def units(self, kind: Kind) -> Path:
        """Return the folder of the units of that kind."""
        return self.system_units if kind == "system" else self.user_units

    def unit_files(self, kind: Kind, name: str) -> tuple[Path, Path]:
        """Return service and timer."""
        stem = timers.unit_name(name)
        return self.units(kind) / f"{stem}.service", self.units(kind) / f"{stem}.timer"

    @property
    def names(self) -> list[str]:
        """The timers that are installed, also those whose installation was interrupted."""
        return sorted(path.parent.name for path in self.state.glob("*/schedule.json"))


@dataclass(frozen=True)
class InstalledSchedule:
    """The installed parts of a timer: unit files by kind, and the crontab (None: cannot be read)."""

    units: dict[Kind, list[Path]]
    foreign: list[Path]
    crontab: str | None
    schedule: Schedule | None


def schedule_folders(state: Path | None) -> ScheduleFolders:
    """Return the places of this user; `state` instead of the usual folder."""
    home = Path.home()
    if state is None and os.geteuid() == 0:
        state = Path("/var/lib/plimsoll/schedules")
    if state is None:
        state = Path(os.environ.get("XDG_STATE_HOME") or home / ".local/state") / "plimsoll/schedules"
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return ScheduleFolders(state.absolute(), Path("/etc/systemd/system"), config / "systemd/user")


def check_name(name: str) -> str:
    """Return `name` if it may become part of file names and units. Raises SettingsError."""
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"NAME: {name!r} must have only letters, digits and _ . -, at most 64, and not begin with . or -"
        )
    return name


def read_schedule(place: ScheduleFolders, name: str) -> Schedule:
    """Return the timer `name`. Raises SettingsError."""
    path = place.folder(check_name(name)) / "schedule.json"
    try:
        found = Schedule.model_validate_json(path.read_bytes())
        found.nights  # noqa: B018 raises where it is not a calendar
    except FileNotFoundError:
        there = ", ".join(place.names) or "none"
        raise SettingsError(f"NAME: schedule {name} does not exist (installed: {there})") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise SettingsError(
            f"{path}: was not written by this version: {sentence_of(error)}; install it again"
        ) from None
    except ValueError as error:
        raise SettingsError(f"{path}: {error}; install it again") from None
    return found


def night_command(schedule: Schedule, place: ScheduleFolders) -> list[str]:
    """Return the command that systemd and cron call. Pure."""
    return [*schedule.program, "schedule", "now", schedule.name, "--state", str(place.state), "--timer"]


def unit_texts(schedule: Schedule, place: ScheduleFolders) -> dict[Path, str]:
    """Return the unit files that belong to `schedule`, with their texts; none for cron."""
    if schedule.kind == "cron":
        return {}
    service, timer = place.unit_files(schedule.kind, schedule.name)
    calendar = schedule.nights
    zone = calendar.tzinfo()
    first = datetime.astimezone(schedule.installed_at, zone).date()
    return {
        service: timers.service_unit(
            schedule.name, night_command(schedule, place), schedule.kind == "system"
        ),
        timer: timers.timer_unit(schedule.name, calendar, zone, first, schedule.resume_missed),
    }


def cron_lines(schedule: Schedule, place: ScheduleFolders) -> list[str]:
    """Return the lines of `schedule` in the crontab. Raises ValueError for what cron cannot do."""
    return timers.crontab_lines(schedule.nights, night_command(schedule, place), schedule.resume_missed)


# The files that a timer writes into its folder of results; experiments themselves are in the lab's own `out`.
RESULTS = (
    "junit.xml",
    "summary.md",
    "history.html",
    "experiment.json",
    "experiment.log",
    "regress.txt",
    "regress.log",
)
STATE = ("nights.json", "nights.lock", "lock", "environment")


def plan_install(schedule: Schedule, place: ScheduleFolders, found: InstalledSchedule) -> list[LocalStep]:
    """Return the steps that install `schedule`, and remove it where it was of another kind.

    Raises SettingsError for an obstacle, LabError for a damaged crontab.
    """
    if found.foreign:
        raise SettingsError(
            "\n".join(
                f"{path}: was not written by plimsoll schedule: choose another --name"
                for path in found.foreign
            )
        )
    if found.schedule is not None and found.schedule.lab != schedule.lab:
        raise SettingsError(
            f"--name: {schedule.name} is already the schedule of {found.schedule.lab}: "
            "choose another name, or remove it"
        )
    steps: list[LocalStep] = [
        Write(
            "the settings of the schedule",
            place.folder(schedule.name) / "schedule.json",
            schedule.model_dump_json(indent=1) + "\n",
        )
    ]
    steps += _plan_away(schedule.name, place, found, schedule.kind)
    if schedule.kind == "cron":
        if found.crontab is None:
            raise SettingsError("--cron: crontab is not installed: install cron, or use systemd")
        wanted = timers.with_lines(found.crontab, schedule.name, cron_lines(schedule, place))
        if wanted != found.crontab:
            steps.append(Command("the crontab, with the schedule's lines", ("crontab", "-"), stdin=wanted))
        return steps
    steps += [Write("the unit", path, text) for path, text in unit_texts(schedule, place).items()]
    steps.append(Command("reload systemd's units", (*systemctl(schedule.kind), "daemon-reload")))
    timer = f"{timers.unit_name(schedule.name)}.timer"
    steps.append(Command("start the timer with the machine", (*systemctl(schedule.kind), "enable", timer)))
    # `enable --now` leaves a timer that runs as it was
    steps.append(Command("start it now", (*systemctl(schedule.kind), "restart", timer)))
    return steps


def plan_removal(name: str, place: ScheduleFolders, found: InstalledSchedule, purge: bool) -> list[LocalStep]:
    """Return the steps that remove the timer `name`, wherever its installation was interrupted."""
    steps = _plan_away(name, place, found, None)
    folder = place.folder(name)
    # The last but these: until then `remove` knows the timer
    files: Sequence[str] = ("schedule.json",)
    if purge:
        files = (*STATE, "schedule.json")
        if found.schedule is not None:
            out = Path(found.schedule.out)
            results = [out / result for result in RESULTS]
            history = Path(found.schedule.history)
            results += [history.with_name(history.name + end) for end in ("", "-wal", "-shm", "-journal")]
            steps += [Remove("a result", path) for path in results]
            steps.append(Remove("the folder of results, if it is otherwise empty", out, folder=True))
    steps += [Remove("the files of the schedule", folder / file) for file in files]
    return [*steps, Remove("its folder, if it is empty", folder, folder=True)]


def systemctl(kind: Kind) -> tuple[str, ...]:
    """Return the systemctl command for units of that kind."""
    return ("systemctl", "--user") if kind == "user" else ("systemctl",)


def _plan_away(
    name: str, place: ScheduleFolders, found: InstalledSchedule, but: Kind | None
) -> list[LocalStep]:
    """Return the steps that stop and remove units and lines of all kinds but one."""
    steps: list[LocalStep] = []
    for kind, paths in found.units.items():
        if kind == but or not paths:
            continue
        ask = systemctl(kind)
        service, timer = f"{timers.unit_name(name)}.service", f"{timers.unit_name(name)}.timer"
        # Where systemd does not run, its files go all the same
        off = Command("stop starting nights", (*ask, "disable", "--now", timer), may_fail=True)
        stop = Command(
            "let a running night remove its clones and end",
            (*ask, "stop", service),
            timeout_s=timers.STOP_S + 60.0,
            may_fail=True,
        )
        steps += [off, stop, *(Remove("the unit", path) for path in paths)]
        if kind == "user":
            steps += [Remove("its link", place.user_units / "timers.target.wants" / timer)]
        else:
            steps += [Remove("its link", place.system_units / "timers.target.wants" / timer)]
        steps.append(Command("reload systemd's units", (*ask, "daemon-reload"), may_fail=True))
        reset = (*ask, "reset-failed", service, timer)
        steps.append(Command("clear their failures", reset, may_fail=True))
    if but != "cron" and found.crontab is not None:
        left = timers.without_lines(found.crontab, name)
        if left != found.crontab:
            words = ("crontab", "-") if left else ("crontab", "-r")
            steps.append(Command("the crontab, without the schedule's lines", words, stdin=left or None))
    return steps


def carry_out(steps: Iterable[LocalStep]) -> None:
    """Do `steps` in order. Raises LabError or OutputError at the first that fails; what was done stays."""
    for step in steps:
        if isinstance(step, Write):
            _write(step)
        elif isinstance(step, Remove):
            _remove(step)
        else:
            run(step)


def run(command: Command) -> str:
    """Run `command` here, and return what it printed. Raises LabError."""
    try:
        done = subprocess.run(  # noqa: S603 words of our own, by a list
            command.words,
            input=None if command.stdin is None else command.stdin.encode(errors="surrogateescape"),
            stdin=subprocess.DEVNULL if command.stdin is None else None,
            capture_output=True,
            timeout=command.timeout_s,
            check=False,
        )
    except FileNotFoundError:
        if command.may_fail:
            return ""
        raise LabError(f"{command.words[0]}: is not installed here") from None
    except subprocess.TimeoutExpired:
        raise MachineError("local", f"took over {command.timeout_s:g} s", command.words) from None
    if done.returncode and not command.may_fail:
        err = done.stderr.decode(errors="replace")
        raise MachineError("local", f"ended with {done.returncode}", command.words, err, done.returncode)
    return done.stdout.decode(errors="surrogateescape")


def _write(step: Write) -> None:
    try:
        replace_text(step.path, step.text, sync=True, parents=True)
    except OSError as error:
        raise OutputError(f"{step.path}: cannot be written: {error.strerror}") from None


def _remove(step: Remove) -> None:
    try:
        if not step.folder:
            step.path.unlink(missing_ok=True)
        elif step.path.is_dir() and not any(step.path.iterdir()):
            step.path.rmdir()
    except OSError as error:
        raise OutputError(f"{step.path}: cannot be removed: {error.strerror}") from None


_CRONTAB_S = 60.0
_KINDS: tuple[Kind, ...] = ("system", "user")


def find_installed(name: str, place: ScheduleFolders) -> InstalledSchedule:
    """Return the installed parts of the timer `name`. Raises LabError where the crontab cannot be read."""
    found: dict[Kind, list[Path]] = {}
    foreign: list[Path] = []
    for kind in _kinds():
        found[kind] = []
        for path in place.unit_files(kind, name):
            if path.is_symlink() or path.exists():
                (found[kind] if _ours(path) else foreign).append(path)
    schedule: Schedule | None = None
    if (place.folder(name) / "schedule.json").exists():
        try:
            schedule = read_schedule(place, name)
        except SettingsError:
            schedule = None  # to be rewritten, or removed
    return InstalledSchedule(found, foreign, read_crontab(), schedule)


def read_crontab() -> str | None:
    """Return this user's crontab: empty if there is none, None if it is not allowed. Raises LabError."""
    try:
        done = subprocess.run(["crontab", "-l"], capture_output=True, check=False, timeout=_CRONTAB_S)  # noqa: S607
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired:
        raise LabError(
            f"crontab -l: did not end within {_CRONTAB_S:g} s: try it by hand, then again"
        ) from None
    if done.returncode and b"not allowed" in done.stderr:  # by cron.allow or cron.deny
        return None
    if done.returncode and b"no crontab for" not in done.stderr:
        said = done.stderr.decode(errors="replace").strip()
        raise LabError(f"crontab -l: ended with {done.returncode}: {said}")
    return "" if done.returncode else done.stdout.decode(errors="surrogateescape")


def kind_here(dry_run: bool = False) -> Kind:
    """Return the kind that suits: systemd's where it runs, else cron, to be shown (`dry_run`) or installed.

    Raises SettingsError.
    """
    booted = Path("/run/systemd/system").is_dir()
    if booted and os.geteuid() == 0:
        return "system"
    runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.geteuid()}")
    if booted and (Path(runtime) / "systemd").is_dir():
        return "user"
    if dry_run or read_crontab() is not None:
        return "cron"
    raise SettingsError(
        "neither systemd nor cron runs here: install cron, or choose --user, --system or --cron"
    )


def list_schedules(place: ScheduleFolders) -> list[str]:
    """Return the names of all timers with anything installed: definitions, units, lines in the crontab."""
    found = set(place.names)
    for kind in _kinds():
        for path in place.units(kind).glob(f"{timers.unit_name('*')}.*"):
            if path.suffix in (".service", ".timer") and _ours(path):
                found.add(path.stem.removeprefix(timers.unit_name("")))
    return sorted(found | set(timers.crontab_names(read_crontab() or "")))


def _kinds() -> tuple[Kind, ...]:
    """Return the kinds of units that this user can see: only root sees the system's."""
    return _KINDS if os.geteuid() == 0 else ("user",)


def _ours(path: Path) -> bool:
    try:
        return path.read_text(encoding="utf-8", errors="replace").startswith(timers.UNIT_MARK)
    except OSError:
        return False


_DAEMONS = {"cron", "crond", "fcron", "bcron-start", "dcron"}
_PROCESSES = Path("/proc")


def explain_missing(kind: Kind) -> Iterator[str]:
    """Yield what nights of this kind need and this machine has not, with the remedy."""
    try:
        need_otava()
    except SettingsError as error:
        yield str(error)
    if kind != "cron":
        return
    if read_crontab() is None:
        yield "--cron: crontab is not installed, or not allowed: install cron, or use systemd"
    if not cron_runs():
        yield "--cron: no cron daemon runs here: start it (service cron start), or use systemd"


def cron_runs() -> bool:
    """Return whether a cron daemon runs on this machine."""
    for path in _PROCESSES.glob("[0-9]*/comm"):
        try:
            if path.read_text(encoding="utf-8", errors="replace").strip() in _DAEMONS:
                return True
        except OSError:  # it has ended
            continue
    return False


_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")
_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def read_environment(path: Path) -> dict[str, str]:
    """Return the variables that `path` sets, one `NAME=VALUE` a line, unchanged; none if there is no file.

    Raises SettingsError with all problems; no message shows a value.
    """
    try:
        mode = path.stat().st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise SettingsError(f"{path}: is readable by others; run: chmod 600 {path}")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is not UTF-8 text") from None
    found, problems = {}, []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if (match := _VARIABLE.fullmatch(line.rstrip("\r"))) and "\0" not in line:
            found[match[1]] = match[2]
        else:
            problems.append(f"{path}:{number}: must be NAME=VALUE, or begin with #")
    if problems:
        raise SettingsError("\n".join(problems))
    return found


def environment(base: Mapping[str, str], further: Mapping[str, str]) -> dict[str, str]:
    """Return `base` with `further`, and with the usual folders in PATH: cron has but two. Pure."""
    found = {**base, **further}
    path = [folder for folder in found.get("PATH", "").split(":") if folder]
    found["PATH"] = ":".join([*path, *(folder for folder in _PATH if folder not in path)])
    return found
