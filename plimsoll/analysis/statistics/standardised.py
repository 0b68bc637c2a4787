"""Weeks before and weeks after, standardised: as if both had had the same requests at the same hours.

More visitors at night, or more images, move p99.9 though the server is as it was. So requests are put into
cells of an hour of the week and a route, and each cell has the same weight on both sides: that of its
requests on both together (direct standardisation: Fleiss, Levin and Paik, Statistical Methods for Rates and
Proportions, 3rd ed., 2003, ch. 19). A quantile is then a weighted order statistic: the smallest time at or
below which a share q of the weight lies. Cells that a side has too few requests of are left out.

Days are the blocks of the bootstrap (Davison and Hinkley, Bootstrap Methods and their Application, 1997,
8.2): requests of a day are not independent, days nearly are. Workdays are drawn from workdays, weekends
from weekends. Intervals are percentiles of the replicates: approximate, and too narrow where days are few.
Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.sample import MILLION, PERCENTILES, fewest
from plimsoll.analysis.statistics.times import Microseconds

LEAST_IN_CELL = 10  # requests a side: one request that stands for a thousand would be the tail by itself
REPLICATES = 1000
_SEED = 20_090_601
_BINS_A_FACTOR_E = 1000  # of the bootstrap: a thousandth of a factor e, 0.1 %
_BINS = 23 * _BINS_A_FACTOR_E  # up to 2³² µs
_DAYS_A_WEEK = 7

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class ServedRequests:
    """Requests of one side, shape (n,) each.

    `took_us` is the time as it counts, `cell` a number that is the same on both sides, `day` counts from
    1970-01-01.
    """

    took_us: Microseconds
    failed: NDArray[np.bool_]
    cell: Integers
    day: Integers

    @cached_property
    def days(self) -> Integers:
        """The days that have requests, sorted."""
        return np.unique(self.day)


@dataclass(frozen=True)
class StandardSide:
    """One side's figures: the share of its requests that count, its effective number, quantiles in ms.

    `effective` is Kish's (Survey Sampling, 1965): so many requests of equal weight would say as much. A
    quantile is None where that is too few, or where it is a failure's.
    """

    requests: int
    days: int
    kept_share: float
    effective: float
    failed_share: float
    quantiles_ms: dict[str, float | None]


@dataclass(frozen=True)
class Ratio:
    """A quantile after over before, and one-sided limits; None where they cannot be given."""

    estimate: float | None
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class Standardised:
    """Both sides over one mix of `cells`, and the ratios of their quantiles."""

    before: StandardSide
    after: StandardSide
    cells: int
    ratios: dict[str, Ratio]


def standardise(
    before: ServedRequests, after: ServedRequests, wanted: Sequence[str], alpha: float
) -> Standardised:
    """Return the quantiles `wanted` of both sides over one mix, and ratios with limits at 1 − `alpha`."""
    mix = _Mix.of(before, after)
    sides = (_Weighted.of(before, mix), _Weighted.of(after, mix))
    one, other = (side.figures(wanted) for side in sides)
    estimates = {name: _over(one.quantiles_ms[name], other.quantiles_ms[name]) for name in wanted}
    known = {name: PERCENTILES[name] for name, value in estimates.items() if value is not None}
    limits = _limits(sides, mix, known, alpha) if known else {}
    ratios = {name: Ratio(value, *limits.get(name, (None, None))) for name, value in estimates.items()}
    return Standardised(one, other, len(mix.cells), ratios)


@dataclass(frozen=True)
class _Mix:
    """The cells of both sides, sorted, and the weight of each."""

    cells: Integers
    weights: Floats

    @classmethod
    def of(cls, before: ServedRequests, after: ServedRequests) -> "_Mix":
        counts = [np.unique(side.cell, return_counts=True) for side in (before, after)]
        enough = [cells[number >= LEAST_IN_CELL] for cells, number in counts]
        cells = np.intersect1d(enough[0], enough[1], assume_unique=True)
        weights = np.zeros(len(cells))
        for there, number in counts:
            weights += number[np.searchsorted(there, cells)] if len(cells) else 0.0
        return cls(cells, weights)


@dataclass(frozen=True)
class _Weighted:
    """The requests of one side that are in the mix: place of their cell and day, and all that is known."""

    side: ServedRequests
    mix: _Mix
    took_us: Microseconds
    failed: NDArray[np.bool_]
    cell: Integers
    day: Integers

    @classmethod
    def of(cls, side: ServedRequests, mix: _Mix) -> "_Weighted":
        at = np.minimum(np.searchsorted(mix.cells, side.cell), max(len(mix.cells) - 1, 0))
        kept = mix.cells[at] == side.cell if len(mix.cells) else np.zeros(len(side.cell), dtype=bool)
        days = np.searchsorted(side.days, side.day[kept])
        return cls(side, mix, side.took_us[kept], side.failed[kept], at[kept], days)

    def figures(self, wanted: Sequence[str]) -> StandardSide:
        counts = np.bincount(self.cell, minlength=len(self.mix.cells))
        weights = (self.mix.weights / np.maximum(counts, 1))[self.cell]
        whole, squares = float(weights.sum()), float((weights**2).sum())
        effective = whole * whole / squares if squares else 0.0
        failed_from = int(self.took_us[self.failed].min()) if self.failed.any() else None
        return StandardSide(
            requests=len(self.side.cell),
            days=len(self.side.days),
            kept_share=len(self.cell) / max(len(self.side.cell), 1),
            effective=effective,
            failed_share=float(weights[self.failed].sum()) / whole if whole else 0.0,
            quantiles_ms=weighted_quantiles_ms(self.took_us, weights, wanted, effective, failed_from),
        )

    def table(self) -> "_Table":
        """Return the number of the requests that are alike, by place and bin, and by place alone.

        Failures are slower than all: a limit that is theirs is no limit.
        """
        bins = np.minimum(np.log(np.maximum(self.took_us, 1)) * _BINS_A_FACTOR_E, _BINS - 1).astype(np.int64)
        cells = max(len(self.mix.cells), 1)
        bins[self.failed] = _BINS - 1
        places = self.day * cells + self.cell
        key, number = np.unique(places * _BINS + bins, return_counts=True)
        place, bins = np.divmod(key, _BINS)
        days = len(self.side.days)
        there = np.bincount(places, minlength=days * cells).reshape(days, cells).astype(np.float64)
        return _Table(place, bins, number.astype(np.float64), there)


@dataclass(frozen=True)
class _Table:
    """Place (day × cells + cell), bin and number of requests; and their number, shape (days, cells)."""

    place: Integers
    bins: Integers
    number: Floats
    there: Floats


def weighted_quantiles_ms(
    took_us: Microseconds, weights: Floats, wanted: Sequence[str], effective: float, failed_from: int | None
) -> dict[str, float | None]:
    """Return the quantiles `wanted`; None of too few requests, and where it is a failure's.

    `took_us` and `weights` have shape (n,); of requests that are alike together, the weight is that of all.
    """
    order = np.argsort(took_us, kind="stable")
    below = np.cumsum(weights[order])
    found: dict[str, float | None] = {}
    for name in wanted:
        found[name] = None
        if effective >= fewest(PERCENTILES[name]):
            at = int(np.searchsorted(below, PERCENTILES[name] / MILLION * below[-1] * (1 - 1e-12)))
            value = int(took_us[order[at]])
            found[name] = value / 1000 if failed_from is None or value < failed_from else None
    return found


def _over(before_ms: float | None, after_ms: float | None) -> float | None:
    return after_ms / before_ms if before_ms and after_ms is not None else None


def _limits(
    sides: tuple[_Weighted, _Weighted], mix: _Mix, wanted: Mapping[str, int], alpha: float
) -> dict[str, tuple[float, float]]:
    """Return the one-sided limits of each ratio: percentiles of the replicates."""
    random = np.random.default_rng(_SEED)
    tables = [side.table() for side in sides]
    drawn = {name: np.zeros(REPLICATES) for name in wanted}
    for replicate in range(REPLICATES):
        times = [_times_drawn(side.side.days, random) for side in sides]
        factors = _factors(tables, times, mix)
        for sign, table, factor in zip((-1, 1), tables, factors, strict=True):
            weights = table.number * factor.ravel()[table.place]
            below = np.cumsum(np.bincount(table.bins, weights=weights, minlength=_BINS))
            for name, ppm in wanted.items():
                at = np.searchsorted(below, ppm / MILLION * below[-1] * (1 - 1e-12))
                drawn[name][replicate] += sign * float(at) / _BINS_A_FACTOR_E
    quantiles = {name: np.quantile(logs, [alpha, 1 - alpha], method="hazen") for name, logs in drawn.items()}
    return {name: (float(np.exp(low)), float(np.exp(high))) for name, (low, high) in quantiles.items()}


def _times_drawn(days: Integers, random: np.random.Generator) -> Floats:
    """Return how often each day is drawn: as many workdays as there are from workdays, and so weekends."""
    times = np.zeros(len(days))
    weekend = (days + 3) % _DAYS_A_WEEK >= 5  # 1970-01-01 was a Thursday
    for kind in (weekend, ~weekend):
        there = np.flatnonzero(kind)
        if len(there):
            np.add.at(times, random.choice(there, len(there)), 1)
    return times


def _factors(tables: Sequence[_Table], times: Sequence[Floats], mix: _Mix) -> list[Floats]:
    """Return the weight of one request by day and cell, shape (days, cells), a side.

    A cell that a side has none of this time is left out on both.
    """
    counts = [drawn @ table.there for table, drawn in zip(tables, times, strict=True)]
    there = (counts[0] > 0) & (counts[1] > 0)
    return [
        drawn[:, None] * np.where(there, mix.weights / np.maximum(number, 1e-9), 0.0)
        for number, drawn in zip(counts, times, strict=True)
    ]
