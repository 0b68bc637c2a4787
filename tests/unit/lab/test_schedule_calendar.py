"""When nights are due, held against systemd's own calendar where it is installed."""

import re
import shutil
import subprocess
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.lab.schedule.timers import (
    DAYS,
    Calendar,
    due_instants,
    next_due,
    parse_calendar,
    skipped_by_clocks,
)

BERLIN = ZoneInfo("Europe/Berlin")

FORMS = [
    ("03:00", "*-*-* 03:00:00", "every day"),
    ("Mon..Fri 03:30", "Mon,Tue,Wed,Thu,Fri *-*-* 03:30:00", "a range of days"),
    ("sat,Sunday 1,13:00", "Sat,Sun *-*-* 01,13:00:00", "days by both names, twice a day"),
    ("Sat..Mon 03:00", "Mon,Sat,Sun *-*-* 03:00:00", "a range over the end of the week"),
    ("*-*-* 03:00:00 Europe/Berlin", "*-*-* 03:00:00 Europe/Berlin", "systemd's own form, with a zone"),
    (" Mon *-*-* 23:59 ", "Mon *-*-* 23:59:00", "white space around it"),
]
REFUSED = [
    ("", "nothing"),
    ("3", "no minutes"),
    ("24:00", "an hour that there is not"),
    ("03:60", "a minute that there is not"),
    ("Moon 03:00", "a day that there is not"),
    ("03:00 Mars/Phobos", "a zone that there is not"),
    ("03:00 ../../etc/passwd", "a zone that is a path"),
    ("*-*-01 03:00", "not every week alike"),
    ("03:00:30", "seconds, which cron has not"),
    ("*:0/5", "every five minutes is no night"),
    ("03:00\nExecStart=/bin/sh", "a second line"),
]


@pytest.mark.parametrize(("text", "means", "why"), FORMS, ids=[row[2] for row in FORMS])
def test_forms(text: str, means: str, why: str) -> None:
    assert str(parse_calendar(text)) == means, why
    assert parse_calendar(means) == parse_calendar(text)


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=[row[1] for row in REFUSED])
def test_what_is_no_night_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"must be|is not a (?:day|time of day|time zone)"):
        parse_calendar(text)


def _dues(text: str, zone: ZoneInfo, first: str, last: str) -> list[str]:
    after, until = (datetime.fromisoformat(f"{day}T12:00:00+00:00") for day in (first, last))
    return [f"{due:%m-%d %H:%M}" for due in due_instants(parse_calendar(text), zone, after, until)]


CLOCKS = [
    (
        "02:30",
        "2026-03-27",
        "2026-03-30",
        ["03-28 01:30", "03-29 01:00", "03-30 00:30"],
        "02:30 is left out in spring: the night begins at once after the gap",
    ),
    (
        "02:30",
        "2026-10-23",
        "2026-10-26",
        ["10-24 00:30", "10-25 00:30", "10-26 01:30"],
        "02:30 comes twice in autumn: the night begins the first time",
    ),
    (
        "02,03:00",
        "2026-03-28",
        "2026-03-29",
        ["03-29 01:00"],
        "two nights of a day that fall together are one",
    ),
]


@pytest.mark.parametrize(("text", "first", "last", "said", "why"), CLOCKS, ids=[row[4] for row in CLOCKS])
def test_clocks(text: str, first: str, last: str, said: list[str], why: str) -> None:
    assert _dues(text, BERLIN, first, last) == said


ZONES = [
    "Europe/Berlin",
    "Europe/Helsinki",
    "America/Havana",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "UTC",
]
CALENDARS = st.builds(
    Calendar,
    st.sets(st.integers(0, 6), min_size=1).map(lambda days: tuple(sorted(days))),
    st.sets(st.integers(0, 23), min_size=1, max_size=2).map(lambda hours: tuple(sorted(hours))),
    st.integers(0, 59),
    st.sampled_from(ZONES),
)


@given(CALENDARS)
def test_a_calendar_reads_back(calendar: Calendar) -> None:
    assert parse_calendar(str(calendar)) == calendar


@given(st.integers(0, 23), st.integers(0, 59), st.sampled_from(ZONES), st.integers(0, 700))
def test_each_day_has_one_night_whatever_the_clocks_do(hour: int, minute: int, zone: str, day: int) -> None:
    calendar = Calendar(tuple(range(7)), (hour,), minute, zone)
    here = calendar.tzinfo()
    after = datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(days=day)
    found = list(due_instants(calendar, here, after, after + timedelta(days=60)))
    days = [due.astimezone(here).date() for due in found]
    # In a gap at midnight the night begins on the same date, so each date is there, once
    assert days == [days[0] + timedelta(days=i) for i in range(len(days))]
    assert 59 <= len(days) <= 61
    assert next_due(calendar, here, after) == found[0]
    assert all(due > after for due in found)


def test_nights_that_the_clocks_leave_out_are_named() -> None:
    found = skipped_by_clocks(parse_calendar("02:30"), BERLIN, date(2026, 11, 1), 3)
    assert [f"{local:%Y-%m-%d %H:%M}" for local in found] == ["2027-03-28 03:00", "2028-03-26 03:00"]
    assert skipped_by_clocks(parse_calendar("03:00"), BERLIN, date(2026, 11, 1), 10) == []
    assert (
        skipped_by_clocks(parse_calendar("Mon..Sat 02:30"), BERLIN, date(2026, 11, 1), 10) == []
    )  # clocks change on Sundays


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd is installed here")
@example(Calendar((0,), (0, 1), 0, "Europe/Berlin"))  # due just then: not later
@given(CALENDARS)
def test_systemd_means_the_same(calendar: Calendar) -> None:
    # Where the clocks change, ours is on purpose not systemd's: see test_clocks
    here = calendar.tzinfo()
    after = datetime(2026, 1, 5, 0, 0, tzinfo=UTC)
    command = ["systemd-analyze", "calendar", "--iterations=5", "--base-time=2026-01-05 00:00:00 UTC"]
    said = subprocess.run(
        [*command, str(calendar)], capture_output=True, text=True, check=True, env={"TZ": "UTC"}
    )
    theirs = re.findall(r"(?:Next elapse|Iter. #\d+): \w{3} (\S+ \S+) UTC", said.stdout)
    ours = list(due_instants(calendar, here, after, after + timedelta(days=50)))  # later than that, as theirs
    assert len(theirs) == 5
    assert theirs == [f"{due:%Y-%m-%d %H:%M:%S}" for due in ours[:5]]


def test_days_are_as_systemd_calls_them() -> None:
    assert DAYS[0] == "Mon"
    assert len(DAYS) == 7
