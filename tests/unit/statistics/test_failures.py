"""Which requests and iterations are failures, how long they count, and what percentiles they leave."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.evidence.measure import measure_figures, measure_in_detail
from plimsoll.analysis.statistics.binomial import upper_bound_ms
from plimsoll.analysis.statistics.measures import FailedValue, failures_in, failures_of, median_with
from plimsoll.analysis.statistics.percentiles import NEVER_US, P99, P999, Sample, Times
from plimsoll.analysis.statistics.requests import answered_wrongly, counted_us, failure_mask
from plimsoll.rundir.events import Event, Saturation
from plimsoll.rundir.facts import Load, RunFacts
from plimsoll.rundir.read import RunDirectory
from tests.support.programs import FIXTURES
from tests.support.rundir import records, write_run

RULE = json.loads((FIXTURES / "failures.json").read_text())


@pytest.mark.parametrize("row", RULE, ids=[row["says"] for row in RULE])
def test_what_is_a_failure(row: dict[str, Any]) -> None:
    columns = {
        name: [good, row[name], good]
        for name, good in (("status", 200), ("logged_status", 200), ("error", 0))
    }
    assert failure_mask(records(3, **columns)).tolist() == [False, row["failed"], False], row["says"]


TIMEOUTS: list[tuple[str, dict[str, Any] | None, int | None]] = [
    ("as run.json has it", {"timeout_s": 30}, 30_000_000),
    ("a part of a second", {"timeout_s": 0.25}, 250_000),
    ("an older run", None, None),
    ("settings without one", {"speed": "1"}, None),
    ("no number", {"timeout_s": "30s"}, None),
    ("neither is this", {"timeout_s": True}, None),
    ("nothing", {"timeout_s": 0}, None),
    ("not a number", {"timeout_s": float("nan")}, None),
    ("more than records can hold", {"timeout_s": 1e308}, None),
]


@pytest.mark.parametrize(("what", "settings", "us"), TIMEOUTS, ids=[row[0] for row in TIMEOUTS])
def test_the_time_out_of_a_run(what: str, settings: dict[str, Any] | None, us: int | None) -> None:
    load = None if settings is None else Load(digest="d", settings=settings)
    assert RunFacts(scenario="replay", load=load).timeout_us == us, what


def test_a_failure_counts_at_its_time_out_or_at_what_it_took() -> None:
    took, failures = np.array([5, 10, 40], dtype=np.uint32), np.array([False, True, True])
    assert counted_us(took, failures, 30).tolist() == [5, 30, 40]
    assert counted_us(took, failures, None).tolist() == [5, NEVER_US, NEVER_US]
    assert counted_us(took, failures & False, None) is took, "nothing is copied where nothing failed"


def _sample(answers: int, failures: int, timeout: int | None = 30_000_000) -> Sample:
    took = np.full(answers + failures, 1000, dtype=np.uint32)
    bad = np.arange(answers + failures) >= answers
    return Sample.of_times(Times.of(counted_us(took, bad, timeout), bad))


def test_a_percentile_that_is_a_failure_is_no_figure() -> None:
    figures = _sample(990, 10).figures()
    assert (figures["p99"], figures["p99.9"], figures["max"]) == (1.0, None, None)
    assert figures.censored == {"p99.9": 30_000.0, "max": 30_000.0}
    assert [figures.shown(name) for name in ("p99", "p99.9", "p99.99")] == ["1 ms", "≥ 30 s", "–"]
    assert figures["mean"] == pytest.approx(1 * 0.99 + 30_000 * 0.01), "the mean counts them as well"
    assert figures.as_json()["censored"] == figures.censored


WRONG = [
    (
        "wrong answers rank before what was not answered",
        980,
        15,
        5,
        ["1 ms", "wrong answer", "≥ 30 s", "≥ 30 s"],
    ),
    ("the last of them is the slowest", 990, 10, 0, ["1 ms", "1 ms", "wrong answer", "wrong answer"]),
    ("most of them leave no median", 400, 600, 0, ["wrong answer"] * 4),
    ("without any", 980, 0, 20, ["1 ms", "≥ 30 s", "≥ 30 s", "≥ 30 s"]),
]


@pytest.mark.parametrize(
    ("what", "good", "wrong", "unanswered", "shown"), WRONG, ids=[row[0] for row in WRONG]
)
def test_a_percentile_that_is_a_wrong_answer_says_so(
    what: str, good: int, wrong: int, unanswered: int, shown: list[str]
) -> None:
    table = records(good + wrong + unanswered)
    table["status"][good:], table["error"][good + wrong :] = 404, 4
    bad = failure_mask(table)
    came = answered_wrongly(table, bad, table["total_us"], 30_000_000)
    sample = Sample.of_times(Times.of(counted_us(table["total_us"], bad, 30_000_000), bad, came))
    for figures in (sample.figures(), sample.condensed().figures()):
        assert [figures.shown(name) for name in ("p50", "p99", "p99.9", "max")] == shown, what
        assert (figures.shown("mean") == "wrong answer") == (wrong > 500)


def test_without_a_time_out_it_is_withheld() -> None:
    sample = _sample(990, 10, None)
    figures = sample.figures()
    assert figures.censored == {"p99.9": None, "max": None}
    assert figures.shown("p99.9") == "–"
    assert figures["mean"] is figures["stddev"] is None
    assert figures["p99"] == 1.0
    assert {ms for _, ms in sample.curve()} == {1.0}, "failures have no place on the curve"


def test_an_answer_slower_than_a_failure_gives_but_a_lower_bound() -> None:
    # rank 1,000 of 1,000 is an answer; had the failure waited on, it would be there
    took = np.full(1000, 1000, dtype=np.uint32)
    took[0] = 50_000_000
    bad = np.arange(1000) == 1
    figures = Sample.of_times(Times.of(counted_us(took, bad, 30_000_000), bad)).figures()
    assert (figures["max"], figures.censored["max"]) == (None, 50_000.0)


def test_no_bound_of_an_interval_is_a_failure() -> None:
    few = _sample(9996, 4)
    assert few.percentile_ms(P999) == 1.0
    assert upper_bound_ms(few, P999, 1.0) is None
    assert upper_bound_ms(few, P99, 1.0) == 1.0


def test_a_server_that_refuses_at_once_is_not_fast(tmp_path: Path) -> None:
    table = records(2000)
    table["status"][::2], table["total_us"][::2] = 503, 100
    load = {"digest": "d", "settings": {"timeout_s": 10.0}}
    figures = measure_in_detail(
        RunDirectory.open(write_run(tmp_path / "run", table, load=load)), sliced=True
    ).statistics
    assert figures.as_json()["requests"]["failures"] == 1000  # type: ignore[index]
    assert figures.samples["response"].figures().shown("p99") == "wrong answer"
    assert figures.samples["service"].figures().shown("p99") == "wrong answer"
    assert {window.figures.shown("p99.9") for window in figures.windows.windows} == {"wrong answer"}
    assert figures.samples["ttfb"].n == 1000, "the first byte of a wrong answer says nothing"
    assert figures.total.response_ms.censored["p99.9"] == 10_000.0
    assert figures.total.grinder.errors == 0, "The Grinder's table keeps its own definitions"
    assert {window.censored["p99.9"] for window in figures.windows.windows} == {10_000.0}
    assert {window.p999_ms for window in figures.windows.windows} == {None}
    assert figures.phases is not None
    assert figures.phases.all_of("whole run").failed.from_us == 10_000_000
    assert figures.duration_s < 3, "a failure ended when it failed"


def test_a_window_without_failures_keeps_its_figure(tmp_path: Path) -> None:
    table = records(4000)
    table["error"][:10] = 1
    figures = measure_figures(RunDirectory.open(write_run(tmp_path / "run", table)))
    first, *others = figures.windows.windows
    assert (first.p999_ms, first.censored["p99.9"]) == (None, None)
    assert {window.p999_ms for window in others} == {1.0}
    assert figures.windows.line is None, "a line through the others would be too low"


TIMEOUT_US = 60_000_000
BUSY = Saturation("zfs-send", 10 * 10**9, 20 * 10**9, None, [])


def saved(iteration: object, at_s: float = 1.0, name: str = "saved") -> Event:
    further = {"name": name, "value": 40.0, "unit": "ms", "iteration": iteration}
    return Event(int(at_s * 1e9), "measure", None, further)


def failed(iteration: object, at_s: float = 1.0, took_ms: Any = 500.0) -> Event:
    return Event(int(at_s * 1e9), "iteration failed", None, {"iteration": iteration, "took_ms": took_ms})


def step_failed(iteration: object, at_s: float = 1.0) -> Event:
    return Event(int(at_s * 1e9), "error", None, {"step": "publish", "iteration": iteration})


TABLE: list[tuple[str, list[Event], dict[str, int]]] = [
    ("nothing failed", [saved(1), saved(2)], {}),
    ("an iteration without a value failed", [saved(1), failed(2)], {"saved": 1}),
    (
        "one that failed at its second save has a failure, whatever more it would have saved",
        [saved(1), saved(1), saved(1), saved(2), failed(2)],
        {"saved": 1},
    ),
    ("one that failed after its value has not failed at it", [saved(1), saved(2), failed(2)], {}),
    (
        "what few iterations have, such as the time of all, has no failures",
        [*(saved(i) for i in range(1, 5)), saved(4, name="all saved"), failed(5)],
        {"saved": 1},
    ),
    (
        "nor has what the server says of each request",
        [saved(1, name="server cpu: publish"), saved(1), failed(2)],
        {"saved": 1},
    ),
    ("runs of older versions name the step alone", [saved(1), step_failed(2)], {"saved": 1}),
    (
        "a step that failed, and whose iteration did not, is no failure",
        [saved(1), step_failed(2), failed(3), saved(4)],
        {"saved": 1},
    ),
    ("a login that failed belongs to no iteration", [saved(1), step_failed(0)], {}),
    ("iterations that are no numbers", [saved(1), failed("2"), failed(True), failed(None)], {}),
    ("nothing was measured at all", [failed(1)], {}),
]


@pytest.mark.parametrize(("what", "events", "counts"), TABLE, ids=[row[0] for row in TABLE])
def test_failures_are_counted_by_measure(what: str, events: list[Event], counts: dict[str, int]) -> None:
    assert {name: len(each) for name, each in failures_of(events, TIMEOUT_US).items()} == counts, what


@pytest.mark.parametrize(
    ("what", "took_ms", "timeout_us", "least_ms"),
    [
        ("it counts at its time-out, however soon it came", 3.0, TIMEOUT_US, 60_000.0),
        ("or at what it took, where that is longer", 90_000.0, TIMEOUT_US, 90_000.0),
        ("without a time-out nobody knows", 3.0, None, math.inf),
        ("what it took may be damaged", "NaN", TIMEOUT_US, 60_000.0),
    ],
)
def test_a_failure_is_never_fast(what: str, took_ms: Any, timeout_us: int | None, least_ms: float) -> None:
    ((one,),) = failures_of([saved(1), failed(2, 95.0, took_ms)], timeout_us).values()
    assert one.least_ms == least_ms, what


def test_a_failure_belongs_to_the_phase_in_which_it_began() -> None:
    found = failures_of([saved(1), failed(2, at_s=25.0, took_ms=8000.0), failed(3, at_s=25.0)], TIMEOUT_US)
    phases = {phase: failures_in(found, phase, BUSY) for phase in ("before", "during", "after", "whole")}
    counted = {phase: len(each.get("saved", [])) for phase, each in phases.items()}
    assert counted == {"before": 0, "during": 1, "after": 1, "whole": 2}
    assert phases["during"]["saved"] == [FailedValue(17 * 10**9, 60_000.0)]


@pytest.mark.parametrize(
    ("what", "values", "least", "found"),
    [
        ("no failures: the nearest rank", [3.0, 1.0, 2.0, 4.0], [], (2.0, None)),
        ("failures are the slowest", [3.0, 1.0, 2.0], [60.0], (2.0, None)),
        ("at most tries a failure, it is a lower bound", [1.0], [60.0, 70.0], (None, 60.0)),
        ("which may not be known", [1.0], [math.inf, math.inf], (None, None)),
        ("half of two succeeded", [1.0], [60.0], (1.0, None)),
    ],
)
def test_the_median_with_failures(what: str, values: list[float], least: list[float], found: object) -> None:
    assert median_with(values, least) == found, what
