"""The confidence limit of a percentile of one run, whose requests are not independent of one another."""

import math

from plimsoll.analysis.statistics.sample import MILLION, Sample


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
