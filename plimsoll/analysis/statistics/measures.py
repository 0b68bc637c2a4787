"""What is measured beside requests, by phase, failed tries included.

Iterations that failed, as failures of what they would have measured. Pure.
A measure has values only of what succeeded. Without its failures, a backend on which saves fail looks fast.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.percentiles import PERCENTILES, TimeFigures, Times, rank
from plimsoll.analysis.statistics.windows import NEVER_NS, PHASES
from plimsoll.common.hostile import is_figure
from plimsoll.rundir.events import ITERATION_FAILED, Event, Measures, Saturation

_SHOWN = ("p50", "p90", "p99")
_NS = {"ms": 1e6, "s": 1e9}  # of a measure that is a time
MS_OF = {"ms": 1.0, "s": 1000.0}  # the units of measures that are times
SERVER_CPU = "server cpu: "  # what the server says of a request, which has failures of its own


@dataclass(frozen=True)
class StepFigures:
    """The median of a step, or of a measure, and its unit.

    The median is None where it is censored: then it is at least `at_least`, None where that is not known.
    Of a measure `values` are all of them, and `failed_ms` the least that each of those would be whose
    iteration failed; of a step, `route` is its number in the run's records.
    """

    median: float | None
    unit: str
    measure: bool
    at_least: float | None = None
    values: tuple[float, ...] = field(default=(), compare=False, repr=False)
    failed_ms: tuple[float, ...] = ()
    route: int | None = field(default=None, compare=False)

    @property
    def tries(self) -> int:
        """How often a measure was tried: its values, and those whose iteration failed."""
        return len(self.values) + len(self.failed_ms)

    def at(self, ppm: int) -> tuple[float | None, float | None]:
        """Return percentile q = `ppm`/10⁶ of a measure, as `percentile_with` does; twice None without any."""
        each_ms = MS_OF.get(self.unit)
        least = [one_ms / each_ms for one_ms in self.failed_ms] if each_ms else []
        return percentile_with(self.values, least, ppm) if self.values or least else (None, None)

    def value_at(self, ppm: int) -> float:
        """Return the same of the values alone, of which there is at least one."""
        return sorted(self.values)[(rank(ppm, len(self.values)) or 1) - 1]

    @property
    def least(self) -> float:
        """The least that the median can be: endless where half failed, and their time-out is not known."""
        found = self.at_least if self.median is None else self.median
        return math.inf if found is None else found


def measured_steps(
    measures: Measures, failures: "Failures", units: Mapping[str, str]
) -> dict[str, StepFigures]:
    """Return the figures of each measure by name (hostile).

    `units` are those of the whole run, for measures that have no values here, only failures.
    """
    return {
        name: measured_step(
            measures.values.get(name, ()),
            measures.units.get(name) or units.get(name, "ms"),
            tuple(one.least_ms for one in failures.get(name, ())),
        )
        for name in dict.fromkeys((*measures.values, *failures))
    }


def timed_step(times: Times, route: int) -> StepFigures:
    """Return the step of a route whose requests took `times`."""
    found = TimeFigures.of({"p50": int(middle(times.values_us))}, times.failed.from_us)
    return StepFigures(found["p50"], "ms", measure=False, at_least=found.censored.get("p50"), route=route)


def measured_step(values: Sequence[float], unit: str, failed_ms: tuple[float, ...]) -> StepFigures:
    """Return the step of a measure with `values`, and failures of at least `failed_ms`.

    For anything but a time, a failure gives no bound: the median is that of the values alone, if there are
    any.
    """
    each_ms = MS_OF.get(unit)
    least = [one_ms / each_ms for one_ms in failed_ms] if each_ms else []
    median, at_least = median_with(values, least) if len(values) + len(least) else (None, None)
    return StepFigures(median, unit, True, at_least, tuple(values), failed_ms)


def middle(values: NDArray[Any]) -> float:
    """Return the median of at least one value: its nearest rank, so always one of them."""
    position = rank(PERCENTILES["p50"], len(values)) or 1  # the only one is the median
    return float(np.partition(values, position - 1)[position - 1])


def damaged_measures(events: list[Event]) -> frozenset[str]:
    """Return the names (hostile) of measures with a value that is not a number, or with two units."""
    found = Measures()
    names = set()
    for event in events:
        if event.name != "measure":
            continue
        name, value, unit = (event.further.get(key) for key in ("name", "value", "unit"))
        try:
            if not isinstance(name, str) or not isinstance(unit, str) or not is_figure(value):
                raise ValueError("no measure")
            found.add(name, value, unit)
        except ValueError:
            names.add(str(name))
    return frozenset(names)


def summaries(measures: Measures) -> dict[str, dict[str, object]]:
    """Return what `summary.json` says of each measure; percentiles are order statistics, None of too few."""
    return {
        name: {"unit": measures.units[name], **figures(values)} for name, values in measures.values.items()
    }


def figures(values: list[float]) -> dict[str, float | int | None]:
    """Return count, sum, mean, min, percentiles and max of at least one value. Pure."""
    ordered = np.sort(np.array(values, dtype=np.float64))
    ranks = {name: rank(PERCENTILES[name], len(ordered)) for name in _SHOWN}
    return {
        "count": len(ordered),
        "sum": math.fsum(values),
        "mean": math.fsum(values) / len(values),
        "min": float(ordered[0]),
        **{name: None if at is None else float(ordered[at - 1]) for name, at in ranks.items()},
        "max": float(ordered[-1]),
    }


def began_ns(event: Event) -> int:
    """Return when what a measure describes began: of a time, that much before it was written.

    So a measure belongs to a phase as a request does, which counts where it was due.
    """
    value, unit = event.further.get("value"), event.further.get("unit")
    if not isinstance(unit, str) or unit not in _NS or not is_figure(value):
        return event.t_ns
    return max(event.t_ns - int(min(float(value) * _NS[unit], float(event.t_ns))), 0)


def edges_ns(phase: str, busy: Saturation | None) -> tuple[int, int]:
    """Return from when to before when a phase lasts; what is none of `PHASES` is the whole run."""
    start_ns = busy.start_ns if busy else NEVER_NS
    stop_ns = NEVER_NS if busy is None or busy.stop_ns is None else max(busy.stop_ns, start_ns)
    edges = {"before": (0, start_ns), "during": (start_ns, stop_ns), "after": (stop_ns, NEVER_NS << 1)}
    return edges.get(phase, (0, NEVER_NS << 1))


def measures_in(events: Iterable[Event], phase: str, busy: Saturation | None) -> list[Event]:
    """Return the events of measures that belong to `phase`, damaged ones too."""
    from_ns, to_ns = edges_ns(phase, busy)
    return [event for event in events if event.name == "measure" and from_ns <= began_ns(event) < to_ns]


def measures_by_phase(events: Iterable[Event], busy: Saturation | None) -> dict[str, list[Event]]:
    """Return the events of measures by phase, phases without any left out; none where nothing saturated."""
    if busy is None:
        return {}
    known = [event for event in events if event.name == "measure"]
    return {phase: found for phase in PHASES if (found := measures_in(known, phase, busy))}


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
