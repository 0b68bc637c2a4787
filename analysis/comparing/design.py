"""The permutations that a comparison may use, and the runs that a verdict takes. Pure.

Runs of one repeat lie next to one another in time, so that what drifts over hours cancels in their
difference. Permuting within repeats keeps that: it is the better test, and it takes more runs, since n
repeats have but 2^n arrangements, where n runs a side that are alike have (2n)!/(n!)². docs/statistics.md has
the rates of both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

from analysis.comparing.permutation import Evidence, paired, unpaired

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
        """Return how many runs a side would decide in 4 of 5 cases, if effect and spread stay as they are.

        `away` is how far the estimate is from the limit, `alpha` what is asked of this gate. None where that
        would be more than `MOST_FORETOLD`, or nothing that patience would bring.
        """
        if away <= 0:
            return None
        for runs in range(max(self.runs + 1, self.fewest_runs()), MOST_FORETOLD + 1):
            in_pairs = self.pairs_at(runs)
            if runs >= _needed(self.spread(in_pairs) / away, alpha, one_sample=self.alone or in_pairs):
                return runs
        return None


def _needed(spread: float, alpha: float, *, one_sample: bool) -> float:
    """Return the sample size of a t test: the normal one, and what t costs (Guenther, Am. Stat. 35, 1981)."""
    z_alpha, z_power = NormalDist().inv_cdf(1 - alpha), NormalDist().inv_cdf(POWER)
    normal = ((z_alpha + z_power) * spread) ** 2
    return normal + z_alpha**2 / 2 if one_sample else 2 * normal + z_alpha**2 / 4


def _squares(values: Sequence[float]) -> float:
    mean = fmean(values) if values else 0.0
    return math.fsum((value - mean) ** 2 for value in values)
