"""Many sides at once: the effects of factors, and how far one lies behind the best.

What each factor of an experiment did, from one figure a run. Pure; figures are compared as logarithms.
A change of one factor is the mean of many differences: of each two runs of one repeat whose other levels are
the same. Whether a factor matters at all is asked once for each, and Holm's correction holds for all of them;
the intervals of its single changes stand each by itself (docs/statistics.md).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Literal

import numpy as np

from plimsoll.analysis.statistics.permutation import (
    Evidence,
    PermutationTest,
    adjust_by_holm,
    paired,
    t_quantile,
    unpaired,
)

ERROR = 0.05  # of all factors or comparisons together, and of an interval
_FEWEST_PAIRS = 6  # of fewer, no arrangement is rare enough for an interval
_DRAWS, _ROUNDS = 3000, 10
_SEED = 20_261_122
_TIE = 1e-9

Outcome = Literal["slower", "faster", "noise", "too few"]
Rest = tuple[tuple[str, str], ...]  # the levels of all factors but one


@dataclass(frozen=True)
class Trial:
    """One run: its levels by factor (hostile), its repeat, and its figure, more than 0."""

    levels: Mapping[str, str]
    repeat: int | str | None
    value: float

    @cached_property
    def log(self) -> float:
        """The logarithm of its figure."""
        return math.log(self.value)

    def rest(self, factor: str) -> Rest:
        """Return the levels of all other factors."""
        return tuple(sorted((name, level) for name, level in self.levels.items() if name != factor))


@dataclass(frozen=True)
class Estimate:
    """A figure or a ratio with its two-sided 95 % interval; limits are None where so few runs have none."""

    value: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Change:
    """What level `to` in place of level `of` does alone: `ratio` is by how much the figure grows.

    `pairs` are the differences that it is the mean of; `outcome` holds that of all factors against chance.
    """

    factor: str
    of: str
    to: str
    ratio: Estimate
    pairs: int
    p: float
    outcome: Outcome


@dataclass(frozen=True)
class FactorEffect:
    """A factor: p of "it does nothing", for all factors together, and its changes against its first level."""

    factor: str
    p: float
    changes: list[Change]

    @property
    def most(self) -> float:
        """The largest ratio of its changes, either way."""
        return max((abs(math.log(change.ratio.value)) for change in self.changes), default=0.0)


def effects(trials: Sequence[Trial], levels: Mapping[str, Sequence[str]]) -> list[FactorEffect]:
    """Return the effect of each factor that has two levels that can be compared, the largest first.

    `levels` are each factor's in order; changes are against the first that was run.
    """
    found: list[tuple[str, float, list[Change]]] = []
    for factor, every in levels.items():
        there = [level for level in every if any(trial.levels.get(factor) == level for trial in trials)]
        changes = [
            change for level in there[1:] if (change := _change(trials, factor, there[0], level)) is not None
        ]
        if changes:
            p = changes[0].p if len(there) == 2 else _any_effect(trials, factor, there)
            found.append((factor, p, changes))
    adjusted = adjust_by_holm([p for _, p, _ in found])
    judged = [
        FactorEffect(factor, p, [_judged(change, p) for change in changes])
        for (factor, _, changes), p in zip(found, adjusted, strict=True)
    ]
    return sorted(judged, key=lambda each: -each.most)


def _judged(change: Change, p: float) -> Change:
    """Return the change as it stands where its factor has `p`."""
    if change.ratio.lower is None or change.ratio.upper is None:
        outcome: Outcome = "too few"
    elif p > ERROR or change.p > ERROR:
        outcome = "noise"
    else:
        outcome = "slower" if change.ratio.value > 1 else "faster"
    return Change(change.factor, change.of, change.to, change.ratio, change.pairs, change.p, outcome)


def _change(trials: Sequence[Trial], factor: str, of: str, to: str) -> Change | None:
    """Return what `to` in place of `of` does; None where no two runs differ in this alone."""
    base, other = (_by_rest(trials, factor, level) for level in (of, to))
    keys = sorted(base.keys() & other.keys(), key=str)
    if not keys:
        return None
    first, second = [base[key] for key in keys], [other[key] for key in keys]
    cells = {rest for rest, _ in keys}
    evidence: Evidence
    if len(keys) < _FEWEST_PAIRS and len(cells) == 1:
        evidence = unpaired(first, second)
    else:
        evidence = paired([after - before for before, after in zip(first, second, strict=True)])
    p = min(1.0, 2 * min(evidence.p_below(0.0), evidence.p_above(0.0)))
    ratio = Estimate(
        math.exp(evidence.estimate), _exp(evidence.lower(ERROR / 2)), _exp(evidence.upper(ERROR / 2))
    )
    return Change(factor, of, to, ratio, len(keys), p, "noise")


def _by_rest(trials: Sequence[Trial], factor: str, level: str) -> dict[tuple[Rest, str], float]:
    """Return the figures at a level, by all else and repeat; of runs that share these, the mean."""
    found: dict[tuple[Rest, str], list[float]] = {}
    for trial in trials:
        if trial.levels.get(factor) == level:
            found.setdefault((trial.rest(factor), str(trial.repeat)), []).append(trial.log)
    return {key: fmean(values) for key, values in found.items()}


def _any_effect(trials: Sequence[Trial], factor: str, levels: Sequence[str]) -> float:
    """Return p of "none of `levels` does anything", by permuting them within what is else the same.

    What is compared is how far apart the levels' means lie, over all repeats and levels of other factors.
    """
    by_level = [_by_rest(trials, factor, level) for level in levels]
    keys = sorted(set.intersection(*(set(each) for each in by_level)), key=str)
    if not keys:
        return 1.0
    table = np.array([[each[key] for each in by_level] for key in keys])
    table -= table.mean(axis=1, keepdims=True)
    draw = np.random.default_rng(_SEED)
    spread = float(np.square(table.sum(axis=0)).sum())
    as_far = 0
    for _ in range(_ROUNDS):
        many = np.repeat(table[None], _DRAWS // _ROUNDS, axis=0)
        sums = draw.permuted(many, axis=2, out=many).sum(axis=1)
        as_far += int((np.square(sums).sum(axis=1) >= spread * (1 - _TIE)).sum())
    return (1 + as_far) / (1 + _DRAWS)


@dataclass(frozen=True)
class Ranked:
    """One combination of levels: its figure over all its runs, and how many times the first's that is.

    `against` is None for the first. `noise`: it may be as good as the first, as far as these runs tell.
    """

    levels: Mapping[str, str]
    runs: int
    figure: Estimate
    against: Estimate | None
    noise: bool


def ranking(trials: Sequence[Trial]) -> list[Ranked]:
    """Return all combinations, the fastest first, with intervals from what all of them spread between runs.

    Ratios to the first are held against the error of all pairs (Bonferroni): chance chose the first too.
    """
    cells = _cells(trials)
    ordered = sorted(cells, key=lambda cell: fmean(trial.log for trial in cell))
    within = _Spread.within(ordered)
    between = _Spread.between(ordered)
    pairs = max(len(ordered) * (len(ordered) - 1) // 2, 1)
    found = []
    for place, cell in enumerate(ordered):
        against = None
        if place:
            step = fmean(trial.log for trial in cell) - fmean(trial.log for trial in ordered[0])
            against = between.estimate(step, 1 / len(cell) + 1 / len(ordered[0]), ERROR / pairs)
        figure = within.estimate(fmean(trial.log for trial in cell), 1 / len(cell), ERROR)
        noise = against is not None and (against.lower is None or against.lower <= 1)
        found.append(Ranked(cell[0].levels, len(cell), figure, against, noise))
    return found


def mean_of(trials: Sequence[Trial], among: Sequence[Trial]) -> Estimate:
    """Return the figure of `trials` together, by the spread between all runs `among` that are alike."""
    return _Spread.within(_cells(among)).estimate(
        fmean(trial.log for trial in trials), 1 / len(trials), ERROR
    )


def _cells(trials: Sequence[Trial]) -> list[list[Trial]]:
    """Return the runs by combination of levels."""
    found: dict[Rest, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.rest(""), []).append(trial)
    return list(found.values())


@dataclass(frozen=True)
class _Spread:
    """The standard deviation of a run's logarithm, and its degrees of freedom; 0 of these: not known."""

    deviation: float
    free: int

    @classmethod
    def within(cls, cells: Sequence[Sequence[Trial]]) -> "_Spread":
        """Return how far runs of one combination lie apart."""
        squares = math.fsum(
            (trial.log - fmean(each.log for each in cell)) ** 2 for cell in cells for trial in cell
        )
        free = sum(len(cell) - 1 for cell in cells)
        return cls(math.sqrt(squares / free) if free else 0.0, free)

    @classmethod
    def between(cls, cells: Sequence[Sequence[Trial]]) -> "_Spread":
        """Return the same without what all combinations have in common in a repeat, where none lacks one."""
        repeats = sorted({str(trial.repeat) for cell in cells for trial in cell})
        whole = all(sorted(str(trial.repeat) for trial in cell) == repeats for cell in cells)
        free = (len(cells) - 1) * (len(repeats) - 1)
        if not whole or not free:
            return cls.within(cells)
        table = np.array(
            [[trial.log for trial in sorted(cell, key=lambda each: str(each.repeat))] for cell in cells]
        )
        rest = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0, keepdims=True) + table.mean()
        return cls(math.sqrt(float(np.square(rest).sum()) / free), free)

    def estimate(self, log: float, share: float, error: float) -> Estimate:
        """Return a mean of logarithms as a figure; `share` is its variance by that of one run."""
        if not self.free:
            return Estimate(math.exp(log), None, None)
        wide = t_quantile(1 - error / 2, self.free) * self.deviation * math.sqrt(share)
        return Estimate(math.exp(log), math.exp(log - wide), math.exp(log + wide))


def _exp(value: float | None) -> float | None:
    return None if value is None else math.exp(value)


@dataclass(frozen=True)
class Distance:
    """How many times the best side's figure another has, by geometric means of `runs` on each side.

    `lower` and `upper` end the interval that holds for all pairs of sides together at 95 %; None where so few
    runs have none. `p` is two-sided and of all pairs (Bonferroni). `needs` is how many runs a side it takes
    for any p to be small enough.
    """

    ratio: float
    lower: float | None
    upper: float | None
    p: float
    runs: tuple[int, int]
    needs: int

    @property
    def outcome(self) -> str:
        """`clear`, `not clear`, or `too few runs` to be either."""
        if self.p <= ERROR:
            return "clear"
        return "too few runs" if min(self.runs) < self.needs else "not clear"


def distance(best: Sequence[float], other: Sequence[float], in_pairs: bool, sides: int) -> Distance:
    """Return the distance of two of `sides` by the logarithms of their runs' figures.

    `in_pairs`: the n-th runs of both are of one repeat.
    """
    pairs = math.comb(sides, 2)
    alpha = ERROR / 2 / pairs
    values = PermutationTest(best, other, in_pairs, alpha)
    evidence = values.evidence()
    lower, upper = (
        None if limit is None else math.exp(limit) for limit in (evidence.lower(alpha), evidence.upper(alpha))
    )
    p = min(evidence.p_above(0) * 2 * pairs, 1.0)
    runs = (len(best), len(other))
    return Distance(math.exp(evidence.estimate), lower, upper, p, runs, values.fewest_runs())
