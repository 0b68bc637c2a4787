"""One pass over the records of a run: all of its figures, by phase and by route."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.binomial import clustering, upper_bound_ms
from plimsoll.analysis.statistics.percentiles import (
    P999,
    FailedTimes,
    Microseconds,
    OrderStatistics,
    Sample,
    Times,
)
from plimsoll.analysis.statistics.phases import PhaseSlices
from plimsoll.analysis.statistics.requests import CountedRequests, timeout_us
from plimsoll.analysis.statistics.routes import RouteFigures, RouteTotals
from plimsoll.analysis.statistics.windows import Timeline, Window, Windows, make_windows, minutes_of
from plimsoll.common.errors import NoRequestsError
from plimsoll.rundir.events import saturation
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import CLIENT_QUEUED, TIMEOUT, Records

Progress = Callable[[int], None]


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


@dataclass(frozen=True)
class RunFigures:
    """One run's figures. Times by name (`response`, `service`, `lag`, `ttfb`) are exact order statistics.

    `client_queued` of the `queued` waited for a connection of their own client (`client_wait`; `unqueued` are
    the response times without that), and `client_timeouts` of these until their time was up.

    `failures` counts requests without a whole response and wrong answers: they count at `timeout_ms`, None
    where that is not known. `p999_clustering` is how many times fewer independent requests would say as much
    of p99.9 as these do.
    """

    requests: int
    failures: int
    timeout_ms: float | None
    warmup: int
    queued: int
    client_queued: int
    client_timeouts: int
    duration_s: float
    samples: Mapping[str, OrderStatistics]
    p999_upper_ms: float | None
    p999_clustering: float | None
    windows: Windows
    timeline: Timeline
    routes: dict[str, RouteFigures]
    total: RouteFigures
    errors: dict[str, int]
    statuses: dict[int, int]
    phases: PhaseSlices | None = None
    minutes: list[Window] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        """Return what `plimsoll report --json` prints of the run; absent figures are None."""
        line = self.windows.line
        return {
            "requests": {
                "sent": self.requests + self.warmup,
                "warmup": self.warmup,
                "queued": self.queued,
                "client_queued": self.client_queued,
                "client_timeouts": self.client_timeouts,
                "ok": self.total.grinder.tests,
                "errors": self.total.errors,
                "failures": self.failures,
                "status_mismatch": self.total.status_mismatch,
                "bytes_mismatch": self.total.bytes_mismatch,
            },
            "duration_s": self.duration_s,
            **{f"{name}_ms": sample.figures().as_json() for name, sample in self.samples.items()},
            "response_p99.9_upper_ms": self.p999_upper_ms,
            "response_p99.9_clustering": self.p999_clustering,
            "windows": {
                "width_s": self.windows.width_s,
                "shown": self.windows.shown,
                "line": None if line is None else asdict(line),
                "windows": [window.as_json() for window in self.windows.windows],
            },
            "routes": {name: figures.as_json() for name, figures in self.routes.items()},
            "total": self.total.as_json(),
            "errors": self.errors,
            "statuses": {str(status): count for status, count in self.statuses.items()},
        }


@dataclass(frozen=True)
class RunStatistics(RunFigures):
    """One run's figures, and all the times that they were computed from: 16 bytes a request."""

    samples: dict[str, Sample]

    def condensed(self) -> RunFigures:
        """Return the figures alone."""
        kept = {one.name: getattr(self, one.name) for one in fields(self)}
        condensed = {name: sample.condensed() for name, sample in self.samples.items()}
        return RunFigures(**kept | {"samples": condensed})


def measure(
    run: RunDirectory,
    progress: Progress = lambda _: None,
    *,
    compared: bool = False,
    watch: Callable[[Records, CountedRequests], None] = lambda *_: None,
) -> RunStatistics:
    """Read every record of `run` once and return its figures.

    `progress` is called with the number of records that were read since its last call. Phases are measured
    of a run whose disks were saturated, and of one that is `compared` with others. `watch` is given each
    block of records, and what counts of it, so that whoever wants them too need not read them again.
    """
    busy = saturation(run.events)
    phases = PhaseSlices(busy.start_ns, busy.stop_ns) if busy else PhaseSlices() if compared else None
    limit_us = timeout_us(run.facts)
    collection = Collection(phases, limit_us)
    for block in run.requests.blocks():
        counted = CountedRequests.of(block, limit_us)
        collection.add(counted)
        watch(block, counted)
        progress(len(block))
    if not collection.requests:
        raise NoRequestsError(
            f"{run.path}: every request belongs to the warm-up, so there is nothing to report"
        )
    return figures_of(collection, run.route_name, run.error_name)


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
        phases=collection.phases,
        minutes=minutes,
    )


def _distinct(route_name: Callable[[int], str], number: int) -> str:
    return f"{number + 1} {route_name(number)}"
