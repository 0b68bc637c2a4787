"""Changes of a series of nights: which are news, which are known, which have recovered. Pure.

A recovery is easier to find than a change, as the levels on both sides are known:
nights that are not worse than those before it, and surely better than those of the regression itself.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

import numpy as np

from plimsoll.analysis.compare.gates import ERROR_SHARE, MORE_ERRORS
from plimsoll.analysis.regress.judgement import SeriesResult, SeriesState
from plimsoll.analysis.regress.levels import (
    LOOK_BACK,
    RECENT,
    Change,
    Values,
    find_changes,
    level_values,
    p_of_shift,
)
from plimsoll.analysis.regress.nights import ROUTE, ChangeRow, ExperimentHistory, NightRow, NightSeries
from plimsoll.common.units import counted

# A change is news by these rules. The figures were chosen by simulation (docs/statistics.md).
MARGIN = 0.10  # a change under 10 % is not news, however sure it is
MORE_ERRORS_MARGIN = 10 * MORE_ERRORS  # of error shares: one request in a hundred more
ROUTE_MARGIN_MS = 1.0  # of kinds of requests, beside the 10 %: some take microseconds
NEWS_P = 1e-6  # of one series; all kinds of requests together have as much
ALONG_P = 0.01  # what moved with something that is sure need be no surer
MENDED_P = 1e-4  # chosen by simulation (docs/statistics.md)
LEAST_BEFORE = 10  # nights in all before the change
LEAST_SINCE = 5  # nights between the change before and this one
LEAST_AFTER = 3  # nights that are other
SAME = 10  # nights within which a change that is found again, maybe from another side, is the same one
_GOOD = 30  # nights before the regression that say how much nights differ


@dataclass(frozen=True)
class _SeriesChanges:
    """What was found in one series: all changes of `looked_at`, and those that are news, by place.

    `late` are those for the worse that the load generator's lateness may be.
    """

    looked_at: NightSeries  # without the nights of regressions that were mended
    changes: list[Change]
    news: dict[int, Change]
    better: dict[int, Change]
    late: dict[int, Change]


class SeriesReview:
    """One look at all series, by what was reported before. `reported` is what the history is to note of it.

    What was found tonight before is found again, so that the same night gives the same.
    """

    def __init__(self, past: ExperimentHistory) -> None:
        self.reported: list[ChangeRow] = []
        self._nights = past.nights
        self._tonight = past.nights[-1].id
        self._place = {night.id: place for place, night in enumerate(past.nights)}
        self.known: list[ChangeRow] = []
        self._retracted: list[ChangeRow] = []  # mended by what was known of tonight, perhaps no longer
        for row in past.changes:
            if row.recovery_found == self._tonight:
                row = replace(row, recovered=None, recovery_found=None)
                self._retracted.append(row)
            if row.found != self._tonight or row.accepted:
                self.known.append(row)

    def results(self, series: Sequence[NightSeries]) -> list[SeriesResult]:
        """Return the result of each."""
        self._note_mended([_without_episodes(each, self.known, self._nights) for each in series])
        found = self._review_all([_without_episodes(each, self.known, self._nights) for each in series])
        for one in found:
            self.reported += [
                self._change_row(one.looked_at, change, "worse") for change in one.news.values()
            ]
            self.reported += [
                self._change_row(one.looked_at, change, "better") for change in one.better.values()
            ]
        return [self._series_result(each, one) for each, one in zip(series, found, strict=True)]

    def _note_mended(self, series: Sequence[NightSeries]) -> None:
        """Note in `known` what has recovered tonight, and report it."""
        mended = _find_mended(series, self.known, self._nights)
        for at, row in enumerate(self.known):
            if row in mended:
                self.known[at] = replace(row, recovered=mended[row], recovery_found=self._tonight)
                self.reported.append(self.known[at])
            elif row in self._retracted:
                self.reported.append(row)

    def _review_all(self, series: Sequence[NightSeries]) -> list[_SeriesChanges]:
        changes = [find_changes(each.scaled, each.weekdays) for each in series]
        routes = sum(each.is_route for each in series)
        fresh = [
            self._find_fresh(each, found, NEWS_P / routes if each.is_route else NEWS_P)
            for each, found in zip(series, changes, strict=True)
        ]
        places = [place for one in fresh for place in one.news]
        for at, one in enumerate(fresh):
            if places and not one.news:  # what moved along with it is one regression, and one message
                along = self._find_fresh(one.looked_at, one.changes, ALONG_P).news
                near = {p: c for p, c in along.items() if any(abs(p - other) <= SAME for other in places)}
                fresh[at] = replace(one, news=near)
        return fresh

    def _find_fresh(self, series: NightSeries, changes: list[Change], p_limit: float) -> _SeriesChanges:
        """Return the changes that are news, by the place of their first night: worse ones, better ones.

        Where the generator was late in some night, a change has to stand at the end of what the nights may
        have been that shows it least.
        """
        judged, count = series.judged, len(series.values)
        found = _SeriesChanges(series, changes, {}, {}, {})
        seen = list(changes)
        if in_time := _in_time(series):  # shows what lateness before a change hides
            seen += find_changes(in_time.scaled, in_time.weekdays)
        for side, kinds, is_it in (
            (found.news, ("worse", "baseline"), is_worse),
            (found.better, ("better",), _is_better),
        ):
            sure = {
                self._place[judged[change.at].night.id]: change
                for change in reversed(seen)
                if is_it(series, change) and is_sure(change, count, p_limit)
            }
            old = [
                self._place[row.night]
                for row in self.known
                if row.kind in kinds and row.group == series.key.group and row.recovered is None
            ]
            for place in select_unreported(sorted(sure), old):
                change = sure[place]
                if not series.is_late or _stands(series, change, is_it, p_limit):
                    side[place] = change
                elif is_it is is_worse:
                    found.late[place] = change
        return found

    def _change_row(self, series: NightSeries, change: Change, kind: Literal["worse", "better"]) -> ChangeRow:
        key = series.key
        return ChangeRow(
            *(kind, key.scenario, key.backend, key.phase, key.metric),
            night=series.judged[change.at].night.id,
            found=self._tonight,
            before=series.to_display(change.before),
            after=series.to_display(change.after),
            p=change.p,
        )

    def _series_result(self, series: NightSeries, found: _SeriesChanges) -> SeriesResult:
        looked_at, last = found.looked_at, series.nights[-1]
        tonight = last.value(series.shares) if last.night.id == self._tonight else None
        open_rows = [row for row in self._regressions(series) if row.recovered is None and not row.accepted]
        state, says = self._decide_state(found, open_rows, tonight)
        level = _level_before(looked_at, found.changes, tonight is not None)
        if found.news or found.better:
            newest = max((found.news or found.better).values(), key=lambda one: one.at)
            level = looked_at.to_display(newest.before)
        elif open_rows and open_rows[0].metric == series.key.metric:
            level = open_rows[0].before
        nights = (self._nights[self._place[row.night]] for row in self._new_rows(series))
        since = min((night.facts.started_at for night in nights), default=None)
        return SeriesResult(
            series,
            state,
            says,
            tonight,
            level,
            self._marked_places(series, found),
            since,
            is_open=bool(open_rows) or state == "known",
        )

    def _new_rows(self, series: NightSeries) -> Iterator[ChangeRow]:
        """Yield the regressions of `series` that are news tonight."""
        key = series.key
        for row in self.reported:
            mine = row.group == key.group and (row.phase, row.metric) == (key.phase, key.metric)
            if mine and row.kind == "worse" and row.found == self._tonight:
                yield row

    def _regressions(self, series: NightSeries) -> list[ChangeRow]:
        """Return the regressions of `series` that were reported before tonight, the oldest first."""
        mine = [row for row in self.known if row.kind == "worse" and _is_of(row, series)]
        return sorted(mine, key=lambda row: self._place[row.night])

    def _decide_state(
        self, found: _SeriesChanges, open_rows: Sequence[ChangeRow], tonight: float | None
    ) -> tuple[SeriesState, str]:
        series = found.looked_at
        if found.news:
            return "news", self._biggest(series, found.news)
        mended = [row for row in self._regressions(series) if row.recovery_found == self._tonight]
        if mended:
            return "recovered", self._describe_mend(series, mended)
        known = self._describe_open(found, open_rows)
        if tonight is None:
            why = series.nights[-1].why or "did not run"
            return "missing", f"{why}; {known}" if known else why
        if found.better:
            better = self._biggest(series, found.better)
            return "better", f"{better}; {known}" if known else better
        if found.late:
            return "late", (
                f"{self._biggest(series, found.late)}, or only the load generator was late: use a lower "
                "rate, or a quieter machine for the generator"
            )
        if known:
            return "known", known
        needed = max(LEAST_BEFORE + LEAST_AFTER - len(series.values), 0)
        if needed:
            more = counted(needed, f"more {'day' if series.daily else 'night'}")
            return "young", f"{more} until changes are reported"
        return "steady", ""

    def _biggest(self, series: NightSeries, which: dict[int, Change]) -> str:
        change = max(which.values(), key=lambda one: abs(one.after - one.before))
        return f"{_percent_more(series, change)} since {series.judged[change.at].night.name}"

    def _describe_mend(self, series: NightSeries, mended: Sequence[ChangeRow]) -> str:
        """Return since when it is as before, and what it was meanwhile."""
        since = max(self._place[row.recovered] for row in mended if row.recovered is not None)
        first = mended[0]
        was = _percent_more(series, _to_change(series, first))
        return f"as before since {self._nights[since].name}; was {was} since {self._night_name(first)}"

    def _describe_open(self, found: _SeriesChanges, open_rows: Sequence[ChangeRow]) -> str:
        """Return what was reported before, and has neither recovered nor been accepted; may be empty."""
        series = found.looked_at
        if not open_rows:
            return self._describe_along(found)
        first, last = open_rows[0], open_rows[-1]
        ends = "reported before (until it recovers or is accepted with --accept)"
        settled = _last_settled(found.changes, len(series.values))
        start = max(
            sum(self._place[night.night.id] < self._place[last.night] for night in series.judged), settled
        )
        change = _to_change(series, first)
        values = level_values(series.scaled, series.weekdays)[start:].tolist()
        if values and first.metric == series.key.metric:
            now = replace(change, after=fmean(values))
            if is_worse(series, now):
                return f"{_percent_more(series, now)} since {self._night_name(first)}, {ends}"
        was = f"was {_percent_more(series, change)} since {self._night_name(first)}"
        return f"{was}, {ends}; it has not surely recovered yet"

    def _describe_along(self, found: _SeriesChanges) -> str:
        """Return what moved with a regression of its scenario and backend that is known."""
        series = found.looked_at
        for change in reversed(found.changes):
            place = self._place[series.judged[change.at].night.id]
            near = [
                row
                for row in self.known
                if row.kind == "worse" and row.group == series.key.group
                if not row.accepted and row.recovered is None
                if abs(self._place[row.night] - place) <= SAME
            ]
            if near and is_worse(series, change):
                since = series.judged[change.at].night.name
                worse = _percent_more(series, change)
                return (
                    f"{worse} since {since}, reported before (until it recovers or is accepted with --accept)"
                )
        return ""

    def _marked_places(self, series: NightSeries, found: _SeriesChanges) -> list[int]:
        """Return the places of the nights at which the page marks a change: reported ones, and sure ones."""
        key, looked_at = series.key, found.looked_at
        rows = [
            row
            for row in [*self.known, *self.reported]
            if row.group == key.group and (row.phase, row.metric) == (key.phase, key.metric)
        ]
        reported = {self._place[row.night] for row in rows}
        reported |= {self._place[row.recovered] for row in rows if row.recovered is not None}
        sure = {
            self._place[of.judged[change.at].night.id]
            for of, changes in ((series, _find_older_changes(series)), (looked_at, found.changes))
            for change in changes
            if change.p <= NEWS_P and change.after_count >= LEAST_AFTER
            if is_worse(of, change) or _is_better(of, change)
        }
        alone = {place for place in sure if all(abs(place - other) > SAME for other in reported)}
        return sorted(reported | alone)

    def _night_name(self, row: ChangeRow) -> str:
        return self._nights[self._place[row.night]].name


def _in_time(series: NightSeries) -> NightSeries | None:
    """Return the series without the load generator's lateness; None where it was never late."""
    return series.from_end(0, kind=True) if series.is_late else None


def _stands(
    series: NightSeries, change: Change, is_it: Callable[[NightSeries, Change], bool], p_limit: float
) -> bool:
    """Return whether a change is found again at the end of all lateness that shows it least."""
    end = series.from_end(change.at, kind=change.after > change.before)
    return any(
        abs(each.at - change.at) <= SAME and is_it(end, each) and is_sure(each, len(end.values), p_limit)
        for each in find_changes(end.scaled, end.weekdays)
    )


def _to_change(series: NightSeries, row: ChangeRow) -> Change:
    return Change(0, series.scale(row.before), series.scale(row.after), 0, 0, row.p)


def _last_settled(changes: Sequence[Change], count: int) -> int:
    """Return the place of the last change that has settled in `count` values."""
    return max((change.at for change in changes if count - change.at >= LEAST_AFTER), default=0)


def _level_before(series: NightSeries, changes: Sequence[Change], tonight: bool) -> float | None:
    """Return the level before tonight, since the last change that has settled."""
    values = series.scaled[:-1] if tonight else series.scaled
    mine = values[_last_settled(changes, len(values)) :][-30:]
    return series.to_display(fmean(mine)) if mine else None


def ratio(series: NightSeries, change: Change) -> float:
    """Return how many times the values before those after are; of shares the difference."""
    before, after = series.to_display(change.before), series.to_display(change.after)
    return after - before if series.shares else after / before


def is_worse(series: NightSeries, change: Change) -> bool:
    """Return whether the change is for the worse, by the margin at least."""
    moved = ratio(series, change)
    if series.is_route and math.exp(change.after) - math.exp(change.before) < ROUTE_MARGIN_MS:
        return False
    return moved >= MORE_ERRORS_MARGIN if series.shares else moved >= 1 + MARGIN


def _is_better(series: NightSeries, change: Change) -> bool:
    """Return whether the change is for the better, by the margin at least."""
    moved = ratio(series, change)
    return moved <= -MORE_ERRORS_MARGIN if series.shares else moved <= 1 / (1 + MARGIN)


def is_sure(change: Change, nights: int, p_limit: float = NEWS_P) -> bool:
    """Return whether there is enough to report `change` of a series of `nights` nights."""
    return (
        change.p <= p_limit
        and change.at >= LEAST_BEFORE
        and change.before_count >= LEAST_SINCE
        and change.after_count >= LEAST_AFTER
        and change.at >= nights - RECENT
    )


def select_unreported(places: Sequence[int], reported: Sequence[int]) -> list[int]:
    """Return those of `places` that are not reported yet: each reported one stands for the nearest, once."""
    left = list(places)
    for old in sorted(reported, reverse=True):
        near = [place for place in left if abs(place - old) <= SAME]
        if near:
            left.remove(min(near, key=lambda place: (abs(place - old), place)))
    return left


def _percent_more(series: NightSeries, change: Change) -> str:
    """Return the change in words: `48 % slower`, `2.1 % more errors`."""
    moved = ratio(series, change)
    if series.shares:
        return f"{abs(moved):.2%} {'more' if moved > 0 else 'fewer'} errors".replace("%", " %")
    if moved >= 1:
        return f"{100 * (moved - 1):.0f} % slower" if moved < 3 else f"{moved:.1f} times as slow"
    faster = 1 / moved
    return f"{100 * (faster - 1):.0f} % faster" if faster < 3 else f"{faster:.1f} times as fast"


def _find_mended(
    series: Sequence[NightSeries], reported: Sequence[ChangeRow], nights: Sequence[NightRow]
) -> dict[ChangeRow, int]:
    """Return which of the reported regressions have recovered tonight, and the first night of that.

    What one night reported of a scenario and backend recovers together: when one of its series surely is, and
    no other is worse any more. Of what was reported along with it, others must be no surer than it was then.
    """
    place = {night.id: at for at, night in enumerate(nights)}
    tellings: dict[tuple[int, tuple[str, str]], list[_Regression]] = defaultdict(list)
    for row in reported:
        for each in series:
            if row.kind == "worse" and row.recovered is None and _is_of(row, each):
                tellings[row.found, row.group].append(
                    _Regression(row, each, place, _previous_change(row, reported, place))
                )
    found: dict[ChangeRow, int] = {}
    for p_limit in (MENDED_P, ALONG_P):
        mended = {row.found for row in [*reported, *found] if row.recovered is not None or row in found}
        for (night, _), episodes in tellings.items():
            if episodes[0].row in found or (p_limit > MENDED_P and night not in mended):
                continue
            since = _find_mend(episodes, p_limit)
            if since is not None:
                found |= {episode.row: nights[since].id for episode in episodes}
    return found


def _without_episodes(
    series: NightSeries, reported: Iterable[ChangeRow], nights: Sequence[NightRow]
) -> NightSeries:
    """Return `series` without the nights of regressions that have recovered.

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


def _is_of(row: ChangeRow, series: NightSeries) -> bool:
    """Return whether `row` was reported of `series`, which may have been another percentile then."""
    key = series.key
    is_one = series.daily or series.is_route or row.metric.startswith(ROUTE)
    same = row.metric == key.metric if is_one else (row.metric == ERROR_SHARE) == series.shares
    return (row.group, row.phase) == (key.group, key.phase) and same


def _previous_change(row: ChangeRow, reported: Iterable[ChangeRow], place: Mapping[int, int]) -> int:
    """Return the place of the change before `row`, where the level that it left begins."""
    mine = [place[other.night] for other in reported if other.group == row.group]
    return max((at for at in mine if at < place[row.night]), default=0)


class _Regression:
    """The nights of one series since one regression, and those before it."""

    def __init__(self, row: ChangeRow, series: NightSeries, place: Mapping[int, int], edge: int) -> None:
        self.row, self._series = row, series
        places = np.array([place[night.night.id] for night in series.judged])
        values = level_values(series.scaled, series.weekdays)
        in_time = _in_time(series)
        least = level_values(in_time.scaled, in_time.weekdays) if in_time else values
        since = places >= place[row.night]
        self._good: Values = values[(places >= edge) & ~since][-_GOOD:]
        self._after: Values = values[since]
        self._least: Values = least[since]  # a recovery that lateness may be is none
        self.places: list[int] = places[since].tolist()
        # Another baseline gives days other values, so what was reported of them is not a level of theirs.
        same = (row.metric == series.key.metric and not series.daily) or not len(self._good)
        self._level = series.scale(row.before) if same else float(self._good.mean())

    def split(self, start: int) -> tuple[Values, Values]:
        """Return the values before place `start`, and those from it on."""
        at = int(np.searchsorted(self.places, start))
        return self._least[:at], self._after[at:]

    def is_back(self, start: int) -> bool:
        """Return whether the nights from `start` on are not worse than those before the regression."""
        bad, back = self.split(start)
        if not len(bad) or len(back) < LEAST_AFTER:
            return False
        left = Change(0, self._level, float(back.mean()), len(self._good), len(back), 1.0)
        return not is_worse(self._series, left)

    def is_sure(self, start: int, p_limit: float) -> bool:
        """Return whether those nights are surely better than the ones of the regression, or so many."""
        bad, back = self.split(start)
        better = back.mean() < bad.mean() and p_of_shift(bad, back, self._good) <= p_limit
        return bool(better or len(back) >= RECENT)

    def scatter(self, start: int) -> float:
        """Return how far the values of both stretches lie from their means."""
        return sum(float(((side - side.mean()) ** 2).sum()) for side in self.split(start))


def _find_mend(episodes: Sequence[_Regression], p_limit: float) -> int | None:
    """Return the place of the first night of the recovery, or None."""
    starts = sorted({place for episode in episodes for place in episode.places})
    found = {}
    for start in starts:
        if all(episode.is_back(start) for episode in episodes):
            sure = [episode for episode in episodes if episode.is_sure(start, p_limit)]
            if sure:
                found[start] = sum(episode.scatter(start) for episode in sure)
    # Of several ways to split the nights the one that leaves each side most alike.
    return min(found, key=lambda start: found[start], default=None)


def _find_older_changes(series: NightSeries) -> list[Change]:
    """Return the changes before those that `find_changes` sees, for a page of all nights."""
    found: dict[int, Change] = {}
    values, weekdays = series.scaled, series.weekdays
    last = max(0, len(values) - LOOK_BACK)
    for end in range(LOOK_BACK, last + LOOK_BACK, LOOK_BACK // 2):
        for change in find_changes(values[:end], weekdays[:end]):
            near = [at for at in found if abs(at - change.at) <= SAME]
            if change.at < last and not near:
                found[change.at] = change
    return [found[at] for at in sorted(found)]
