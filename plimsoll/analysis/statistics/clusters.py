"""How much a run's slow requests say: those that come in clusters are fewer than they look. Pure."""

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.groups import Groups
from plimsoll.analysis.statistics.sample import P99, P999, Sample, rank

WATCHED = (P999, P99)
_FEWEST_WINDOWS = 10


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
