"""One pass over the records: everything that is computed is computed from what this gathers."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.failures import answered_wrongly, counted_us, failed
from plimsoll.analysis.statistics.phases import PhaseSlices
from plimsoll.analysis.statistics.routes import RouteTotals
from plimsoll.analysis.statistics.sample import Sample
from plimsoll.analysis.statistics.timeline import Timeline
from plimsoll.analysis.statistics.times import FailedTimes, Microseconds, Times, narrow
from plimsoll.rundir.records import CLIENT_QUEUED, QUEUED, SENT_TO_LOGIN, TIMEOUT, WARMUP, Records


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
