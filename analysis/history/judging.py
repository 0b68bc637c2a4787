"""Judges the last night of an experiment, and remembers what it told, so that nothing is told twice."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from analysis.comparing.gates import ERROR_SHARE, Gates
from analysis.history import rules
from analysis.history.baseline import baseline_nights, gate_results
from analysis.history.besides import besides
from analysis.history.changes import Change, changes_of, older_changes_of
from analysis.history.judgement import GateResult, Judgement, SeriesResult, State
from analysis.history.schema import writing
from analysis.history.series import Series, series_of
from analysis.history.store import History, NightRow, RunRow, now
from analysis.units import counted

MISSED = 10  # nights: a series that had a value in one of them is missed tonight
_WEAK_P = 0.01  # what moved with something that is sure need be no surer


def judge(history: History, experiment: str, gates: Gates | None = None) -> Judgement | None:
    """Judge the last night of `experiment`; None where it has no night. What is told is noted.

    Judged again, the same night gives the same. Raises SettingsError without Otava.
    """
    nights = history.nights(experiment)
    if not nights:
        return None
    runs = history.runs(experiment)
    series = series_of(history, experiment)
    results = gate_results(history, nights, runs, gates)
    base = baseline_nights(nights)
    with writing(history.connection):
        told = _told(history, experiment)
        found = _Memory(history, experiment, nights, told).series(series)
        results = [_tell(history, result, experiment, nights, base) for result in results]
    return Judgement(
        experiment=experiment,
        night=nights[-1],
        nights=len(nights),
        series=found,
        gates=results,
        unjudged=_unjudged(nights, runs, found),
        notes=[*_notes(nights, runs), *besides(history, runs, found)],
        baseline=base,
    )


@dataclass(frozen=True)
class _Row:
    """A change that was told: whose it was, its first night, the night in which it was found."""

    kind: str
    group: tuple[str, str]
    phase: str
    metric: str
    night: int
    found: int
    accepted: bool


def _told(history: History, experiment: str) -> list[_Row]:
    rows = history.connection.execute(
        "SELECT kind, scenario, backend, phase, metric, night, found, accepted_at FROM change "
        "WHERE experiment = ? ORDER BY id",
        (experiment,),
    )
    return [
        _Row(
            row["kind"],
            (row["scenario"], row["backend"]),
            row["phase"],
            row["metric"],
            row["night"],
            row["found"],
            row["accepted_at"] is not None,
        )
        for row in rows
    ]


class _Memory:
    """One look at all series, with what was told of them before."""

    def __init__(
        self, history: History, experiment: str, nights: Sequence[NightRow], told: list[_Row]
    ) -> None:
        self._history, self._experiment, self._told = history, experiment, told
        self._tonight = nights[-1].id
        self._place = {night.id: place for place, night in enumerate(nights)}

    def series(self, series: Sequence[Series]) -> list[SeriesResult]:
        """Return what is to be said of each, noting what is new."""
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
            self._note(each, news, "worse")
            self._note(each, better, "better")
            results.append(self._result(each, found, news, better))
        return results

    def _fresh(
        self, series: Series, changes: Sequence[Change], p_limit: float
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
                for row in self._told
                if row.kind in kinds
                and row.group == series.key.group
                and (row.found != self._tonight or row.accepted)
            ]
            side |= {place: sure[place] for place in rules.untold(sorted(sure), old)}
        return split

    def _note(self, series: Series, changes: dict[int, Change], kind: str) -> None:
        for change in changes.values():
            key = series.key
            self._history.connection.execute(
                "INSERT OR IGNORE INTO change (kind, experiment, scenario, backend, phase, metric, night, "
                "found, before, after, p) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    kind,
                    *(key.experiment, key.scenario, key.backend, key.phase, key.metric),
                    *(series.judged[change.at].night.id, self._tonight),
                    *(series.back(change.before), series.back(change.after), change.p),
                ),
            )

    def _result(
        self, series: Series, changes: Sequence[Change], news: dict[int, Change], better: dict[int, Change]
    ) -> SeriesResult:
        last = series.nights[-1]
        tonight = last.value(series.shares) if last.night.id == self._tonight else None
        level = _level(series, changes, tonight is not None)
        state, says = self._said(series, changes, news, better, tonight)
        if news or better:
            level = series.back(max((news or better).values(), key=lambda one: one.at).before)
        first = min(
            (series.judged[change.at].night.night.started_at for change in news.values()), default=None
        )
        return SeriesResult(series, state, says, tonight, level, self._marked(series, changes), first)

    def _said(
        self,
        series: Series,
        changes: Sequence[Change],
        news: dict[int, Change],
        better: dict[int, Change],
        tonight: float | None,
    ) -> tuple[State, str]:
        for state, which in (("news", news), ("better", better)):
            if which:
                change = max(which.values(), key=lambda one: abs(one.after - one.before))
                since = series.judged[change.at].night.night.key.name
                return state, f"{rules.percent_more(series, change)} since {since}"  # type: ignore[return-value]
        if tonight is None:
            return "missing", series.nights[-1].why or "did not run"
        known = self._open(series, changes)
        if known:
            return "known", known
        needed = rules.nights_needed(series)
        if needed:
            return "young", f"{counted(needed, 'more night')} until changes are told"
        return "steady", ""

    def _open(self, series: Series, changes: Sequence[Change]) -> str:
        """Return what was told before, is worse still, and was not accepted."""
        for change in reversed(changes):
            place = self._place[series.judged[change.at].night.id]
            rows = [
                row
                for row in self._told
                if row.kind == "worse" and row.group == series.key.group and not row.accepted
                if abs(self._place[row.night] - place) <= rules.SAME
            ]
            if rows and rules.is_worse(series, change):
                since = series.judged[change.at].night.night.key.name
                return f"{rules.percent_more(series, change)} since {since}, told before (--accept ends it)"
        return ""

    def _marked(self, series: Series, changes: Sequence[Change]) -> list[int]:
        """Return the nights' places at which the page marks a change: those told, and those that are sure."""
        key = series.key
        told = {
            self._place[row.night]
            for row in self._told
            if row.group == key.group and (row.phase, row.metric) == (key.phase, key.metric)
        }
        sure = {
            self._place[series.judged[change.at].night.id]
            for change in [*older_changes_of(series.scaled), *changes]
            if change.p <= rules.P_LIMIT and change.after_count >= rules.LEAST_AFTER
            if rules.is_worse(series, change) or rules.is_better(series, change)
        }
        alone = {place for place in sure if all(abs(place - other) > rules.SAME for other in told)}
        return sorted(told | alone)


def _level(series: Series, changes: Sequence[Change], tonight: bool) -> float | None:
    """Return the level before tonight, since the last change that has settled."""
    values = series.scaled[:-1] if tonight else series.scaled
    settled = [change.at for change in changes if len(values) - change.at >= rules.LEAST_AFTER]
    mine = values[settled[-1] if settled else 0 :][-30:]
    return series.back(fmean(mine)) if mine else None


def _tell(
    history: History,
    result: GateResult,
    experiment: str,
    nights: Sequence[NightRow],
    base: Sequence[NightRow],
) -> GateResult:
    """Note a gate that fails, and whether that is to be told: not where its group was, since the baseline."""
    if result.verdict.outcome != "FAIL":
        return result
    place = {night.id: at for at, night in enumerate(nights)}
    since, tonight, gate = place[base[-1].id], nights[-1].id, result.gate
    group = (gate.scenario, result.backend)
    before = [
        row
        for row in _told(history, experiment)
        if row.group == group and row.kind in ("worse", "baseline") and place[row.night] > since
        if not (row.kind == "baseline" and row.found == tonight)
    ]
    if not before:
        history.connection.execute(
            "INSERT OR IGNORE INTO change (kind, experiment, scenario, backend, phase, metric, night, found, "
            "before, after, p) VALUES ('baseline', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(experiment, *group, gate.phase, gate.metric, tonight, tonight),
                *(result.at_most, result.verdict.estimate or math.nan, result.verdict.p_fail or 0.0),
            ),
        )
    return GateResult(
        result.backend, gate, result.limit, result.at_most, result.verdict, result.nights, tell=not before
    )


def _unjudged(
    nights: Sequence[NightRow], runs: Sequence[RunRow], series: Sequence[SeriesResult]
) -> list[str]:
    """Return why tonight cannot be judged, a sentence each; none where it can (hostile)."""
    tonight = nights[-1]
    there = [run for run in runs if run.night == tonight.id]
    if not there:
        return [f"{tonight.night.key.name} has no run at all: see what plimsoll run said"]
    found = []
    if tonight.night.planned is not None and len(there) < tonight.night.planned:
        found.append(
            f"{tonight.night.key.name} has {len(there)} of its {tonight.night.planned} runs: plimsoll run "
            "--resume ends it"
        )
    for group in dict.fromkeys(each.series.key.group for each in series):
        mine = [each for each in series if each.series.key.group == group]
        tails = [each for each in mine if each.series.key.metric != ERROR_SHARE] or mine
        missed = [each for each in tails if each.tonight is None and _was_there(each.series, nights)]
        if missed:
            found.append(f"{missed[0].series.key.name}: no figure tonight: {missed[0].says.rstrip('.')}")
    return found


def _was_there(series: Series, nights: Sequence[NightRow]) -> bool:
    recent = {night.id for night in nights[-1 - MISSED : -1]}
    return any(night.repeats and night.night.id in recent for night in series.nights)


def _notes(nights: Sequence[NightRow], runs: Sequence[RunRow]) -> list[str]:
    """Return what to know besides: which runs of tonight are unfit, and why (hostile)."""
    return [
        f"{run.path.rsplit('/', 1)[-1]} {why}"
        for run in runs
        if run.night == nights[-1].id
        for why in run.unfit
    ]


def accept(history: History, experiment: str) -> int:
    """Accept every change that was told; return how many."""
    with writing(history.connection):
        done = history.connection.execute(
            "UPDATE change SET accepted_at = ? WHERE experiment = ? AND accepted_at IS NULL",
            (now(), experiment),
        )
        return done.rowcount
