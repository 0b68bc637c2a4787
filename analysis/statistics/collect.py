"""One pass over the records: everything that is computed is computed from what this gathers."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.statistics.phases import PhaseSlices
from analysis.statistics.routes import RouteTotals
from analysis.statistics.sample import Microseconds, Sample, narrow
from analysis.statistics.timeline import Timeline
from plimsoll.common.errors import DamagedFileError
from plimsoll.rundir.requestfile import QUEUED, WARMUP, Records

_LATEST_NS = 1 << 61  # 73 years: what stands after it was never written by a program of ours


class Collection:
    """The result of one pass. Holds about 20 bytes a request.

    Requests of the warm-up are counted and otherwise left out. `end_ns` is the last instant of any request,
    `first_start_ns` and `last_done_ns` are of those outside the warm-up.
    """

    def __init__(self, phases: PhaseSlices | None = None) -> None:
        """Begin with nothing; `phases`, where given, gets the response times too."""
        self.phases = phases
        self.requests = 0
        self.warmup = 0
        self.queued = 0
        self.end_ns = 0
        self.first_start_ns: int | None = None
        self.last_done_ns = 0
        self.error_counts: NDArray[np.int64] = np.zeros(256, dtype=np.int64)
        self.status_counts: NDArray[np.int64] = np.zeros(1 << 16, dtype=np.int64)
        self.timeline = Timeline()
        self.routes = RouteTotals()
        self._service: list[Microseconds] = []
        self._ttfb: list[Microseconds] = []

    def add(self, block: Records) -> None:
        """Add a block of records, shape (n,). Raises DamagedFileError for an instant that cannot be."""
        due_ns = _column(block, "due_ns")
        if len(block) and (int(due_ns.min()) < 0 or int(due_ns.max()) > _LATEST_NS):
            raise DamagedFileError(
                "requests.npy: a request is due at an impossible instant; the file is damaged"
            )
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
        response_us = narrow(lag_us.astype(np.uint64) + total_us)
        failed = error != 0
        self.requests += len(block)
        self.queued += int(queued.sum())
        start_ns = int((due_ns + lag_us.astype(np.int64) * 1000).min())
        self.first_start_ns = start_ns if self.first_start_ns is None else min(start_ns, self.first_start_ns)
        self.last_done_ns = max(self.last_done_ns, int((due_ns + response_us.astype(np.int64) * 1000).max()))
        self.end_ns = max(self.end_ns, self.last_done_ns)
        self._service.append(total_us)
        self._ttfb.append(ttfb_us[ttfb_us > 0])
        self.timeline.add(due_ns, response_us, lag_us, queued, failed)
        if self.phases is not None:
            self.phases.add(due_ns, response_us)
        self._add_to_routes(block, response_us, total_us, ttfb_us, failed)
        self.error_counts += np.bincount(error, minlength=256)

    def _add_to_routes(
        self,
        block: Records,
        response_us: Microseconds,
        total_us: NDArray[np.uint32],
        ttfb_us: NDArray[np.uint32],
        failed: NDArray[np.bool_],
    ) -> None:
        route, status, logged_status, body_bytes, logged_bytes = (
            _column(block, name) for name in ("route", "status", "logged_status", "bytes", "logged_bytes")
        )
        judged = ~failed & (logged_status != 0)
        same = status == logged_status
        status_mismatch = judged & ~same
        bytes_mismatch = judged & same & (logged_bytes >= 0) & (body_bytes != logged_bytes)
        self.routes.add(route, response_us, np.maximum(body_bytes, 0), status_mismatch, bytes_mismatch)
        self.status_counts += np.bincount(status, minlength=1 << 16)
        if failed.any():
            route, total_us, ttfb_us = route[~failed], total_us[~failed], ttfb_us[~failed]
        if len(route):
            self.routes.add_services(route, total_us, ttfb_us)

    def samples(self) -> dict[str, Sample]:
        """Return `response`, `service`, `lag` (of what was not queued) and `ttfb` (of what had a first byte).

        May be called once: the gathered service times and first bytes are given away.
        """
        service, self._service = _joined(self._service), []
        ttfb, self._ttfb = _joined(self._ttfb), []
        values = {
            "response": self.timeline.response.everything(),
            "service": service,
            "lag": self.timeline.lag.everything(),
            "ttfb": ttfb,
        }
        with ThreadPoolExecutor(2) as pool:  # sorting lets go of the interpreter's lock
            return dict(zip(values, pool.map(Sample.of, values.values()), strict=True))

    @property
    def elapsed_s(self) -> float:
        """Seconds from the first start to the last end, outside the warm-up: The Grinder's elapsed time."""
        return 0.0 if self.first_start_ns is None else (self.last_done_ns - self.first_start_ns) / 1e9


def collect(blocks: Iterable[Records]) -> Collection:
    """Gather all blocks."""
    collection = Collection()
    for block in blocks:
        collection.add(block)
    return collection


def _column(block: Records, name: str) -> NDArray[Any]:
    return np.ascontiguousarray(block[name])


def _done_ns(block: Records) -> NDArray[np.int64]:
    took_us: NDArray[np.int64] = _column(block, "lag_us").astype(np.int64) + _column(block, "total_us")
    due_ns: NDArray[np.int64] = _column(block, "due_ns")
    return due_ns + took_us * 1000


def _joined(parts: list[Microseconds]) -> Microseconds:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint32)
