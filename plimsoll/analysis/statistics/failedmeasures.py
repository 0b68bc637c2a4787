"""Iterations that failed, as failures of what they would have measured. Pure.

A measure has values only of what succeeded. Without its failures, a backend on which saves fail looks fast.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plimsoll.analysis.statistics.measurephases import edges_ns
from plimsoll.common.hostile import is_figure
from plimsoll.rundir.events import ITERATION_FAILED, Event, Saturation

MS_OF = {"ms": 1.0, "s": 1000.0}  # the units of measures that are times
SERVER_CPU = "server cpu: "  # what the server says of a request, which has failures of its own


@dataclass(frozen=True)
class FailedValue:
    """A value that there would be, had its iteration not failed: when it began, and the least it would be.

    Failures are never fast: that is the time-out, or what it took where that is longer. `least_ms` is endless
    where the time-out is not known.
    """

    began_ns: int
    least_ms: float


Failures = dict[str, list[FailedValue]]


def failures_of(events: Iterable[Event], timeout_us: int | None) -> Failures:
    """Return the failures of each measure by name (hostile), in order of time; no entry of one without any.

    A failed iteration has one of each measure that most iterations have, and of which it has fewer values
    than others. Runs of older versions name the failed step alone: then it counts where that failed.
    """
    values: dict[str, Counter[int]] = {}
    told: dict[int, Event] = {}
    steps: dict[int, Event] = {}
    for event in events:
        number = event.further.get("iteration")
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            continue
        if event.name == "measure":
            values.setdefault(str(event.further.get("name")), Counter())[number] += 1
        elif event.name == ITERATION_FAILED:
            told[number] = event
        elif event.name == "error":
            steps[number] = event
    failed = sorted((told or steps).items(), key=lambda item: item[1].t_ns)
    if not failed:
        return {}
    values = {name: each for name, each in values.items() if not name.startswith(SERVER_CPU)}
    measuring = len(set().union(*values.values()))
    found = {
        name: [_failure(event, timeout_us) for number, event in failed if each[number] < max(each.values())]
        for name, each in values.items()
        if 2 * len(each) > measuring
    }
    return {name: each for name, each in found.items() if each}


def failures_in(failures: Failures, phase: str, busy: Saturation | None) -> Failures:
    """Return those that began in `phase`; what is none of the phases is the whole run."""
    from_ns, to_ns = edges_ns(phase, busy)
    found = {
        name: [one for one in each if from_ns <= one.began_ns < to_ns] for name, each in failures.items()
    }
    return {name: each for name, each in found.items() if each}


def median_with(values: Sequence[float], failed: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the median (nearest rank) of `values` and of failures that are at least `failed`.

    Where it is a failure's, the first is None, and the second the least that it can be: None where that is
    not known. At least one of both is needed.
    """
    return percentile_with(values, failed, 500_000)


def percentile_with(
    values: Sequence[float], failed: Sequence[float], ppm: int
) -> tuple[float | None, float | None]:
    """Return the same of percentile q = `ppm`/10⁶, whatever the number of values."""
    place = max(-(-(len(values) + len(failed)) * ppm // 1_000_000), 1) - 1
    if place < len(values):
        return sorted(values)[place], None
    least = sorted(failed)[place - len(values)]
    return None, least if math.isfinite(least) else None


def _failure(event: Event, timeout_us: int | None) -> FailedValue:
    told = event.further.get("took_ms")
    took_ms = max(float(told), 0.0) if is_figure(told) else 0.0
    least_ms = math.inf if timeout_us is None else max(timeout_us / 1000, took_ms)
    return FailedValue(max(event.t_ns - int(min(took_ms * 1e6, float(event.t_ns))), 0), least_ms)
