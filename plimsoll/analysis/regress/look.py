"""One look at all series of an experiment: what is news, what is known, and what was mended. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from plimsoll.analysis.regress import rules
from plimsoll.analysis.regress.changes import Change, changes_of, older_changes_of
from plimsoll.analysis.regress.judgement import SeriesResult, SeriesState
from plimsoll.analysis.regress.recovery import is_of, recoveries, without_episodes
from plimsoll.analysis.regress.rows import ChangeRow, Past
from plimsoll.analysis.regress.series import NightSeries
from plimsoll.common.units import counted


@dataclass(frozen=True)
class _Found:
    """What was found in one series: all changes of `looked_at`, and those that are news, by place."""

    looked_at: NightSeries  # without the nights of regressions that were mended
    changes: list[Change]
    news: dict[int, Change]
    better: dict[int, Change]


class Look:
    """One look at all series, by what was reported before. `reported` is what the history is to note of it.

    What was found tonight before is found again, so that the same night gives the same.
    """

    def __init__(self, past: Past) -> None:
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
        self._recover([without_episodes(each, self.known, self._nights) for each in series])
        found = self._found([without_episodes(each, self.known, self._nights) for each in series])
        for one in found:
            self.reported += [self._row(one.looked_at, change, "worse") for change in one.news.values()]
            self.reported += [self._row(one.looked_at, change, "better") for change in one.better.values()]
        return [self._result(each, one) for each, one in zip(series, found, strict=True)]

    def _recover(self, series: Sequence[NightSeries]) -> None:
        """Note in `known` what is mended tonight, and report it."""
        mended = recoveries(series, self.known, self._nights)
        for at, row in enumerate(self.known):
            if row in mended:
                self.known[at] = replace(row, recovered=mended[row], recovery_found=self._tonight)
                self.reported.append(self.known[at])
            elif row in self._retracted:
                self.reported.append(row)

    def _found(self, series: Sequence[NightSeries]) -> list[_Found]:
        changes = [changes_of(each.scaled) if len(each.values) > 3 else [] for each in series]
        fresh = [self._fresh(each, found, rules.P_LIMIT) for each, found in zip(series, changes, strict=True)]
        places = [place for news, _ in fresh for place in news]
        results = []
        for each, found, (news, better) in zip(series, changes, fresh, strict=True):
            if places and not news:  # what moved along with it is one regression, and one message
                along, _ = self._fresh(each, found, rules.WEAK_P)
                news = {
                    p: c for p, c in along.items() if any(abs(p - other) <= rules.SAME for other in places)
                }
            results.append(_Found(each, found, news, better))
        return results

    def _fresh(
        self, series: NightSeries, changes: Sequence[Change], p_limit: float
    ) -> tuple[dict[int, Change], dict[int, Change]]:
        """Return the changes that are news, by the place of their first night: worse ones, better ones."""
        judged, count = series.judged, len(series.values)
        split: tuple[dict[int, Change], dict[int, Change]] = ({}, {})
        for side, kinds, is_it in (
            (split[0], ("worse", "baseline"), rules.is_worse),
            (split[1], ("better",), rules.is_better),
        ):
            sure = {
                self._place[judged[change.at].night.id]: change
                for change in changes
                if is_it(series, change) and rules.is_sure(change, count, p_limit)
            }
            old = [
                self._place[row.night]
                for row in self.known
                if row.kind in kinds and row.group == series.key.group and row.recovered is None
            ]
            side |= {place: sure[place] for place in rules.unreported(sorted(sure), old)}
        return split

    def _row(self, series: NightSeries, change: Change, kind: Literal["worse", "better"]) -> ChangeRow:
        key = series.key
        return ChangeRow(
            *(kind, key.scenario, key.backend, key.phase, key.metric),
            night=series.judged[change.at].night.id,
            found=self._tonight,
            before=series.back(change.before),
            after=series.back(change.after),
            p=change.p,
        )

    def _result(self, series: NightSeries, found: _Found) -> SeriesResult:
        looked_at, last = found.looked_at, series.nights[-1]
        tonight = last.value(series.shares) if last.night.id == self._tonight else None
        open_rows = [row for row in self._regressions(series) if row.recovered is None and not row.accepted]
        state, says = self._state(found, open_rows, tonight)
        level = _level(looked_at, found.changes, tonight is not None)
        if found.news or found.better:
            newest = max((found.news or found.better).values(), key=lambda one: one.at)
            level = looked_at.back(newest.before)
        elif open_rows and open_rows[0].metric == series.key.metric:
            level = open_rows[0].before
        since = min((self._began(row) for row in self._new_rows(series)), default=None)
        return SeriesResult(
            series,
            state,
            says,
            tonight,
            level,
            self._marked(series, found),
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
        mine = [row for row in self.known if row.kind == "worse" and is_of(row, series)]
        return sorted(mine, key=lambda row: self._place[row.night])

    def _state(
        self, found: _Found, open_rows: Sequence[ChangeRow], tonight: float | None
    ) -> tuple[SeriesState, str]:
        series = found.looked_at
        if found.news:
            return "news", self._biggest(series, found.news)
        mended = [row for row in self._regressions(series) if row.recovery_found == self._tonight]
        if mended:
            return "recovered", self._mend(series, mended)
        known = self._open(found, open_rows)
        if tonight is None:
            why = series.nights[-1].why or "did not run"
            return "missing", f"{why}; {known}" if known else why
        if found.better:
            better = self._biggest(series, found.better)
            return "better", f"{better}; {known}" if known else better
        if known:
            return "known", known
        needed = rules.nights_needed(series)
        if needed:
            more = counted(needed, f"more {'day' if series.daily else 'night'}")
            return "young", f"{more} until changes are reported"
        return "steady", ""

    def _biggest(self, series: NightSeries, which: dict[int, Change]) -> str:
        change = max(which.values(), key=lambda one: abs(one.after - one.before))
        return f"{rules.percent_more(series, change)} since {series.judged[change.at].night.name}"

    def _mend(self, series: NightSeries, mended: Sequence[ChangeRow]) -> str:
        """Return since when it is as before, and what it was meanwhile."""
        since = max(self._place[row.recovered] for row in mended if row.recovered is not None)
        first = mended[0]
        was = rules.percent_more(series, _as_change(series, first))
        return f"as before since {self._nights[since].name}; was {was} since {self._name(first)}"

    def _open(self, found: _Found, open_rows: Sequence[ChangeRow]) -> str:
        """Return what was reported before, and was neither accepted nor mended; empty where there is none."""
        series = found.looked_at
        if not open_rows:
            return self._along(found)
        first, last = open_rows[0], open_rows[-1]
        ends = "reported before (mending or --accept ends it)"
        settled = _settled(found.changes, len(series.values))
        start = max(
            sum(self._place[night.night.id] < self._place[last.night] for night in series.judged), settled
        )
        change = _as_change(series, first)
        values = series.scaled[start:]
        if values and first.metric == series.key.metric:
            now = replace(change, after=fmean(values))
            if rules.is_worse(series, now):
                return f"{rules.percent_more(series, now)} since {self._name(first)}, {ends}"
        was = f"was {rules.percent_more(series, change)} since {self._name(first)}"
        return f"{was}, {ends}; it is not sure yet that it is mended"

    def _along(self, found: _Found) -> str:
        """Return what moved with a regression of its scenario and backend that is known."""
        series = found.looked_at
        for change in reversed(found.changes):
            place = self._place[series.judged[change.at].night.id]
            near = [
                row
                for row in self.known
                if row.kind == "worse" and row.group == series.key.group
                if not row.accepted and row.recovered is None
                if abs(self._place[row.night] - place) <= rules.SAME
            ]
            if near and rules.is_worse(series, change):
                since = series.judged[change.at].night.name
                worse = rules.percent_more(series, change)
                return f"{worse} since {since}, reported before (mending or --accept ends it)"
        return ""

    def _marked(self, series: NightSeries, found: _Found) -> list[int]:
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
            for of, changes in (
                (series, older_changes_of(series.scaled)),
                (looked_at, found.changes),
            )
            for change in changes
            if change.p <= rules.P_LIMIT and change.after_count >= rules.LEAST_AFTER
            if rules.is_worse(of, change) or rules.is_better(of, change)
        }
        alone = {place for place in sure if all(abs(place - other) > rules.SAME for other in reported)}
        return sorted(reported | alone)

    def _began(self, row: ChangeRow) -> str:
        return self._nights[self._place[row.night]].facts.started_at

    def _name(self, row: ChangeRow) -> str:
        return self._nights[self._place[row.night]].name


def _as_change(series: NightSeries, row: ChangeRow) -> Change:
    """Return what was reported as a change of `series`."""
    return Change(0, series.scale(row.before), series.scale(row.after), 0, 0, row.p)


def _settled(changes: Sequence[Change], count: int) -> int:
    """Return the place of the last change that has settled in `count` values."""
    return max((change.at for change in changes if count - change.at >= rules.LEAST_AFTER), default=0)


def _level(series: NightSeries, changes: Sequence[Change], tonight: bool) -> float | None:
    """Return the level before tonight, since the last change that has settled."""
    values = series.scaled[:-1] if tonight else series.scaled
    mine = values[_settled(changes, len(values)) :][-30:]
    return series.back(fmean(mine)) if mine else None
