"""The calendar of nights: days of the week and times of the day, in a time zone. Pure.

A night whose time the zone leaves out (clocks go forward) is due at the first instant after the gap; one
whose time comes twice (clocks go back) is due the first time: each night is due once, whatever the clocks do.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
FORM = "[DAYS] HH:MM [ZONE], such as 03:00, Mon..Fri 03:30, Sat,Sun 01,13:00 or 03:00 Europe/Berlin"
_LOCAL = Path("/etc/localtime")
_FORM = re.compile(
    r"(?:(?P<days>[A-Za-z][A-Za-z.,]*)\s+)?(?:\*-\*-\*\s+)?"
    r"(?P<hours>\d{1,2}(?:,\d{1,2})*):(?P<minute>\d{2})(?::00)?(?:\s+(?P<zone>[A-Za-z][A-Za-z0-9_+/-]*))?"
)
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


def parsed(text: str) -> Calendar:
    """Return the calendar that `text` describes. Raises ValueError."""
    found = _FORM.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} must be {FORM}")
    hours = sorted({int(hour) for hour in found["hours"].split(",")})
    minute = int(found["minute"])
    if hours[-1] > 23 or minute > 59:
        raise ValueError(f"{text!r}: there is no such time of day")
    zone = found["zone"]
    try:
        if zone:
            ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{text!r}: there is no time zone {zone}") from None
    return Calendar(_days(found["days"] or "Mon..Sun"), tuple(hours), minute, zone)


def local_zone() -> tzinfo:
    """Return the machine's own zone, which systemd and cron use; this process's TZ does not count."""
    try:
        with _LOCAL.open("rb") as file:
            return ZoneInfo.from_file(file, key="localtime")
    except (OSError, ValueError):
        return UTC


def dues(calendar: Calendar, zone: tzinfo, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the instants (UTC, ascending) at which nights are due, later than `after`, up to `until`."""
    last = after
    day = after.astimezone(zone).date() - _DAY
    while day <= until.astimezone(zone).date():
        for due in _of_day(calendar, zone, day):
            if last < due <= until:
                yield due
                last = due
        day += _DAY


def next_due(calendar: Calendar, zone: tzinfo, after: datetime) -> datetime:
    """Return the first instant (UTC) later than `after` at which a night is due."""
    return next(dues(calendar, zone, after, after + 10 * _DAY))


def gaps(calendar: Calendar, zone: tzinfo, first: date, years: int) -> list[datetime]:
    """Return the local times that stand in for nights that the clocks leave out, from `first` on.

    systemd (252) leaves such nights out, so they are added to the timer one by one.
    """
    found = []
    day, last = first, date(first.year + years, 1, 1)
    while day < last:
        if day.weekday() in calendar.days and _clocks_change(day, zone):
            for hour in calendar.hours:
                local = datetime.combine(day, time(hour, calendar.minute), zone)
                instead = _existing(local, zone)
                if instead.replace(tzinfo=None) != local.replace(tzinfo=None):
                    found.append(instead)
        day += _DAY
    return list(dict.fromkeys(found))


def _of_day(calendar: Calendar, zone: tzinfo, day: date) -> list[datetime]:
    if day.weekday() not in calendar.days:
        return []
    times = [datetime.combine(day, time(hour, calendar.minute), zone) for hour in calendar.hours]
    return sorted(_existing(local, zone).astimezone(UTC) for local in times)


def _clocks_change(day: date, zone: tzinfo) -> bool:
    begin, end = (datetime.combine(at, time(), zone).utcoffset() for at in (day, day + _DAY))
    return begin != end


def _existing(local: datetime, zone: tzinfo) -> datetime:
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
