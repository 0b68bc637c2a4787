"""Rare stalls: what a few runs may not show, and what a single run among them does. Pure.

A stall is looked for where many requests in a row are slow at once, which chance does not do to requests that
have nothing to do with one another: the slowest ten in a row, by their median.
"""

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.student import quantile

IN_A_ROW = 10
_HALF = IN_A_ROW // 2
_WORSE = 2.0  # times the baseline's worst run; less is a matter for the gates themselves
_FELT_MS = 100.0  # what people notice (Nielsen, Usability Engineering, 1993, chapter 5)


def worst_us(response_us: NDArray[Any]) -> NDArray[Any] | None:
    """Return the median of the slowest ten requests in a row; they are in order along the last axis.

    Rows of ten overlap by half. None of fewer than ten requests.
    """
    halves = response_us.shape[-1] // _HALF
    if halves < 2:
        return None
    parts = response_us[..., : halves * _HALF].reshape(*response_us.shape[:-1], halves, _HALF)
    rows = np.concatenate([parts[..., :-1, :], parts[..., 1:, :]], axis=-1)
    worst: NDArray[Any] = np.partition(rows, _HALF - 1, axis=-1)[..., _HALF - 1].max(axis=-1)
    return worst


def far_worse(baseline_ms: Sequence[float], candidate_ms: Sequence[float], error: float = 0.05) -> list[int]:
    """Return which of the candidate's runs are far worse than the baseline's runs lead to expect.

    Such a run is twice as slow as the baseline's worst one, is felt, and lies above the prediction limit for
    the slowest of so many further runs of the baseline: one-sided, on logarithms, `error` over all of them
    (Hahn, Meeker and Escobar, Statistical Intervals, 2nd edition, 4.8). Of equal sides with log-normal runs
    it names one in at most that share of comparisons.
    """
    if len(baseline_ms) < 2 or not candidate_ms or min(*baseline_ms, *candidate_ms) <= 0:
        return []
    logs = [math.log(each) for each in baseline_ms]
    t = quantile(1 - error / len(candidate_ms), len(logs) - 1)
    expected = fmean(logs) + t * stdev(logs) * math.sqrt(1 + 1 / len(logs))
    worst_ms = max(_WORSE * max(baseline_ms), _FELT_MS)
    return [at for at, ms in enumerate(candidate_ms) if ms > worst_ms and math.log(ms) > expected]


def excluded_share(runs: int, confidence: float) -> float:
    """Return the share of runs in which something happens that so many runs without it exclude.

    Were it a larger share, one of n would have had it with probability `confidence`: it is
    1 − (1 − confidence)^(1/n).
    """
    return float(1 - (1 - confidence) ** (1 / runs))
