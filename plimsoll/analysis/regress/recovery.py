"""Regressions that were mended: since which night the level is back where it was before. Pure.

Here the levels on both sides are known, so that it takes less than to find a change: nights that are not
worse than those before the regression, and surely better than those of the regression itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.comparing.metrics.error_share import ERROR_SHARE
from plimsoll.analysis.regress import rules
from plimsoll.analysis.regress.changes import Change, p_of_shift
from plimsoll.analysis.regress.rows import ChangeRow, NightRow
from plimsoll.analysis.regress.series import NightSeries

P_LIMIT = 1e-4  # chosen by simulation (docs/statistics.md)
_GOOD = 30  # nights before the regression that say how much nights differ
Values = NDArray[np.float64]


def is_of(row: ChangeRow, series: NightSeries) -> bool:
    """Return whether `row` was reported of `series`, which may have been another percentile then."""
    key = series.key
    same = row.metric == key.metric if series.daily else (row.metric == ERROR_SHARE) == series.shares
    return (row.group, row.phase) == (key.group, key.phase) and same


def recoveries(
    series: Sequence[NightSeries], reported: Sequence[ChangeRow], nights: Sequence[NightRow]
) -> dict[ChangeRow, int]:
    """Return which of the regressions that were reported are mended tonight, and the first night of that.

    What one night reported of a scenario and backend is mended at once: when one of its series surely is, and
    no other is worse any more. Of what was reported along with it, others need be no surer than it was then.
    """
    place = {night.id: at for at, night in enumerate(nights)}
    tellings: dict[tuple[int, tuple[str, str]], list[_Episode]] = defaultdict(list)
    for row in reported:
        for each in series:
            if row.kind == "worse" and row.recovered is None and is_of(row, each):
                tellings[row.found, row.group].append(_Episode(row, each, place, _edge(row, reported, place)))
    found: dict[ChangeRow, int] = {}
    for p_limit in (P_LIMIT, rules.WEAK_P):
        mended = {row.found for row in [*reported, *found] if row.recovered is not None or row in found}
        for (night, _), episodes in tellings.items():
            if episodes[0].row in found or (p_limit > P_LIMIT and night not in mended):
                continue
            since = _mended_since(episodes, p_limit)
            if since is not None:
                found |= {episode.row: nights[since].id for episode in episodes}
    return found


def without_episodes(
    series: NightSeries, reported: Iterable[ChangeRow], nights: Sequence[NightRow]
) -> NightSeries:
    """Return `series` without the nights of regressions that were mended.

    The level before and after is one stretch then, and a return is found as soon as the first time.
    """
    place = {night.id: at for at, night in enumerate(nights)}
    episodes = [
        range(place[row.night], place[row.recovered])
        for row in reported
        if row.kind == "worse" and row.recovered is not None and row.group == series.key.group
    ]
    left = [night for night in series.nights if not any(place[night.night.id] in each for each in episodes)]
    return replace(series, nights=left)


def _edge(row: ChangeRow, reported: Iterable[ChangeRow], place: Mapping[int, int]) -> int:
    """Return the place of the change before `row`, where the level that it left begins."""
    mine = [place[other.night] for other in reported if other.group == row.group]
    return max((at for at in mine if at < place[row.night]), default=0)


class _Episode:
    """The nights of one series since one regression, and those before it."""

    def __init__(self, row: ChangeRow, series: NightSeries, place: Mapping[int, int], edge: int) -> None:
        self.row, self._series = row, series
        places = np.array([place[night.night.id] for night in series.judged])
        values = np.array(series.scaled)
        since = places >= place[row.night]
        self._good: Values = values[(places >= edge) & ~since][-_GOOD:]
        self._after: Values = values[since]
        self.places: list[int] = places[since].tolist()
        # Another baseline gives days other values, so that what was reported of them is no level of theirs.
        same = (row.metric == series.key.metric and not series.daily) or not len(self._good)
        self._level = series.scale(row.before) if same else float(self._good.mean())

    def split(self, start: int) -> tuple[Values, Values]:
        """Return the values before place `start`, and those from it on."""
        at = int(np.searchsorted(self.places, start))
        return self._after[:at], self._after[at:]

    def is_back(self, start: int) -> bool:
        """Return whether the nights from `start` on are not worse than those before the regression."""
        bad, back = self.split(start)
        if not len(bad) or len(back) < rules.LEAST_AFTER:
            return False
        left = Change(0, self._level, float(back.mean()), len(self._good), len(back), 1.0)
        return not rules.is_worse(self._series, left)

    def is_sure(self, start: int, p_limit: float) -> bool:
        """Return whether those nights are surely better than the ones of the regression, or so many."""
        bad, back = self.split(start)
        better = back.mean() < bad.mean() and p_of_shift(bad, back, self._good) <= p_limit
        return bool(better or len(back) >= rules.RECENT)

    def scatter(self, start: int) -> float:
        """Return how far the values of both stretches lie from their means."""
        return sum(float(((side - side.mean()) ** 2).sum()) for side in self.split(start))


def _mended_since(episodes: Sequence[_Episode], p_limit: float) -> int | None:
    """Return the place of the first night of the mend; None where there is none."""
    starts = sorted({place for episode in episodes for place in episode.places})
    found = {}
    for start in starts:
        if all(episode.is_back(start) for episode in episodes):
            sure = [episode for episode in episodes if episode.is_sure(start, p_limit)]
            if sure:
                found[start] = sum(episode.scatter(start) for episode in sure)
    # Of several ways to split the nights the one that leaves each side most alike.
    return min(found, key=lambda start: found[start], default=None)
