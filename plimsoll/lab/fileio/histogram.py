"""sysbench's latency histogram: 1,024 buckets between 1 µs and 100 s, evenly on a logarithmic scale.

Bucket i stands for the times around `exp(ln(0.001) + i × step)` ms, half a step to each side, so a figure
from it is off by at most 0.91 %, and by what its three printed decimals leave out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_BUCKETS = 1024
_LEAST_MS, _MOST_MS = 1e-3, 1e5
_HALF_STEP = math.log(_MOST_MS / _LEAST_MS) / (_BUCKETS - 1) / 2
_PRINTED_MS = 0.0005
_FEWEST = 1000  # events that p99.9 is given for


@dataclass(frozen=True)
class Bucket:
    """A line of the histogram."""

    value_ms: float
    count: int


@dataclass(frozen=True)
class Percentile:
    """A percentile; the true order statistic lies between `low_ms` and `high_ms`, both included."""

    value_ms: float
    low_ms: float
    high_ms: float


def p999(buckets: Sequence[Bucket], max_ms: float) -> Percentile | None:
    """Return the 99.9th percentile: that of the event of rank ⌈0.999 n⌉; None under 1,000 events.

    `max_ms` is the longest time, rounded to two decimals as sysbench prints it: no bucket reaches beyond it.
    """
    total = sum(bucket.count for bucket in buckets)
    if total < _FEWEST:
        return None
    rank = (999 * total + 999) // 1000
    seen = 0
    for bucket in buckets:
        seen += bucket.count
        if seen >= rank:
            return _around(bucket.value_ms, max_ms + 0.005)
    return None  # not reached: the last bucket holds the last rank


def _around(value_ms: float, max_ms: float) -> Percentile:
    low_ms = (value_ms - _PRINTED_MS) * math.exp(-_HALF_STEP)
    high_ms = (value_ms + _PRINTED_MS) * math.exp(_HALF_STEP)
    if value_ms <= _LEAST_MS + _PRINTED_MS:
        low_ms = 0.0  # the first bucket holds all that was faster
    high_ms = max_ms if value_ms >= _MOST_MS - 1 else min(high_ms, max_ms)  # the last, all that was slower
    return Percentile(value_ms, min(low_ms, value_ms), max(high_ms, value_ms))
