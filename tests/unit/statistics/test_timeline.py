"""Slices of time, windows of slices, and the line through them, against brute force."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.statistics.percentiles import NEVER_US, FailedTimes
from plimsoll.analysis.statistics.requests import CountedRequests
from plimsoll.analysis.statistics.windows import (
    HEAT_ROWS,
    MOST_BINS,
    Timeline,
    average_line,
    heat_edge_ms,
    make_windows,
    merged_edges,
)
from plimsoll.rundir.records import QUEUED
from tests.support.rundir import records

LARGEST = 2**32 - 1
Row = tuple[int, int, int, bool, str]  # due_ns, lag_us, total_us, whether it queued, how it failed
requests = st.lists(
    st.tuples(
        st.integers(0, 10**16),
        st.integers(0, LARGEST),
        st.integers(0, LARGEST),
        st.booleans(),
        st.sampled_from(["", "", "wrong", "unanswered"]),
    ),
    min_size=1,
    max_size=60,
)


def _timeline(rows: list[Row], block: int, timeout_us: int | None = None) -> Timeline:
    timeline = Timeline()
    for start in range(0, len(rows), block):
        due, lag, total, queued, how = (
            list(column) for column in zip(*rows[start : start + block], strict=True)
        )
        table = records(len(due), due_ns=due, lag_us=lag, total_us=total, flags=np.where(queued, QUEUED, 0))
        table["status"] = [500 if each == "wrong" else 200 for each in how]
        table["error"] = [each == "unanswered" for each in how]
        timeline.add(CountedRequests(table, timeout_us))
    return timeline


@given(requests, st.integers(1, 20), st.none() | st.integers(1, 2**33))
def test_slices_hold_what_falls_into_them_however_they_folded(
    rows: list[Row], block: int, timeout_us: int | None
) -> None:
    timeline = _timeline(rows, block, timeout_us)
    assert timeline.used <= MOST_BINS
    due, done = [0] * MOST_BINS, [0] * MOST_BINS
    slowest: dict[int, int] = {}
    responses: dict[int, list[int]] = {}
    failures: dict[int, list[tuple[int, bool]]] = {}
    heat = [0] * MOST_BINS
    lags: dict[int, list[int]] = {}
    for due_ns, lag_us, total_us, queued, how in rows:
        slot, took_us = due_ns // timeline.width_ns, lag_us + total_us
        response_us = took_us if not how else NEVER_US if timeout_us is None else max(took_us, timeout_us)
        due[slot] += 1
        done[(due_ns + took_us * 1000) // timeline.width_ns] += 1
        slowest[slot] = max(slowest.get(slot, 0), response_us)
        responses.setdefault(slot, []).append(response_us)
        heat[slot] += not how or response_us != NEVER_US
        if how:
            came = how == "wrong" and (timeout_us is None or took_us < timeout_us)
            failures.setdefault(slot, []).append((response_us, came))
        if not queued:
            lags.setdefault(slot, []).append(lag_us)
    assert timeline.due.tolist() == due
    assert timeline.done.tolist() == done
    assert timeline.heat.sum(axis=1).tolist() == heat
    assert timeline.failed.tolist() == [len(failures.get(slot, [])) for slot in range(MOST_BINS)]
    for slot, values in responses.items():
        assert sorted(timeline.response.of(slot).values_us.tolist()) == sorted(values)
        bad = [us for us, _ in failures.get(slot, [])]
        wrong = sum(came for _, came in failures.get(slot, []))
        assert timeline.response.of(slot).failed == FailedTimes(min(bad, default=None), len(bad), wrong)
        assert timeline.wrong[slot] == wrong
        assert timeline.slowest_us[slot] == slowest[slot]
    for slot, values in lags.items():
        assert sorted(timeline.lag.of(slot).values_us.tolist()) == sorted(values)
        assert timeline.latest_us[slot] == max(values)


@pytest.mark.parametrize("time_us", [0, 1, 2, 99, 12_345, 10**6, 10**9, 2 * LARGEST])
def test_the_heat_maps_rows_hold_the_times_between_their_edges(time_us: int) -> None:
    lag_us = min(time_us, LARGEST)
    timeline = _timeline([(0, lag_us, time_us - lag_us, False, "")], 1)
    row = int(timeline.heat[0].argmax())
    assert heat_edge_ms(row) * 0.999 <= max(time_us, 1) / 1000
    assert row == HEAT_ROWS - 1 or max(time_us, 1) / 1000 <= heat_edge_ms(row + 1) * 1.001


def _steady(per_slice: list[int]) -> Timeline:
    """So many requests in each tenth of a second; request k of a slice takes k µs."""
    rows: list[Row] = [
        (slot * 100_000_000, 0, k, False, "") for slot, count in enumerate(per_slice) for k in range(count)
    ]
    return _timeline(rows, len(rows))


def test_windows_of_a_steady_run_are_as_narrow_as_a_p999_allows() -> None:
    windows = make_windows(_steady([500] * 20))
    assert windows.shown == "p99.9"
    assert windows.width_s == pytest.approx(0.2)
    assert len(windows.windows) == 10
    assert {(window.n, window.merged, window.p999_ms) for window in windows.windows} == {(1000, False, 0.499)}


def test_windows_with_too_few_requests_merge_and_say_so() -> None:
    windows = make_windows(_steady([1000, 1000, 1000, 400, 400, 400, 1000, 1000, 300]))
    assert [(w.n, w.merged) for w in windows.windows] == [
        (1000, False),
        (1000, False),
        (1000, False),
        (1200, True),
        (1000, False),
        (1300, True),
    ]


def test_a_time_without_requests_widens_no_window_before_it() -> None:
    rows: list[Row] = [(0, 0, k, False, "") for k in range(1000)]
    rows.append((100_000_000, 0, 30_000_000, False, ""))
    windows = make_windows(_timeline(rows + [(10**8, 0, k, False, "") for k in range(999)], 500))
    assert [(w.start_s, w.stop_s, w.n) for w in windows.windows] == [(0, 0.1, 1000), (0.1, 0.2, 1000)]
    assert windows.windows[1].max_ms == 30_000


@pytest.mark.parametrize(("requests", "shown"), [(99, "max"), (100, "p99"), (999, "p99"), (1000, "p99.9")])
def test_a_small_run_shows_what_it_can_under_its_own_name(requests: int, shown: str) -> None:
    windows = make_windows(_steady([requests]))
    assert windows.shown == shown
    assert windows.value_ms(windows.windows[0]) is not None
    assert (windows.windows[0].p999_ms is None) is (shown != "p99.9")


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=80), st.integers(1, 9), st.integers(1, 2000))
def test_merged_windows_lose_no_request_and_each_has_enough(
    counts: list[int], slices: int, enough: int
) -> None:
    edges = merged_edges(counts, slices, enough)
    if sum(counts) < enough:
        assert edges == []
        return
    assert all(sum(counts[start:stop]) >= enough for start, stop in edges)
    assert sum(sum(counts[start:stop]) for start, stop in edges) == sum(counts)
    assert all(before[1] == after[0] for before, after in pairwise(edges))


@given(st.integers(-1000, 1000), st.integers(-50, 50), st.lists(st.integers(1, 9), min_size=8, max_size=30))
def test_points_on_a_line_give_that_line(at_zero: int, slope: int, weights: list[int]) -> None:
    line = average_line([(float(t), at_zero + slope * float(t), n) for t, n in enumerate(weights)])
    assert line is not None
    assert line.at_zero_ms == pytest.approx(at_zero, abs=1e-6)
    assert line.slope_ms_per_s == pytest.approx(slope, abs=1e-6)


def test_the_line_is_numpys_weighted_least_squares() -> None:
    random = np.random.default_rng(1)
    t_s, value_ms, n = random.random(40) * 60, random.lognormal(3, 1, 40), random.integers(1000, 5000, 40)
    line = average_line(list(zip(t_s, value_ms, n, strict=True)))
    slope, at_zero = np.polyfit(t_s, value_ms, 1, w=np.sqrt(n))
    assert line is not None
    assert line.slope_ms_per_s == pytest.approx(slope)
    assert line.at_zero_ms == pytest.approx(at_zero)


def test_few_points_are_no_line() -> None:
    assert average_line([(float(t), 2.0 * t, 9) for t in range(7)]) is None
    assert average_line([(float(t), 2.0 * t, 9) for t in range(8)]) is not None
    assert average_line([(1.0, 1.0, 9)] * 9) is None
