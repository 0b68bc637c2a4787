"""When nights are due, in the words of systemd and cron. Pure.

A calendar has days of the week and times of the day, in a time zone. A night whose time the zone leaves out
(clocks go forward) is due at the first instant after the gap; one whose time comes twice (clocks go back) is
due the first time: each night is due once, whatever the clocks do. systemd gets it as units, cron as lines
between marks in a crontab, of which everything else stays as it is.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from plimsoll.lab.errors import LabError

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
FORM = "[DAYS] HH:MM [ZONE], such as 03:00, Mon..Fri 03:30, Sat,Sun 01,13:00 or 03:00 Europe/Berlin"
_FORM = re.compile(
    r"(?:(?P<days>[A-Za-z][A-Za-z.,]*)\s+)?(?:\*-\*-\*\s+)?"
    r"(?P<hours>\d{1,2}(?:,\d{1,2})*):(?P<minute>\d{2})(?::00)?(?:\s+(?P<zone>[A-Za-z][A-Za-z0-9_+/-]*))?"
)
_LOCAL = Path("/etc/localtime")
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Calendar:
    """`days`: 0 is Monday; `hours` ascending; `zone`: None is the machine's own."""

    days: tuple[int, ...]
    hours: tuple[int, ...]
    minute: int
    zone: str | None = None

    def __str__(self) -> str:
        """Return it as systemd has it in OnCalendar, and `parsed` reads it."""
        days = "" if len(self.days) == len(DAYS) else ",".join(DAYS[day] for day in self.days) + " "
        hours = ",".join(f"{hour:02}" for hour in self.hours)
        return f"{days}*-*-* {hours}:{self.minute:02}:00{f' {self.zone}' if self.zone else ''}"

    def tzinfo(self) -> tzinfo:
        """Return the zone: the machine's own where none is named."""
        return ZoneInfo(self.zone) if self.zone else local_zone()


def parse_calendar(text: str) -> Calendar:
    """Return the calendar that `text` describes. Raises ValueError."""
    found = _FORM.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} must be {FORM}")
    hours = sorted({int(hour) for hour in found["hours"].split(",")})
    minute = int(found["minute"])
    if hours[-1] > 23 or minute > 59:
        raise ValueError(f"{text!r}: is not a time of day")
    zone = found["zone"]
    try:
        if zone:
            ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{text!r}: {zone} is not a time zone") from None
    return Calendar(_days(found["days"] or "Mon..Sun"), tuple(hours), minute, zone)


def local_zone() -> tzinfo:
    """Return the machine's own zone, which systemd and cron use; this process's TZ does not count."""
    try:
        with _LOCAL.open("rb") as file:
            return ZoneInfo.from_file(file, key="localtime")
    except (OSError, ValueError):
        return UTC


def due_instants(calendar: Calendar, zone: tzinfo, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the instants (UTC, ascending) at which nights are due, later than `after`, up to `until`."""
    last = after
    day = after.astimezone(zone).date() - _DAY
    while day <= until.astimezone(zone).date():
        for due in _due_on_day(calendar, zone, day):
            if last < due <= until:
                yield due
                last = due
        day += _DAY


def next_due(calendar: Calendar, zone: tzinfo, after: datetime) -> datetime:
    """Return the first instant (UTC) later than `after` at which a night is due."""
    return next(due_instants(calendar, zone, after, after + 10 * _DAY))


def skipped_by_clocks(calendar: Calendar, zone: tzinfo, first: date, years: int) -> list[datetime]:
    """Return the local times that stand in for nights that the clocks leave out, from `first` on.

    systemd (252) leaves such nights out, so they are added to the timer one by one.
    """
    found = []
    day, last = first, date(first.year + years, 1, 1)
    while day < last:
        if day.weekday() in calendar.days and _clocks_change(day, zone):
            for hour in calendar.hours:
                local = datetime.combine(day, time(hour, calendar.minute), zone)
                instead = _next_existing(local, zone)
                if instead.replace(tzinfo=None) != local.replace(tzinfo=None):
                    found.append(instead)
        day += _DAY
    return list(dict.fromkeys(found))


def _due_on_day(calendar: Calendar, zone: tzinfo, day: date) -> list[datetime]:
    if day.weekday() not in calendar.days:
        return []
    times = [datetime.combine(day, time(hour, calendar.minute), zone) for hour in calendar.hours]
    return sorted(_next_existing(local, zone).astimezone(UTC) for local in times)


def _clocks_change(day: date, zone: tzinfo) -> bool:
    begin, end = (datetime.combine(at, time(), zone).utcoffset() for at in (day, day + _DAY))
    return begin != end


def _next_existing(local: datetime, zone: tzinfo) -> datetime:
    """Return `local`, or where there is no such time, the first one after it that there is."""
    while True:
        there = local.astimezone(UTC).astimezone(zone)
        if there.replace(tzinfo=None, fold=0) == local.replace(tzinfo=None, fold=0):
            return local
        local = (local.replace(tzinfo=None) + _MINUTE).replace(tzinfo=zone)


def _days(text: str) -> tuple[int, ...]:
    """Return the days of `Mon..Fri` or `Sat,Sun`. Raises ValueError."""
    found: set[int] = set()
    for part in text.split(","):
        first, dots, last = part.partition("..")
        begin = _day(first)
        end = _day(last) if dots else begin
        found |= {(begin + i) % 7 for i in range((end - begin) % 7 + 1)}
    return tuple(sorted(found))


def _day(text: str) -> int:
    short = text[:3].title()
    full = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    if short not in DAYS or text.title() not in (short, full[DAYS.index(short)]):
        raise ValueError(f"{text!r} is not a day: {' '.join(DAYS)}")
    return DAYS.index(short)


UNIT_MARK = "# Written by plimsoll schedule: install it again to change it, or add to it with systemctl edit."
_YEARS = 10  # ahead for which the timer names the nights that the clocks leave out
STOP_S = 900  # for an experiment to remove its clones before it is killed
_UNSAFE_PROGRAM = re.compile(r"[\"'\\\x00-\x1f\x7f]")  # what systemd refuses in a program's path
_ESCAPES = {"\\": "\\\\", '"': '\\"', "%": "%%"}
# Nothing here may give the service mounts of its own (PrivateTmp, ProtectSystem and the like do): what an
# experiment mounts would be hidden from Docker, which serves clones from there. Nor may a user's be
# kept from new privileges, since the lab becomes root by sudo.
_SYSTEM_ONLY = """\
NoNewPrivileges=yes
LockPersonality=yes
SystemCallArchitectures=native
CapabilityBoundingSet=~CAP_SYS_BOOT CAP_SYS_TIME CAP_WAKE_ALARM CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_SYSLOG
"""


def unit_name(name: str) -> str:
    """Return the name of the units of the timer `name`, without .service or .timer."""
    return f"plimsoll-{name}"


def service_unit(name: str, command: Sequence[str], system: bool) -> str:
    """Return the service that runs `command`; `system`: root's, not a user's."""
    network = "Wants=network-online.target\nAfter=network-online.target\n" if system else ""
    return f"""{UNIT_MARK}
[Unit]
Description=Plimsoll: tonight's run of {name}
{network}
[Service]
Type=oneshot
ExecStart={exec_start(command)}
TimeoutStartSec=infinity
# Stopping it is like Ctrl-C: the experiment removes its clones, and the next night continues it.
KillMode=mixed
KillSignal=SIGINT
TimeoutStopSec={STOP_S}
UMask=0022
{_SYSTEM_ONLY if system else ""}"""


def timer_unit(name: str, calendar: Calendar, zone: tzinfo, first: date, resume_missed: bool) -> str:
    """Return the timer. `first`: the day from which nights that the clocks leave out are named."""
    instead = [
        f"OnCalendar={local:%Y-%m-%d %H:%M}:00{f' {calendar.zone}' if calendar.zone else ''}\n"
        for local in skipped_by_clocks(calendar, zone, first, _YEARS)
    ]
    said = "# These nights have no such time, since the clocks go forward:\n" if instead else ""
    return f"""{UNIT_MARK}
[Unit]
Description=Plimsoll: nights of {name}

[Timer]
OnCalendar={calendar}
{said}{"".join(instead)}AccuracySec=1s
RandomizedDelaySec=0
Persistent={"yes" if resume_missed else "no"}

[Install]
WantedBy=timers.target
"""


def exec_start(command: Sequence[str]) -> str:
    """Return `command` for ExecStart=, each word to arrive as it is.

    The colon keeps systemd from reading `$`; a program whose path it would refuse is started by env. Raises
    ValueError for control characters, which no unit file can hold.
    """
    words = list(command)
    if any(re.search(r"[\x00-\x1f\x7f]", word) for word in words):
        raise ValueError("a unit cannot contain control characters")
    if _UNSAFE_PROGRAM.search(words[0]):
        words.insert(0, "/usr/bin/env")
    return " ".join([quote_word(":" + words[0]), *(quote_word(word) for word in words[1:])])


def quote_word(word: str) -> str:
    """Return `word` in quotes where systemd needs them, without specifiers."""
    escaped = "".join(_ESCAPES.get(c, c) for c in word)
    return escaped if re.fullmatch(r"[A-Za-z0-9_@%+=:,./-]+", escaped) else f'"{escaped}"'


_LONGEST_COMMAND = 998  # characters of a command that Debian's cron takes
_WEEK = 7


def crontab_lines(calendar: Calendar, command: Sequence[str], resume_missed: bool) -> list[str]:
    """Return the lines that run `command`; with `resume_missed` also when the machine starts.

    Raises ValueError for what cron cannot do.
    """
    if calendar.zone:
        raise ValueError(f"cron knows no time zones: leave {calendar.zone} out; cron uses the machine's own")
    text = shlex.join(command)
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError("a crontab cannot contain control characters")
    text = text.replace("%", "\\%")
    if len(text) > _LONGEST_COMMAND:
        raise ValueError(
            f"cron takes commands of up to {_LONGEST_COMMAND} characters: choose a shorter --state"
        )
    # cron counts from Sunday
    every = len(calendar.days) == _WEEK
    days = "*" if every else ",".join(str(day) for day in sorted((day + 1) % _WEEK for day in calendar.days))
    hours = ",".join(str(hour) for hour in calendar.hours)
    found = [f"{calendar.minute} {hours} * * {days} {text}"]
    return [*found, f"@reboot {text}"] if resume_missed else found


def begin_mark(name: str) -> str:
    """Return the mark before the lines of `name`."""
    return f"# BEGIN plimsoll schedule {name} (written by it: install it again to change it)"


def end_mark(name: str) -> str:
    """Return the mark behind them."""
    return f"# END plimsoll schedule {name}"


def crontab_block(text: str, name: str) -> list[str] | None:
    """Return the lines of `name` in the crontab `text`, None where there are none. Raises LabError."""
    found = _span(text, name)
    return None if found is None else text[slice(*found)].splitlines()[1:-1]


def crontab_names(text: str) -> list[str]:
    """Return the names of the timers in the crontab `text`."""
    return re.findall(r"^# BEGIN plimsoll schedule ([A-Za-z0-9_.-]+) ", text, re.MULTILINE)


def without_lines(text: str, name: str) -> str:
    """Return the crontab `text` without the lines of `name`. Raises LabError."""
    found = _span(text, name)
    return text if found is None else text[: found[0]] + text[found[1] :]


def with_lines(text: str, name: str, wanted: Sequence[str]) -> str:
    """Return the crontab `text` with the lines of `name`: where they stood, else last. Raises LabError."""
    new = "".join(f"{line}\n" for line in [begin_mark(name), *wanted, end_mark(name)])
    found = _span(text, name)
    if found is not None:
        return text[: found[0]] + new + text[found[1] :]
    return text + ("\n" if text and not text.endswith("\n") else "") + new


def _span(text: str, name: str) -> tuple[int, int] | None:
    starts = [
        found.start() for found in re.finditer(rf"^{re.escape(begin_mark(name))}\n", text, re.MULTILINE)
    ]
    ends = [
        found.end() for found in re.finditer(rf"^{re.escape(end_mark(name))}(?:\n|\Z)", text, re.MULTILINE)
    ]
    if not starts and not ends:
        return None
    if len(starts) != 1 or len(ends) != 1 or ends[0] <= starts[0]:
        raise LabError(
            f"crontab: the marks of plimsoll schedule {name} are damaged: delete them and the lines "
            "between them with crontab -e"
        )
    return starts[0], ends[0]
