"""Exact order statistics of a set of times."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plimsoll.analysis.statistics.figures import TimeFigures
from plimsoll.analysis.statistics.times import NEVER_US, NONE_FAILED, FailedTimes, Microseconds, Times

MILLION = 1_000_000
# Percentiles in millionths, since 0.999 is no number that a computer holds exactly.
PERCENTILES = {
    "p50": 500_000,
    "p90": 900_000,
    "p95": 950_000,
    "p99": 990_000,
    "p99.9": 999_000,
    "p99.99": 999_900,
}
P99, P999 = PERCENTILES["p99"], PERCENTILES["p99.9"]
_SLICE = 1 << 20
_CURVE_POINTS = 240


def rank(ppm: int, n: int) -> int | None:
    """Return the nearest rank ⌈q·n⌉ (from 1) of percentile q = `ppm`/10⁶ among `n` values.

    None where n < 1/(1−q): the percentile would be no more than the largest value under another name.
    """
    if n * (MILLION - ppm) < MILLION:
        return None
    return -(-n * ppm // MILLION)


def fewest(ppm: int) -> int:
    """Return the smallest n for which the percentile is given: ⌈1/(1−q)⌉."""
    return -(-MILLION // (MILLION - ppm))


class OrderStatistics(ABC):
    """Figures of a set of times: exact order statistics, a mean, a standard deviation.

    Order statistics from `failed.from_us` on are lower bounds, and no figures. The mean counts failures at
    their time-outs; it is None where one is not known.
    """

    n: int
    failed: FailedTimes
    mean_ms: float | None
    stddev_ms: float | None

    @abstractmethod
    def at(self, position: int) -> int:
        """Return the value of rank `position` (from 1 to n), in microseconds."""

    def exact_ms(self, position: int) -> float | None:
        """Return the value of rank `position`; None where a failure is at or below it."""
        return TimeFigures.of({"": self.at(position)}, self.failed.from_us)[""]

    def percentile_ms(self, ppm: int) -> float | None:
        """Return the order statistic of rank ⌈q·n⌉, q = `ppm`/10⁶.

        None where n < 1/(1−q), and where a failure is at or below that rank. Hyndman and Fan's definition 1
        (The American Statistician 50, 1996), numpy's `inverted_cdf`.
        """
        position = rank(ppm, self.n)
        return None if position is None else self.exact_ms(position)

    @property
    def min_ms(self) -> float | None:
        """The smallest."""
        return self.exact_ms(1) if self.n else None

    @property
    def max_ms(self) -> float | None:
        """The largest."""
        return self.exact_ms(self.n) if self.n else None

    def percentiles(self, wanted: Mapping[str, int]) -> TimeFigures:
        """Return the percentiles that are `wanted`: millionths by name."""
        return self._of_ranks({name: rank(ppm, self.n) for name, ppm in wanted.items()})

    def tail(self) -> TimeFigures:
        """Return all percentiles and the largest, as `max`."""
        return self._of_ranks(self._tail())

    def figures(self) -> TimeFigures:
        """Return mean, stddev, min, the percentiles and max, under the names that summary.json uses."""
        ordered = self._of_ranks({"min": 1 if self.n else None} | self._tail())
        moments = {"mean": self.mean_ms, "stddev": self.stddev_ms}
        # most of it would be the time-out
        no_moments = frozenset(moments if 2 * self.failed.wrong > self.n else ())
        return TimeFigures(moments | ordered.ms, ordered.censored, ordered.wrong | no_moments)

    def _tail(self) -> dict[str, int | None]:
        return {name: rank(ppm, self.n) for name, ppm in PERCENTILES.items()} | {"max": self.n or None}

    def _of_ranks(self, ranks: Mapping[str, int | None]) -> TimeFigures:
        return TimeFigures.of_ranks(ranks, self.at, self.n, self.failed)

    def figures_ms(self) -> dict[str, float | None]:
        """Return the figures alone; one that is censored is None."""
        return self.figures().ms

    def curve(self) -> list[tuple[float, float]]:
        """Return the percentile curve as (1/(1−q), milliseconds), at most 240 points, even on a log scale.

        Each point is an order statistic: the k-th largest of n stands at n/k, so the largest ends the curve
        at n. The abscissa reads "one request in …". Failures stand at their time-outs; those of which none is
        known are left out.
        """
        ranked = ((self.n / k, self.at(self.n - k + 1)) for k in _curve_of(self.n))
        known = not self.failed.number
        return [(one_in, us / 1000) for one_in, us in ranked if known or us != NEVER_US]


@dataclass(frozen=True)
class Sample(OrderStatistics):
    """Times in microseconds, sorted, shape (n,)."""

    sorted_us: Microseconds
    failed: FailedTimes = NONE_FAILED

    @classmethod
    def of(cls, values_us: Microseconds) -> "Sample":
        """Make a sample of `values_us`, in any order. The array is sorted in place and kept."""
        values_us.sort()
        return cls(values_us)

    @classmethod
    def of_times(cls, times: Times) -> "Sample":
        """Make a sample of `times`. Their array is sorted in place and kept."""
        times.values_us.sort()
        return cls(times.values_us, times.failed)

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of times."""
        return len(self.sorted_us)

    @cached_property
    def all_known(self) -> bool:
        """Whether every time is known, or at least a time-out."""
        if not self.failed.number:
            return True
        at = int(np.searchsorted(self.sorted_us, NEVER_US))
        return at == self.n or self.at(at + 1) != NEVER_US

    @cached_property
    def mean_ms(self) -> float | None:  # type: ignore[override]
        """The mean, from the exact sum."""
        if not self.n or not self.all_known:
            return None
        return int(self.sorted_us.sum(dtype=np.uint64)) / self.n / 1000

    @cached_property
    def stddev_ms(self) -> float | None:  # type: ignore[override]
        """The population's standard deviation: √(Σ(x−mean)²/n)."""
        if self.mean_ms is None:
            return None
        mean_us, squares = self.mean_ms * 1000, 0.0
        for start in range(0, self.n, _SLICE):  # a whole copy in 64-bit floats would be twice the sample
            squares += float(np.square(self.sorted_us[start : start + _SLICE] - mean_us).sum())
        return math.sqrt(squares / self.n) / 1000

    def at(self, position: int) -> int:
        """Return the value of rank `position` (from 1 to n), in microseconds."""
        return int(self.sorted_us[position - 1])

    def condensed(self) -> "Condensed":
        """Return the same figures without the times."""
        wanted = {position for ppm in PERCENTILES.values() if (position := rank(ppm, self.n))}
        wanted |= {self.n - k + 1 for k in _curve_of(self.n)}
        if self.n:
            wanted |= {1, self.n}
        ranked_us = {each: self.at(each) for each in wanted}
        return Condensed(self.n, self.mean_ms, self.stddev_ms, ranked_us, self.failed)


@dataclass(frozen=True)
class Condensed(OrderStatistics):
    """The figures of a sample that a report shows, a few hundred numbers however many times it had.

    `ranked_us` holds the order statistics, by rank, that the percentiles and the curve are made of.
    """

    n: int
    mean_ms: float | None
    stddev_ms: float | None
    ranked_us: dict[int, int]
    failed: FailedTimes = NONE_FAILED

    def at(self, position: int) -> int:
        """Return the value of rank `position`, in microseconds. Raises KeyError for one that was not kept."""
        return self.ranked_us[position]


def _curve_of(n: int) -> list[int]:
    """Return which of `n` values a curve shows, counted from the largest, which is 1 and comes last."""
    return np.unique(np.rint(np.geomspace(1, n, _CURVE_POINTS)).astype(np.int64))[::-1].tolist() if n else []
