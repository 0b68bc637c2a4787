"""Production's own logs: weeks and days held against others over one mix of requests. Pure.

More visitors at night, or more images, move p99.9 though the server is as it was. So requests are put into
cells of an hour of the week and a route, and each cell has one weight on both sides (direct standardisation:
Fleiss, Levin and Paik, Statistical Methods for Rates and Proportions, 3rd ed., 2003, ch. 19). A quantile is
then a weighted order statistic: the smallest time at or below which a share q of the weight lies. Cells of
which a side has too few requests are left out.

Weeks before and weeks after (`standardise`): the weight of a cell is that of its requests on both sides
together. Days are the blocks of the bootstrap (Davison and Hinkley, Bootstrap Methods and their Application,
1997, 8.2): requests of a day are not independent, days nearly are. Workdays are drawn from workdays, weekends
from weekends. Intervals are percentiles of the replicates: approximate, and too narrow where days are few.

A day against reference weeks (`Reference`): it stands against the other days of the reference that are the
same day of the week, over the cells that both have, each with the weight that it has there. The ratio of both
quantiles, times the quantile of the whole reference, is the day's value: what it would have been if the day
had had the reference's requests. So neither busier hours, nor more images, nor Sundays move it. A day of the
reference stands against the others: against itself it would be as fast by construction.

What is kept of a log (`Served`): every time to the microsecond, and how often it came, hour by hour. Packed,
an hour takes a byte or so a request, and loses nothing: times are sorted, so that each is kept as its
distance from the one before, in as few bytes as that takes.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.percentiles import COARSE, MILLION, PERCENTILES, Microseconds, fewest
from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

QUANTILES = ("p50", "p90", "p95", "p99", "p99.9")
LEAST_IN_CELL = 10  # requests a side: one request that stands for a thousand would be the tail by itself
LEAST_KEPT = 0.8  # of the requests of either side: of fewer, the mix is another site's
REPLICATES = 1000
_SEED = 20_090_601
_BINS_A_FACTOR_E = 1000  # of the bootstrap: a thousandth of a factor e, 0.1 %
_BINS = 23 * _BINS_A_FACTOR_E  # up to 2³² µs
_ROUTE_BITS = 32
_LEVEL = 9
_VARINT_BITS = 7
HOUR_S, DAY_HOURS, WEEK_HOURS = 3600, 24, 168
HOUR_NS = 3_600_000_000_000
_DAYS_A_WEEK = 7
_THURSDAY = 3  # 1970-01-01
UTC = "UTC"


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

        Failures are slower than all: a limit that is theirs does not count.
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
    weekend = (days + _THURSDAY) % _DAYS_A_WEEK >= 5
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


@dataclass(frozen=True)
class ServedDay:
    """The requests of one day, whose hours are local ones; `day` counts from 1970-01-01."""

    day: int
    served: "Served"

    @cached_property
    def cells(self) -> Integers:
        """The cell of each: its hour of the week, and its route."""
        return (self.served.hour % WEEK_HOURS << _ROUTE_BITS) | self.served.route


@dataclass(frozen=True)
class DayFigures:
    """A day's values in ms by quantile, None where there is none. Those in `failures` are failures'.

    `why` says why the day is not evidence; empty where there are too few requests, or days of the reference.
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
    def of(cls, served: "Served", weights: Floats) -> "_Quantiles":
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


@dataclass(frozen=True)
class Served:
    """Requests, those that are alike together, shape (n,) each.

    `hour` counts from 1970-01-01 UTC, `route` is a number, `took_us` the time as it counts, `number` how many
    requests are so.
    """

    hour: Integers
    route: Integers
    took_us: Microseconds
    failed: NDArray[np.bool_]
    number: Integers

    @classmethod
    def joined(cls, parts: Sequence["Served"]) -> "Served":
        """Return all of `parts` together, one at least."""
        return cls(
            np.concatenate([part.hour for part in parts]),
            np.concatenate([part.route for part in parts]),
            np.concatenate([part.took_us for part in parts]),
            np.concatenate([part.failed for part in parts]),
            np.concatenate([part.number for part in parts]),
        )

    def at(self, which: NDArray[Any] | slice) -> "Served":
        """Return those at some places."""
        return Served(
            self.hour[which], self.route[which], self.took_us[which], self.failed[which], self.number[which]
        )

    @property
    def requests(self) -> int:
        """How many requests there are."""
        return int(self.number.sum())

    @property
    def failures(self) -> int:
        """How many of them failed."""
        return int(self.number[self.failed].sum())


def alike(served: Served) -> Served:
    """Return the same requests, in any order, with those that are alike together, sorted."""
    order = np.lexsort((served.took_us, served.failed, served.route, served.hour))
    found = served.at(order)
    same = np.arange(len(order)) > 0
    for column in (found.hour, found.route, found.took_us, found.failed):
        same[1:] &= column[1:] == column[:-1]
    first = np.flatnonzero(~same)
    return replace(found.at(first), number=np.add.reduceat(found.number, first))


def packed(hour: Served) -> bytes:
    """Return the requests of one hour, sorted as `alike` does, as bytes."""
    group = hour.route * 2 + hour.failed
    begins = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    sizes = np.diff(np.append(begins, len(group)))
    took = hour.took_us.astype(np.int64)
    apart = np.diff(took, prepend=0)
    apart[begins] = took[begins]
    stream = [np.array([len(begins)]), group[begins], sizes, apart, hour.number]
    return zlib.compress(_varints(np.concatenate(stream)), _LEVEL)


def unpacked(hour: int, data: bytes) -> Served:
    """Return what `packed` made of the requests of that hour."""
    values = _values(zlib.decompress(data))
    groups = int(values[0])
    group, sizes = values[1 : 1 + groups], values[1 + groups : 1 + 2 * groups]
    apart, number = np.split(values[1 + 2 * groups :], 2)
    took = np.cumsum(apart)
    begins = np.cumsum(sizes) - sizes
    took -= np.repeat(took[begins] - apart[begins], sizes)  # each group counts from its own first
    each = np.repeat(group, sizes)
    hours = np.full(len(each), hour, dtype=np.int64)
    return Served(hours, each >> 1, took.astype(np.uint32), (each & 1).astype(bool), number)


def hours_of(served: Served) -> Iterator[tuple[int, Served]]:
    """Yield the requests of each hour; `served` is sorted as `alike` does."""
    edges = np.flatnonzero(np.append(True, served.hour[1:] != served.hour[:-1]))
    for begin, end in zip(edges, np.append(edges[1:], len(served.hour)), strict=True):
        yield int(served.hour[begin]), served.at(slice(begin, end))


def _varints(values: Integers) -> bytes:
    """Return whole numbers from 0 on: seven bits a byte, the lowest first; the eighth says that more come."""
    lengths = np.ones(len(values), dtype=np.int64)
    rest = values >> _VARINT_BITS
    while rest.any():
        lengths += rest > 0
        rest >>= _VARINT_BITS
    stream = np.zeros(int(lengths.sum()), dtype=np.uint8)
    begins = np.cumsum(lengths) - lengths
    for place in range(int(lengths.max(initial=0))):
        longer = lengths > place
        low = (values[longer] >> (_VARINT_BITS * place)) & 127
        stream[begins[longer] + place] = low | np.where(lengths[longer] > place + 1, 128, 0)
    return stream.tobytes()


def _values(data: bytes) -> Integers:
    stream = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(stream < 128)
    begins = np.append(0, ends[:-1] + 1)
    place = np.arange(len(stream)) - np.repeat(begins, ends - begins + 1)
    shifted = (stream.astype(np.int64) & 127) << (_VARINT_BITS * place)
    return np.add.reduceat(shifted, begins).astype(np.int64)


def time_zone(name: str) -> ZoneInfo:
    """Return the zone `name`. Raises SettingsError with the remedy."""
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise SettingsError(
            f"{printable(name, 80)} is not a time zone that this machine knows: give a name such as "
            "Europe/Berlin (Debian has them in the package tzdata)"
        ) from None


def local_hours(hours: Integers, zone: ZoneInfo) -> Integers:
    """Return the hours, since 1970 in UTC, as clocks of `zone` count them when each begins.

    An hour that clocks repeat is there twice; where a zone is half an hour off, its hours begin at the half.
    """
    known, place = np.unique(hours, return_inverse=True)
    shifted = np.array([each + _offset(int(each), zone) for each in known], dtype=np.int64)
    return shifted[place] if len(known) else hours


def weekday(day: int) -> int:
    """Return the day of the week, Monday 0, of a day since 1970-01-01."""
    return (day + _THURSDAY) % _DAYS_A_WEEK


@lru_cache(maxsize=1 << 16)
def _offset(hour: int, zone: ZoneInfo) -> int:
    ahead = datetime.fromtimestamp(hour * HOUR_S, zone).utcoffset()
    return 0 if ahead is None else int(ahead.total_seconds() // HOUR_S)
