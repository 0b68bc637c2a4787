"""Exact order statistics of times, and what failures do to them."""

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.common.units import WRONG_ANSWER, at_least, milliseconds

Microseconds = NDArray[np.unsignedinteger[Any]]

# Stands for the time of a failure whose time-out is not known: slower than every answer.
NEVER_US = 0xFFFF_FFFF
MILLION = 1_000_000
COARSE = 10  # times what durations are multiples of: below, a ratio of two times is of the rounding
# Percentiles in millionths, since binary fractions cannot hold 0.999 exactly.
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
_AT_ONCE = 64  # keys whose values are copied to be counted


@dataclass(frozen=True)
class FailedTimes:
    """The failures among times: their number, and how many are wrong answers that came before a time-out.

    `from_us` is the least time at which one counts, None where there is none: an order statistic of as much
    or more is only a lower bound, since it is unknown when a failure would have been answered.
    """

    from_us: int | None = None
    number: int = 0
    wrong: int = 0

    @classmethod
    def of(
        cls, values_us: Microseconds, failures: NDArray[np.bool_], wrong: NDArray[np.bool_] | None = None
    ) -> "FailedTimes":
        """Return those of `values_us` as they count; all have shape (n,)."""
        if not failures.any():
            return NONE_FAILED
        least_us = int(values_us[failures].min())
        return cls(least_us, int(failures.sum()), 0 if wrong is None else int(wrong.sum()))

    @classmethod
    def joined(cls, parts: Iterable["FailedTimes"]) -> "FailedTimes":
        """Return all of `parts` together."""
        some = [part for part in parts if part.number]
        return cls(
            min((part.from_us for part in some if part.from_us is not None), default=None),
            sum(part.number for part in some),
            sum(part.wrong for part in some),
        )


NONE_FAILED = FailedTimes()


@dataclass(frozen=True)
class Times:
    """Times in microseconds in any order, shape (n,), and what of them are failures'."""

    values_us: Microseconds
    failed: FailedTimes = NONE_FAILED

    def __len__(self) -> int:
        return len(self.values_us)

    @classmethod
    def of(
        cls, values_us: Microseconds, failures: NDArray[np.bool_], wrong: NDArray[np.bool_] | None = None
    ) -> "Times":
        """Make times of `values_us` as they count; `failures` and `wrong` say which are those of failures.

        `wrong` has the wrong answers among `failures` that came before their time-out.
        """
        return cls(values_us, FailedTimes.of(values_us, failures, wrong))

    @classmethod
    def joined(cls, parts: Sequence["Times"]) -> "Times":
        """Return all of `parts` together, as a new array."""
        return cls(
            np.concatenate([part.values_us for part in parts]) if parts else np.empty(0, dtype=np.uint32),
            FailedTimes.joined(part.failed for part in parts),
        )


def narrow(values: NDArray[Any]) -> Microseconds:
    """Return whole, not negative `values` as 32-bit integers if they all fit, else as 64-bit."""
    fits = not len(values) or int(values.max()) <= 0xFFFF_FFFF
    return values.astype(np.uint32 if fits else np.uint64)


@dataclass(frozen=True)
class TimeFigures:
    """Figures in ms by name; None where there are too few requests, or where the figure is censored.

    A figure is censored where a failure is at or below its rank: it takes at least as long as `censored`
    says, which is None where the time-out is not known. `wrong` names those that fall on a wrong answer,
    which came in time.
    """

    ms: dict[str, float | None]
    censored: dict[str, float | None] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()

    @classmethod
    def of_ranks(
        cls, ranks: Mapping[str, int | None], at: Callable[[int], int], n: int, failed: FailedTimes
    ) -> "TimeFigures":
        """Make figures of order statistics: `at` returns that of a rank, from 1 to `n`, in microseconds.

        Wrong answers that came in time stand before the other failures.
        """
        first = n - failed.number
        wrong = {name for name, rank in ranks.items() if rank and first < rank <= first + failed.wrong}
        values_us = {name: None if rank is None else at(rank) for name, rank in ranks.items()}
        return replace(cls.of(values_us, failed.from_us), wrong=frozenset(wrong))

    @classmethod
    def of(cls, values_us: Mapping[str, int | None], failed_from_us: int | None) -> "TimeFigures":
        """Make figures of order statistics in microseconds; failures stand from `failed_from_us` on."""
        exact: dict[str, float | None] = {}
        censored: dict[str, float | None] = {}
        for name, us in values_us.items():
            if us is not None and failed_from_us is not None and us >= failed_from_us:
                exact[name], censored[name] = None, None if us == NEVER_US else us / 1000
            else:
                exact[name] = None if us is None else us / 1000
        return cls(exact, censored)

    def __getitem__(self, name: str) -> float | None:
        return self.ms[name]

    def least_ms(self, name: str) -> float | None:
        """Return the figure, or its lower bound; None where neither is known."""
        return self.censored[name] if name in self.censored else self.ms[name]

    def shown(self, name: str, spelled: Callable[[float | None], str] = milliseconds) -> str:
        """Return the figure as people read it: `412 ms`, `≥ 30 s`, `wrong answer`, or a dash."""
        if name in self.wrong:
            return WRONG_ANSWER
        if self.censored.get(name) is not None:
            return at_least(spelled(self.censored[name]))
        return spelled(self.ms[name])

    def as_json(self) -> dict[str, object]:
        """Return the figures, and `censored` beside them where there is any."""
        return {**self.ms, "censored": self.censored} if self.censored else {**self.ms}


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
    ranks = np.rint(np.geomspace(1, n, _CURVE_POINTS)).astype(np.int64).tolist() if n else []
    return sorted(set(ranks), reverse=True)


class Groups:
    """Times by key. Holds four bytes a value (eight for times over 71 minutes)."""

    def __init__(self) -> None:
        self._failed: dict[int, FailedTimes] = {}
        self._parts: dict[int, list[Microseconds]] = defaultdict(list)

    def add(
        self,
        keys: NDArray[Any],
        values: Microseconds,
        failures: NDArray[np.bool_] | None = None,
        wrong: NDArray[np.bool_] | None = None,
    ) -> None:
        """Put each of `values` under its key; keys are below 65,536.

        `failures` says which are those of failures, as they count, and `wrong` which of these are wrong
        answers that came in time. All have shape (n,).
        """
        if not len(keys):
            return
        if failures is not None and failures.any():
            came = np.zeros(len(keys), dtype=bool) if wrong is None else wrong
            self._add_failures(keys[failures], values[failures], came[failures])
        order = np.argsort(keys.astype(np.uint16), kind="stable")  # 16 bits: a radix sort
        keys, values = keys[order], values[order]
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        stops = [*starts[1:].tolist(), len(keys)]
        for key, start, stop in zip(keys[starts].tolist(), starts.tolist(), stops, strict=True):
            self._parts[key].append(values[start:stop])

    def _add_failures(self, keys: NDArray[Any], values: Microseconds, wrong: NDArray[np.bool_]) -> None:
        order = np.argsort(keys.astype(np.uint16), kind="stable")
        keys, values, wrong = keys[order], values[order], wrong[order]
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        for key, *parts in zip(
            keys[starts].tolist(),
            np.minimum.reduceat(values, starts).tolist(),
            np.diff(starts, append=len(keys)).tolist(),
            np.add.reduceat(wrong, starts, dtype=np.int64).tolist(),
            strict=True,
        ):
            self._failed[key] = FailedTimes.joined([FailedTimes(*parts), self._failed.get(key, NONE_FAILED)])

    def fold(self, factor: int) -> None:
        """Divide every key by `factor`: groups whose quotient is the same become one."""
        folded: dict[int, list[Microseconds]] = defaultdict(list)
        for key, parts in self._parts.items():
            folded[key // factor] += parts
        self._parts = folded
        failed: dict[int, list[FailedTimes]] = defaultdict(list)
        for key, part in self._failed.items():
            failed[key // factor].append(part)
        self._failed = {key: FailedTimes.joined(each) for key, each in failed.items()}

    def keys(self) -> list[int]:
        """Return the keys that have values, ascending."""
        return sorted(self._parts)

    def sizes(self) -> dict[int, int]:
        """Return how many values each key has."""
        return {key: sum(map(len, parts)) for key, parts in self._parts.items()}

    def sizes_from(self, limits_us: Sequence[int]) -> NDArray[np.int64]:
        """Return how many values of each key are at least so long: a row a limit, a column a key."""
        keys, found = self.keys(), []
        for first in range(0, len(keys), _AT_ONCE):
            some = keys[first : first + _AT_ONCE]
            sizes = [sum(map(len, self._parts[key])) for key in some]
            values = self._of(some).values_us
            starts = np.cumsum([0, *sizes[:-1]])
            found.append(
                [np.add.reduceat(values >= limit_us, starts, dtype=np.int64) for limit_us in limits_us]
            )
        return np.concatenate(found, axis=1)

    def of(self, start: int, stop: int | None = None) -> Times:
        """Return the values under the keys `start` … `stop`−1 (default: `start` alone) as a new array."""
        return self._of(range(start, start + 1 if stop is None else stop))

    def everything(self) -> Times:
        """Return all values as a new array."""
        return self._of(self._parts)

    def _of(self, keys: Iterable[int]) -> Times:
        there = [key for key in keys if key in self._parts]
        parts = [part for key in there for part in self._parts[key]]
        failed = FailedTimes.joined(self._failed.get(key, NONE_FAILED) for key in there)
        return Times(np.concatenate(parts) if parts else np.empty(0, dtype=np.uint32), failed)
