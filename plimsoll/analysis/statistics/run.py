"""One pass over the records of a run: all of its figures, by phase and by route."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from typing import Any

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
    narrow,
)
from plimsoll.analysis.statistics.phases import PhaseSlices
from plimsoll.analysis.statistics.requests import answered_wrongly, counted_us, failed, timeout_us
from plimsoll.analysis.statistics.routes import RouteFigures, RouteTotals
from plimsoll.analysis.statistics.windows import Timeline, Window, Windows, make_windows, minutes_of
from plimsoll.common.errors import NoRequestsError
from plimsoll.rundir.events import saturation
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import CLIENT_QUEUED, QUEUED, SENT_TO_LOGIN, TIMEOUT, WARMUP, Records

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

    def add(self, block: Records) -> None:
        """Add a block of records, shape (n,)."""
        due_ns = _column(block, "due_ns")
        flags = _column(block, "flags")
        warm = (flags & WARMUP) != 0
        if warm.any():
            self.warmup += int(warm.sum())
            self.end_ns = max(self.end_ns, int(_done_ns(block[warm]).max()))
            block, flags, due_ns = block[~warm], flags[~warm], due_ns[~warm]
        if len(block):
            self._add(block, due_ns, (flags & QUEUED) != 0)

    def _add(self, block: Records, due_ns: NDArray[np.int64], queued: NDArray[np.bool_]) -> None:
        lag_us, total_us = _column(block, "lag_us"), _column(block, "total_us")
        ttfb_us, error = _column(block, "ttfb_us"), _column(block, "error")
        took_us = narrow(lag_us.astype(np.uint64) + total_us)
        failures = failed(block)
        response_us = counted_us(took_us, failures, self.timeout_us)
        self.requests += len(block)
        self.failures += int(failures.sum())
        self.queued += int(queued.sum())
        start_ns = int((due_ns + lag_us.astype(np.int64) * 1000).min())
        self.first_start_ns = start_ns if self.first_start_ns is None else min(start_ns, self.first_start_ns)
        self.last_done_ns = max(self.last_done_ns, int((due_ns + took_us.astype(np.int64) * 1000).max()))
        self.end_ns = max(self.end_ns, self.last_done_ns)
        wrong = answered_wrongly(block, failures, took_us, self.timeout_us)
        service_us = counted_us(total_us, failures, self.timeout_us)
        wrong_service = answered_wrongly(block, failures, total_us, self.timeout_us)
        self._service.append(Times.of(service_us, failures, wrong_service))
        self._ttfb.append(ttfb_us[(ttfb_us > 0) & ~failures])
        self.timeline.add(due_ns, took_us, response_us, lag_us, queued, failures, wrong)
        if (own := (_column(block, "flags") & CLIENT_QUEUED) != 0).any():
            self._add_client_queued(block[own], response_us[own], failures[own], wrong[own])
        if self.phases is not None:
            self.phases.add(due_ns, response_us, failures, wrong)
        self._add_to_routes(block, response_us, failures, wrong, error != 0)
        self.error_counts += np.bincount(error, minlength=256)

    def _add_client_queued(
        self,
        block: Records,
        response_us: Microseconds,
        failures: NDArray[np.bool_],
        wrong: NDArray[np.bool_],
    ) -> None:
        lag_us, total_us = _column(block, "lag_us"), _column(block, "total_us")
        sent = (block["error"] != TIMEOUT) | (total_us > 0)
        self.client_queued += len(block)
        self.client_timeouts += int((~sent).sum())
        self._client_wait.append(Times(lag_us))
        self._waited.append(Times.of(response_us, failures, wrong))
        unqueued_us = counted_us(total_us, failures, self.timeout_us)
        wrong = answered_wrongly(block, failures, total_us, self.timeout_us)
        self._unqueued.append(Times.of(unqueued_us[sent], failures[sent], wrong[sent]))

    def _add_to_routes(
        self,
        block: Records,
        response_us: Microseconds,
        failures: NDArray[np.bool_],
        wrong: NDArray[np.bool_],
        broken: NDArray[np.bool_],
    ) -> None:
        route, status, logged_status, body_bytes, logged_bytes, total_us, ttfb_us = (
            _column(block, name)
            for name in ("route", "status", "logged_status", "bytes", "logged_bytes", "total_us", "ttfb_us")
        )
        sent_to_login = (block["flags"] & SENT_TO_LOGIN) != 0  # a mismatch, whatever the log has
        judged = ~broken & ((logged_status != 0) | sent_to_login)
        same = (status == logged_status) & ~sent_to_login
        status_mismatch = judged & ~same
        bytes_mismatch = judged & same & (logged_bytes >= 0) & (body_bytes != logged_bytes)
        self.routes.add(
            route, response_us, failures, np.maximum(body_bytes, 0), status_mismatch, bytes_mismatch, wrong
        )
        self.status_counts += np.bincount(status, minlength=1 << 16)
        if broken.any():
            route, total_us, ttfb_us = route[~broken], total_us[~broken], ttfb_us[~broken]
        if len(route):
            self.routes.add_services(route, total_us, ttfb_us)

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


def collect(blocks: Iterable[Records], timeout_us: int | None = None) -> Collection:
    """Gather all blocks."""
    collection = Collection(timeout_us=timeout_us)
    for block in blocks:
        collection.add(block)
    return collection


def _column(block: Records, name: str) -> NDArray[Any]:
    return np.ascontiguousarray(block[name])


def _done_ns(block: Records) -> NDArray[np.int64]:
    took_us: NDArray[np.int64] = _column(block, "lag_us").astype(np.int64) + _column(block, "total_us")
    due_ns: NDArray[np.int64] = _column(block, "due_ns")
    return due_ns + took_us * 1000


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
    watch: Callable[[Records], None] = lambda _: None,
) -> RunStatistics:
    """Read every record of `run` once and return its figures.

    `progress` is called with the number of records that were read since its last call. Phases are measured
    of a run whose disks were saturated, and of one that is `compared` with others. `watch` is given each
    block of records, so that whoever wants them too need not read them again.
    """
    busy = saturation(run.events)
    phases = PhaseSlices(busy.start_ns, busy.stop_ns) if busy else PhaseSlices() if compared else None
    collection = Collection(phases, timeout_us(run.facts))
    for block in run.requests.blocks():
        collection.add(block)
        watch(block)
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
