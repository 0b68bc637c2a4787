"""The share of runs in which something happens, held to a limit: the exact binomial test. Pure."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plimsoll.analysis.statistics.design import MOST_FORETOLD

_HALVINGS = 60


@dataclass(frozen=True)
class ShareOfRuns:
    """`hit` of `runs` runs have it; `limit` is the share that is held to, `alpha` what Holm asks first."""

    hit: int
    runs: int
    limit: float
    alpha: float

    @classmethod
    def of(cls, values: Sequence[float], limit: float, alpha: float) -> "ShareOfRuns":
        """Count the runs whose value is 1 rather than 0."""
        return cls(round(sum(values)), len(values), limit, alpha)

    def evidence(self) -> "ShareOfRuns":
        """Return what the runs say of the share: the count says it all."""
        return self

    @property
    def estimate(self) -> float:
        """The share seen."""
        return self.hit / self.runs

    @property
    def least_p(self) -> float:
        """The smallest p that so many runs can give."""
        return self.p_above(self.limit) if self.hit else self.p_below(self.limit)

    def p_below(self, share: float) -> float:
        """Return p of "the share is `share` or more": small where it is less."""
        return at_most(self.hit, self.runs, share)

    def p_above(self, share: float) -> float:
        """Return p of "the share is `share` or less": small where it is more."""
        return 1.0 if not self.hit else 1 - at_most(self.hit - 1, self.runs, share)

    def lower(self, alpha: float) -> float | None:
        """Return the lower confidence limit at 1 − `alpha` (Clopper and Pearson, Biometrika 26, 1934)."""
        return 0.0 if not self.hit else _root(lambda share: self.p_above(share) > alpha)

    def upper(self, alpha: float) -> float | None:
        """Return the upper confidence limit at 1 − `alpha`."""
        return 1.0 if self.hit == self.runs else _root(lambda share: self.p_below(share) <= alpha)

    def fewest_runs(self) -> int:
        """Return how many runs without it exclude that it happens in a larger share than the limit."""
        return math.ceil(math.log(self.alpha) / math.log1p(-self.limit) - 1e-9) if self.limit < 1 else 1

    def runs_to_decide(self, away: float, alpha: float) -> int | None:
        """Return how many runs decide if the share that was seen stays as it is (whatever `away`)."""
        for runs in range(self.runs + 1, MOST_FORETOLD + 1):
            then = ShareOfRuns(round(self.estimate * runs), runs, self.limit, self.alpha)
            if min(then.p_below(self.limit), then.p_above(self.limit)) <= alpha:
                return runs
        return None


def at_most(hit: int, runs: int, share: float) -> float:
    """Return P(X ≤ `hit`) of a binomial X."""
    return math.fsum(math.comb(runs, k) * share**k * (1 - share) ** (runs - k) for k in range(hit + 1))


def _root(beyond: Callable[[float], bool]) -> float:
    """Return the share from which on `beyond` holds."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return high
