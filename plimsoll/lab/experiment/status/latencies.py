"""The p99.9 of a run so far, in bounded memory: for a look at it. Results are exact order statistics."""

import math

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.percentiles import NEVER_US, Microseconds

FEWEST = 1000  # requests for a p99.9
_FINE = 10  # bits that are kept of a time: it is shown at most 0.2 % too long
BINS = (33 - _FINE + 1) << (_FINE - 1)


class Latencies:
    """Counts response times in bins whose widths grow with the times."""

    def __init__(self) -> None:
        self.count = 0
        self._bins: NDArray[np.int64] = np.zeros(BINS, dtype=np.int64)

    def add(self, times_us: Microseconds) -> None:
        """Add times as they count, shape (n,)."""
        self.count += len(times_us)
        self._bins += np.bincount(bin_of(times_us), minlength=BINS)

    def p999_ms(self) -> float | None:
        """Return the p99.9; None of too few requests, or where it is a failure that has no time."""
        found = p999_bin(self._bins, self.count)
        return None if found is None or found == NEVER_BIN else upper_us(found) / 1000


def p999_bin(bins: NDArray[np.int64], count: int) -> int | None:
    """Return the bin of the p99.9 of `count` times; None of too few. Pure."""
    if count < FEWEST:
        return None
    return int(np.searchsorted(np.cumsum(bins), math.ceil(count * 0.999 - 1e-9)))


def bin_of(times_us: Microseconds) -> NDArray[np.int64]:
    """Return the number of the bin of each time; the times below 1024 µs have one each. Pure."""
    whole = times_us.astype(np.int64)
    shift = np.maximum(np.frexp(whole.astype(np.float64))[1].astype(np.int64) - _FINE, 0)
    return (shift << (_FINE - 1)) + (whole >> shift)


def upper_us(number: int) -> int:
    """Return the longest time that bin `number` holds. Pure."""
    shift = max((number >> (_FINE - 1)) - 1, 0)
    return ((number - (shift << (_FINE - 1)) + 1) << shift) - 1


NEVER_BIN = int(bin_of(np.array([NEVER_US], dtype=np.uint32))[0])
