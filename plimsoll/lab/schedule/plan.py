"""Plans the steps that install and remove a timer. Pure: what is there is passed in."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.common.errors import SettingsError
from plimsoll.lab.schedule import crontab, units
from plimsoll.lab.schedule.definition import Kind, Timer, TimerFolders, cron_lines, unit_texts
from plimsoll.lab.schedule.steps import Remove, TimerStep, Write
from plimsoll.lab.steps.step import Command

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


@dataclass(frozen=True)
class InstalledTimer:
    """The installed parts of a timer: unit files by kind, and the crontab (None: cannot be read)."""

    units: dict[Kind, list[Path]]
    foreign: list[Path]
    crontab: str | None
    schedule: Timer | None


def install(schedule: Timer, place: TimerFolders, found: InstalledTimer) -> list[TimerStep]:
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
    steps: list[TimerStep] = [
        Write(
            "the settings of the schedule",
            place.folder(schedule.name) / "schedule.json",
            schedule.model_dump_json(indent=1) + "\n",
        )
    ]
    steps += _away(schedule.name, place, found, schedule.kind)
    if schedule.kind == "cron":
        if found.crontab is None:
            raise SettingsError("--cron: crontab is not installed: install cron, or use systemd")
        wanted = crontab.with_lines(found.crontab, schedule.name, cron_lines(schedule, place))
        if wanted != found.crontab:
            steps.append(Command("the crontab, with the schedule's lines", ("crontab", "-"), stdin=wanted))
        return steps
    steps += [Write("the unit", path, text) for path, text in unit_texts(schedule, place).items()]
    steps.append(Command("reload systemd's units", (*systemctl(schedule.kind), "daemon-reload")))
    timer = f"{units.unit(schedule.name)}.timer"
    steps.append(Command("start the timer with the machine", (*systemctl(schedule.kind), "enable", timer)))
    # `enable --now` leaves a timer that runs as it was
    steps.append(Command("start it now", (*systemctl(schedule.kind), "restart", timer)))
    return steps


def remove(name: str, place: TimerFolders, found: InstalledTimer, purge: bool) -> list[TimerStep]:
    """Return the steps that remove the timer `name`, wherever its installation was interrupted."""
    steps = _away(name, place, found, None)
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


def _away(name: str, place: TimerFolders, found: InstalledTimer, but: Kind | None) -> list[TimerStep]:
    """Return the steps that stop and remove units and lines of all kinds but one."""
    steps: list[TimerStep] = []
    for kind, paths in found.units.items():
        if kind == but or not paths:
            continue
        ask = systemctl(kind)
        service, timer = f"{units.unit(name)}.service", f"{units.unit(name)}.timer"
        # Where systemd does not run, its files go all the same
        off = Command("stop starting nights", (*ask, "disable", "--now", timer), may_fail=True)
        stop = Command(
            "let a running night remove its clones and end",
            (*ask, "stop", service),
            timeout_s=units.STOP_S + 60.0,
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
        left = crontab.without(found.crontab, name)
        if left != found.crontab:
            words = ("crontab", "-") if left else ("crontab", "-r")
            steps.append(Command("the crontab, without the schedule's lines", words, stdin=left or None))
    return steps
