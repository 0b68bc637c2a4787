"""The levels of a series of nights: where they change, and how sure each change is. Pure.

Apache Otava finds the places (E-divisive with a t test; Fleming et al., Hunter: Using Change Point
Detection to Hunt for Performance Regressions, 2023). It looks at one series once. Here many series are
looked at every night, and its p-values hold for neither that nor for nights that resemble their neighbours.
So what it finds is tested again: a t test of a linear model, with the degrees of freedom and the variance of
an autoregressive series (Bartlett 1946), against a limit that was chosen by simulation (docs/statistics.md).

In that model each stretch has a level, and each day of the week an effect of its own. Both are estimated
together, so that a step is not part of the effects that its own nights are judged by.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.common.errors import SettingsError

LOOK_BACK = 90  # nights; more cost time and describe a machine that has changed since
RECENT = 21  # nights: what is older was seen, or was before there was a history
OTAVA_P = 1e-4
GROUPS_FROM = 21  # nights: workdays and weekends have a level each
WEEKDAYS_FROM = 28  # nights: each day of the week has one
DRIFT_NIGHTS = 7  # fewer are a step
_DRIFT_LEAST = 10  # nights before it
_ROUNDS = 3  # of places by effects and effects by places; most need two
_JITTER = 1e-3  # Otava divides by the spread: two constant stretches would have none
_LEAST_SPREAD = 0.01  # a spread under 1 % is luck
_MOST_ALIKE = 0.9
_SATURDAY = 5
Values = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Change:
    """From place `at` on the values are others; means of the logarithms, or of the values, on either side.

    Of a drift, `after` is where it has come to. `p` is one-sided, for a change this way. `before_count`
    counts the values since the change before.
    """

    at: int
    before: float
    after: float
    before_count: int
    after_count: int
    p: float


def find_changes(values: Sequence[float], weekdays: Sequence[int] = ()) -> list[Change]:
    """Return the changes in the last nights of `values`. Raises SettingsError without Otava.

    `weekdays` (0: Monday) of the values; without them, all days are alike.
    """
    return _find_changes(values, weekdays)[0]


def level_values(values: Sequence[float], weekdays: Sequence[int]) -> Values:
    """Return `values` without the effects of their days of the week. Raises SettingsError without Otava."""
    return _find_changes(values, weekdays)[1]


def p_of_shift(before: Values, after: Values, *others: Values) -> float:
    """Return the one-sided p of the shift from `before` to `after`, this way.

    `others` are further stretches, each of one level: they say how much nights of one level differ.
    """
    stretches = [side for side in (before, after, *others) if len(side)]
    numbers = np.repeat(np.arange(len(stretches)), [len(side) for side in stretches])
    if len(numbers) < len(stretches) + 2:
        return 1.0
    values = np.concatenate(stretches)
    contrast = [-1.0, 1.0] + [0.0] * (len(stretches) - 2)
    return _contrast_p(_columns(numbers), values, contrast, numbers, numbers >= 0)


def _find_changes(values: Sequence[float], weekdays: Sequence[int]) -> tuple[list[Change], Values]:
    """Return the changes, and all values without the effects of their days of the week."""
    first, whole = max(0, len(values) - LOOK_BACK), np.array(values, dtype=np.float64)
    look = whole[first:]
    if len(look) < 4 or float(np.ptp(look)) < 1e-9:
        return [], whole
    ways = _group_days(np.array(weekdays or [0] * len(whole), dtype=np.int64), len(look))
    places: list[int] = []
    for _ in range(_ROUNDS):
        stretch = np.searchsorted(places, np.arange(len(look)), side="right")
        weeks = min(ways, key=lambda way: _misfit(np.hstack([_columns(stretch), way[first:]]), look))
        design = np.hstack([_columns(stretch), weeks[first:]])
        effects = weeks @ np.linalg.lstsq(design, look, rcond=None)[0][len(places) + 1 :]
        level = whole - effects + effects[first:].mean()
        known, places = places, _find_places(level[first:])
        if places == known or not weeks.size:
            break
    stretch = np.searchsorted(places, np.arange(len(look)), side="right")
    design = np.hstack([_columns(stretch), weeks[first:]])
    found = []
    for number, at in enumerate(places):
        before, after = stretch == number, stretch == number + 1
        contrast = np.zeros(design.shape[1])
        contrast[number], contrast[number + 1] = -1, 1
        found.append(
            Change(
                first + at,
                float(level[first:][before].mean()),
                float(level[first:][after].mean()),
                int(before.sum()),
                int(after.sum()),
                _contrast_p(design, look, contrast, stretch, before | after),
            )
        )
    edge = max((at for at in places if at < len(look) - RECENT), default=0)
    drift = _find_drift(look[edge:], weeks[first + edge :], level[first + edge :], first + edge)
    if drift and drift.p < min((change.p for change in found if change.at >= drift.at), default=OTAVA_P):
        found = [*(change for change in found if change.at < drift.at), drift]
    return found, level


def _find_drift(look: Values, weeks: Values, level: Values, first: int) -> Change | None:
    """Return the drift that the values end with; None where a step fits better, or they are too few."""
    count = len(look)
    starts = np.arange(max(_DRIFT_LEAST, count - RECENT), count - DRIFT_NIGHTS + 1)
    if not len(starts):
        return None
    still = np.hstack([np.ones((count, 1)), weeks])
    place = np.arange(count)
    drifts = np.maximum(place + 1 - starts[:, None], 0).astype(np.float64)
    steps = (place >= np.arange(_DRIFT_LEAST, count - 2)[:, None]).astype(np.float64)
    drift_fits, step_fits = (
        ((rests @ look) ** 2 / (rests**2).sum(axis=1))
        for rests in (each - each @ np.linalg.pinv(still).T @ still.T for each in (drifts, steps))
    )
    if drift_fits.max() < step_fits.max():
        return None
    at = int(starts[np.argmax(drift_fits)])
    design = np.hstack([drifts[[at - starts[0]]].T, still])
    one = np.zeros(count, dtype=np.int64)
    contrast = np.eye(design.shape[1])[0]
    rise = float(np.linalg.lstsq(design, look, rcond=None)[0][0]) * (count - at)
    before = float(level[:at].mean())
    p = _contrast_p(design, look, contrast, one, one == 0, chosen=1)
    return Change(first + at, before, before + rise, at, count - at, p)


def _group_days(weekdays: Numbers, count: int) -> list[Values]:
    """Return the ways to group days that `count` nights are enough for: a column for each group but one."""
    days = np.unique(weekdays, return_inverse=True)[1]
    groups = np.unique(weekdays >= _SATURDAY, return_inverse=True)[1]
    if count < GROUPS_FROM:
        return [_columns(np.zeros_like(groups))[:, 1:]]
    return [_columns(each)[:, 1:] for each in ((groups, days) if count >= WEEKDAYS_FROM else (groups,))]


def _misfit(design: Values, values: Values) -> float:
    """Return the Bayesian information criterion of a linear model (Schwarz, Annals of Statistics 6, 1978)."""
    rest = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    variance = max(float(rest @ rest) / len(values), _LEAST_SPREAD**2)
    return len(values) * math.log(variance) + int(design.shape[1]) * math.log(len(values))


def _columns(numbers: Numbers) -> Values:
    """Return a column for each number, from 0: 1 where it is, else 0."""
    return np.equal.outer(numbers, np.arange(numbers.max() + 1)).astype(np.float64)


def _contrast_p(
    design: Values, values: Values, contrast: Any, stretch: Numbers, judged: Flags, chosen: int = 0
) -> float:
    """Return the one-sided p of a contrast of the estimates of a linear model, the way that it points.

    The spread is that of the `judged` values. Values of one stretch are alike as neighbours are. Further
    parameters of the model were `chosen`.
    """
    from scipy.special import stdtr  # comes with Otava

    inverse = np.linalg.pinv(design)
    rest = values - design @ (inverse @ values)
    weights = np.asarray(contrast) @ inverse
    same = stretch[:, None] == stretch
    products = rest[1:] * rest[:-1] * np.diagonal(same, 1)
    # A short stretch hides that neighbours are alike; all nights that are looked at may show it.
    alike = max(_likeness(rest[of], products[of[1:]], stretch[of]) for of in (judged, stretch >= 0))
    alike = min(max(alike, 0.0), _MOST_ALIKE)
    squares = float((rest[judged] ** 2).sum())
    freedom = max(float((1 - (design * inverse.T).sum(axis=1))[judged].sum()) - chosen, 1.0)
    variance = max(squares / freedom, _LEAST_SPREAD**2)
    lags = np.abs(np.subtract.outer(np.arange(len(values)), np.arange(len(values))))
    spread = math.sqrt(variance * float(weights @ (same * alike**lags) @ weights))
    freedom_left = max(freedom * (1 - alike) / (1 + alike), 2.0)
    return float(stdtr(freedom_left, -abs(float(weights @ values)) / spread))


def _likeness(rest: Values, products: Values, stretch: Numbers) -> float:
    """Return the first-order autocorrelation of residuals, by the products of neighbours in one stretch."""
    squares = float((rest**2).sum())
    alike = float(products.sum()) / squares if squares > 1e-9 else 0.0  # less is rounding
    return (alike * len(rest) + len(np.unique(stretch))) / (len(rest) - 3)  # its bias is about −(1 + 3φ)/n


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


def _find_places(look: NDArray[np.float64]) -> list[int]:
    # The same jitter each time: one look, one answer.
    jittered = look + _JITTER * np.random.default_rng(1).standard_normal(len(look))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A window over all: with shorter ones Otava 0.8 may find a place twice, and fails over it.
        found, _ = need_otava()(jittered, window_len=2 * len(look), max_pvalue=OTAVA_P)
    return sorted({int(change.index) for change in found} - {0, len(look)})
