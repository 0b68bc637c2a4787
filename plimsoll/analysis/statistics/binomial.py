"""Exact bounds: of a share of runs, and of a percentile of one run whose requests come in clusters."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.percentiles import MILLION, P99, P999, Groups, Sample, rank
from plimsoll.analysis.statistics.permutation import MOST_FORETOLD

_HALVINGS = 60
WATCHED = (P999, P99)
_FEWEST_WINDOWS = 10


@dataclass(frozen=True)
class BinomialTest:
    """`hit` of `runs` runs have it; `limit` is the share that is held to, `alpha` the least level asked."""

    hit: int
    runs: int
    limit: float
    alpha: float

    @classmethod
    def of(cls, values: Sequence[float], limit: float, alpha: float) -> "BinomialTest":
        """Count the runs whose value is 1 rather than 0."""
        return cls(round(sum(values)), len(values), limit, alpha)

    def evidence(self) -> "BinomialTest":
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
            then = BinomialTest(round(self.estimate * runs), runs, self.limit, self.alpha)
            if min(then.p_below(self.limit), then.p_above(self.limit)) <= alpha:
                return runs
        return None


@dataclass(frozen=True)
class BoundTest:
    """`bad` of `runs` runs break a limit on what no other run has at all; `estimate` is the figure's mean.

    What is at its bound has no spread to judge by, so the runs are counted: the limit is kept if every run
    keeps it, and broken if more than the share `limit` of all runs break it.
    """

    bad: int
    runs: int
    limit: float
    estimate: float

    def evidence(self) -> "BoundTest":
        """Return what the runs say: the count says it all."""
        return self

    def p_below(self, _: float) -> float:
        """Return 0 where every run keeps the limit."""
        return float(self.bad > 0)

    def p_above(self, shift: float) -> float:
        """Return p of "no larger share of runs breaks it"; 1 where the mean does not exceed `shift`."""
        return 1 - at_most(self.bad - 1, self.runs, self.limit) if self.estimate > shift else 1.0

    def least_share(self, alpha: float) -> float:
        """Return the lower confidence limit at 1 − `alpha` of the share of runs that break it."""
        return BinomialTest(self.bad, self.runs, self.limit, alpha).lower(alpha) or 0.0

    def runs_to_decide(self, away: float, alpha: float) -> int | None:
        """Return how many runs show it broken if the share that was seen stays as it is (whatever `away`)."""
        binomial = BinomialTest(self.bad, self.runs, self.limit, alpha)
        return binomial.runs_to_decide(away, alpha) if binomial.estimate > self.limit else None


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


def upper_bound_ms(sample: Sample, ppm: int, clustering: float, confidence: float = 0.95) -> float | None:
    """Return the upper end of the two-sided interval of percentile q = `ppm`/10⁶.

    Requests that come in clusters count as `clustering` times fewer. Of n′ independent ones it is the
    smallest order statistic X₍ᵣ₎ with P(Bin(n′, q) ≤ r−1) ≥ 1 − (1−confidence)/2 (Hahn, Meeker and Escobar,
    Statistical Intervals, 2nd ed., 5.2). None where even the largest is not enough: at 95 % and p99.9, under
    3,688 of them; and where it is a failure.
    """
    above = largest_count_above(int(sample.n / clustering), ppm, (1 - confidence) / 2)
    return None if above is None else sample.exact_ms(sample.n - int(above * clustering))


def largest_count_above(n: int, ppm: int, alpha: float) -> int | None:
    """Return the largest k with P(Y ≤ k) ≤ alpha for Y ~ Bin(n, 1−q): so many may stand above a bound.

    None if even P(Y = 0) is more than alpha, and for n = 0.
    """
    above = 1 - ppm / MILLION
    if not n or n * math.log1p(-above) > math.log(alpha):
        return None
    cumulated, k = 0.0, 0
    while True:
        cumulated += math.exp(_log_binomial(n, k, above))
        if cumulated > alpha:
            return k - 1
        k += 1


def _log_binomial(n: int, k: int, p: float) -> float:
    choices = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return choices + k * math.log(p) + (n - k) * math.log1p(-p)


def design_effect(slow: NDArray[np.int64], requests: NDArray[np.int64]) -> float:
    """Return by how much the `slow` of all `requests` are clustered; both are counts, one a slice of time.

    It is the variance of the number of slow requests in a window, by what independent requests would have
    (Kish's design effect; Survey Sampling, 1965, 8.2), at the width of window at which it is largest: from
    one slice to a tenth of the run. At least 1.
    """
    share = slow.sum() / requests.sum()
    if not 0 < share < 1:
        return 1.0
    effect, width = 1.0, 1
    while width == 1 or -(-len(slow) // width) >= _FEWEST_WINDOWS:
        edges = np.arange(0, len(slow), width)
        seen, of = np.add.reduceat(slow, edges), np.add.reduceat(requests, edges)
        effect = max(effect, float(np.square(seen - share * of).sum() / (share * (1 - share) * of.sum())))
        width *= 2
    return effect


def clustering(times: Groups, sample: Sample) -> float | None:
    """Return the design effect of what is as slow as p99.9 or p99, or slower; None of too few requests.

    The greater of both: of the slowest in a thousand there are few, and how they lie may be chance. `times`
    are those of `sample`, by slices of time.
    """
    limits_us = [sample.at(position) for ppm in WATCHED if (position := rank(ppm, sample.n))]
    if len(limits_us) < len(WATCHED):
        return None
    keys = np.array(times.keys())
    counts = times.sizes_from([0, *limits_us])  # the first: all
    slices = np.zeros((len(counts), keys[-1] - keys[0] + 1), dtype=np.int64)
    slices[:, keys - keys[0]] = counts
    requests, *slow = slices
    return max(design_effect(each, requests) for each in slow)
