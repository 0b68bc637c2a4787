"""Permutation tests of a shift between two sides, and the confidence limits that they give. Pure.

A test of "the candidate is shifted by θ" takes θ off the candidate's values and asks how many of all
arrangements of the values have a difference of means that is at least as great as the observed one. An
arrangement that gives the candidate's values S away and takes the baseline's values S′ for them has it
exactly where θ is at least mean(S) − mean(S′). So one number an arrangement, its *threshold*, holds the test
at every θ: p is a count of thresholds, and the confidence limits are order statistics of them (Hartigan, JASA
64, 1969).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

MOST_EXACT = 200_000  # arrangements that are enumerated; of more, so many less one are drawn
_SEED = 20_090_601
_TIE = 1e-9  # differences of sums that are equal but for rounding

Values = NDArray[np.float64]
_Arrangements = NDArray[np.int8]


@dataclass(frozen=True)
class Evidence:
    """What the runs say of the shift: `estimate`, and the sorted `thresholds` of the arrangements.

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
        """How many arrangements were looked at, the observed one included."""
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
    n, m = len(baseline), len(candidate)
    x, y = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    count = math.comb(n + m, m)
    exact = count <= MOST_EXACT
    chosen = _subsets(n + m, m) if exact else _drawn_subsets(n + m, m)
    taken = chosen[:, :n].sum(axis=1)
    moved = taken > 0
    given = y.sum() - chosen[moved][:, n:] @ y
    thresholds = (given - chosen[moved][:, :n] @ x) / taken[moved]
    return _evidence(float(y.mean() - x.mean()), thresholds, len(taken), exact, paired=False)


def paired(differences: Sequence[float]) -> Evidence:
    """Return the evidence of differences candidate − baseline whose signs could as well be the opposite."""
    d = np.asarray(differences, dtype=np.float64)
    exact = 2 ** len(d) <= MOST_EXACT
    flipped = _signs(len(d)) if exact else _drawn_signs(len(d))
    taken = flipped.sum(axis=1, dtype=np.int64)
    moved = taken > 0
    thresholds = (flipped[moved] @ d) / taken[moved]
    return _evidence(float(d.mean()), thresholds, len(taken), exact, paired=True)


def _evidence(estimate: float, thresholds: Values, looked: int, exact: bool, *, paired: bool) -> Evidence:
    # Of those drawn, the observed arrangement is one more: else p could be 0 (Phipson and Smyth, 2010).
    same = looked - len(thresholds) + (0 if exact else 1)
    return Evidence(estimate, np.sort(thresholds), same, exact, paired)


@lru_cache(maxsize=8)
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


@lru_cache(maxsize=8)
def _drawn_subsets(size: int, chosen: int) -> _Arrangements:
    order = np.random.default_rng(_SEED).random((MOST_EXACT - 1, size)).argsort(axis=1)
    return (order < chosen).astype(np.int8)


@lru_cache(maxsize=8)
def _signs(size: int) -> _Arrangements:
    """Return every way to flip some of `size` signs, a row each: 1 where flipped."""
    return ((np.arange(2**size)[:, None] >> np.arange(size)) & 1).astype(np.int8)


@lru_cache(maxsize=8)
def _drawn_signs(size: int) -> _Arrangements:
    return np.random.default_rng(_SEED).integers(0, 2, (MOST_EXACT - 1, size), dtype=np.int8)
