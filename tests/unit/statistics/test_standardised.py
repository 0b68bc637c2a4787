"""Two sides, or days and reference weeks, over one mix of hours and routes: what moves their ratio."""

from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.statistics.standardised import (
    LEAST_IN_CELL,
    Reference,
    Served,
    ServedDay,
    ServedRequests,
    alike,
    hours_of,
    local_hours,
    packed,
    standardise,
    time_zone,
    unpacked,
    weekday,
)
from plimsoll.common.errors import SettingsError

MONDAY = 20_402  # 2025-11-10


def requests(*cells: tuple[int, int, Sequence[int]], days: int = 14) -> ServedRequests:
    """Requests of cells: (number, how many of each of these times in µs, the times), each day the same."""
    took = np.concatenate([np.tile(np.array(times, dtype="u4"), number) for _, number, times in cells])
    cell = np.concatenate([np.full(number * len(times), of) for of, number, times in cells])
    return ServedRequests(
        np.tile(took, days),
        np.zeros(len(took) * days, dtype=bool),
        np.tile(cell, days).astype("i8"),
        np.repeat(np.arange(MONDAY, MONDAY + days), len(took)),
    )


def failing(side: ServedRequests, share: float) -> ServedRequests:
    failed = np.arange(len(side.cell)) % round(1 / share) == 0
    took = np.where(failed, np.uint32(60_000_000), side.took_us)
    return ServedRequests(took, failed, side.cell, side.day)


def test_another_mix_of_routes_is_no_other_server() -> None:
    """Images take 1 ms, pages 100 ms: half the requests before, a tenth after."""
    before = requests((1, 50, [1000]), (2, 50, [100_000]))
    after = requests((1, 90, [1000]), (2, 10, [100_000]))
    found = standardise(before, after, ["p50", "p90"], 0.025)
    assert found.before.quantiles_ms == found.after.quantiles_ms == {"p50": 1.0, "p90": 100.0}
    assert found.ratios["p90"].estimate == 1
    assert (found.before.kept_share, found.after.kept_share, found.cells) == (1, 1, 2)


def test_a_quantile_is_the_least_time_with_so_much_weight_at_or_below_it() -> None:
    """Cell 1 has 30 % of the weight (60 of 200 requests a day), and a request of it weighs 1.5 or 0.75."""
    before = requests((1, 20, [5000]), (2, 80, [9000]), days=20)
    after = requests((1, 40, [5000]), (2, 60, [9000]), days=20)
    found = standardise(before, after, ["p50"], 0.05)
    assert found.before.quantiles_ms == found.after.quantiles_ms == {"p50": 9.0}
    one = standardise(before, before, ["p50"], 0.05)
    assert one.before.quantiles_ms == {"p50": 9.0}
    heavier = requests((1, 160, [5000]), (2, 40, [9000]), days=20)
    assert standardise(before, heavier, ["p50"], 0.05).before.quantiles_ms == {"p50": 5.0}


def test_a_slower_server_is_slower_whatever_the_mix() -> None:
    random = np.random.default_rng(1)
    times = random.lognormal(10, 1, 400).astype("u4").tolist()
    before, after = requests((1, 3, times), (2, 1, times)), requests((1, 1, times), (2, 3, times))
    slow = ServedRequests(after.took_us * np.uint32(3), after.failed, after.cell, after.day)
    found = standardise(before, slow, ["p50", "p99", "p99.9"], 0.025)
    for ratio in found.ratios.values():
        assert ratio.estimate == pytest.approx(3)
        assert ratio.lower is not None
        assert ratio.upper is not None
        assert 2.98 < ratio.lower <= ratio.upper < 3.02, "all days are alike"


def test_cells_of_one_side_only_and_sparse_ones_are_left_out() -> None:
    before = requests((1, 100, [1000]), (2, 25, [7_000_000]))
    after = requests((1, 100, [1000]), (3, 100, [7_000_000]))
    found = standardise(before, after, ["p99"], 0.05)
    assert found.before.quantiles_ms == found.after.quantiles_ms == {"p99": 1.0}
    assert (found.before.kept_share, found.after.kept_share, found.cells) == (0.8, 0.5, 1)
    once = ServedRequests(
        np.append(after.took_us, np.full(LEAST_IN_CELL - 1, 9_000_000, dtype="u4")),
        np.zeros(len(after.cell) + LEAST_IN_CELL - 1, dtype=bool),
        np.append(after.cell, np.full(LEAST_IN_CELL - 1, 2)),
        np.append(after.day, np.full(LEAST_IN_CELL - 1, MONDAY)),
    )
    assert standardise(before, once, ["p99"], 0.05).cells == 1


def test_sides_that_share_nothing_have_no_figures() -> None:
    found = standardise(requests((1, 100, [1000])), requests((2, 100, [1000])), ["p50", "p99.9"], 0.05)
    assert (found.cells, found.before.kept_share, found.before.effective) == (0, 0, 0)
    assert all(ratio.estimate is ratio.lower is None for ratio in found.ratios.values())


def test_few_requests_that_stand_for_many_have_no_tail() -> None:
    """2,000 requests, but half of the weight is on 28 of them: as good as 110."""
    before, after = requests((1, 141, [1000]), (2, 2, [1000])), requests((1, 2, [1000]), (2, 141, [1000]))
    found = standardise(before, after, ["p50", "p99.9"], 0.05)
    assert found.before.effective == pytest.approx(4 / (1 / 28 + 1 / 1974))
    assert found.before.quantiles_ms == {"p50": 1.0, "p99.9": None}


@pytest.mark.parametrize(
    ("why", "shares", "estimate"),
    [
        ("a quantile that is a failure's has no figure", (0.05, 0.05), None),
        ("fewer failures than that are slow requests", (0.002, 0.002), 1.0),
    ],
)
def test_failures_are_never_fast(why: str, shares: tuple[float, float], estimate: float | None) -> None:
    sides = [failing(requests((1, 100, [1000, 2000])), share) for share in shares]
    found = standardise(sides[0], sides[1], ["p99"], 0.025)
    assert found.ratios["p99"].estimate == estimate, why
    assert found.after.failed_share == pytest.approx(shares[1], rel=0.1)


def test_a_limit_that_is_a_failures_decides_nothing_for_the_candidate() -> None:
    """On one day in seven of the candidate everything fails: p90 may as well be the time-out."""
    before = requests((1, 100, [1000, 2000]), days=28)
    failed = before.day % 14 == 0
    took = np.where(failed, np.uint32(60_000_000), before.took_us)
    found = standardise(before, ServedRequests(took, failed, before.cell, before.day), ["p90"], 0.025)
    assert found.ratios["p90"].estimate == 1
    assert found.ratios["p90"].upper is not None
    assert found.ratios["p90"].upper > 1000


def test_days_that_differ_make_wide_intervals_and_many_days_narrow_ones() -> None:
    def days_of(count: int, seed: int) -> ServedRequests:
        random = np.random.default_rng(seed)
        side = requests((1, 1, random.lognormal(10, 1, 500).astype("u4").tolist()), days=count)
        factor = np.exp(random.normal(0, 0.3, count))[side.day - MONDAY]
        return ServedRequests((side.took_us * factor).astype("u4"), side.failed, side.cell, side.day)

    def width(count: int) -> float:
        ratio = standardise(days_of(count, 1), days_of(count, 2), ["p50"], 0.025).ratios["p50"]
        assert ratio.lower is not None
        assert ratio.upper is not None
        return float(np.log(ratio.upper / ratio.lower))

    assert width(14) > 1.4 * width(84)


def test_weekends_are_drawn_from_weekends_and_workdays_from_workdays() -> None:
    """Of the requests 10.4 % are slow, those of weekends: with one Saturday less, p90 is no longer slow."""
    day = np.repeat(np.arange(28), [26 if number % 7 >= 5 else 90 for number in range(28)])
    took_us = np.where(day % 7 >= 5, 4000, 1000).astype("u4")
    nothing = np.zeros(len(day), dtype=bool)
    served = ServedRequests(took_us, nothing, np.ones(len(day), dtype=np.int64), MONDAY + day)
    found = standardise(served, served, ["p90"], 0.05)
    assert found.before.quantiles_ms == {"p90": 4.0}
    assert (found.ratios["p90"].lower, found.ratios["p90"].upper) == pytest.approx((1.0, 1.0), abs=0.02)


def test_the_same_data_give_the_same_limits() -> None:
    random = np.random.default_rng(3)
    side = requests((1, 1, random.lognormal(10, 1, 300).astype("u4").tolist()))
    assert standardise(side, side, ["p50"], 0.05) == standardise(side, side, ["p50"], 0.05)


PAGE, IMAGE = 1, 2
FIRST_DAY = 20_731


def day(
    number: int, requests: Mapping[int, int], times: float = 1.0, failing: int = 0, hours: range = range(24)
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
    return Reference([day(FIRST_DAY + at, {PAGE: 50, IMAGE: 50}) for at in range(14)], finest_us)


NEW = FIRST_DAY + 21
VALUES = [
    ("the same", day(NEW, {PAGE: 50, IMAGE: 50}), 1.0),
    ("three times the visitors, of the same wishes", day(NEW, {PAGE: 150, IMAGE: 150}, times=1 / 3), 1.0),
    ("more images", day(NEW, {PAGE: 50, IMAGE: 500}, times=1.0), None),
    ("half as slow again", day(NEW, {PAGE: 50, IMAGE: 50}, times=1.5), 1.5),
    ("all but two hours", day(NEW, {PAGE: 50, IMAGE: 50}, hours=range(22)), 1.0),
]


@pytest.mark.parametrize(("what", "other", "ratio"), VALUES, ids=[row[0] for row in VALUES])
def test_what_moves_a_day(what: str, other: ServedDay, ratio: float | None) -> None:
    usual = reference().figures(day(FIRST_DAY + 22, {PAGE: 50, IMAGE: 50})).quantiles_ms["p99"]
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


def test_failures_of_a_day_are_never_fast() -> None:
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
    days = [day(FIRST_DAY + at, {PAGE: 50, IMAGE: 50}, times=2.0 if at == 7 else 1.0) for at in range(14)]
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
    assert [weekday(FIRST_DAY), weekday(FIRST_DAY + 6), weekday(0)] == [0, 6, 3]


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/passwd", "/etc/passwd", "Europe"])
def test_what_is_no_zone(name: str) -> None:
    with pytest.raises(SettingsError, match="not a time zone"):
        time_zone(name)
