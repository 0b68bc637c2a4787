"""The last minutes of a run second by second, in bounded memory: what ended in each, and how slow it was."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.failures import counted_us, failed
from plimsoll.analysis.statistics.times import NEVER_US
from plimsoll.lab.experiment.status.latencies import BINS, NEVER_BIN, bin_of, p999_bin, upper_us
from plimsoll.rundir.records import QUEUED, WARMUP, Records

KEPT_S = 600  # seconds that are shown
TAIL_S = 60  # each p99.9 is of the requests that ended in so many seconds
_SECOND_NS = 10**9
_AHEAD_S = 60  # so much two clocks may differ

Pieces = list[tuple[NDArray[np.int64], NDArray[np.int64]]]  # bins of latencies, and how many are in each


@dataclass(frozen=True)
class Point:
    """Second `t_s` of a run. Times are None where nothing ended in it, or nobody knows.

    `p999_ms` is of the last TAIL_S seconds, None under a thousand requests; `lag_ms` is the largest lag of
    what did not wait for a connection.
    """

    t_s: int
    done: int
    failed: int
    slowest_ms: float | None
    p999_ms: float | None
    lag_ms: float | None


@dataclass
class _Second:
    done: int = 0
    failed: int = 0
    slowest_us: int = -1
    lag_us: int = -1
    latencies: Pieces = field(default_factory=list)


class Seconds:
    """Takes the records of a run as they are written. `timeout_us` is what failures count at."""

    def __init__(self, timeout_us: int | None) -> None:
        self._timeout_us = timeout_us
        self._seconds: dict[int, _Second] = {}
        self.requests = self.failures = 0

    def add(self, records: Records, now_s: float) -> None:
        """Take the next records, shape (n,), at second `now_s`: what ended far behind it is damaged."""
        took_us = np.minimum(records["lag_us"].astype(np.uint64) + records["total_us"], NEVER_US)
        ended_s = (records["due_ns"] + took_us.astype(np.int64) * 1000) // _SECOND_NS
        failures = failed(records)
        times_us = counted_us(took_us.astype(np.uint32), failures, self._timeout_us)
        self.requests += len(records)
        self.failures += int(failures.sum())
        oldest_s = int(now_s) - KEPT_S - TAIL_S
        for second in np.unique(ended_s[(ended_s >= oldest_s) & (ended_s < now_s + _AHEAD_S)]):
            within = ended_s == second
            self._add(int(second), records[within], times_us[within], failures[within])
        for second in [second for second in self._seconds if second < oldest_s]:
            del self._seconds[second]

    def _add(
        self, second: int, records: Records, times_us: NDArray[np.uint32], failures: NDArray[np.bool_]
    ) -> None:
        there = self._seconds.setdefault(second, _Second())
        there.done += len(records)
        there.failed += int(failures.sum())
        measured = (records["flags"] & WARMUP) == 0
        counted = times_us[measured]
        if len(counted):
            there.slowest_us = max(there.slowest_us, int(counted.max()))
            there.latencies.append(np.unique(bin_of(counted), return_counts=True))
        on_time = (records["flags"] & QUEUED) == 0
        if on_time.any():
            there.lag_us = max(there.lag_us, int(records["lag_us"][on_time].max()))

    def points(self, from_s: int, until_s: int) -> Iterator[Point]:
        """Yield the seconds from `from_s` to before `until_s`; also those in which nothing ended."""
        bins, count = np.zeros(BINS, dtype=np.int64), 0
        first_s = max(from_s, until_s - KEPT_S, 0)
        for second in range(first_s - TAIL_S, until_s):
            count += self._count(bins, second, 1)
            count -= self._count(bins, second - TAIL_S, -1) if second - TAIL_S >= first_s - TAIL_S else 0
            if second >= first_s:
                yield self._point(second, p999_bin(bins, count))

    def _count(self, bins: NDArray[np.int64], second: int, sign: int) -> int:
        added = 0
        if second in self._seconds:
            for numbers, counts in self._seconds[second].latencies:
                bins[numbers] += sign * counts
                added += int(counts.sum())
        return added

    def _point(self, second: int, p999: int | None) -> Point:
        there = self._seconds.get(second, _Second())
        return Point(
            t_s=second,
            done=there.done,
            failed=there.failed,
            slowest_ms=_ms(there.slowest_us),
            p999_ms=None if p999 is None or p999 == NEVER_BIN else upper_us(p999) / 1000,
            lag_ms=_ms(there.lag_us),
        )


def _ms(value_us: int) -> float | None:
    return None if value_us in (-1, NEVER_US) else value_us / 1000
