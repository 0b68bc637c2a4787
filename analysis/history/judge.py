"""Judges the last night of an experiment by the nights before it: data in, a judgement out. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Literal

from analysis.comparing.gates import Gates
from analysis.comparing.runs import ComparedRun
from analysis.history import rules
from analysis.history.baseline import baseline_nights, gate_results
from analysis.history.changes import Change, changes_of, older_changes_of
from analysis.history.judgement import GateResult, Judgement, SeriesResult, SeriesState
from analysis.history.rows import ChangeRow, NightRow, Past, RunRow
from analysis.history.series import NightSeries, series_of
from plimsoll.common.units import counted

MISSED = 10  # nights: a series that had a value in one of them is missed tonight
_WEAK_P = 0.01  # what moved with something that is sure need be no surer


def judge(
    past: Past, compared: Mapping[int, ComparedRun], gates: Gates | None = None
) -> tuple[Judgement, list[ChangeRow]]:
    """Judge the last night of `past`, which has one; return also the changes that it reports.

    `compared` are the runs of `baseline.compared_runs`, by their id. Changes that are reported again, since
    the same night is judged again, are among those returned. Raises SettingsError without Otava.
    """
    base = baseline_nights(past.nights)
    look = _Look(past)
    series = look.series(series_of(past))
    failures = _Failures(past, look.reported, base)
    gate_verdicts = gate_results(past, compared, gates)
    judgement = Judgement(
        experiment=past.experiment,
        night=past.nights[-1],
        nights=len(past.nights),
        series=series,
        gates=[failures.result(each) for each in gate_verdicts],
        unjudged=_unjudged(past, series),
        notes=_unfit_runs(past),
        baseline=base,
    )
    return judgement, [*look.reported, *failures.reported]


class _Look:
    """One look at all series, with the changes that were reported before; `reported` are those of tonight."""

    def __init__(self, past: Past) -> None:
        self.reported: list[ChangeRow] = []
        self._before = past.changes
        self._tonight = past.nights[-1].id
        self._place = {night.id: place for place, night in enumerate(past.nights)}

    def series(self, series: Sequence[NightSeries]) -> list[SeriesResult]:
        """Return the result of each, and report what is new."""
        changes = [changes_of(each.scaled) if len(each.values) > 3 else [] for each in series]
        fresh = [self._fresh(each, found, rules.P_LIMIT) for each, found in zip(series, changes, strict=True)]
        places = [place for news, _ in fresh for place in news]
        results = []
        for each, found, (news, better) in zip(series, changes, fresh, strict=True):
            if places and not news:  # what moved along with it is one regression, and one message
                along, _ = self._fresh(each, found, _WEAK_P)
                news = {
                    p: c for p, c in along.items() if any(abs(p - other) <= rules.SAME for other in places)
                }
            self.reported += [self._row(each, change, "worse") for change in news.values()]
            self.reported += [self._row(each, change, "better") for change in better.values()]
            results.append(self._result(each, found, news, better))
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
                for row in self._before
                if row.kind in kinds
                and row.group == series.key.group
                and (row.found != self._tonight or row.accepted)
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

    def _result(
        self,
        series: NightSeries,
        changes: Sequence[Change],
        news: dict[int, Change],
        better: dict[int, Change],
    ) -> SeriesResult:
        last = series.nights[-1]
        tonight = last.value(series.shares) if last.night.id == self._tonight else None
        level = _level(series, changes, tonight is not None)
        state, says = self._state(series, changes, news, better, tonight)
        if news or better:
            level = series.back(max((news or better).values(), key=lambda one: one.at).before)
        first = min(
            (series.judged[change.at].night.facts.started_at for change in news.values()), default=None
        )
        return SeriesResult(series, state, says, tonight, level, self._marked(series, changes), first)

    def _state(
        self,
        series: NightSeries,
        changes: Sequence[Change],
        news: dict[int, Change],
        better: dict[int, Change],
        tonight: float | None,
    ) -> tuple[SeriesState, str]:
        reported: tuple[tuple[SeriesState, dict[int, Change]], ...] = (("news", news), ("better", better))
        for state, which in reported:
            if which:
                change = max(which.values(), key=lambda one: abs(one.after - one.before))
                since = series.judged[change.at].night.name
                return state, f"{rules.percent_more(series, change)} since {since}"
        if tonight is None:
            return "missing", series.nights[-1].why or "did not run"
        known = self._unaccepted(series, changes)
        if known:
            return "known", known
        needed = rules.nights_needed(series)
        if needed:
            return "young", f"{counted(needed, 'more night')} until changes are reported"
        return "steady", ""

    def _unaccepted(self, series: NightSeries, changes: Sequence[Change]) -> str:
        """Return what was reported before, is worse still, and was not accepted."""
        for change in reversed(changes):
            place = self._place[series.judged[change.at].night.id]
            rows = [
                row
                for row in self._before
                if row.kind == "worse" and row.group == series.key.group and not row.accepted
                if abs(self._place[row.night] - place) <= rules.SAME
            ]
            if rows and rules.is_worse(series, change):
                since = series.judged[change.at].night.name
                return (
                    f"{rules.percent_more(series, change)} since {since}, reported before (--accept ends it)"
                )
        return ""

    def _marked(self, series: NightSeries, changes: Sequence[Change]) -> list[int]:
        """Return the places of the nights at which the page marks a change: reported ones, and sure ones."""
        key = series.key
        reported = {
            self._place[row.night]
            for row in self._before
            if row.group == key.group and (row.phase, row.metric) == (key.phase, key.metric)
        }
        sure = {
            self._place[series.judged[change.at].night.id]
            for change in [*older_changes_of(series.scaled), *changes]
            if change.p <= rules.P_LIMIT and change.after_count >= rules.LEAST_AFTER
            if rules.is_worse(series, change) or rules.is_better(series, change)
        }
        alone = {place for place in sure if all(abs(place - other) > rules.SAME for other in reported)}
        return sorted(reported | alone)


class _Failures:
    """The gates that fail tonight. One is news, unless its group was reported since the baseline."""

    def __init__(self, past: Past, of_series: Sequence[ChangeRow], base: Sequence[NightRow]) -> None:
        self.reported: list[ChangeRow] = []
        self._tonight = past.nights[-1].id
        place = {night.id: at for at, night in enumerate(past.nights)}
        self._known = {
            row.group
            for row in [*past.changes, *of_series]
            if base and row.kind in ("worse", "baseline") and place[row.night] > place[base[-1].id]
            if not (row.kind == "baseline" and row.found == self._tonight)
        }

    def result(self, result: GateResult) -> GateResult:
        """Return `result` with whether it is news, and report it where it is."""
        gate, group = result.gate, (result.gate.scenario, result.backend)
        if result.verdict.outcome != "FAIL" or group in self._known:
            return result
        self.reported.append(
            ChangeRow(
                *("baseline", *group, gate.phase, gate.metric),
                night=self._tonight,
                found=self._tonight,
                before=result.at_most,
                after=result.verdict.estimate or math.nan,
                p=result.verdict.p_fail or 0.0,
            )
        )
        return replace(result, is_news=True)


def _level(series: NightSeries, changes: Sequence[Change], tonight: bool) -> float | None:
    """Return the level before tonight, since the last change that has settled."""
    values = series.scaled[:-1] if tonight else series.scaled
    settled = [change.at for change in changes if len(values) - change.at >= rules.LEAST_AFTER]
    mine = values[settled[-1] if settled else 0 :][-30:]
    return series.back(fmean(mine)) if mine else None


def _unjudged(past: Past, series: Sequence[SeriesResult]) -> list[str]:
    """Return why tonight cannot be judged, a sentence each; none where it can (hostile)."""
    tonight = past.nights[-1]
    there = [run for run in past.runs if run.night == tonight.id]
    if not there:
        return [f"{tonight.name} has no run at all: see what plimsoll run said"]
    found = []
    planned = tonight.facts.planned
    if planned is not None and len(there) < planned:
        found.append(f"{tonight.name} has {len(there)} of its {planned} runs: plimsoll run --resume ends it")
    for group in dict.fromkeys(each.series.key.group for each in series):
        mine = [each for each in series if each.series.key.group == group]
        tails = [each for each in mine if not each.series.shares] or mine
        missed = [each for each in tails if each.tonight is None and _was_there(each.series, past.nights)]
        if missed:
            found.append(f"{missed[0].series.key.name}: no figure tonight: {missed[0].says.rstrip('.')}")
    return found


def _was_there(series: NightSeries, nights: Sequence[NightRow]) -> bool:
    recent = {night.id for night in nights[-1 - MISSED : -1]}
    return any(night.repeats and night.night.id in recent for night in series.nights)


def _unfit_runs(past: Past) -> list[str]:
    """Return which runs of tonight are unfit, and why (hostile)."""
    runs: Sequence[RunRow] = [run for run in past.runs if run.night == past.nights[-1].id]
    return [f"{run.name} {why}" for run in runs for why in run.unfit]
