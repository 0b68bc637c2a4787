"""A run as compare sees it: its levels by phase, from one pass over its records."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.evidence.load import load_facts
from plimsoll.analysis.evidence.run import JUDGED, Observation, Observer, RunEvidence
from plimsoll.analysis.statistics.measures import (
    MS_OF,
    Failures,
    failures_in,
    failures_of,
    measures_in,
    median_with,
)
from plimsoll.analysis.statistics.percentiles import (
    PERCENTILES,
    Microseconds,
    Sample,
    TimeFigures,
    Times,
    rank,
)
from plimsoll.analysis.statistics.phases import NEVER_NS, PHASES
from plimsoll.analysis.statistics.requests import CountedRequests, PhaseRequests, timeout_us
from plimsoll.common.errors import NoRequestsError
from plimsoll.common.hostile import is_figure
from plimsoll.rundir.events import Event, Measures, Saturation, saturation
from plimsoll.rundir.find import relative_name
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import Records

WHOLE = "whole"
_LATEST_MS = 0xFFFF_FFFF  # 49 days
_P50 = PERCENTILES["p50"]

Progress = Callable[[int], None]


@dataclass(frozen=True)
class StepLevel:
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

    @property
    def least(self) -> float:
        """The least that the median can be: endless where half failed, and their time-out is not known."""
        found = self.at_least if self.median is None else self.median
        return math.inf if found is None else found


@dataclass(frozen=True)
class PhaseLevels:
    """One phase of one run. Times are exact order statistics in ms, None of too few requests.

    `errors` counts failures: requests without a whole response, and wrong answers. A time that is a failure's
    is None too; `at_least_ms` has the lower bound of each of those, None where it is not known. `steps` are
    routes and measures by name (hostile). `kept` are the requests themselves, where they were asked for.
    """

    requests: int
    errors: int
    times_ms: dict[str, float | None]
    steps: dict[str, StepLevel]
    at_least_ms: dict[str, float | None] = field(default_factory=dict)
    kept: PhaseRequests | None = field(default=None, compare=False, repr=False)

    @property
    def censored(self) -> frozenset[str]:
        """The names of the times of which only a lower bound is known, or not even that."""
        return frozenset(self.at_least_ms)

    @property
    def times(self) -> TimeFigures:
        """The times with their lower bounds, as tables show them."""
        return TimeFigures(self.times_ms, self.at_least_ms)


@dataclass(frozen=True)
class Levels:
    """All phases of one run by name, and what is the same for all of it.

    `lag_ms` are the percentiles of the generator's own lag, phase by phase, as `times_ms` of a phase.
    """

    phases: dict[str, PhaseLevels]
    service_p50_ms: float | None
    lag_ms: dict[str, dict[str, float | None]]
    damaged_measures: frozenset[str]

    @property
    def lag_p999_ms(self) -> float | None:
        """The p99.9 of the generator's lag in the whole run."""
        return self.lag_ms.get(WHOLE, {}).get("p99.9")


class _Columns:
    def __init__(self, busy: Saturation | None, timeout_us: int | None) -> None:
        self.timeout_us = timeout_us
        self.start_ns = busy.start_ns if busy else NEVER_NS
        self.stop_ns = NEVER_NS if busy is None or busy.stop_ns is None else max(busy.stop_ns, busy.start_ns)
        self.response: list[Microseconds] = []
        self.service: list[Microseconds] = []
        self.lag: list[Microseconds] = []
        self.own: list[NDArray[np.bool_]] = []
        self.phase: list[NDArray[np.uint8]] = []
        self.due_ms: list[NDArray[np.uint32]] = []
        self.route: list[NDArray[np.uint16]] = []
        self.failed: list[NDArray[np.bool_]] = []

    def add(self, block: Records) -> None:
        counted = CountedRequests.of(block, self.timeout_us)
        due_ns = counted.due_ns
        self.response.append(counted.response_us)
        self.service.append(counted.service_us)
        self.lag.append(counted.lag_us)
        self.own.append(~counted.queued)
        self.phase.append(
            ((due_ns >= self.start_ns).astype(np.uint8) + (due_ns >= self.stop_ns)).astype(np.uint8)
        )
        self.due_ms.append(np.minimum(due_ns // 1_000_000, _LATEST_MS).astype(np.uint32))
        self.route.append(counted.column("route"))
        self.failed.append(counted.failures)


def levels_of(
    run: RunDirectory,
    progress: Progress = lambda _: None,
    *,
    keep_requests: bool = False,
    watch: Callable[[Records], None] = lambda _: None,
) -> Levels:
    """Read every record of `run` once. Raises RunDirectoryError where there is nothing to judge by.

    With `keep_requests` the phases hold theirs, eleven bytes each, so that runs can be cut alike. `watch` is
    given each block of records, so that whoever wants them too need not read them again.
    """
    busy = saturation(run.events)
    columns = _Columns(busy, timeout_us(run.facts))
    for block in run.requests.blocks():
        columns.add(block)
        watch(block)
        progress(len(block))
    response, phase = np.concatenate(columns.response), np.concatenate(columns.phase)
    route, failures = np.concatenate(columns.route), np.concatenate(columns.failed)
    if not len(response):
        raise NoRequestsError(
            f"{run.path}: every request belongs to the warm-up, so there is nothing to compare"
        )
    missing, units = failures_of(run.events, columns.timeout_us), Measures.of(run.events).units
    names = {number: run.route_name(number) for number in np.unique(route).tolist()}
    everything = np.ones(len(response), dtype=np.bool_)
    chosen = {WHOLE: everything}
    if busy:
        chosen |= {name: phase == number for number, name in enumerate(PHASES)}
    phases = {
        name: _phase(
            response[mask],
            route[mask],
            failures[mask],
            names,
            Measures.of(measures_in(run.events, name, busy)),
            failures_in(missing, name, busy),
            units,
        )
        for name, mask in chosen.items()
    }
    if keep_requests:
        due_ms = np.concatenate(columns.due_ms)
        order = np.lexsort((due_ms, phase))
        kept = PhaseRequests(due_ms[order], response[order], route[order], failures[order])
        edges = np.searchsorted(phase[order], range(len(PHASES) + 1)).tolist()
        places = {WHOLE: (0, len(order))} | dict(zip(PHASES, pairwise(edges), strict=True))
        phases = {name: replace(each, kept=kept.between(*places[name])) for name, each in phases.items()}
    lag, own = np.concatenate(columns.lag), np.concatenate(columns.own)
    return Levels(
        phases=phases,
        service_p50_ms=Sample.of_times(Times.of(np.concatenate(columns.service), failures)).percentile_ms(
            _P50
        ),
        lag_ms={name: _percentiles_ms(lag[mask & own]) for name, mask in chosen.items()},
        damaged_measures=_damaged(run.events),
    )


def _percentiles_ms(lag: Microseconds) -> dict[str, float | None]:
    """Return the percentiles that a gate can limit."""
    figures = Sample.of(lag).figures_ms()
    return {name: figures[name] for name in JUDGED}


def _phase(
    response: Microseconds,
    route: NDArray[np.uint16],
    failures: NDArray[np.bool_],
    names: dict[int, str],
    measures: Measures,
    missing: Failures,
    units: dict[str, str],
) -> PhaseLevels:
    steps: dict[str, StepLevel] = {}
    for name in dict.fromkeys((*measures.values, *missing)):
        failed_ms = tuple(one.least_ms for one in missing.get(name, ()))
        steps[name] = measured_step(measures.values.get(name, ()), units.get(name, "ms"), failed_ms)
    order = np.argsort(route, kind="stable")
    edges = np.flatnonzero(np.diff(route[order])) + 1
    for part in np.split(order, edges) if len(order) else []:
        number = int(route[part[0]])
        steps.setdefault(names[number], timed_step(Times.of(response[part], failures[part]), number))
    figures = Sample.of_times(Times.of(response, failures)).figures()
    return PhaseLevels(len(response), int(failures.sum()), figures.ms, steps, figures.censored)


def timed_step(times: Times, route: int) -> StepLevel:
    """Return the step of a route whose requests took `times`."""
    found = TimeFigures.of({"p50": int(middle(times.values_us))}, times.failed.from_us)
    return StepLevel(found["p50"], "ms", measure=False, at_least=found.censored.get("p50"), route=route)


def measured_step(values: Sequence[float], unit: str, failed_ms: tuple[float, ...]) -> StepLevel:
    """Return the step of a measure with `values`, and failures of at least `failed_ms`.

    Of what is no time, a failure is no bound: the median is that of the values alone, if there are any.
    """
    each_ms = MS_OF.get(unit)
    least = [one_ms / each_ms for one_ms in failed_ms] if each_ms else []
    median, at_least = median_with(values, least) if len(values) + len(least) else (None, None)
    return StepLevel(median, unit, True, at_least, tuple(values), failed_ms)


def middle(values: NDArray[Any]) -> float:
    """Return the median of at least one value: its nearest rank, so always one of them."""
    position = rank(_P50, len(values)) or 1  # the only one is the median
    return float(np.partition(values, position - 1)[position - 1])


def _damaged(events: list[Event]) -> frozenset[str]:
    """Return the names (hostile) of measures with a value that is no figure, or with two units."""
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


@dataclass(frozen=True)
class ComparedRun:
    """One run, with its figures. Its name is hostile."""

    directory: RunDirectory
    levels: Levels
    observation: Observation = field(default_factory=Observation)

    @property
    def name(self) -> str:
        """Its directory's name, which alone tells two runs of one backend apart."""
        return relative_name(self.directory.path)

    @property
    def scenario(self) -> str:
        """The scenario's name (hostile)."""
        return self.directory.facts.scenario

    @property
    def repeat(self) -> int | str | None:
        """The number of its repeat."""
        return self.directory.facts.repeat

    @property
    def started_at(self) -> datetime | None:
        """The instant it began."""
        return self.directory.facts.started_at

    @cached_property
    def saturation(self) -> Saturation | None:
        """The saturator that kept its disks busy."""
        return saturation(self.directory.events)

    @property
    def emulated(self) -> str | None:
        """The storage that its own imitated (hostile)."""
        storage = self.directory.facts.storage
        return storage.emulated if storage else None

    @property
    def done_as(self) -> dict[str, Any]:
        """What has to be the same in runs that are compared (hostile)."""
        return load_facts(self.evidence)

    @cached_property
    def evidence(self) -> RunEvidence:
        """The run as the gatekeeper knows it."""
        times = {
            name: {each: phase.times.least_ms(each) for each in JUDGED}
            for name, phase in self.levels.phases.items()
        }
        return RunEvidence(self.directory, self.observation, self.levels.lag_ms, times)


def compared_run(
    directory: RunDirectory, progress: Progress = lambda _: None, *, keep_requests: bool = False
) -> ComparedRun:
    """Read every record of a run once: its figures, its answers, its sum. Raises RunDirectoryError."""
    observer = Observer(directory, summed=True)
    levels = levels_of(directory, progress, keep_requests=keep_requests, watch=observer.watch)
    return ComparedRun(directory, levels, observer.observation())
