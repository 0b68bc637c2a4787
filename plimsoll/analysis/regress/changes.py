"""Changes of a series: Apache Otava finds the places, a test of our own says how sure each is. Pure.

Otava (E-divisive with a t test; Fleming et al., Hunter: Using Change Point Detection to Hunt for Performance
Regressions, 2023) looks at one series once. Here many series are looked at every night, and its p-values hold
for neither that nor for nights that resemble their neighbours. So what it finds is tested again: a t test
with the degrees of freedom and the variance of means of an autoregressive series (Bartlett 1946), against a
limit that was chosen by simulation (docs/statistics.md).
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.common.errors import SettingsError

LOOK_BACK = 90  # nights; more cost time and tell of a machine that is no more
OTAVA_P = 1e-4
_JITTER = 1e-3  # Otava divides by the spread: two constant stretches would have none
_LEAST_SPREAD = 0.01  # a spread under 1 % is luck
_MOST_ALIKE = 0.9
_SAME = 10  # nights: found again from another side, it may lie a little apart


@dataclass(frozen=True)
class Change:
    """From place `at` on the values are others; means of the logarithms, or of the values, on either side.

    `p` is one-sided, for a change this way. `before_count` counts the values since the change before.
    """

    at: int
    before: float
    after: float
    before_count: int
    after_count: int
    p: float


def changes_of(values: Sequence[float]) -> list[Change]:
    """Return the changes in the last nights of `values`. Raises SettingsError without Otava. Pure."""
    first = max(0, len(values) - LOOK_BACK)
    look = np.array(values[first:], dtype=np.float64)
    if len(look) < 4 or float(np.ptp(look)) < 1e-9:
        return []
    edges = [0, *_places(look), len(look)]
    found = []
    for left, at, right in zip(edges, edges[1:], edges[2:], strict=False):
        before, after = look[left:at], look[at:right]
        found.append(
            Change(
                first + at,
                float(before.mean()),
                float(after.mean()),
                len(before),
                len(after),
                p_of_shift(before, after),
            )
        )
    return found


def older_changes_of(values: Sequence[float]) -> list[Change]:
    """Return the changes before those that `changes_of` sees, for a page of all nights."""
    found: dict[int, Change] = {}
    last = max(0, len(values) - LOOK_BACK)
    for end in range(LOOK_BACK, last + LOOK_BACK, LOOK_BACK // 2):
        for change in changes_of(values[:end]):
            near = [at for at in found if abs(at - change.at) <= _SAME]
            if change.at < last and not near:
                found[change.at] = change
    return [found[at] for at in sorted(found)]


def need_otava() -> Any:
    """Return Otava's function. Raises SettingsError that says how to install it."""
    try:
        from otava.analysis import compute_change_points
    except ImportError:
        raise SettingsError(
            "plimsoll regress: Apache Otava is not installed, which finds change points: "
            "pip install 'plimsoll[regress]', or make regression, which installs it"
        ) from None
    return compute_change_points


def _places(look: NDArray[np.float64]) -> list[int]:
    # The same jitter each time: one look, one answer.
    jittered = look + _JITTER * np.random.default_rng(1).standard_normal(len(look))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A window over all: with shorter ones Otava 0.8 may find a place twice, and fails over it.
        found, _ = need_otava()(jittered, window_len=2 * len(look), max_pvalue=OTAVA_P)
    return sorted({int(change.index) for change in found} - {0, len(look)})


def p_of_shift(
    before: NDArray[np.float64], after: NDArray[np.float64], *others: NDArray[np.float64]
) -> float:
    """Return the one-sided p of the shift from `before` to `after`, this way.

    `others` are further stretches, each of one level: they say how much nights of one level differ. Pure.
    """
    from scipy.special import stdtr  # comes with Otava

    stretches = [side for side in (before, after, *others) if len(side)]
    count = sum(map(len, stretches))
    if count < len(stretches) + 2:
        return 1.0
    shift = float(after.mean() - before.mean())
    rests = [side - side.mean() for side in stretches]
    squares = sum(float((rest**2).sum()) for rest in rests)
    products = sum(float((rest[1:] * rest[:-1]).sum()) for rest in rests)
    alike = products / squares if squares > 0 else 0.0
    alike = min(max((alike * count + 2) / (count - 3), 0.0), _MOST_ALIKE)  # its bias is about −(1 + 3φ)/n
    freedom = count - len(stretches)
    variance = max(squares / freedom, _LEAST_SPREAD**2)
    spread = math.sqrt(variance * sum(_inflation(len(side), alike) / len(side) for side in (before, after)))
    freedom_left = max(freedom * (1 - alike) / (1 + alike), 2.0)
    return float(stdtr(freedom_left, -abs(shift) / spread))


def _inflation(count: int, alike: float) -> float:
    """Return how many times the variance of a mean is what independent values would give."""
    lags = np.arange(1, count)
    return float(1 + 2 * ((1 - lags / count) * alike**lags).sum())
