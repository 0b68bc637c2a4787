"""One pass over the records of a run, for all that is to be known of them."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.evidence.answers import AnswerCounter, RouteAnswers
from plimsoll.analysis.evidence.run import JUDGED, WHOLE, MeasuredRun, RunPhase
from plimsoll.analysis.statistics.measures import (
    damaged_measures,
    edges_ns,
    failures_in,
    failures_of,
    measured_steps,
    measures_in,
    timed_step,
)
from plimsoll.analysis.statistics.percentiles import PERCENTILES, Microseconds, Sample, Times
from plimsoll.analysis.statistics.phases import PHASES
from plimsoll.analysis.statistics.requests import CountedRequests, KeptRequests, timeout_us
from plimsoll.common.errors import NoRequestsError
from plimsoll.rundir.check import RecordSum, Silence
from plimsoll.rundir.events import Measures, Saturation, saturation
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import Records

_LATEST_MS = 0xFFFF_FFFF  # 49 days

Progress = Callable[[int], None]


def measure_run(
    directory: RunDirectory, progress: Progress = lambda _: None, *, keep_requests: bool = False
) -> MeasuredRun:
    """Measure a run that is compared with others, phase by phase. Raises RunDirectoryError.

    `progress` is called with the number of records that were read since its last call. With `keep_requests`
    the phases hold theirs, eleven bytes each, so that runs can be cut alike.
    """
    observer, busy = Observer(directory, sum_records=True), saturation(directory.events)
    parts: defaultdict[str, list[NDArray[Any]]] = defaultdict(list)
    for counted in read_counted(directory, observer, progress):
        for name, values in _columns(counted, busy):
            parts[name].append(values)
    columns = {name: np.concatenate(parts.pop(name)) for name in list(parts)}
    if not len(columns["due_ms"]):
        raise NoRequestsError(
            f"{directory.path}: every request belongs to the warm-up, so there is nothing to compare"
        )
    service = Sample.of_times(Times.of(columns.pop("service_us"), columns["failures"]))
    return replace(
        observer.run(),
        phases=_phases(directory, busy, columns, keep_requests),
        service_p50_ms=service.percentile_ms(PERCENTILES["p50"]),
        damaged_measures=damaged_measures(directory.events),
    )


def read_counted(
    directory: RunDirectory, observer: "Observer", progress: Progress = lambda _: None
) -> Iterator[CountedRequests]:
    """Yield the requests of a run as they count, block by block, while `observer` sees every record too."""
    limit_us = timeout_us(directory.facts)
    for block in directory.requests.blocks():
        counted = CountedRequests.of(block, limit_us)
        observer.observe(block, counted)
        yield counted
        progress(len(block))


class Observer:
    """Sees the records of a run while others read them: its answers, whether its target lives, their sum.

    `sum_records`: they are summed too, which tells the run from all others and takes as long again.
    """

    def __init__(self, directory: RunDirectory, *, sum_records: bool = False) -> None:
        self._directory, self._answers, self._silence = directory, AnswerCounter(), Silence()
        self._sum = RecordSum() if sum_records else None

    def observe(self, block: Records, counted: CountedRequests) -> None:
        """Take the next block of records, and what counts of it."""
        self._answers.add(counted)
        self._silence.take_all(block)
        if self._sum:
            self._sum.add(block)

    def run(self) -> MeasuredRun:
        """Return the run with what was observed, and without figures."""
        answers: dict[str, RouteAnswers] = {}
        for number, each in self._answers.routes().items():
            answers.setdefault(self._directory.route_name(number), RouteAnswers()).add(each)
        return MeasuredRun(
            self._directory,
            answers=answers,
            silence=self._silence.finding(),
            records_sha256=self._sum.hexdigest() if self._sum else None,
        )


def _columns(counted: CountedRequests, busy: Saturation | None) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield what verdicts need of requests; `phase` is the number of the phase that each belongs to."""
    start_ns, stop_ns = edges_ns("during", busy)
    yield "response_us", counted.response_us
    yield "service_us", counted.service_us
    yield "failures", counted.failures
    yield "lag_us", counted.lag_us
    yield "own_lag", ~counted.queued
    yield "route", counted.column("route")
    yield "due_ms", np.minimum(counted.due_ns // 1_000_000, _LATEST_MS).astype(np.uint32)
    yield "phase", (counted.due_ns >= start_ns).astype(np.uint8) + (counted.due_ns >= stop_ns)


def _phases(
    directory: RunDirectory, busy: Saturation | None, columns: dict[str, NDArray[Any]], keep_requests: bool
) -> dict[str, RunPhase]:
    events = directory.events
    missing, units = failures_of(events, timeout_us(directory.facts)), Measures.of(events).units
    names = {number: directory.route_name(number) for number in np.unique(columns["route"]).tolist()}
    response_us, route, failures = (columns[name] for name in ("response_us", "route", "failures"))
    chosen = {WHOLE: np.ones(len(route), dtype=np.bool_)}
    if busy:
        chosen |= {name: columns["phase"] == number for number, name in enumerate(PHASES)}
    kept = _kept(columns) if keep_requests else {}
    phases = {}
    for name, mask in chosen.items():
        measures = Measures.of(measures_in(events, name, busy))
        failed = failures_in(missing, name, busy)
        steps = measured_steps(measures, failed, units)
        for number, times in _by_route(response_us[mask], route[mask], failures[mask]):
            steps.setdefault(names[number], timed_step(times, number))
        response = Sample.of_times(Times.of(response_us[mask], failures[mask]))
        lag_ms = Sample.of(columns["lag_us"][mask & columns["own_lag"]]).figures_ms()
        phases[name] = RunPhase(
            requests=response.n,
            failures=response.failed.number,
            response_ms=response.figures(),
            lag_ms={name: lag_ms[name] for name in JUDGED},
            steps=steps,
            kept=kept.get(name),
        )
    return phases


def _by_route(
    response_us: Microseconds, route: NDArray[np.uint16], failures: NDArray[np.bool_]
) -> Iterator[tuple[int, Times]]:
    order = np.argsort(route, kind="stable")
    edges = np.flatnonzero(np.diff(route[order])) + 1
    for part in np.split(order, edges) if len(order) else []:
        yield int(route[part[0]]), Times.of(response_us[part], failures[part])


def _kept(columns: dict[str, NDArray[Any]]) -> dict[str, KeptRequests]:
    """Return the requests of each phase, and of the whole run, in the order in which they were due."""
    order = np.lexsort((columns["due_ms"], columns["phase"]))
    kept = KeptRequests(*(columns[name][order] for name in ("due_ms", "response_us", "route", "failures")))
    edges = np.searchsorted(columns["phase"][order], range(len(PHASES) + 1)).tolist()
    places = {WHOLE: (0, len(order))} | dict(zip(PHASES, pairwise(edges), strict=True))
    return {name: kept.between(*place) for name, place in places.items()}
