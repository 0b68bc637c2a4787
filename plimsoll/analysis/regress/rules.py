"""The rules by which a change is news. The figures were chosen by simulation (docs/statistics.md). Pure."""

import math
from collections.abc import Sequence

from plimsoll.analysis.comparing.metrics.error_share import MORE_ERRORS
from plimsoll.analysis.regress.changes import Change
from plimsoll.analysis.regress.series import NightSeries

MARGIN = 0.10  # a change under 10 % is no news, however sure it is
MORE_ERRORS_MARGIN = 10 * MORE_ERRORS  # of error shares: one request in a hundred more
P_LIMIT = 1e-6
WEAK_P = 0.01  # what moved with something that is sure need be no surer
LEAST_BEFORE = 10  # nights in all before the change
LEAST_SINCE = 5  # nights between the change before and this one
LEAST_AFTER = 3  # nights that are other
RECENT = 21  # nights: what is older was seen, or was before there was a history
SAME = 10  # nights within which a change that is found again is the same one


def ratio(series: NightSeries, change: Change) -> float:
    """Return how many times the values before those after are; of shares the difference."""
    before, after = series.back(change.before), series.back(change.after)
    return after - before if series.shares else after / before


def is_worse(series: NightSeries, change: Change) -> bool:
    """Return whether the change is for the worse, by the margin at least."""
    moved = ratio(series, change)
    return moved >= MORE_ERRORS_MARGIN if series.shares else moved >= 1 + MARGIN


def is_better(series: NightSeries, change: Change) -> bool:
    """Return whether the change is for the better, by the margin at least."""
    moved = ratio(series, change)
    return moved <= -MORE_ERRORS_MARGIN if series.shares else moved <= 1 / (1 + MARGIN)


def is_sure(change: Change, nights: int, p_limit: float = P_LIMIT) -> bool:
    """Return whether there is enough to report `change` of a series of `nights` nights."""
    return (
        change.p <= p_limit
        and change.at >= LEAST_BEFORE
        and change.before_count >= LEAST_SINCE
        and change.after_count >= LEAST_AFTER
        and change.at >= nights - RECENT
    )


def unreported(places: Sequence[int], reported: Sequence[int]) -> list[int]:
    """Return those of `places` that are not reported yet: each reported one stands for the nearest, once."""
    left = list(places)
    for old in sorted(reported, reverse=True):
        near = [place for place in left if abs(place - old) <= SAME]
        if near:
            left.remove(min(near, key=lambda place: (abs(place - old), place)))
    return left


def nights_needed(series: NightSeries) -> int:
    """Return how many more nights it takes until the first change could be reported; 0 from then on."""
    return max(LEAST_BEFORE + LEAST_AFTER - len(series.values), 0)


def percent_more(series: NightSeries, change: Change) -> str:
    """Return the change in words: `48 % slower`, `2.1 % more errors`."""
    moved = ratio(series, change)
    if series.shares:
        return f"{abs(moved):.2%} {'more' if moved > 0 else 'fewer'} errors".replace("%", " %")
    if moved >= 1:
        return f"{100 * (moved - 1):.0f} % slower" if moved < 3 else f"{moved:.1f} times as slow"
    faster = 1 / moved
    return f"{100 * (faster - 1):.0f} % faster" if faster < 3 else f"{faster:.1f} times as fast"


def finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None
