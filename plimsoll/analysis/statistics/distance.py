"""How far a side lies behind the one that did best, and how sure that is: no side was chosen before. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.analysis.statistics.design import GateValues

ERROR = 0.05  # of all comparisons together


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
    values = GateValues(best, other, in_pairs, alpha)
    evidence = values.evidence()
    lower, upper = (
        None if limit is None else math.exp(limit) for limit in (evidence.lower(alpha), evidence.upper(alpha))
    )
    p = min(evidence.p_above(0) * 2 * pairs, 1.0)
    runs = (len(best), len(other))
    return Distance(math.exp(evidence.estimate), lower, upper, p, runs, values.fewest_runs())
