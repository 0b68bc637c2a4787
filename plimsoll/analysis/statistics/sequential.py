"""Evidence of a shift that is looked at block by block, as a plan states: each look spends its part. Pure.

Of a plan of B blocks the looks up to block j may err by α·ln(1 + (e − 1)·j/B) in all, which is close to
Pocock's boundary (Lan and DeMets, Biometrika 70, 1983). Each re-dealing of the values within their blocks is
followed through all looks, as the observed arrangement is: at each look those are rejected, of the ones that
are left, whose statistic is the greatest, as many as may be in all by then, and of equal ones all or none. So
the test is exact, however looks depend on one another, and what a look cannot spend, because the blocks have
so few arrangements yet, is left to the later ones.

The statistic of "the candidate is shifted by θ" is the difference of means after θ is taken off the
candidate's values: linear in θ, so two numbers a look and re-dealing hold the test at every θ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.permutation import Values

MOST_REDEALT = 50_000  # re-dealings that are enumerated, of all blocks of the plan; of more, some are drawn
_MOST_CELLS = 240_000  # of those drawn, times the blocks
_SEED = 20_090_601
_TIE = 1e-9  # statistics that are equal but for rounding
_HALVINGS = 24
# The places in a block that are the candidate's: of two values a side, the observed arrangement first.
_IN_BLOCK = sorted(combinations(range(4), 2), reverse=True)


def spent(error: float, share: float) -> float:
    """Return how much of `error` the looks may have spent when that share of the plan is done."""
    return error * math.log1p((math.e - 1) * min(share, 1.0))


def first_deciding_block(blocks: int, error: float, arrangements: int = len(_IN_BLOCK)) -> int | None:
    """Return after which of the planned blocks a look can decide at all; None if none can.

    A block has so many `arrangements`: of two values a side six, of two values and a limit four.
    """
    able = (j for j in range(1, blocks + 1) if spent(error, j / blocks) * arrangements**j >= 1 - _TIE)
    return next(able, None)


@dataclass(frozen=True)
class BlockEvidence:
    """The evidence of the first blocks of `planned` ones, as of each look, a row each.

    Of each re-dealing, the observed arrangement first: the difference of `means`, and the `weights` by which
    a shift moves it. `per_block`: how many arrangements a block has.
    """

    means: Values
    weights: Values
    planned: int
    per_block: int

    @property
    def estimate(self) -> float:
        """The difference of means that was observed, candidate − baseline."""
        return float(self.means[-1, 0])

    @property
    def arrangements(self) -> int:
        """The number of re-dealings looked at, the observed arrangement included."""
        return len(self.means[0])

    def statistics(self, shift: float) -> Values:
        """Return how far beyond `shift` each re-dealing is at each look."""
        return self.means - shift * self.weights

    def look_above(self, shift: float, error: float) -> int | None:
        """Return at which look (from 1) "the shift is `shift` or less" is rejected; None if at none."""
        return _look_at_which(self.statistics(shift), self.planned, error)

    def look_below(self, shift: float, error: float) -> int | None:
        """Return at which look "the shift is `shift` or more" is rejected."""
        return _look_at_which(-self.statistics(shift), self.planned, error)

    def lower(self, error: float) -> float | None:
        """Return the one-sided lower confidence limit: the test inverted; None where no shift is rejected."""
        return self._invert(error, above=True)

    def upper(self, error: float) -> float | None:
        """Return the one-sided upper confidence limit."""
        return self._invert(error, above=False)

    def _invert(self, error: float, *, above: bool) -> float | None:
        """Return the last shift that is rejected, counted from far away; by bisection.

        What is beyond the difference at every look so far is rejected at none.
        """
        rejected = self.look_above if above else self.look_below
        # Beyond the shift at which any re-dealing and the observed arrangement change places, none does.
        with np.errstate(divide="ignore", invalid="ignore"):
            equal = (self.means[:, :1] - self.means) / (self.weights[:, :1] - self.weights)
        equal = equal[np.isfinite(equal)]
        if not len(equal):
            return None
        seen = self.means[:, 0]
        near, far = (seen.max(), equal.min() - 1) if above else (seen.min(), equal.max() + 1)
        if rejected(far, error) is None:
            return None
        for _ in range(_HALVINGS):
            middle = (near + far) / 2
            near, far = (near, middle) if rejected(middle, error) else (middle, far)
        return float(far)


def of_blocks(
    baseline: Sequence[float] | Values, candidate: Sequence[float] | Values, planned: int
) -> BlockEvidence:
    """Return the evidence of values that come block by block, two a side in each."""
    values = np.hstack([np.reshape(baseline, (-1, 2)), np.reshape(candidate, (-1, 2))])
    return _redealt(values, _signs_of_two_sides(), planned)


def of_candidate(values: Sequence[float] | Values, planned: int) -> BlockEvidence:
    """Return the evidence of values, two a block, that could as well lie on the other side of the shift."""
    signs = np.array(list(product((0.5, -0.5), repeat=2)))
    return _redealt(np.reshape(values, (-1, 2)), signs, planned)


def step_down(evidence: Sequence[BlockEvidence], shifts: Sequence[float], error: float) -> list[int | None]:
    """Return at which look "the shift is that or less" is rejected of each, with one error for all of them.

    All have the same blocks. Each statistic is divided by its standard deviation over the re-dealings, and
    the greatest of each look is followed; those beyond it are rejected, and the rest is tested by itself.
    """
    scaled = np.array([_scale(each.statistics(at)) for each, at in zip(evidence, shifts, strict=True)])
    found: list[int | None] = [None] * len(evidence)
    left = list(range(len(evidence)))
    while left:
        limits = _boundaries(scaled[left].max(axis=0), evidence[0].planned, error)
        for at in left:
            found[at] = _first(scaled[at, :, 0] > limits)
        if all(found[at] is None for at in left):
            break
        left = [at for at in left if found[at] is None]
    return found


def _scale(statistics: Values) -> Values:
    spread = np.sqrt(np.square(statistics).mean(axis=1, keepdims=True))
    scaled: Values = np.divide(statistics, spread, out=np.zeros_like(statistics), where=spread > _TIE)
    return scaled


def _look_at_which(statistics: Values, planned: int, error: float) -> int | None:
    return _first(statistics[:, 0] > _boundaries(statistics, planned, error))


def _first(is_beyond: NDArray[np.bool_]) -> int | None:
    return int(np.argmax(is_beyond)) + 1 if is_beyond.any() else None


def _boundaries(statistics: Values, planned: int, error: float) -> Values:
    """Return beyond what a statistic is rejected at each look (a row); each column is a re-dealing."""
    limits = np.full(len(statistics), np.inf)
    total = statistics.shape[1]
    left = np.ones(total, dtype=np.bool_)
    for at, row in enumerate(statistics):
        values = row[left]
        allowed = math.floor(spent(error, (at + 1) / planned) * total + _TIE) - (total - len(values))
        if allowed <= 0:
            continue
        # The first that no longer fits: what equals it does not, either.
        limits[at] = np.partition(values, -allowed - 1)[-allowed - 1] + _TIE
        left &= row <= limits[at]
    return limits


def _redealt(values: Values, signs: Values, planned: int) -> BlockEvidence:
    """Return the evidence of blocks of `values` (a row each), dealt by `signs`, the observed ones first."""
    which = _dealings(len(signs), planned)[: len(values)]
    looks = np.arange(1, len(values) + 1)[:, None]
    dealt = np.take_along_axis(values @ signs.T, which, axis=1)
    moved = (signs[:, -2:].sum(axis=1))[which]
    return BlockEvidence(
        np.cumsum(dealt, axis=0) / looks, np.cumsum(moved, axis=0) / looks, planned, len(signs)
    )


def _signs_of_two_sides() -> Values:
    """Return what each of a block's four values counts in the difference of means: a row an arrangement."""
    signs = np.full((len(_IN_BLOCK), 4), -0.5)
    for row, places in zip(signs, _IN_BLOCK, strict=True):
        row[list(places)] = 0.5
    return signs


@lru_cache(maxsize=4)
def _dealings(per_block: int, blocks: int) -> NDArray[np.int64]:
    """Return which arrangement each block has in each re-dealing, a column each; in the first, the observed.

    They are those of the whole plan, so that the looks so far stay as they are when blocks are added.
    """
    if per_block**blocks <= MOST_REDEALT:
        return np.arange(per_block**blocks) // per_block ** np.arange(blocks)[:, None] % per_block
    drawn = min(MOST_REDEALT, _MOST_CELLS // blocks)
    which = np.random.default_rng(_SEED).integers(0, per_block, (drawn, blocks)).T
    which[:, 0] = 0
    return which
