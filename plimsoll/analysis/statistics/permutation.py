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
repeats have but 2^n arrangements, where n runs a side that are alike have (2n)!/(n!)². Runs that came in
blocks of four, two a side in an order that was drawn, change sides within their block: n runs a side have
6^(n/2) arrangements. docs/statistics.md has the rates of all.

Several gates: the step-down test of their greatest statistic (Westfall and Young, Resampling-Based Multiple
Testing, 1993). Gates of the same runs are dealt again together, so what they have in common costs nothing.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from statistics import NormalDist, fmean
from typing import Literal

import numpy as np
from numpy.typing import NDArray

MOST_EXACT = 200_000  # arrangements that are enumerated; of more, so many less one are drawn
_SEED = 20_090_601
_TIE = 1e-9  # differences of sums that are equal but for rounding

Values = NDArray[np.float64]
Dealt = Literal["unpaired", "paired", "blocks"]
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
    """The runs' evidence of the shift: `estimate`, and a threshold of each arrangement that moves something.

    `drops`: by how much the difference falls with an arrangement, a unit of its threshold. `same` is how many
    arrangements leave all as it was; `arrangements` counts all, these included. `exact`: all were enumerated;
    else they were drawn. `dealt`: values changed sides within their pair, within their block, or freely.
    """

    estimate: float
    by_arrangement: Values
    drops: Values
    same: int
    exact: bool
    dealt: Dealt

    @cached_property
    def thresholds(self) -> Values:
        """The thresholds, sorted."""
        return np.sort(self.by_arrangement)

    @property
    def arrangements(self) -> int:
        """The number of arrangements looked at, the observed one included."""
        return self.same + len(self.by_arrangement)

    def standardised(self, shift: float) -> tuple[float, Values]:
        """Return how far the estimate is beyond `shift`, and how far each arrangement is.

        Both are divided by the standard deviation over all arrangements; 0 where that is 0.
        """
        seen = self.estimate - shift
        dealt = seen - self.drops * (self.by_arrangement - shift)
        spread = math.sqrt((self.same * seen**2 + float(dealt @ dealt)) / self.arrangements)
        return (seen / spread, dealt / spread) if spread > _TIE else (0.0, np.zeros_like(dealt))

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
    return _exchanged(baseline, candidate, _exchanges(len(baseline), len(candidate), MOST_EXACT), "unpaired")


def in_blocks(baseline: Sequence[float], candidate: Sequence[float]) -> Evidence:
    """Return the evidence of values that come block by block, two a side in each, dealt within blocks."""
    return _exchanged(baseline, candidate, _block_exchanges(len(baseline) // 2, MOST_EXACT), "blocks")


def paired(differences: Sequence[float]) -> Evidence:
    """Return the evidence of differences candidate − baseline whose signs could as well be the opposite."""
    d = np.asarray(differences, dtype=np.float64)
    moves = _flips(len(d), MOST_EXACT)
    thresholds = (moves.given @ d) / moves.size
    return Evidence(float(d.mean()), thresholds, moves.size * (2 / len(d)), moves.same, moves.exact, "paired")


def _exchanged(
    baseline: Sequence[float], candidate: Sequence[float], moves: "_Moves", dealt: Dealt
) -> Evidence:
    x, y = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    thresholds = (moves.given @ y - moves.taken @ x) / moves.size
    drops = moves.size * (1 / len(x) + 1 / len(y))
    return Evidence(float(y.mean() - x.mean()), thresholds, drops, moves.same, moves.exact, dealt)


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


@lru_cache(maxsize=4)
def _block_exchanges(blocks: int, most: int) -> _Moves:
    """Return how the two candidate's values of each block can be exchanged for the two of the baseline."""
    exact = 6**blocks <= most
    if exact:
        which = np.arange(6**blocks)[:, None] // 6 ** np.arange(blocks) % 6
    else:
        which = np.random.default_rng(_SEED).integers(0, 6, (most - 1, blocks))
    of_block = _subsets(4, 2)
    dealt = of_block[which]
    given, taken = 1 - dealt[..., 2:], dealt[..., :2]
    return _moves(given.reshape(len(which), -1), taken.reshape(len(which), -1), exact)


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


def step_down(evidence: Sequence[Evidence], shifts: Sequence[float]) -> list[float]:
    """Return p of "the shift is that or less" of each, adjusted for all of them.

    All have the same arrangements. Each statistic is divided by its standard deviation over these, and the
    greatest that remains is held against the greatest of the same ones in every arrangement.
    """
    seen, dealt = _standardised(evidence, shifts)
    rising = np.argsort(seen, kind="stable")
    greatest = np.maximum.accumulate(dealt[rising], axis=0)
    beyond = (greatest >= seen[rising, None] - _TIE).sum(axis=1)
    p_values = np.empty(len(seen))
    p_values[rising[::-1]] = np.maximum.accumulate((evidence[0].same + beyond)[::-1])
    return [float(each) for each in p_values / evidence[0].arrangements]


def levels_of_each(evidence: Sequence[Evidence], shifts: Sequence[float], alpha: float) -> list[float]:
    """Return the level at which each would be tested alone to be as hard to reject as all at `alpha`."""
    _, dealt = _standardised(evidence, shifts)
    same, arrangements = evidence[0].same, evidence[0].arrangements
    allowed = max(math.floor(alpha * arrangements + 1e-9) - same, 0)
    greatest = np.sort(dealt.max(axis=0))[::-1]
    if allowed >= len(greatest):
        return [alpha] * len(evidence)
    return [float(same + each) / arrangements for each in (dealt > greatest[allowed] + _TIE).sum(axis=1)]


def _standardised(evidence: Sequence[Evidence], shifts: Sequence[float]) -> tuple[Values, Values]:
    found = [each.standardised(shift) for each, shift in zip(evidence, shifts, strict=True)]
    return np.array([seen for seen, _ in found]), np.array([dealt for _, dealt in found])


def adjust_by_holm(p_values: Sequence[float], families: Sequence[Hashable] | None = None) -> list[float]:
    """Return the adjusted p of each: to be held against the error rate of all gates together.

    The smallest is multiplied by how many there are, the next by one less, and so on; none falls below one
    that was smaller before, and none exceeds 1 (Holm, Scandinavian Journal of Statistics 6, 1979). Those of
    one of the `families` are adjusted for one another already (by `step_down`): what counts is how many
    families are left.
    """
    of = range(len(p_values)) if families is None else families
    left = Counter(of)
    adjusted = [1.0] * len(p_values)
    highest = 0.0
    for at in sorted(range(len(p_values)), key=lambda at: p_values[at]):
        highest = max(highest, min(1.0, p_values[at] * len(left)))
        adjusted[at] = highest
        left[of[at]] -= 1
        if not left[of[at]]:
            del left[of[at]]
    return adjusted


def error_of_look(error: float, look: int) -> float:
    """Return the error that look number `look` (from 1) may make, of `error` in all."""
    return error * _EACH * (1 - _EACH) ** (look - 1)


@dataclass(frozen=True)
class PermutationTest:
    """The values of a gate, one a run. `baseline` is empty where the candidate's own are held to a limit.

    `in_pairs`: the n-th values of both sides are of one repeat. `alpha` is the least level that is asked.
    `in_blocks`: the values come block by block, two a side in each.
    """

    baseline: Sequence[float]
    candidate: Sequence[float]
    in_pairs: bool
    alpha: float
    in_blocks: bool = False

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
        return self.in_pairs and not self.in_blocks and 2**runs * self.alpha >= 2 * _REACHED

    def evidence(self) -> Evidence:
        """Return what the values say of the candidate's shift, or of where it lies."""
        if self.alone:
            return paired(self.candidate)
        if self.in_blocks:
            return in_blocks(self.baseline, self.candidate)
        if self.pairs_at(self.runs):
            return paired(self.differences)
        return unpaired(self.baseline, self.candidate)

    def fewest_runs(self) -> int:
        """Return with how many runs a side p can be `alpha` at all."""
        runs = self._step
        while self._arrangements(runs, in_pairs=False) * self.alpha < _REACHED:
            runs += self._step
        return runs

    @property
    def _step(self) -> int:
        """By how many runs a side an experiment grows."""
        return 2 if self.in_blocks else 1

    def _arrangements(self, runs: int, *, in_pairs: bool) -> int:
        if self.in_blocks:
            return int(6 ** (runs // 2))
        return int(2**runs) if self.alone or in_pairs else math.comb(2 * runs, runs)

    def spread(self, in_pairs: bool) -> float:
        """Return the standard deviation between runs (both sides pooled), or of the differences.

        In blocks it is that within blocks.
        """
        if in_pairs:
            return math.sqrt(_squares(self.differences) / (self.runs - 1))
        if self.in_blocks:
            x, y = np.reshape(self.baseline, (-1, 2)), np.reshape(self.candidate, (-1, 2))
            both = np.hstack([x, y - (y.mean() - x.mean())])
            left = both - both.mean(axis=1, keepdims=True)
            return math.sqrt(float((left * left).sum()) / self._free(self.runs))
        free = len(self.candidate) - 1 + max(len(self.baseline) - 1, 0)
        return math.sqrt((_squares(self.candidate) + _squares(self.baseline)) / free)

    def runs_to_decide(self, away: float, alpha: float) -> int | None:
        """Return how many runs a side, these included, will decide in 4 of 5 cases.

        `away` is how far the estimate is from the limit, `alpha` what will be asked of this gate then. None
        where it would be more than `MOST_FORETOLD`. It is the predictive power: the runs so far stay as they
        are, further ones lie around what these show of effect and spread, as surely as they show it
        (Spiegelhalter, Freedman and Blackburn, Controlled Clinical Trials 7, 1986).
        """
        runs = range(max(self.runs + self._step, self.fewest_runs()), MOST_FORETOLD + 1, self._step)
        at = bisect_left(runs, True, key=lambda each: self._decided(each, abs(away), alpha) >= POWER)
        return runs[at] if at < len(runs) else None

    def found_from(self, runs: int, level: float) -> float | None:
        """Return how far from the limit an effect is that `runs` a side find at `level` in 4 of 5 cases.

        With the spread that these runs have, by the normal approximation of the noncentral t distribution
        (Johnson and Welch, Biometrika 31, 1940). None where that many runs can find nothing.
        """
        reached = self._reached(runs, level)
        if not reached:
            return None
        error, free = self._scale(runs)
        error /= _median_of_spread(self._known)
        t = t_quantile(1 - reached, free)
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
        return math.sqrt(variance / runs), self._free(runs)

    def _free(self, runs: int) -> int:
        if self.in_blocks:
            return 3 * (runs // 2) - 1
        return runs - 1 if self.alone or self.pairs_at(runs) else 2 * runs - 2

    @property
    def _known(self) -> int:
        """The degrees of freedom of the spread that these runs show."""
        return self._free(self.runs)

    def _reached(self, runs: int, alpha: float) -> float:
        """Return the largest p that so many runs can have and that is no more than `alpha`."""
        sums = self._arrangements(runs, in_pairs=self.pairs_at(runs))
        return alpha if sums > MOST_EXACT else math.floor(alpha * sums / _REACHED) / sums


def _median_of_spread(free: int) -> float:
    """Return the median of a standard deviation that is 1, estimated with so many degrees of freedom.

    By Wilson and Hilferty's approximation of χ² (PNAS 17, 1931): it is under 1 more often than over it.
    """
    return float((1 - 2 / (9 * free)) ** 1.5)


def _squares(values: Sequence[float]) -> float:
    mean = fmean(values) if values else 0.0
    return math.fsum((value - mean) ** 2 for value in values)
