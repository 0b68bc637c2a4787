"""The permutation test: evidence, power, several gates, several looks.

Permutation tests of a shift between two sides, and the confidence limits that they give. Pure.
A test of "the candidate is shifted by θ" takes θ off the candidate's values and asks how many of all
arrangements of the values have a difference of means that is at least as great as the observed one. An
arrangement that gives the candidate's values S away and takes the baseline's values S′ for them has it
exactly where θ is at least mean(S) − mean(S′). So one number an arrangement, its *threshold*, holds the test
at every θ: p is a count of thresholds, and the confidence limits are order statistics of them (Hartigan, JASA
64, 1969).

Looking again: each look at a growing experiment spends its share of the error that is allowed. Pure.
Deciding, running some more and deciding again gives several chances of a wrong verdict. So the looks share
one error rate. How many there will be is not known, so each spends six sevenths of what is left: 0.0429,
0.0061, 0.0009, … of 0.05. They never add up to more than the whole, whatever the looks have in common (an
error spending function as of Lan and DeMets, Biometrika 70, 1983, bounded by Bonferroni's inequality). The
first look gets the most, since most experiments are looked at once: six sevenths is what four runs a side
take to decide three gates.

The permutations that a comparison may use, and the runs that a verdict takes. Pure.
Runs of one repeat lie next to one another in time, so that what drifts over hours cancels in their
difference. Permuting within repeats keeps that: it is the better test, and it takes more runs, since n
repeats have but 2^n arrangements, where n runs a side that are alike have (2n)!/(n!)². docs/statistics.md has
the rates of both.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist, fmean

import numpy as np
from numpy.typing import NDArray

MOST_EXACT = 200_000  # arrangements that are enumerated; of more, so many less one are drawn
_SEED = 20_090_601
_TIE = 1e-9  # differences of sums that are equal but for rounding

Values = NDArray[np.float64]
_Arrangements = NDArray[np.int8]
_STEPS = 200  # of the bisection and of the continued fraction of t, far more than either takes
_EXACT = 1e-14  # relative change at which that fraction has converged
_FAR = 1e6  # beyond any t that is asked for
_EACH = 6 / 7  # of what is left of the error that each look spends
MOST_FORETOLD = 100  # runs a side; beyond, other remedies are better than patience
POWER = 0.8
_REACHED = 1 - 1e-9  # a p that is the level but for rounding reaches it


@dataclass(frozen=True)
class Evidence:
    """The runs' evidence of the shift: `estimate`, and the sorted `thresholds` of the arrangements.

    `same` is how many arrangements leave all as it was; `arrangements` counts all, these included. `exact`:
    all were enumerated; else they were drawn. `paired`: values changed sides only within their pair.
    """

    estimate: float
    thresholds: Values
    same: int
    exact: bool
    paired: bool

    @property
    def arrangements(self) -> int:
        """The number of arrangements looked at, the observed one included."""
        return self.same + len(self.thresholds)

    @property
    def least_p(self) -> float:
        """The smallest p that so many values can give."""
        return self.same / self.arrangements

    def p_below(self, shift: float) -> float:
        """Return p of "the shift is `shift` or more": small where it is less."""
        above = len(self.thresholds) - np.searchsorted(self.thresholds, shift - _TIE, side="left")
        return float(self.same + above) / self.arrangements

    def p_above(self, shift: float) -> float:
        """Return p of "the shift is `shift` or less": small where it is more."""
        below = np.searchsorted(self.thresholds, shift + _TIE, side="right")
        return float(self.same + below) / self.arrangements

    def lower(self, alpha: float) -> float | None:
        """Return the one-sided lower confidence limit at 1 − `alpha`; None where so few values have none."""
        at = self._rank(alpha)
        return None if at < 1 else float(self.thresholds[at - 1])

    def upper(self, alpha: float) -> float | None:
        """Return the one-sided upper confidence limit at 1 − `alpha`; None where so few values have none."""
        at = self._rank(alpha)
        return None if at < 1 else float(self.thresholds[-at])

    def _rank(self, alpha: float) -> int:
        """Return which threshold from the end is the last shift that is not rejected."""
        return min(math.floor(alpha * self.arrangements + 1e-9) - self.same + 1, len(self.thresholds))


def unpaired(baseline: Sequence[float], candidate: Sequence[float]) -> Evidence:
    """Return the evidence of values that could as well have come from either side, all of them alike."""
    x, y = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    moves = _exchanges(len(x), len(y), MOST_EXACT)
    thresholds = (moves.given @ y - moves.taken @ x) / moves.size
    return _evidence(float(y.mean() - x.mean()), thresholds, moves, paired=False)


def paired(differences: Sequence[float]) -> Evidence:
    """Return the evidence of differences candidate − baseline whose signs could as well be the opposite."""
    d = np.asarray(differences, dtype=np.float64)
    moves = _flips(len(d), MOST_EXACT)
    return _evidence(float(d.mean()), (moves.given @ d) / moves.size, moves, paired=True)


@dataclass(frozen=True)
class _Moves:
    """Arrangements that move something, a row each: 1 where a value of the candidate is given away, or taken.

    `size` is how many are given away; `same` arrangements move nothing.
    """

    given: Values
    taken: Values
    size: Values
    same: int
    exact: bool


def _evidence(estimate: float, thresholds: Values, moves: _Moves, *, paired: bool) -> Evidence:
    return Evidence(estimate, np.sort(thresholds), moves.same, moves.exact, paired)


def _moves(given: _Arrangements, taken: _Arrangements, exact: bool) -> _Moves:
    size = given.sum(axis=1, dtype=np.int64)
    moved = size > 0
    # Of those drawn, the observed arrangement is one more: else p could be 0 (Phipson and Smyth, 2010).
    same = int((~moved).sum()) + (0 if exact else 1)
    return _Moves(
        given[moved].astype(np.float64),
        taken[moved].astype(np.float64),
        size[moved].astype(np.float64),
        same,
        exact,
    )


@lru_cache(maxsize=4)
def _exchanges(n: int, m: int, most: int) -> _Moves:
    """Return how `m` values of the candidate can be exchanged for some of the `n` of the baseline."""
    exact = math.comb(n + m, m) <= most
    chosen = _subsets(n + m, m) if exact else _drawn_subsets(n + m, m, most - 1)
    return _moves(1 - chosen[:, n:], chosen[:, :n], exact)


@lru_cache(maxsize=4)
def _flips(n: int, most: int) -> _Moves:
    """Return how the signs of `n` differences can be flipped."""
    exact = 2**n <= most
    if exact:
        given = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.int8)
    else:
        given = np.random.default_rng(_SEED).integers(0, 2, (most - 1, n), dtype=np.int8)
    return _moves(given, given[:, :0], exact)


def _subsets(size: int, chosen: int) -> _Arrangements:
    """Return every choice of `chosen` of `size`, a row each: 1 where chosen."""
    rows = np.zeros((math.comb(size, chosen), size), dtype=np.int8)
    picks = np.fromiter(
        (at for pick in combinations(range(size), chosen) for at in pick),
        dtype=np.int64,
        count=len(rows) * chosen,
    )
    rows[np.repeat(np.arange(len(rows)), chosen), picks] = 1
    return rows


def _drawn_subsets(size: int, chosen: int, draws: int) -> _Arrangements:
    order = np.random.default_rng(_SEED).random((draws, size)).argsort(axis=1)
    return (order < chosen).astype(np.int8)


def t_cdf(t: float, df: float) -> float:
    """Return P(T ≤ t) with `df` degrees of freedom."""
    tail = _incomplete_beta(df / (df + t * t), df / 2, 0.5) / 2
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def t_quantile(share: float, df: float) -> float:
    """Return the t below which `share` (0 to 1, neither of them) lies: by bisection."""
    low, high = -_FAR, _FAR
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if t_cdf(middle, df) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for each in (even, odd):
            d = 1 / (1 + each * d)
            c = 1 + each / c
            value *= c * d
        if abs(value - before) < _EXACT * value:
            break
    return math.exp(logs) / a * value


def adjust_by_holm(p_values: Sequence[float]) -> list[float]:
    """Return the adjusted p of each: to be held against the error rate of all gates together.

    The smallest is multiplied by how many there are, the next by one less, and so on; none falls below one
    that was smaller before, and none exceeds 1 (Holm, Scandinavian Journal of Statistics 6, 1979).
    """
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for step, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        highest = max(highest, min(1.0, p_values[at] * (len(p_values) - step)))
        adjusted[at] = highest
    return adjusted


def error_of_look(error: float, look: int) -> float:
    """Return the error that look number `look` (from 1) may make, of `error` in all."""
    return error * _EACH * (1 - _EACH) ** (look - 1)


@dataclass(frozen=True)
class PermutationTest:
    """The values of a gate, one a run. `baseline` is empty where the candidate's own are held to a limit.

    `in_pairs`: the n-th values of both sides are of one repeat. `alpha` is what Holm asks of the first gate.
    """

    baseline: Sequence[float]
    candidate: Sequence[float]
    in_pairs: bool
    alpha: float

    @property
    def alone(self) -> bool:
        """True where there is nothing to compare with but a limit."""
        return not self.baseline

    @property
    def runs(self) -> int:
        """Runs on the side that has fewer."""
        return min(len(side) for side in (self.baseline, self.candidate) if side)

    @property
    def differences(self) -> list[float]:
        """Candidate − baseline of each repeat."""
        return [c - b for b, c in zip(self.baseline, self.candidate, strict=True)]

    def pairs_at(self, runs: int) -> bool:
        """Return whether so many runs a side would be permuted within their repeats only.

        That depends on their number and on `alpha`, and on nothing that is measured: else p would not be p.
        At least two of the arrangements have to be enough for `alpha`: with one, every pair has to agree.
        """
        return self.in_pairs and 2**runs * self.alpha >= 2 * _REACHED

    def evidence(self) -> Evidence:
        """Return what the values say of the candidate's shift, or of where it lies."""
        if self.alone:
            return paired(self.candidate)
        if self.pairs_at(self.runs):
            return paired(self.differences)
        return unpaired(self.baseline, self.candidate)

    def fewest_runs(self) -> int:
        """Return with how many runs a side p can be `alpha` at all."""
        runs = 1
        while (2**runs if self.alone else math.comb(2 * runs, runs)) * self.alpha < _REACHED:
            runs += 1
        return runs

    def spread(self, in_pairs: bool) -> float:
        """Return the standard deviation between runs (both sides pooled), or of the differences."""
        if in_pairs:
            return math.sqrt(_squares(self.differences) / (self.runs - 1))
        free = len(self.candidate) - 1 + max(len(self.baseline) - 1, 0)
        return math.sqrt((_squares(self.candidate) + _squares(self.baseline)) / free)

    def runs_to_decide(self, away: float, alpha: float) -> int | None:
        """Return how many runs a side, these included, will decide in 4 of 5 cases.

        `away` is how far the estimate is from the limit, `alpha` what will be asked of this gate then. None
        where it would be more than `MOST_FORETOLD`. It is the predictive power: the runs so far stay as they
        are, further ones lie around what these show of effect and spread, as surely as they show it
        (Spiegelhalter, Freedman and Blackburn, Controlled Clinical Trials 7, 1986).
        """
        runs = range(max(self.runs + 1, self.fewest_runs()), MOST_FORETOLD + 1)
        at = bisect_left(runs, True, key=lambda each: self._decided(each, abs(away), alpha) >= POWER)
        return runs[at] if at < len(runs) else None

    def found_from(self, runs: int) -> float | None:
        """Return how far from the limit an effect is found in 4 of 5 cases by so many runs a side.

        With the spread that these runs have, by the normal approximation of the noncentral t distribution
        (Johnson and Welch, Biometrika 31, 1940). None where that many runs can find nothing.
        """
        if runs < self.fewest_runs():
            return None
        error, free = self._scale(runs)
        error /= _median_of_spread(self._known)
        t = t_quantile(1 - self._reached(runs, self.alpha), free)
        far = t * (1 - 1 / (4 * free)) + NormalDist().inv_cdf(POWER) * math.sqrt(1 + t * t / (2 * free))
        return far * error

    def _decided(self, runs: int, away: float, alpha: float) -> float:
        """Return the chance that so many runs in all decide, either way."""
        error, free = self._scale(runs)
        if not error:
            return 1.0
        reached = self._reached(runs, alpha)
        if not reached:
            return 0.0
        beyond = t_quantile(1 - reached, free)
        known = self._known
        wide = math.sqrt((runs - self.runs) / self.runs)
        kept, broken = (t_cdf((side * away / error - beyond) / wide, known) for side in (1, -1))
        return kept + broken

    def _scale(self, runs: int) -> tuple[float, float]:
        """Return the standard error of the effect with so many runs a side, and its degrees of freedom.

        The spread is that by which these runs are judged now: in too few pairs it could hardly be seen.
        """
        in_pairs = self.pairs_at(self.runs)
        variance = self.spread(in_pairs) ** 2 * (1 if self.alone or in_pairs else 2)
        one_sample = self.alone or self.pairs_at(runs)
        return math.sqrt(variance / runs), runs - 1 if one_sample else 2 * runs - 2

    @property
    def _known(self) -> int:
        """The degrees of freedom of the spread that these runs show."""
        return self.runs - 1 if self.alone or self.pairs_at(self.runs) else 2 * self.runs - 2

    def _reached(self, runs: int, alpha: float) -> float:
        """Return the largest p that so many runs can have and that is no more than `alpha`."""
        sums = 2**runs if self.alone or self.pairs_at(runs) else math.comb(2 * runs, runs)
        return alpha if sums > MOST_EXACT else math.floor(alpha * sums / _REACHED) / sums


def _median_of_spread(free: int) -> float:
    """Return the median of a standard deviation that is 1, estimated with so many degrees of freedom.

    By Wilson and Hilferty's approximation of χ² (PNAS 17, 1931): it is under 1 more often than over it.
    """
    return float((1 - 2 / (9 * free)) ** 1.5)


def _squares(values: Sequence[float]) -> float:
    mean = fmean(values) if values else 0.0
    return math.fsum((value - mean) ** 2 for value in values)
