"""The confidence interval of a percentile of one run, if its requests were independent of one another."""

import math

from analysis.statistics.sample import MILLION, Sample


def upper_bound_ms(sample: Sample, ppm: int, confidence: float = 0.95) -> float | None:
    """Return the upper end of the two-sided order-statistic interval of percentile q = `ppm`/10⁶.

    The smallest order statistic X₍ᵣ₎ with P(Bin(n, q) ≤ r−1) ≥ 1 − (1−confidence)/2 (Hahn, Meeker and
    Escobar, Statistical Intervals, 2nd ed., 5.2). None where even the largest is not enough: at 95 % and
    p99.9, under 3,688 requests; and where it is a failure. Latencies follow one another, so the true interval
    is wider: this is a least one.
    """
    above = largest_count_above(sample.n, ppm, (1 - confidence) / 2)
    return None if above is None else sample.exact_ms(sample.n - above)


def lower_bound_ms(sample: Sample, ppm: int, confidence: float = 0.95) -> float | None:
    """Return the lower end of the same interval: the largest X₍ᵣ₎ with P(Bin(n, q) ≤ r−1) ≤ (1−confidence)/2.

    None where even the smallest is not enough, and where it is a failure.
    """
    above, alpha, cumulated, k = 1 - ppm / MILLION, (1 - confidence) / 2, 0.0, 0
    while k < sample.n:
        cumulated += math.exp(_log_binomial(sample.n, k, above))
        if 1 - cumulated <= alpha:
            return sample.exact_ms(sample.n - k)
        k += 1
    return None


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
