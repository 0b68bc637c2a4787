"""Slices of time, windows of slices, phases and lines, against plain loops."""

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.evidence.measure import measure_in_detail
from plimsoll.analysis.report.making import make_report
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.runs import (
    ScenarioFigures,
    disk_latency_of,
    group_by_scenario,
    number_runs,
    scenario_figures,
    send_of,
)
from plimsoll.analysis.statistics.percentiles import NEVER_US, FailedTimes
from plimsoll.analysis.statistics.requests import CountedRequests
from plimsoll.analysis.statistics.windows import (
    HEAT_ROWS,
    MOST_BINS,
    PHASES,
    PhaseSlices,
    Timeline,
    average_line,
    heat_edge_ms,
    line_of,
    make_phase_windows,
    make_windows,
    merged_edges,
)
from plimsoll.rundir.events import Event, saturation
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import QUEUED
from tests.support.experiment import AFTER_S, BEFORE_S, DURING_S, FAST, SLOW, write_experiment, write_one
from tests.support.rundir import change, load_records, records, write_run

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


@given(requests, st.integers(1, 20), st.none() | st.integers(1, NEVER_US - 1))
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


START_NS, STOP_NS = 20_000_000_000, 60_000_000_000


def compared(*paths: Path) -> list[ScenarioFigures]:
    opened = [RunDirectory.open(path) for path in paths]
    runs = number_runs([measure_in_detail(run, sliced=len(paths) > 1) for run in opened])
    return [found for scenario in group_by_scenario(runs) if (found := scenario_figures(scenario))]


def brute(paths: list[Path], phase: str, q: float) -> float | None:
    """The percentile of one phase of some runs, by a plain loop."""
    values = []
    for path in paths:
        run = RunDirectory.open(path)
        records = load_records(run.path)
        for due_ns, lag_us, total_us, flags in records[["due_ns", "lag_us", "total_us", "flags"]].tolist():
            if flags & 8:
                continue
            found = "before" if due_ns < START_NS else "during" if due_ns < STOP_NS else "after"
            if found == phase:
                values.append(lag_us + total_us)
    values.sort()
    if len(values) * (1 - q) < 1 - 1e-9:
        return None
    return float(values[math.ceil(round(q * len(values), 6)) - 1]) / 1000


@pytest.mark.parametrize(("per_s", "why"), [(60.0, "a p99.9 of each"), (8.0, "too few for some")])
def test_percentiles_are_those_of_a_plain_loop(tmp_path: Path, per_s: float, why: str) -> None:
    paths = write_experiment(tmp_path, 2, per_s=per_s)
    (figures,) = compared(*paths)
    for backend in figures.backends:
        own = [repeat.run.directory.path for repeat in backend.repeats]
        for phase in PHASES:
            for name, q in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)):
                assert backend.phases[phase].response_ms[name] == brute(own, phase, q), why
                for repeat in backend.repeats:
                    one = brute([repeat.run.directory.path], phase, q)
                    assert repeat.phases[phase].response_ms[name] == one, why
        before, during = (backend.phases[phase].response_ms["p99"] for phase in ("before", "during"))
        assert backend.ratios["p99"] == (during / before if before and during else None)


@given(
    due_ms=st.lists(st.integers(0, 400_000), min_size=1, max_size=300),
    start_ms=st.integers(0, 300_000),
    length_ms=st.none() | st.integers(0, 200_000),
)
def test_every_request_is_in_one_phase_and_windows_do_not_cross_its_edges(
    due_ms: list[int], start_ms: int, length_ms: int | None
) -> None:
    stop_ms = None if length_ms is None else start_ms + length_ms
    slices = PhaseSlices(start_ms * 10**6, None if stop_ms is None else stop_ms * 10**6)
    due_ns = np.array(due_ms, dtype=np.int64) * 10**6
    response_us = np.arange(1, len(due_ns) + 1, dtype=np.uint32)
    for part in np.array_split(np.arange(len(due_ns)), 3):
        if len(part):
            slices.add(due_ns[part], response_us[part])
    kept = {phase: sorted(slices.all_of(phase).values_us.tolist()) for phase in PHASES}
    expected: dict[str, list[int]] = {phase: [] for phase in PHASES}
    for number, due in enumerate(due_ms, 1):
        phase = "before" if due < start_ms else "during" if stop_ms is None or due < stop_ms else "after"
        expected[phase].append(number)
    assert kept == expected
    found = make_phase_windows([slices])
    edges = {
        "before": (-start_ms / 1e3, 0.0),
        "during": (0.0, math.inf if length_ms is None else length_ms / 1e3),
        "after": (0.0 if length_ms is None else length_ms / 1e3, math.inf),
    }
    inside = 0
    for window in found.of_runs[0]:
        low, high = edges[window.phase]
        assert low - 1e-6 <= window.start_s < window.stop_s <= high + 1e-6
        own = [
            number
            for number, due in enumerate(due_ms, 1)
            if number in expected[window.phase]
            and window.start_s - 1e-6 <= due / 1e3 - start_ms / 1e3 <= window.stop_s + 1e-6
        ]
        assert window.n <= len(own)
        inside += window.n
        if found.shown == "max":
            assert window.value_ms is not None and window.value_ms * 1000 <= max(own)
    if found.shown == "max":
        assert inside == len(due_ms), "no request is left out"


def test_windows_of_all_runs_have_one_width_and_thin_ones_are_widened(tmp_path: Path) -> None:
    (figures,) = compared(*write_experiment(tmp_path, 2))
    assert figures.windows.shown == "p99.9"
    windows = [window for windows in figures.windows.of_runs for window in windows]
    assert all(window.n >= 1000 for window in windows)
    assert any(window.widened for window in windows)
    width_s = figures.windows.width_s
    for window in windows:
        if not window.widened:
            assert window.stop_s - window.start_s <= width_s + 1e-6


@pytest.mark.parametrize(
    ("per_s", "shown"), [(150.0, "p99.9"), (15.0, "p99"), (1.0, "max")], ids=["many", "some", "few"]
)
def test_what_is_shown_is_what_there_are_requests_for(tmp_path: Path, per_s: float, shown: str) -> None:
    (figures,) = compared(*write_experiment(tmp_path, 2, per_s=per_s))
    assert figures.windows.shown == shown
    assert all(windows for windows in figures.windows.of_runs)


def test_long_and_short_runs_share_one_time_axis(tmp_path: Path) -> None:
    events = [{"t_ns": START_NS, "event": "zfs-send", "phase": "start"}]
    long_ = write_run(
        tmp_path / "a", records(3000, due_ns=np.arange(3000) * 10**9), events=events, backend="a"
    )
    short = write_run(tmp_path / "b", records(3000), events=events, backend="b")
    (figures,) = compared(long_, short)
    counted = [sum(window.n for window in windows) for windows in figures.windows.of_runs]
    assert all(counted)
    assert figures.windows.width_s >= 3


def test_a_line_is_level_where_there_is_too_little_for_a_slope() -> None:
    slices = PhaseSlices(0, None)
    slices.add(np.zeros(1500, dtype=np.int64), np.full(1500, 7000, dtype=np.uint32))
    (windows,) = make_phase_windows([slices]).of_runs
    line = line_of(windows)
    assert line is not None
    assert (line.at_zero_ms, line.slope_ms_per_s) == (7.0, 0.0)
    assert line_of([]) is None


SATURATIONS: list[tuple[str, list[Event], tuple[str, int, int | None, list[tuple[int, float]]] | None]] = [
    ("nothing", [], None),
    ("what else happens is none", [Event(1, "warm-up", "start"), Event(2, "run", "stop")], None),
    ("nor is a phase", [Event(1, "phase: copy", "start"), Event(2, "phase: copy", "stop")], None),
    (
        "from start to stop",
        [Event(1, "zfs-send", "start"), Event(5, "zfs-send", "stop")],
        ("zfs-send", 1, 5, []),
    ),
    ("killed: it never stopped", [Event(1, "fio", "start")], ("fio", 1, None, [])),
    (
        "bytes that are no number are none",
        [
            Event(1, "btrfs-send", "start"),
            *(
                Event(3, "btrfs-send bytes", None, {"bytes_per_s": value})
                for value in (10, float("nan"), "many", True)
            ),
        ],
        ("btrfs-send", 1, None, [(3, 10.0)]),
    ),
    (
        "one of any name is known by its start",
        [Event(1, "phase: copy", "start"), Event(2, "tide", "start", {"saturator": True})],
        ("tide", 2, None, []),
    ),
    (
        "or by its throughput",
        [
            Event(1, "tide", "start"),
            Event(2, "tide bytes", None, {"bytes_per_s": 5}),
            Event(3, "tide", "stop"),
        ],
        ("tide", 1, 3, [(2, 5.0)]),
    ),
]


@pytest.mark.parametrize(
    ("events", "expected"), [row[1:] for row in SATURATIONS], ids=[row[0] for row in SATURATIONS]
)
def test_saturators_are_known_by_their_events(events: list[Event], expected: object) -> None:
    found = saturation(events)
    assert (found and (found.name, found.start_ns, found.stop_ns, found.bytes_per_s)) == expected


def test_throughput_and_latency_are_of_the_send_and_of_the_storages_own_disk(tmp_path: Path) -> None:
    (figures,) = compared(*write_experiment(tmp_path, 2))
    fast, slow = figures.backends
    assert slow.send_bytes_per_s == pytest.approx(96e6, rel=0.1)
    assert fast.disk_read_latency_ms["during"] == pytest.approx(FAST["disk_ms"], rel=0.2), (
        "not the other disk"
    )
    assert slow.disk_read_latency_ms["before"] == pytest.approx(SLOW["disk_ms"] * 0.2, rel=0.2)
    assert len(send_of(slow.repeats[0].run).t_s) == int(DURING_S)


def test_latencies_are_taken_from_a_damaged_file_as_far_as_they_can_be(tmp_path: Path) -> None:
    paths = write_experiment(tmp_path, 2)

    def slow_run() -> ReportRun:
        (figures,) = compared(*paths)  # each report reads host.csv once
        return figures.backends[1].repeats[0].run

    file = slow_run().directory.path / "host.csv"
    file.write_text("nonsense\n1\n")
    series, trouble = disk_latency_of(slow_run())
    assert len(series.t_s) == 0
    assert "t_ns" in str(trouble)
    strange = "t_ns,diskstats.loop7_read_latency_ms\n1e300,1\n1e9,inf\n2e9,1e300\nnan,1\n21e9,7\n"
    file.write_text(strange)
    series, trouble = disk_latency_of(slow_run())
    assert (series.t_s.tolist(), series.value.tolist(), trouble) == ([1.0], [7.0], None)
    file.unlink()
    assert disk_latency_of(slow_run())[1] is None, "no observers is no trouble"


def test_runs_without_a_saturator_are_one_phase(tmp_path: Path) -> None:
    paths = write_experiment(tmp_path, 2, saturator=None)
    (figures,) = compared(*paths)
    for backend in figures.backends:
        assert list(backend.phases) == ["whole run"]
        assert set(backend.ratios.values()) == {None}
        assert backend.send_bytes_per_s is None
    page = make_report(paths, tmp_path / "report.html").path.read_text(encoding="utf-8")
    assert "whole run" in page
    assert "since the start of the run" in page


def test_how_many_a_second_leaves_the_warm_up_out(tmp_path: Path) -> None:
    (figures,) = compared(write_one(tmp_path / "run", "x", 1, **FAST))
    for phase, lasted_s in (("before", BEFORE_S - 2), ("during", DURING_S), ("after", AFTER_S)):
        found = figures.backends[0].phases[phase]
        assert found.per_s == pytest.approx(found.requests / lasted_s, rel=0.01)


def test_json_has_the_same_figures(tmp_path: Path) -> None:
    paths = write_experiment(tmp_path, 2)
    made = json.loads(json.dumps(make_report([tmp_path]).as_json(), allow_nan=False))
    (scenario,) = made["phases"]
    assert scenario["saturators"] == ["zfs-send"]
    assert [backend["backend"] for backend in scenario["backends"]] == ["nvme-mirror", "slow-disk"]
    slow = scenario["backends"][1]
    assert slow["runs"] == len(slow["repeats"]) == 2
    assert slow["emulated"].startswith("like a rotating disk")
    assert slow["during_over_before"]["p99.9"] > 5
    assert slow["phases"]["during"]["response_ms"]["p99.9"] == brute([paths[1], paths[2]], "during", 0.999)
    assert {row["key"] for row in made["differences"]} == {
        "emulated",
        "disks.1.rotational",
        "disks.1.scheduler",
    }


def test_the_lab_s_keys_are_kept_and_merge_well(tmp_path: Path) -> None:
    path = write_one(tmp_path / "run", "x", 3, number=(7, 16), **SLOW)
    facts = RunDirectory.open(path).facts
    assert facts.experiment
    assert (facts.experiment.name, facts.experiment.run, facts.experiment.of) == ("one-machine", 7, 16)
    assert facts.storage
    assert facts.storage.facts["disks"][0]["device"] == "loop7"
    assert facts.phases
    assert facts.phases.during_s == DURING_S
    change(path, storage=None, experiment=None, phases=None)
    assert RunDirectory.open(path).facts.storage is None
