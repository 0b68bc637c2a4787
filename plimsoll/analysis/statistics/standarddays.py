"""A day of production against the same hours of reference weeks, over their mix of requests.

Requests are in cells of an hour of the week and a route. A day stands against the other days of the
reference that are the same day of the week: over the cells that both have, each with the weight that it has
there (direct standardisation, as in standardised.py). The ratio of both quantiles, times the quantile of the
whole reference, is the day's value: what it would have been if the day had had the reference's requests. So
neither busier hours, nor more images, nor Sundays move it. A day of the reference stands against the others:
against itself it would be as fast by construction. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.coarseness import COARSE
from plimsoll.analysis.statistics.localhours import WEEK_HOURS, weekday
from plimsoll.analysis.statistics.sample import PERCENTILES, fewest
from plimsoll.analysis.statistics.served import Integers, Served
from plimsoll.analysis.statistics.standardised import LEAST_IN_CELL, Floats, weighted_quantiles_ms

LEAST_KEPT = 0.8  # of the requests of either side: of fewer, the mix is another site's
QUANTILES = ("p50", "p90", "p95", "p99", "p99.9")
_ROUTE_BITS = 32


@dataclass(frozen=True)
class ServedDay:
    """The requests of one day, whose hours are local ones; `day` counts from 1970-01-01."""

    day: int
    served: Served

    @cached_property
    def cells(self) -> Integers:
        """The cell of each: its hour of the week, and its route."""
        return (self.served.hour % WEEK_HOURS << _ROUTE_BITS) | self.served.route


@dataclass(frozen=True)
class DayFigures:
    """A day's values in ms by quantile, None where there is none. Those in `failures` are failures'.

    `why` says why the day is no evidence; empty where there are too few requests, or days of the reference.
    """

    quantiles_ms: dict[str, float | None]
    failures: frozenset[str] = frozenset()
    why: str = ""


@dataclass(frozen=True)
class _Quantiles:
    """Quantiles of weighted requests in ms; `failures` has those that are failures'."""

    ms: dict[str, float | None]
    failures: frozenset[str]

    @classmethod
    def of(cls, served: Served, weights: Floats) -> "_Quantiles":
        """Return those of `served`, where each request has the weight of its place."""
        whole, squares = float(served.number @ weights), float(served.number @ weights**2)
        effective = whole * whole / squares if squares else 0.0
        failed_from = int(served.took_us[served.failed].min()) if served.failed.any() else None
        totals = served.number * weights
        ms = weighted_quantiles_ms(served.took_us, totals, QUANTILES, effective, failed_from)
        enough = [name for name in QUANTILES if effective >= fewest(PERCENTILES[name])]
        return cls(ms, frozenset(name for name in enough if ms[name] is None))


class Reference:
    """The days that give the mix and the level. `finest_us` is what all durations are multiples of."""

    def __init__(self, days: Sequence[ServedDay], finest_us: float = 1.0) -> None:
        self._days, self._finest_us = days, finest_us
        self._level = _Quantiles(dict.fromkeys(QUANTILES), frozenset())
        if days:
            whole = Served.joined([each.served for each in days])
            self._level = _Quantiles.of(whole, np.ones(len(whole.number)))

    def figures(self, day: ServedDay) -> DayFigures:
        """Return the values of `day`."""
        none: dict[str, float | None] = dict.fromkeys(QUANTILES)
        others = [each for each in self._days if each.day != day.day and _same_weekday(each, day)]
        if not others:
            return DayFigures(none)  # it is early yet, and nothing is wrong with the day
        then, now = _Cells(others), _Cells([day])
        common = np.intersect1d(then.enough, now.enough, assume_unique=True)
        for whose, cells in (("its requests", now), ("the requests of the reference weeks", then)):
            kept = cells.share(common)
            if kept < LEAST_KEPT:
                return DayFigures(none, why=_unlike(whose, kept))
        weights = then.numbers(common) / now.numbers(common)
        return self._figures(now.quantiles(common, weights), then.quantiles(common, np.ones(len(common))))

    def _figures(self, now: _Quantiles, then: _Quantiles) -> DayFigures:
        values: dict[str, float | None] = dict.fromkeys(QUANTILES)
        coarse = False
        for name in QUANTILES:
            one, other, level = now.ms[name], then.ms[name], self._level.ms[name]
            if one is not None and other and level is not None:
                if min(one, other) * 1000 < COARSE * self._finest_us:
                    coarse = True
                else:
                    values[name] = one / other * level
        why = ""
        if coarse and not any(values.values()):
            why = f"its log has durations of {self._finest_us / 1e6:g} s, too coarse for times as short"
        return DayFigures(values, now.failures, why)


class _Cells:
    """The requests of some days, by cell."""

    def __init__(self, days: Sequence[ServedDay]) -> None:
        self._served = Served.joined([each.served for each in days])
        self._cells, place = np.unique(np.concatenate([each.cells for each in days]), return_inverse=True)
        self._place: NDArray[np.intp] = place
        self._numbers: Floats = np.bincount(place, self._served.number, len(self._cells)).astype(np.float64)

    @property
    def enough(self) -> Integers:
        """The cells that have enough requests, sorted."""
        return self._cells[self._numbers >= LEAST_IN_CELL]

    def numbers(self, cells: Integers) -> Floats:
        """Return how many requests each of `cells`, which are there, has."""
        return self._numbers[np.searchsorted(self._cells, cells)]

    def share(self, cells: Integers) -> float:
        """Return the share of the requests that is in `cells`."""
        return float(self.numbers(cells).sum() / self._numbers.sum())

    def quantiles(self, cells: Integers, weights: Floats) -> _Quantiles:
        """Return the quantiles over `cells`, of which each request has the cell's weight."""
        weight = np.zeros(len(self._cells))
        weight[np.searchsorted(self._cells, cells)] = weights
        each = weight[self._place]
        return _Quantiles.of(self._served.at(each > 0), each[each > 0])


def _same_weekday(one: ServedDay, other: ServedDay) -> bool:
    return weekday(one.day) == weekday(other.day)


def _unlike(whose: str, kept: float) -> str:
    return (
        f"only {100 * kept:.0f} % of {whose} have their like (hour of the week and route) on the other side, "
        f"and a figure takes {100 * LEAST_KEPT:.0f} %"
    )
