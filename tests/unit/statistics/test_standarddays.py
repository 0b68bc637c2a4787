"""Days against the same hours of reference weeks: what moves a value, and what does not."""

from collections.abc import Mapping
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.statistics.standardised import (
    Reference,
    Served,
    ServedDay,
    alike,
    hours_of,
    local_hours,
    packed,
    time_zone,
    unpacked,
    weekday,
)
from plimsoll.common.errors import SettingsError

PAGE, IMAGE = 1, 2
MONDAY = 20_731


def day(
    number: int,
    requests: Mapping[int, int],
    times: float = 1.0,
    failing: int = 0,
    hours: range = range(24),
) -> ServedDay:
    """So many requests an hour and route: 10, 20, … ms for pages, a tenth of that for images."""
    parts = []
    for hour in hours:
        for route, count in requests.items():
            took = (np.arange(1, count + 1) * (10_000 if route == PAGE else 1000) * times).astype("u4")
            failed = np.arange(count) < failing
            took[failed] = 60_000_000
            ones = np.ones(count, dtype="i8")
            parts.append(Served(ones * (number * 24 + hour), ones * route, took, failed, ones))
    return ServedDay(number, alike(Served.joined(parts)))


def reference(finest_us: float = 1.0) -> Reference:
    return Reference([day(MONDAY + at, {PAGE: 50, IMAGE: 50}) for at in range(14)], finest_us)


NEW = MONDAY + 21
VALUES = [
    ("the same", day(NEW, {PAGE: 50, IMAGE: 50}), 1.0),
    ("three times the visitors, of the same wishes", day(NEW, {PAGE: 150, IMAGE: 150}, times=1 / 3), 1.0),
    ("more images", day(NEW, {PAGE: 50, IMAGE: 500}, times=1.0), None),
    ("half as slow again", day(NEW, {PAGE: 50, IMAGE: 50}, times=1.5), 1.5),
    ("all but two hours", day(NEW, {PAGE: 50, IMAGE: 50}, hours=range(22)), 1.0),
]


@pytest.mark.parametrize(("what", "other", "ratio"), VALUES, ids=[row[0] for row in VALUES])
def test_what_moves_a_day(what: str, other: ServedDay, ratio: float | None) -> None:
    usual = reference().figures(day(MONDAY + 22, {PAGE: 50, IMAGE: 50})).quantiles_ms["p99"]
    found = reference().figures(other).quantiles_ms["p99"]
    assert usual == 490
    if ratio is None:  # images go up to 500 ms here; weighed as before, they move little
        assert found == pytest.approx(usual, rel=0.03), what
    else:
        assert found == pytest.approx(ratio * usual, rel=0.01), what


NONE = [
    (
        "half of the hours are missing",
        day(NEW, {PAGE: 50, IMAGE: 50}, hours=range(12)),
        "only 50 % of the requests",
    ),
    ("half of it is of routes that were not there", day(NEW, {PAGE: 25, 3: 25}), "only 50 % of its requests"),
]


@pytest.mark.parametrize(("what", "other", "says"), NONE, ids=[row[0] for row in NONE])
def test_days_without_their_like(what: str, other: ServedDay, says: str) -> None:
    found = reference().figures(other)
    assert says in found.why, what
    assert set(found.quantiles_ms.values()) == {None}


def test_failures_are_never_fast() -> None:
    found = reference().figures(day(NEW, {PAGE: 50, IMAGE: 50}, times=0.1, failing=3))
    assert found.failures == {"p95", "p99", "p99.9"}
    assert found.quantiles_ms["p99"] is None
    assert found.why == ""


def test_times_that_the_log_cannot_tell_are_not_given() -> None:
    found = reference(finest_us=1e6).figures(day(NEW, {PAGE: 50, IMAGE: 50}))
    assert "durations of 1 s" in found.why
    fine = reference(finest_us=20_000).figures(day(NEW, {PAGE: 50, IMAGE: 50}))
    assert fine.quantiles_ms["p50"] is None
    assert fine.quantiles_ms["p99"] == 490


def test_a_day_of_the_reference_stands_against_the_others() -> None:
    days = [day(MONDAY + at, {PAGE: 50, IMAGE: 50}, times=2.0 if at == 7 else 1.0) for at in range(14)]
    assert Reference(days).figures(days[7]).quantiles_ms["p50"] == pytest.approx(
        4 * (Reference(days).figures(days[0]).quantiles_ms["p50"] or 0)
    )
    assert Reference(days[:7]).figures(days[0]).quantiles_ms["p50"] is None, "there is no other Monday yet"


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(0, 1 << 20),
            st.one_of(st.integers(0, 9), st.integers(0, (1 << 32) - 1)),
            st.booleans(),
        ),
        min_size=1,
    )
)
def test_what_is_packed_comes_back(rows: list[tuple[int, int, int, bool]]) -> None:
    hour, route, took, failed = (np.array(column) for column in zip(*rows, strict=True))
    served = alike(Served(hour, route, took.astype("u4"), failed, np.ones(len(rows), dtype="i8")))
    back = Served.joined([unpacked(each, packed(part)) for each, part in hours_of(served)])
    for name in ("hour", "route", "took_us", "failed", "number"):
        assert np.array_equal(getattr(back, name), getattr(served, name))
    assert back.requests == len(rows)


CLOCKS = [
    ("summer", "Europe/Berlin", 2026, 7, 2),
    ("winter", "Europe/Berlin", 2026, 1, 1),
    ("half an hour off", "Asia/Kolkata", 2026, 1, 5),
    ("west", "America/New_York", 2026, 1, -5),
]


@pytest.mark.parametrize(("what", "zone", "year", "month", "ahead"), CLOCKS, ids=[row[0] for row in CLOCKS])
def test_hours_on_the_wall(what: str, zone: str, year: int, month: int, ahead: int) -> None:
    hour = int(np.datetime64(f"{year}-{month:02}-15T00", "h").astype(int))
    assert local_hours(np.array([hour, hour + 1]), ZoneInfo(zone)).tolist() == [
        hour + ahead,
        hour + ahead + 1,
    ]


def test_days_of_the_week() -> None:
    assert [weekday(MONDAY), weekday(MONDAY + 6), weekday(0)] == [0, 6, 3]


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/passwd", "/etc/passwd", "Europe"])
def test_what_is_no_zone(name: str) -> None:
    with pytest.raises(SettingsError, match="not a time zone"):
        time_zone(name)
