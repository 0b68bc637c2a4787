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
