"""One pass over the records of a run, for all that is to be known of them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.evidence.generator import is_lateness_known
from plimsoll.analysis.evidence.run import (
    JUDGED,
    WHOLE,
    Connections,
    DetailedRun,
    MeasuredRun,
    RunPhase,
    RunStatistics,
)
from plimsoll.analysis.evidence.traits import TraitCollector
from plimsoll.analysis.statistics.binomial import clustering, upper_bound_ms
from plimsoll.analysis.statistics.measures import (
    StepFigures,
    damaged_measures,
    edges_ns,
    failures_in,
    failures_of,
    measured_steps,
    measures_in,
    timed_step,
)
from plimsoll.analysis.statistics.percentiles import (
    P999,
    PERCENTILES,
    FailedTimes,
    Microseconds,
    OrderStatistics,
    Sample,
    TimeFigures,
    Times,
)
from plimsoll.analysis.statistics.requests import CountedRequests, KeptRequests
from plimsoll.analysis.statistics.routes import AnswerCounter, RouteAnswers, RouteFigures, RouteTotals
from plimsoll.analysis.statistics.windows import PHASES, PhaseSlices, Timeline, make_windows, minutes_of
from plimsoll.common.errors import NoRequestsError
from plimsoll.rundir.check import RecordSum, Silence
from plimsoll.rundir.events import Measures, Saturation, saturation
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import (
    CLIENT_QUEUED,
    HTTP2,
    REUSED,
    SERVED,
    TIMEOUT,
    TLS,
    Records,
    count_served,
    late_us,
)

_LATEST_MS = 0xFFFF_FFFF  # 49 days
_PROMPT_US = 1000  # no generator is held to less (generator.is_late)

Progress = Callable[[int], None]


def measure_run(
    directory: RunDirectory, progress: Progress = lambda _: None, *, keep_requests: bool = False
) -> MeasuredRun:
    """Measure a run that is compared with others, phase by phase. Raises RunDirectoryError.

    `progress` is called with the number of records that were read since its last call. With `keep_requests`
    the phases hold theirs, eleven bytes each, so that runs can be cut alike.
    """
    busy, observer = saturation(directory.events), Observer(directory)
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
    run = observer.run()
    return replace(
        run,
        phases=_both_ends(run, busy, columns, keep_requests),
        service_p50_ms=service.percentile_ms(PERCENTILES["p50"]),
        damaged_measures=damaged_measures(directory.events),
    )


def measure_in_detail(
    directory: RunDirectory, progress: Progress = lambda _: None, *, sliced: bool = False
) -> DetailedRun:
    """Measure a run that is drawn. Raises RunDirectoryError.

    Its response times are kept by slices of time, too, where a saturator cuts it into phases, and where it is
    to be `sliced` anyway, since it is drawn beside others.
    """
    busy, observer = saturation(directory.events), Observer(directory)
    slices = PhaseSlices(busy.start_ns, busy.stop_ns) if busy else PhaseSlices() if sliced else None
    figures = _gather(directory, read_counted(directory, observer, progress), slices)
    measures = Measures.of(directory.events)
    steps = measured_steps(
        measures, failures_of(directory.events, directory.facts.timeout_us), measures.units
    )
    for name, route in figures.routes.items():
        steps.setdefault(name.partition(" ")[2], _route_step(name, route))
    whole = RunPhase(
        requests=figures.requests,
        failures=figures.failures,
        response_ms=figures.samples["response"].figures(),
        lag_ms=_judged(figures.samples["lag"]),
        steps=steps,
    )
    observed = observer.run()
    latest_ms = figures.samples["lag"].figures_ms()["max"] or 0
    late = is_lateness_known(observed) and 1000 * latest_ms > _PROMPT_US
    prompt = _read_prompt_times(directory, busy) if late else {}
    if prompt:
        whole = replace(whole, prompt=replace(whole, response_ms=prompt[WHOLE]))
    return DetailedRun(
        directory,
        {WHOLE: whole},
        observed.answers,
        observed.silence,
        observed.records_sha256,
        service_p50_ms=figures.samples["service"].percentile_ms(PERCENTILES["p50"]),
        damaged_measures=damaged_measures(directory.events),
        traits=observed.traits,
        connections=observed.connections,
        served=observed.served,
        last_due_ns=observed.last_due_ns,
        statistics=figures.condensed(),
        prompt_ms=prompt,
    )


def measure_figures(directory: RunDirectory, progress: Progress = lambda _: None) -> RunStatistics:
    """Return what is drawn of a run, and all the times behind it. Raises RunDirectoryError."""
    return _gather(directory, (counted for _, counted in _blocks(directory, progress)))


def read_counted(
    directory: RunDirectory, observer: "Observer", progress: Progress = lambda _: None
) -> Iterator[CountedRequests]:
    """Yield the requests of a run as they count, block by block, while `observer` sees every record too."""
    for block, counted in _blocks(directory, progress):
        observer.observe(block, counted)
        yield counted


def _blocks(directory: RunDirectory, progress: Progress) -> Iterator[tuple[Records, CountedRequests]]:
    limit_us = directory.facts.timeout_us
    for block in directory.requests.blocks():
        yield block, CountedRequests.of(block, limit_us)
        progress(len(block))


class Observer:
    """Sees the records of a run while others read them: its answers, whether its target lives, their sum."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory, self._answers, self._silence = directory, AnswerCounter(), Silence()
        self._sum = RecordSum()
        self._traits = TraitCollector(directory)
        self._connections, self._last_due_ns = Connections(), 0
        self._served = np.zeros(len(SERVED), dtype=np.int64)

    def observe(self, block: Records, counted: CountedRequests) -> None:
        """Take the next block of records, and what counts of it."""
        self._answers.add(counted)
        self._silence.take_all(block)
        self._traits.add(block)
        flags = block["flags"][block["error"] == 0]
        kinds = (int(np.count_nonzero(flags & kind)) for kind in (REUSED, HTTP2, TLS))
        self._connections = Connections(
            *(one + more for one, more in zip(self._connections, (len(flags), *kinds), strict=True))
        )
        self._last_due_ns = max(self._last_due_ns, int(block["due_ns"].max(initial=0)))
        self._served += count_served(counted.records)
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
            records_sha256=self._sum.hexdigest(),
            traits=self._traits.traits(),
            connections=self._connections,
            served=tuple(self._served.tolist()),
            last_due_ns=self._last_due_ns,
        )


def _columns(counted: CountedRequests, busy: Saturation | None) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield what verdicts need of requests; `phase` is the number of the phase that each belongs to."""
    start_ns, stop_ns = edges_ns("during", busy)
    yield "response_us", counted.response_us
    yield "service_us", counted.service_us
    yield "failures", counted.failures
    yield "lag_us", counted.lag_us
    # What did not wait for a connection was late by its whole lag, whatever its record says
    late = np.minimum(late_us(counted.records), counted.lag_us)
    late = np.where(counted.queued, late, counted.lag_us)
    yield "late_us", np.where(counted.failures, 0, late)  # a failure counts at its time-out
    yield "own_lag", ~counted.queued
    yield "route", counted.column("route")
    yield "due_ms", np.minimum(counted.due_ns // 1_000_000, _LATEST_MS).astype(np.uint32)
    yield "phase", (counted.due_ns >= start_ns).astype(np.uint8) + (counted.due_ns >= stop_ns)


def _both_ends(
    run: MeasuredRun, busy: Saturation | None, columns: dict[str, NDArray[Any]], keep_requests: bool
) -> dict[str, RunPhase]:
    """Return the phases of `run` as measured, each with itself as if all had been sent when it was due.

    Had it been sent in time, a request would have been done no later than it was, and taken no less than it
    did from then on: both ends of what its response time may have been.
    """
    phases = _phases(run.directory, busy, columns, keep_requests)
    if not is_lateness_known(run) or columns["late_us"].max(initial=0) <= _PROMPT_US:
        return phases
    columns = columns | {"response_us": _prompt_us(columns)}
    prompt = _phases(run.directory, busy, columns, keep_requests)
    return {name: replace(phase, prompt=prompt[name]) for name, phase in phases.items()}


def _prompt_us(columns: dict[str, NDArray[Any]]) -> Microseconds:
    """Return the response times as if every request had been sent when it was due."""
    response_us = columns["response_us"]
    prompt_us: Microseconds = response_us - np.minimum(columns["late_us"], response_us)
    return prompt_us.astype(response_us.dtype)


def _read_prompt_times(directory: RunDirectory, busy: Saturation | None) -> dict[str, TimeFigures]:
    """Return these phase by phase. The records are read once more, which few runs of a report take."""
    parts: defaultdict[str, list[Times]] = defaultdict(list)
    for _, counted in _blocks(directory, lambda _: None):
        columns = dict(_columns(counted, busy))
        prompt_us, failures = _prompt_us(columns), columns["failures"]
        parts[WHOLE].append(Times.of(prompt_us, failures))
        for number, name in enumerate(PHASES if busy else ()):
            mask = columns["phase"] == number
            parts[name].append(Times.of(prompt_us[mask], failures[mask]))
    return {name: Sample.of_times(Times.joined(each)).figures() for name, each in parts.items()}


def _phases(
    directory: RunDirectory, busy: Saturation | None, columns: dict[str, NDArray[Any]], keep_requests: bool
) -> dict[str, RunPhase]:
    events = directory.events
    missing, units = failures_of(events, directory.facts.timeout_us), Measures.of(events).units
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
            steps.setdefault(directory.route_name(number), timed_step(times, number))
        response = Sample.of_times(Times.of(response_us[mask], failures[mask]))
        phases[name] = RunPhase(
            requests=response.n,
            failures=response.failed.number,
            response_ms=response.figures(),
            lag_ms=_judged(Sample.of(columns["lag_us"][mask & columns["own_lag"]])),
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


def _judged(lag: OrderStatistics) -> dict[str, float | None]:
    figures_ms = lag.figures_ms()
    return {name: figures_ms[name] for name in JUDGED}


def _route_step(name: str, route: RouteFigures) -> StepFigures:
    """Return the median of a route called by its number, from 1, and its name."""
    times, median = route.response_ms, "p50" if route.requests > 1 else "max"
    number = int(name.partition(" ")[0]) - 1
    return StepFigures(times[median], "ms", False, times.censored.get(median), route=number)


def _gather(
    directory: RunDirectory, requests: Iterable[CountedRequests], slices: PhaseSlices | None = None
) -> RunStatistics:
    collection = Collection(slices, directory.facts.timeout_us)
    for counted in requests:
        collection.add(counted)
    if not collection.requests:
        raise NoRequestsError(
            f"{directory.path}: every request belongs to the warm-up, so there is nothing to report"
        )
    return figures_of(collection, directory.route_name, directory.error_name)


class Collection:
    """The result of one pass. Holds about 20 bytes a request.

    Requests of the warm-up are counted and otherwise left out. `end_ns` is the last instant of any request,
    `first_start_ns` and `last_done_ns` are of those outside the warm-up.
    """

    def __init__(self, phases: PhaseSlices | None = None, timeout_us: int | None = None) -> None:
        """Begin with nothing; `phases`, where given, gets the response times too.

        Failures count at `timeout_us`; where that is None, as slower than every answer.
        """
        self.phases = phases
        self.timeout_us = timeout_us
        self.requests = 0
        self.failures = 0
        self.warmup = 0
        self.queued = 0
        self.client_queued = 0
        self.client_timeouts = 0
        self.end_ns = 0
        self.first_start_ns: int | None = None
        self.last_done_ns = 0
        self.error_counts: NDArray[np.int64] = np.zeros(256, dtype=np.int64)
        self.status_counts: NDArray[np.int64] = np.zeros(1 << 16, dtype=np.int64)
        self.served: NDArray[np.int64] = np.zeros(len(SERVED), dtype=np.int64)
        self.timeline = Timeline()
        self.routes = RouteTotals()
        self._service: list[Times] = []
        self._ttfb: list[Microseconds] = []
        # Of those that waited for a connection of their own client: how long, and the response times with and
        # without that.
        self._client_wait: list[Times] = []
        self._waited: list[Times] = []
        self._unqueued: list[Times] = []

    def add(self, counted: CountedRequests) -> None:
        """Add more requests."""
        if counted.warmup is not None:
            self.warmup += len(counted.warmup)
            ended_ns = CountedRequests(counted.warmup, None).done_ns
            self.end_ns = max(self.end_ns, int(ended_ns.max()))
        if len(counted):
            self._add(counted)

    def _add(self, counted: CountedRequests) -> None:
        response_us, failures, wrong = counted.response_us, counted.failures, counted.wrong
        self.requests += len(counted)
        self.failures += int(failures.sum())
        self.queued += int(counted.queued.sum())
        start_ns = int((counted.due_ns + counted.lag_us.astype(np.int64) * 1000).min())
        self.first_start_ns = start_ns if self.first_start_ns is None else min(start_ns, self.first_start_ns)
        self.last_done_ns = max(self.last_done_ns, int(counted.done_ns.max()))
        self.end_ns = max(self.end_ns, self.last_done_ns)
        self._service.append(Times.of(counted.service_us, failures, counted.wrong_services))
        ttfb_us = counted.column("ttfb_us")
        self._ttfb.append(ttfb_us[(ttfb_us > 0) & ~failures])
        self.timeline.add(counted)
        if (own := (counted.column("flags") & CLIENT_QUEUED) != 0).any():
            self._add_client_queued(counted, own)
        if self.phases is not None:
            self.phases.add(counted.due_ns, response_us, failures, wrong)
        self.routes.add(counted)
        self.status_counts += np.bincount(counted.column("status"), minlength=1 << 16)
        self.served += count_served(counted.records)
        self.error_counts += np.bincount(counted.column("error"), minlength=256)

    def _add_client_queued(self, counted: CountedRequests, own: NDArray[np.bool_]) -> None:
        failures, total_us = counted.failures[own], counted.total_us[own]
        sent = (counted.column("error")[own] != TIMEOUT) | (total_us > 0)
        self.client_queued += len(sent)
        self.client_timeouts += int((~sent).sum())
        self._client_wait.append(Times(counted.lag_us[own]))
        self._waited.append(Times.of(counted.response_us[own], failures, counted.wrong[own]))
        unqueued_us, wrong = counted.service_us[own], counted.wrong_services[own]
        self._unqueued.append(Times.of(unqueued_us[sent], failures[sent], wrong[sent]))

    def samples(self) -> dict[str, Sample]:
        """Return `response`, `service`, `lag` (of what was not queued) and `ttfb` (of answers).

        Where requests waited for connections of their own clients, also `client_wait` and `unqueued`, the
        response times without that.

        May be called once: the gathered service times and first bytes are given away.
        """
        service, self._service = Times.joined(self._service), []
        ttfb, self._ttfb = Times.joined([Times(part) for part in self._ttfb]), []
        values = {
            "response": self.timeline.response.everything(),
            "service": service,
            "lag": self.timeline.lag.everything(),
            "ttfb": ttfb,
        }
        with ThreadPoolExecutor(2) as pool:  # sorting lets go of the interpreter's lock
            samples = dict(zip(values, pool.map(Sample.of_times, values.values()), strict=True))
        if self.client_queued:
            samples["client_wait"] = Sample.of_times(Times.joined(self._client_wait))
            samples["unqueued"] = self._without_waits(samples["response"])
        return samples

    def _without_waits(self, response: Sample) -> Sample:
        """Return `response` with the times of those that waited for their own client replaced."""
        sample = Sample.of_times(Times.joined(self._waited))
        waited, failed = sample.sorted_us, response.failed
        among_equals = np.arange(len(waited)) - np.searchsorted(waited, waited)
        others_us = np.delete(response.sorted_us, np.searchsorted(response.sorted_us, waited) + among_equals)
        others_failed = FailedTimes(
            failed.from_us, failed.number - sample.failed.number, failed.wrong - sample.failed.wrong
        )
        return Sample.of_times(Times.joined([Times(others_us, others_failed), *self._unqueued]))

    @property
    def elapsed_s(self) -> float:
        """Seconds from the first start to the last end, outside the warm-up: The Grinder's elapsed time."""
        return 0.0 if self.first_start_ns is None else (self.last_done_ns - self.first_start_ns) / 1e9


def figures_of(
    collection: Collection, route_name: Callable[[int], str], error_name: Callable[[int], str]
) -> RunStatistics:
    """Return the figures of what was collected, which gives its times away; names are looked up by number."""
    samples = collection.samples()
    response, elapsed_s = samples["response"], collection.elapsed_s
    windows, minutes = make_windows(collection.timeline), minutes_of(collection.timeline)
    clustered = clustering(collection.timeline.response, response)
    collection.timeline.forget_times()
    return RunStatistics(
        requests=collection.requests,
        failures=collection.failures,
        timeout_ms=None if collection.timeout_us is None else collection.timeout_us / 1000,
        warmup=collection.warmup,
        queued=collection.queued,
        client_queued=collection.client_queued,
        client_timeouts=collection.client_timeouts,
        duration_s=collection.end_ns / 1e9,
        samples=samples,
        p999_upper_ms=None if clustered is None else upper_bound_ms(response, P999, clustered),
        p999_clustering=clustered,
        windows=windows,
        timeline=collection.timeline,
        routes={
            _distinct(route_name, number): collection.routes.figures(number, elapsed_s)
            for number in collection.routes.used()
        },
        total=collection.routes.all_figures(response, elapsed_s),
        errors={
            error_name(number): int(count)
            for number, count in enumerate(collection.error_counts)
            if number and count
        },
        statuses={
            int(status): int(collection.status_counts[status])
            for status in np.flatnonzero(collection.status_counts)
        },
        served=_name_served(collection.served),
        phases=collection.phases,
        minutes=minutes,
    )


def _name_served(counts: NDArray[np.int64]) -> dict[str, int]:
    if not counts[1:].any():
        return {}
    return {name: count for name, count in zip(SERVED, counts.tolist(), strict=True) if count}


def _distinct(route_name: Callable[[int], str], number: int) -> str:
    return f"{number + 1} {route_name(number)}"
