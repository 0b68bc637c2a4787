"""The permutations that a comparison may use, and the runs that a verdict takes. Pure.

Runs of one repeat lie next to one another in time, so that what drifts over hours cancels in their
difference. Permuting within repeats keeps that: it is the better test, and it takes more runs, since n
repeats have but 2^n arrangements, where n runs a side that are alike have (2n)!/(n!)². docs/statistics.md has
the rates of both.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

from plimsoll.analysis.statistics.permutation import MOST_EXACT, Evidence, paired, unpaired
from plimsoll.analysis.statistics.student import cdf, quantile

MOST_FORETOLD = 100  # runs a side; beyond, other remedies are better than patience
POWER = 0.8
_REACHED = 1 - 1e-9  # a p that is the level but for rounding reaches it


@dataclass(frozen=True)
class GateValues:
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
        t = quantile(1 - self._reached(runs, self.alpha), free)
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
        beyond = quantile(1 - reached, free)
        known = self._known
        wide = math.sqrt((runs - self.runs) / self.runs)
        kept, broken = (cdf((side * away / error - beyond) / wide, known) for side in (1, -1))
        return kept + broken

    def _scale(self, runs: int) -> tuple[float, float]:
        """Return the standard error of the effect with so many runs a side, and its degrees of freedom.

        The spread is that by which these runs are judged now: in too few pairs it could hardly be told.
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
