"""Requests as they count: the rule of failures, and cuts that make runs alike. Pure.

A failure is never fast: it counts at its time-out, however soon it came.

A percentile of few requests is not that of many: p99.9 is the 2nd largest of 1,000 requests and the 11th of
10,000, and the first lies lower more often than higher. So percentiles are compared at equal length (the
first so many seconds of the phase) and at equal counts (drawn without replacement, the same draw each time).
One draw, and not the mean over many: the mean of many lies less far apart than a single figure and is less
skewed, so runs that were cut and runs that were not could no longer change sides (docs/statistics.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.percentiles import NEVER_US, Microseconds, Times, narrow, rank
from plimsoll.analysis.statistics.stalls import worst_us
from plimsoll.rundir.records import QUEUED, WARMUP, Records

CLIENT_ERROR, TOO_MANY, SERVER_ERROR = 400, 429, 500
_SEED = 19_641_102
_SAME = 1.01  # shares above a percentile, and counts, that differ by less are the same
_SAME_LENGTH = 1.05  # of phases whose saturator was stopped by one clock and began by another


@dataclass(frozen=True, eq=False)
class CountedRequests:
    """Records, shape (n,), and their times as they count: failures at `timeout_us`, or above every answer.

    Times run from the start of a request (`service_us`) or from the instant at which it was due. Each column
    is computed when it is first asked for. `warmup` are the records of their block that count nowhere.
    """

    records: Records
    timeout_us: int | None
    warmup: Records | None = None
    _columns: dict[str, NDArray[Any]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, block: Records, timeout_us: int | None) -> "CountedRequests":
        """Count a block without its warm-up."""
        warm = (block["flags"] & WARMUP) != 0
        return cls(block[~warm], timeout_us, block[warm]) if warm.any() else cls(block, timeout_us)

    def __len__(self) -> int:
        return len(self.records)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of the records as an array of its own, not to be written to."""
        if name not in self._columns:
            self._columns[name] = np.ascontiguousarray(self.records[name])
        return self._columns[name]

    @cached_property
    def due_ns(self) -> NDArray[np.int64]:
        """When each was due, since the start of the run."""
        return self.column("due_ns")

    @cached_property
    def lag_us(self) -> NDArray[np.uint32]:
        """How much later each was sent."""
        return self.column("lag_us")

    @cached_property
    def total_us(self) -> NDArray[np.uint32]:
        """How long each took from then on."""
        return self.column("total_us")

    @cached_property
    def took_us(self) -> Microseconds:
        """How long each took from the instant at which it was due."""
        return narrow(self.lag_us.astype(np.uint64) + self.total_us)

    @cached_property
    def done_ns(self) -> NDArray[np.int64]:
        """When each ended, since the start of the run."""
        done: NDArray[np.int64] = self.due_ns + self.took_us.astype(np.int64) * 1000
        return done

    @cached_property
    def queued(self) -> NDArray[np.bool_]:
        """Which waited for a connection, so that their lag is not the generator's."""
        queued: NDArray[np.bool_] = (self.records["flags"] & QUEUED) != 0
        return queued

    @cached_property
    def failures(self) -> NDArray[np.bool_]:
        """Which failed."""
        return failure_mask(self.records)

    @cached_property
    def response_us(self) -> Microseconds:
        """`took_us` as it counts."""
        return counted_us(self.took_us, self.failures, self.timeout_us)

    @cached_property
    def service_us(self) -> Microseconds:
        """`total_us` as it counts."""
        return counted_us(self.total_us, self.failures, self.timeout_us)

    @cached_property
    def wrong(self) -> NDArray[np.bool_]:
        """Which failures are wrong answers that came before their time-out."""
        return answered_wrongly(self.records, self.failures, self.took_us, self.timeout_us)

    @cached_property
    def wrong_services(self) -> NDArray[np.bool_]:
        """The same by `total_us`."""
        return answered_wrongly(self.records, self.failures, self.total_us, self.timeout_us)


def failure_mask(records: Records) -> NDArray[np.bool_]:
    """Return which of `records`, shape (n,), are failures: without a whole response, or answered wrongly.

    A wrong answer is a status of 500 or more where the log has a lower one or none, 429 where it has another
    or none, and one of 400 or more where it has one below 400.
    """
    failures: NDArray[np.bool_] = records["error"] != 0
    refused = records["status"] >= CLIENT_ERROR
    if refused.any():  # most blocks have none
        at = np.flatnonzero(refused)
        failures[at] |= wrong_status(records["status"][at], records["logged_status"][at])
    return failures


def wrong_status(status: NDArray[np.uint16], logged: NDArray[np.uint16]) -> NDArray[np.bool_]:
    """Return where `status` is a wrong answer to what the log has (0: unknown); all have shape (n,)."""
    overloaded = (status >= SERVER_ERROR) & (logged < SERVER_ERROR)
    refused = (status == TOO_MANY) & (logged != TOO_MANY)
    unasked = (status >= CLIENT_ERROR) & (logged != 0) & (logged < CLIENT_ERROR)
    wrong: NDArray[np.bool_] = overloaded | refused | unasked
    return wrong


def answered_wrongly(
    records: Records, failures: NDArray[np.bool_], took_us: Microseconds, timeout_us: int | None
) -> NDArray[np.bool_]:
    """Return which `failures` are wrong answers that came before their time-out; all have shape (n,)."""
    if not failures.any():
        return failures
    wrong: NDArray[np.bool_] = failures & (records["error"] == 0)
    return wrong if timeout_us is None else wrong & (took_us < timeout_us)


def counted_us(took_us: Microseconds, failures: NDArray[np.bool_], timeout_us: int | None) -> Microseconds:
    """Return `took_us` as it counts: a failure at its time-out, or at what it took where that is longer.

    Without a `timeout_us` a failure counts as `NEVER_US`. All have shape (n,).
    """
    at = np.flatnonzero(failures)
    if not len(at):
        return took_us
    counted, number = took_us.copy(), took_us.dtype.type
    counted[at] = number(NEVER_US) if timeout_us is None else np.maximum(took_us[at], number(timeout_us))
    return counted


@dataclass(frozen=True)
class KeptRequests:
    """Requests in the order in which they were due, shape (n,) each; `due_ms` counts from the first one.

    `response_us` are as they count: failures at their time-out.
    """

    due_ms: NDArray[np.uint32]
    response_us: Microseconds
    route: NDArray[np.uint16]
    failed: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.due_ms)

    @property
    def lasted_ms(self) -> int:
        """From the first to the last instant at which one was due."""
        return int(self.due_ms[-1]) if len(self) else 0

    @property
    def times(self) -> Times:
        """Their response times, as a new array."""
        return Times.of(self.response_us.copy(), self.failed)

    @cached_property
    def worst_ms(self) -> float | None:
        """The median of the slowest ten requests in a row."""
        worst = worst_us(self.response_us)
        return None if worst is None else float(worst) / 1000

    def of_route(self, number: int) -> "KeptRequests":
        """Return those of one route."""
        return self._at(self.route == number)

    def between(self, first: int, last: int) -> "KeptRequests":
        """Return those from place `first` to before place `last`."""
        found = self._at(slice(first, last))
        return replace(found, due_ms=found.due_ms - found.due_ms[:1])

    def first_ms(self, length_ms: int) -> "KeptRequests":
        """Return those that were due in so many milliseconds from the first on."""
        return self._at(slice(0, int(np.searchsorted(self.due_ms, length_ms, side="right"))))

    def thinned(self, count: int) -> "KeptRequests":
        """Return `count` of them."""
        return self._at(drawn(len(self), count))

    def _at(self, which: Any) -> "KeptRequests":
        return KeptRequests(
            self.due_ms[which], self.response_us[which], self.route[which], self.failed[which]
        )


def drawn(size: int, count: int) -> NDArray[np.int64]:
    """Return `count` places out of `size`, in their order: the same ones each time."""
    return np.sort(np.random.default_rng(_SEED).choice(size, count, replace=False))


def cut_alike(runs: Sequence[KeptRequests], ppm: int) -> list[KeptRequests] | None:
    """Return `runs` cut to one length and one count, for percentile q = `ppm`/10⁶.

    None where they can stay as they are: what the percentile means at each of their counts differs by 1 % at
    most.
    """
    lengths = [run.lasted_ms for run in runs]
    counts = [len(run) for run in runs]
    longer = max(lengths) > _SAME_LENGTH * min(lengths) and _differ(counts, ppm)
    cut = [run.first_ms(min(lengths)) for run in runs] if longer else list(runs)
    counts = [len(run) for run in cut]
    if not _differ(counts, ppm):
        return cut if longer else None
    return [run.thinned(min(counts)) for run in cut]


def _differ(counts: Sequence[int], ppm: int) -> bool:
    """Return whether a percentile says another thing at some of `counts` than at others."""
    above = [(count - (rank(ppm, count) or count) + 1) / (count + 1) for count in counts]
    return max(above) > _SAME * min(above) or max(counts) > _SAME * min(counts)
