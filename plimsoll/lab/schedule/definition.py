"""A timer's definition, as given to `install`: kept beside its nights, for systemd, cron and `status`."""

import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, ValidationError

from plimsoll.common.errors import SettingsError
from plimsoll.common.validation import sentence_of
from plimsoll.lab.names import StrictModel
from plimsoll.lab.schedule import crontab, units
from plimsoll.lab.schedule.calendar import Calendar, parsed

Kind = Literal["system", "user", "cron"]
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class Timer(StrictModel):
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
        return parsed(self.calendar)


@dataclass(frozen=True)
class TimerFolders:
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
        stem = units.unit(name)
        return self.units(kind) / f"{stem}.service", self.units(kind) / f"{stem}.timer"

    @property
    def names(self) -> list[str]:
        """The timers that are installed, also those whose installation was interrupted."""
        return sorted(path.parent.name for path in self.state.glob("*/schedule.json"))


def places(state: Path | None) -> TimerFolders:
    """Return the places of this user; `state` instead of the usual folder."""
    home = Path.home()
    if state is None and os.geteuid() == 0:
        state = Path("/var/lib/plimsoll/schedules")
    if state is None:
        state = Path(os.environ.get("XDG_STATE_HOME") or home / ".local/state") / "plimsoll/schedules"
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return TimerFolders(state.absolute(), Path("/etc/systemd/system"), config / "systemd/user")


def checked_name(name: str) -> str:
    """Return `name` if it may become part of file names and units. Raises SettingsError."""
    if not NAME.fullmatch(name):
        raise SettingsError(
            f"NAME: {name!r} must have only letters, digits and _ . -, at most 64, and not begin with . or -"
        )
    return name


def read(place: TimerFolders, name: str) -> Timer:
    """Return the timer `name`. Raises SettingsError."""
    path = place.folder(checked_name(name)) / "schedule.json"
    try:
        found = Timer.model_validate_json(path.read_bytes())
        found.nights  # noqa: B018 raises where it is no calendar
    except FileNotFoundError:
        there = ", ".join(place.names) or "none"
        raise SettingsError(f"NAME: there is no schedule {name} (there is: {there})") from None
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise SettingsError(
            f"{path}: was not written by this version: {sentence_of(error)}; install it again"
        ) from None
    except ValueError as error:
        raise SettingsError(f"{path}: {error}; install it again") from None
    return found


def command(schedule: Timer, place: TimerFolders) -> list[str]:
    """Return the command that systemd and cron call. Pure."""
    words = [*schedule.program, "schedule", "run", schedule.name, "--state", str(place.state), "--timer"]
    return [*words, "--quiet"] if schedule.kind == "cron" else words


def unit_texts(schedule: Timer, place: TimerFolders) -> dict[Path, str]:
    """Return the unit files that belong to `schedule`, with their texts; none for cron."""
    if schedule.kind == "cron":
        return {}
    service, timer = place.unit_files(schedule.kind, schedule.name)
    calendar = schedule.nights
    zone = calendar.tzinfo()
    first = datetime.astimezone(schedule.installed_at, zone).date()
    return {
        service: units.service(schedule.name, command(schedule, place), schedule.kind == "system"),
        timer: units.timer(schedule.name, calendar, zone, first, schedule.resume_missed),
    }


def cron_lines(schedule: Timer, place: TimerFolders) -> list[str]:
    """Return the lines of `schedule` in the crontab. Raises ValueError for what cron cannot do."""
    return crontab.lines(schedule.nights, command(schedule, place), schedule.resume_missed)
