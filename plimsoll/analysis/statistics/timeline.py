"""A run cut into at most a thousand equal slices of time, whatever its length."""

import math
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.groups import Groups
from plimsoll.analysis.statistics.times import NEVER_US, Microseconds

Counts = NDArray[np.int64]

MOST_BINS = 1000
HEAT_PER_DECADE = 12
HEAT_ROWS = 10 * HEAT_PER_DECADE  # 1 µs to 10⁴ s
NARROWEST_NS = 100_000_000
# Each width is a multiple of the last, so that slices fold into wider ones without the records:
# 0.1 s, 0.2 s, 1, 2, 10, 20, 60 s, 2 min, 10, 20, 60 min, then twice as wide each time.
FACTORS = (2, 5, 2, 5, 2, 3, 2, 5, 2, 3)


class Timeline:
    """The run by slices of time. Slices start narrow and fold into wider ones as the run proves longer.

    `due`, `failed` and `done` count requests by their due instant and by the instant of their end, `wrong`
    the wrong answers among `failed` that came in time; `slowest_us` and `latest_us` are the largest response
    time and lag of those due in the slice, `NEVER_US` where a failure has no time-out that is known;
    `heat[slice, row]` counts response times, row r from 10^(r/12) µs, without such failures.
    """

    def __init__(self) -> None:
        self.width_ns = NARROWEST_NS
        self.used = 0
        self.due: Counts = np.zeros(MOST_BINS, dtype=np.int64)
        self.done: Counts = np.zeros(MOST_BINS, dtype=np.int64)
        self.failed: Counts = np.zeros(MOST_BINS, dtype=np.int64)
        self.wrong: Counts = np.zeros(MOST_BINS, dtype=np.int64)
        self.slowest_us: NDArray[np.uint64] = np.zeros(MOST_BINS, dtype=np.uint64)
        self.latest_us: NDArray[np.uint64] = np.zeros(MOST_BINS, dtype=np.uint64)
        self.heat: Counts = np.zeros((MOST_BINS, HEAT_ROWS), dtype=np.int64)
        self.response = Groups()
        self.lag = Groups()
        self._factors = chain(FACTORS, repeat(2))

    @property
    def width_s(self) -> float:
        """Seconds that one slice lasts."""
        return self.width_ns / 1e9

    def add(
        self,
        due_ns: NDArray[np.int64],
        took_us: Microseconds,
        response_us: Microseconds,
        lag_us: Microseconds,
        queued: NDArray[np.bool_],
        failed: NDArray[np.bool_],
        wrong: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add a block of requests; all arrays have shape (n,), n > 0. Lag counts where not `queued`.

        They ended after `took_us`; `response_us` is that as it counts, of a failure its time-out. `wrong` are
        those of `failed` that are wrong answers, and came in time.
        """
        done_ns = due_ns + took_us.astype(np.int64) * 1000
        last_ns = int(done_ns.max())
        while last_ns // self.width_ns >= MOST_BINS:
            self._fold(next(self._factors))
        self.used = max(self.used, last_ns // self.width_ns + 1)
        slot = due_ns // self.width_ns
        self.due += np.bincount(slot, minlength=MOST_BINS)
        self.done += np.bincount(done_ns // self.width_ns, minlength=MOST_BINS)
        self.failed += np.bincount(slot[failed], minlength=MOST_BINS)
        if wrong is not None and wrong.any():
            self.wrong += np.bincount(slot[wrong], minlength=MOST_BINS)
        np.maximum.at(self.slowest_us, slot, response_us.astype(np.uint64))
        cells = slot * HEAT_ROWS + _heat_row(response_us)
        if failed.any():
            cells = cells[~failed | (response_us != NEVER_US)]
        self.heat += np.bincount(cells, minlength=MOST_BINS * HEAT_ROWS).reshape(self.heat.shape)
        self.response.add(slot, response_us, failed, wrong)
        if queued.any():
            slot, lag_us = slot[~queued], lag_us[~queued]
        np.maximum.at(self.latest_us, slot, lag_us.astype(np.uint64))
        self.lag.add(slot, lag_us)

    def forget_times(self) -> None:
        """Give up the single response times and lags, which take eight bytes a request; counts stay."""
        self.response, self.lag = Groups(), Groups()

    def _fold(self, factor: int) -> None:
        self.width_ns *= factor
        self.used = -(-self.used // factor)
        self.due, self.done, self.failed, self.wrong, self.heat = (
            _folded(values, factor, np.add)
            for values in (self.due, self.done, self.failed, self.wrong, self.heat)
        )
        self.slowest_us = _folded(self.slowest_us, factor, np.maximum)
        self.latest_us = _folded(self.latest_us, factor, np.maximum)
        self.response.fold(factor)
        self.lag.fold(factor)


def heat_edge_ms(row: int) -> float:
    """Return where row `row` of the heat map begins: 10^(row/12) µs, in milliseconds."""
    return math.pow(10, row / HEAT_PER_DECADE) / 1000


def _heat_row(response_us: Microseconds) -> NDArray[np.int64]:
    # 32-bit floats are precise to a thousandth of a row, and twice as fast
    rows = np.log10(np.maximum(response_us, 1).astype(np.float32)) * np.float32(HEAT_PER_DECADE)
    return np.minimum(rows.astype(np.int64), HEAT_ROWS - 1)


def _folded(values: NDArray[Any], factor: int, join: np.ufunc) -> NDArray[Any]:
    folded = join.reduceat(values, np.arange(0, len(values), factor), axis=0)
    result = np.zeros_like(values)
    result[: len(folded)] = folded
    return result
