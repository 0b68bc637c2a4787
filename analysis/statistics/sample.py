"""Exact order statistics of a set of times."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Microseconds = NDArray[np.unsignedinteger[Any]]

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


def narrow(values: NDArray[Any]) -> Microseconds:
    """Return whole, not negative `values` as 32-bit integers if they all fit, else as 64-bit."""
    fits = not len(values) or int(values.max()) <= 0xFFFF_FFFF
    return values.astype(np.uint32 if fits else np.uint64)


class OrderStatistics(ABC):
    """Figures of a set of times: exact order statistics, a mean, a standard deviation."""

    n: int
    mean_ms: float | None
    stddev_ms: float | None

    @abstractmethod
    def at(self, position: int) -> int:
        """Return the value of rank `position` (from 1 to n), in microseconds."""

    def percentile_ms(self, ppm: int) -> float | None:
        """Return the order statistic of rank ⌈q·n⌉, q = `ppm`/10⁶; None where n < 1/(1−q).

        Hyndman and Fan's definition 1 (The American Statistician 50, 1996), numpy's `inverted_cdf`.
        """
        position = rank(ppm, self.n)
        return None if position is None else self.at(position) / 1000

    @property
    def min_ms(self) -> float | None:
        """The smallest."""
        return self.at(1) / 1000 if self.n else None

    @property
    def max_ms(self) -> float | None:
        """The largest."""
        return self.at(self.n) / 1000 if self.n else None

    def figures_ms(self) -> dict[str, float | None]:
        """Return mean, stddev, min, the percentiles and max, under the names that summary.json uses."""
        percentiles = {name: self.percentile_ms(ppm) for name, ppm in PERCENTILES.items()}
        return {
            "mean": self.mean_ms,
            "stddev": self.stddev_ms,
            "min": self.min_ms,
            **percentiles,
            "max": self.max_ms,
        }

    def curve(self) -> list[tuple[float, float]]:
        """Return the percentile curve as (1/(1−q), milliseconds), at most 240 points, even on a log scale.

        Each point is an order statistic: the k-th largest of n stands at n/k, so the largest ends the curve
        at n. The abscissa reads "one request in …".
        """
        return [(self.n / k, self.at(self.n - k + 1) / 1000) for k in _curve_of(self.n)]


@dataclass(frozen=True)
class Sample(OrderStatistics):
    """Times in microseconds, sorted, shape (n,)."""

    sorted_us: Microseconds

    @classmethod
    def of(cls, values_us: Microseconds) -> "Sample":
        """Make a sample of `values_us`, in any order. The array is sorted in place and kept."""
        values_us.sort()
        return cls(values_us)

    @property
    def n(self) -> int:  # type: ignore[override]
        """The number of times."""
        return len(self.sorted_us)

    @cached_property
    def mean_ms(self) -> float | None:  # type: ignore[override]
        """The mean, from the exact sum."""
        return int(self.sorted_us.sum(dtype=np.uint64)) / self.n / 1000 if self.n else None

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
        return Condensed(self.n, self.mean_ms, self.stddev_ms, {each: self.at(each) for each in wanted})


@dataclass(frozen=True)
class Condensed(OrderStatistics):
    """The figures of a sample that a report shows, a few hundred numbers however many times it had.

    `ranked_us` holds the order statistics, by rank, that the percentiles and the curve are made of.
    """

    n: int
    mean_ms: float | None
    stddev_ms: float | None
    ranked_us: dict[int, int]

    def at(self, position: int) -> int:
        """Return the value of rank `position`, in microseconds. Raises KeyError for one that was not kept."""
        return self.ranked_us[position]


def _curve_of(n: int) -> list[int]:
    """Return which of `n` values a curve shows, counted from the largest, which is 1 and comes last."""
    return np.unique(np.rint(np.geomspace(1, n, _CURVE_POINTS)).astype(np.int64))[::-1].tolist() if n else []
