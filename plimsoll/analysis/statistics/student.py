"""Student's t: its distribution, and its quantiles. Pure."""

import math
from functools import lru_cache

_STEPS = 200
_EXACT = 1e-14
_FAR = 1e6


def cdf(t: float, df: float) -> float:
    """Return P(T ≤ t) with `df` degrees of freedom."""
    tail = _incomplete_beta(df / (df + t * t), df / 2, 0.5) / 2
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def quantile(share: float, df: float) -> float:
    """Return the t below which `share` (0 to 1, neither of them) lies: by bisection."""
    low, high = -_FAR, _FAR
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if cdf(middle, df) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        before = value
        for each in (even, odd):
            d = 1 / (1 + each * d)
            c = 1 + each / c
            value *= c * d
        if abs(value - before) < _EXACT * value:
            break
    return math.exp(logs) / a * value
