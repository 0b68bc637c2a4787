"""When nights are due, as systemd means it; units and crontabs. UPDATE_GOLDEN=1 writes the examples anew."""

import os
import re
import shutil
import subprocess
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.lab.errors import LabError
from plimsoll.lab.schedule import timers
from plimsoll.lab.schedule.timers import (
    DAYS,
    Calendar,
    due_instants,
    next_due,
    parse_calendar,
    skipped_by_clocks,
)
from tests.support.programs import ROOT

BERLIN = ZoneInfo("Europe/Berlin")
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)

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
    ("24:00", "an hour that does not exist"),
    ("03:60", "a minute that does not exist"),
    ("Moon 03:00", "a day that does not exist"),
    ("03:00 Mars/Phobos", "a zone that does not exist"),
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


@needs_systemd
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


EXAMPLES = ROOT / "examples" / "systemd"
COMMAND = [
    "/srv/plimsoll/.venv/bin/plimsoll",
    *("schedule", "now", "quiet", "--state", "/var/lib/plimsoll/schedules", "--timer"),
]
NIGHTS = parse_calendar("Mon..Fri 03:30")
HARD = '/srv/50% off/$HOME/it\'s "here" ${A} \\n ; # &'
# What a word of a command can be; no control characters: those are refused
WORDS = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=30)


def _examples() -> dict[str, str]:
    timer = timers.timer_unit("quiet", NIGHTS, ZoneInfo("Europe/Berlin"), date(2026, 11, 22), True)
    return {
        "plimsoll-quiet.service": timers.service_unit("quiet", COMMAND, True),
        "plimsoll-quiet.timer": timer,
        "crontab": "\n".join(timers.crontab_lines(NIGHTS, COMMAND, True)) + "\n",
    }


@pytest.mark.parametrize("name", sorted(_examples()))
def test_the_examples_are_what_is_written(name: str) -> None:
    path = EXAMPLES / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(_examples()[name], encoding="utf-8")
    assert path.read_text(encoding="utf-8") == _examples()[name]


def _verified(folder: Path, name: str, text: str) -> str:
    """What systemd has to say against a unit."""
    (folder / name).write_text(text, encoding="utf-8")
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(folder / name)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stderr if done.returncode or name in done.stderr else ""


@needs_systemd
@pytest.mark.parametrize("system", [True, False])
@pytest.mark.parametrize(
    "hard", ["plain", "a b", "100%", "$HOME", 'quo"te', "it's", "back\\slash", "smörgås"]
)
def test_systemd_takes_the_units(tmp_path: Path, system: bool, hard: str) -> None:
    program = tmp_path / hard / "plimsoll"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    command = [str(program), "schedule", "now", "quiet", "--state", str(tmp_path / HARD.replace("/", "_"))]
    assert _verified(tmp_path, "plimsoll-quiet.service", timers.service_unit("quiet", command, system)) == ""
    timer = timers.timer_unit(
        "quiet", parse_calendar("02:30"), ZoneInfo("Europe/Berlin"), date(2026, 11, 22), True
    )
    assert "OnCalendar=2027-03-28 03:00:00\n" in timer
    assert _verified(tmp_path, "plimsoll-quiet.timer", timer) == ""


@needs_systemd
def test_systemd_would_find_what_is_wrong(tmp_path: Path) -> None:
    service = timers.service_unit("quiet", ["/nowhere/plimsoll"], True)
    assert "not executable" in _verified(tmp_path, "plimsoll-quiet.service", service)
    timer = timers.timer_unit("quiet", NIGHTS, ZoneInfo("UTC"), date(2026, 11, 22), True)
    assert _verified(tmp_path, "plimsoll-quiet.timer", timer.replace("03:30", "33:30")) != ""


def _as_systemd_reads(text: str) -> list[str]:
    """systemd.syntax(7), systemd.service(5): quotes, C escapes, specifiers; the colon stops `$`."""
    words: list[str] = []
    word, quote, begun, i = "", "", False, 0
    while i < len(text):
        c = text[i]
        if c == "\\":
            word, begun, i = word + text[i + 1], True, i + 2
            assert text[i - 1] in '\\"'
            continue
        if c == "%":
            assert text[i + 1] == "%"
            word, begun, i = word + "%", True, i + 2
            continue
        if quote:
            quote, word = ("", word) if c == quote else (quote, word + c)
        elif c in "'\"":
            quote, begun = c, True
        elif c.isspace():
            words, word, begun = [*words, word] if begun else words, "", False
        else:
            word, begun = word + c, True
        i += 1
    assert not quote
    return [*words, word] if begun else words


@given(st.lists(WORDS, min_size=1, max_size=5))
def test_each_word_of_a_unit_arrives_as_it_is(further: list[str]) -> None:
    line = timers.exec_start(["/usr/bin/plimsoll", *further])
    assert "\n" not in line
    read = _as_systemd_reads(line)
    assert read == [":/usr/bin/plimsoll", *further]


@given(st.lists(WORDS, min_size=1, max_size=4))
def test_each_word_of_a_cron_line_arrives_as_it_is(further: list[str]) -> None:
    line = timers.crontab_lines(NIGHTS, ["printf", "%s\\0", *further], False)[0]
    text = line.split(" ", 5)[5]
    # crontab(5): a % that is not behind a backslash is a new line, and the backslash before one is taken away
    assert "%" not in text.replace("\\%", "")
    shell = ["sh", "-c", text.replace("\\%", "%")]
    said = subprocess.run(shell, capture_output=True, check=True).stdout
    assert said.decode().split("\0")[:-1] == further


@pytest.mark.parametrize("hard", ["a\nExecStart=/bin/sh", "a\x00", "\x1b[0m", "\x7f"])
def test_control_characters_are_refused(hard: str) -> None:
    with pytest.raises(ValueError, match="control characters"):
        timers.exec_start(["/usr/bin/plimsoll", hard])
    with pytest.raises(ValueError, match="control characters"):
        timers.crontab_lines(NIGHTS, ["plimsoll", hard], True)


def test_what_cron_cannot_do_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zones"):
        timers.crontab_lines(parse_calendar("03:00 Europe/Berlin"), COMMAND, True)
    with pytest.raises(ValueError, match="998 characters"):
        timers.crontab_lines(NIGHTS, ["x" * 1000], True)


def test_days_for_cron() -> None:
    assert timers.crontab_lines(parse_calendar("Sat,Sun 1,13:05"), ["plimsoll"], False) == [
        "5 1,13 * * 0,6 plimsoll"
    ]
    assert timers.crontab_lines(parse_calendar("03:00"), ["plimsoll"], True) == [
        "0 3 * * * plimsoll",
        "@reboot plimsoll",
    ]


LINES = st.lists(st.text(st.characters(exclude_characters="\n")), max_size=5).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


@given(LINES, LINES)
def test_the_rest_of_a_crontab_stays(before: str, after: str) -> None:
    first = timers.with_lines(before, "quiet", ["0 3 * * * plimsoll"]) + after
    assert timers.crontab_block(first, "quiet") == ["0 3 * * * plimsoll"]
    other = timers.with_lines(first, "other", ["0 4 * * * plimsoll"])
    again = timers.with_lines(other, "quiet", ["0 5 * * * plimsoll"])
    assert again.startswith(before)
    assert timers.crontab_block(again, "quiet") == ["0 5 * * * plimsoll"]
    assert {"quiet", "other"} <= set(timers.crontab_names(again))
    assert timers.without_lines(timers.without_lines(again, "quiet"), "other") == before + after


def test_a_crontab_without_an_end_of_line() -> None:
    assert timers.with_lines("A=1", "q", []).startswith("A=1\n# BEGIN")


@pytest.mark.parametrize(
    "text",
    [
        timers.begin_mark("q") + "\n0 3 * * * plimsoll\n",
        "0 3 * * * plimsoll\n" + timers.end_mark("q") + "\n",
        timers.end_mark("q") + "\n" + timers.begin_mark("q") + "\n",
        2 * (timers.begin_mark("q") + "\n" + timers.end_mark("q") + "\n"),
    ],
)
def test_damaged_marks_are_reported_and_nothing_is_guessed(text: str) -> None:
    with pytest.raises(LabError, match="crontab -e"):
        timers.without_lines(text, "q")


def test_names_do_not_run_into_each_other() -> None:
    text = timers.with_lines("", "a.b", ["1"])
    assert timers.without_lines(text, "axb") == text
    assert timers.without_lines(text, "a") == text


@needs_systemd
@pytest.mark.parametrize(
    ("zone", "text", "day", "why"),
    [
        ("Europe/Berlin", "02:30", "2027-03-28", "02:30 is left out"),
        ("Europe/Berlin", "02:30", "2027-10-31", "02:30 comes twice"),
        ("Europe/Helsinki", "03:00", "2027-03-28", "03:00 is left out, the default"),
        ("America/Havana", "00:00", "2027-03-14", "midnight is left out"),
        ("Australia/Lord_Howe", "02:15", "2027-10-03", "half an hour is left out"),
        ("Europe/Berlin", "03:00", "2027-03-28", "03:00 is there"),
    ],
)
def test_systemd_runs_each_night_once_where_the_clocks_change(
    zone: str, text: str, day: str, why: str
) -> None:
    nights = parse_calendar(f"{text} {zone}")
    timer = timers.timer_unit("quiet", nights, ZoneInfo(zone), date(2026, 11, 22), True)
    after = datetime.fromisoformat(f"{day}T12:00:00+00:00") - timedelta(days=3)
    until = after + timedelta(days=5)
    theirs: list[str] = []
    for line in re.findall(r"^OnCalendar=(.*)$", timer, re.MULTILINE):
        command = [
            "systemd-analyze",
            "calendar",
            "--iterations=6",
            f"--base-time={after:%Y-%m-%d %H:%M:%S} UTC",
            line,
        ]
        said = subprocess.run(command, capture_output=True, text=True, check=True, env={"TZ": "UTC"}).stdout
        theirs += re.findall(r"(?:Next elapse|Iter. #\d+): \w{3} (\S+ \S+) UTC", said)
    last = f"{until:%Y-%m-%d %H:%M:%S}"
    ours = [f"{due:%Y-%m-%d %H:%M:%S}" for due in due_instants(nights, ZoneInfo(zone), after, until)]
    assert sorted(instant for instant in theirs if instant <= last) == ours, why
    assert len(ours) == 5
