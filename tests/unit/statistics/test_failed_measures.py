"""Failed iterations as failures of what they would have measured: never fast, and in their phase."""

import math
from typing import Any

import pytest

from plimsoll.analysis.statistics.measures import FailedValue, failures_in, failures_of, median_with
from plimsoll.rundir.events import Event, Saturation

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
