"""The last night of an experiment, from the history to a judgement whose news the history remembers.

`_findings_of_night` is the one place where the history asks the gatekeeper; it has no rules of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from plimsoll.analysis.compare.gates import Gates
from plimsoll.analysis.evidence.checks import (
    ANSWERS,
    RunGroup,
    findings_of_sides,
    identity_findings,
    merge_alike,
    run_findings,
)
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.generator import load_facts
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.evidence.storage import Value, differing, summed_up, tuned
from plimsoll.analysis.regress.days import LogStore, renew_days
from plimsoll.analysis.regress.judge import compared_runs, judge
from plimsoll.analysis.regress.judgement import Judgement, JudgingOptions, SeriesResult
from plimsoll.analysis.regress.levels import LOOK_BACK
from plimsoll.analysis.regress.nights import (
    PERCENTILES,
    ExperimentHistory,
    Group,
    NightRow,
    RunRow,
    StoredFinding,
    group_name,
)
from plimsoll.analysis.regress.store import HistoryStore
from plimsoll.common.units import ABSENT

NIGHTS = 10  # whose runs tonight's are held against
_SIDES = ("the nights before", "tonight")
_UNTIL = "If it is to be so from now on: plimsoll regress --accept --note WHY."
# Never the same on two nights.
_WEATHER = ("storage.facts.disks.drive.temperature_c",)
_MOST_NAMED = 5
_SHOWN = 60  # characters of a value


def judge_last_night(
    history: HistoryStore, experiment: str, gates: Gates | None = None, terms: JudgingOptions | None = None
) -> Judgement | None:
    """Judge the last night of `experiment`; None where it has no night. The history notes what is reported.

    Judged again, the same night gives the same. Without `terms` no night is stale. Raises SettingsError
    without Otava.
    """
    with history.transaction():
        renew_days(history, experiment)
        past = read_experiment(history, experiment)
        if not past.nights:
            return None
        earlier: list[Judgement] = []
        if past.daily:
            earlier = _judge_added_days(history, past, gates)
            past = replace(past, changes=history.changes(experiment))
        else:
            past = _ask_gatekeeper(history, past, gates is None or gates.answers)
        judgement = _judge_last(history, past, gates, terms)
    around = _runs_around_news(past.runs, judgement.series)
    loaded = {group: (history.load(before), history.load(last)) for group, (before, last) in around.items()}
    news = [  # of days that came along with the last one
        f"{day.night.name}: {each.series.key.name} {each.says}"
        for day in earlier
        for each in (*day.news, *day.recovered)
    ]
    notes = [*judgement.notes, *news, *circumstances(loaded)]
    return replace(judgement, notes=notes, earlier=earlier)


def read_experiment(history: HistoryStore, experiment: str) -> ExperimentHistory:
    """Return all that the history knows of `experiment`."""
    metrics = [*PERCENTILES, *history.time_measures(experiment)]
    return ExperimentHistory(
        experiment=experiment,
        nights=history.nights(experiment),
        runs=history.runs(experiment),
        figures=list(history.figures(experiment, metrics)),
        error_shares=list(history.error_shares(experiment)),
        changes=history.changes(experiment),
        decisions=history.decisions(experiment),
        daily=LogStore(history).time_zone(experiment) is not None,
    )


def _ask_gatekeeper(history: HistoryStore, past: ExperimentHistory, answers: bool) -> ExperimentHistory:
    """Let the gatekeeper look at tonight and at nights that are new; return `past` with what it found."""

    @cache
    def loaded(row: RunRow) -> MeasuredRun:
        return replace(history.load(row), night=nights[row.night].name)

    def night_runs(rows: Iterable[RunRow]) -> list[NightRun]:
        return [NightRun(row, loaded(row)) for row in rows if row.readable]

    nights = {night.id: night for night in past.nights}
    for night in past.nights:
        if night.findings is not None and night is not past.nights[-1]:
            continue
        mine = [replace(row, refused=()) for row in past.runs if row.night == night.id]
        found = _findings_of_night(night_runs(_rows_before(past, night)), night_runs(mine), answers)
        history.note_findings(night.id, found)
        past = _with_findings(past, night, found)
    return past


def _judge_added_days(history: HistoryStore, past: ExperimentHistory, gates: Gates | None) -> list[Judgement]:
    """Judge the days that came along with the last one, in order, as if each had come by itself.

    So a log of many weeks reports what it would have reported day by day. Return those with news.
    """
    seen = max((at for at, night in enumerate(past.nights) if night.findings is not None), default=-1)
    first = max(seen + 1, len(past.nights) - LOOK_BACK)
    found = []
    for count in range(first + 1, len(past.nights)):
        changes = history.changes(past.experiment)
        judgement = _judge_last(history, _past_until(replace(past, changes=changes), count), gates, None)
        if judgement.news or judgement.recovered:
            found.append(judgement)
    for night in past.nights:
        if night.findings is None:
            history.note_findings(night.id, [])
    return found


def _judge_last(
    history: HistoryStore, past: ExperimentHistory, gates: Gates | None, terms: JudgingOptions | None
) -> Judgement:
    """Judge the last night of `past`; the history notes what is reported."""
    compared = {run.id: history.load(run) for run in compared_runs(past.nights, past.runs)}
    judgement, changes = judge(past, compared, gates, terms)
    history.note_changes(past.experiment, changes)
    return judgement


def _past_until(past: ExperimentHistory, count: int) -> ExperimentHistory:
    """Return what was known after the first `count` nights."""
    nights = past.nights[:count]
    ids = {night.id for night in nights}
    return replace(past.with_runs([run for run in past.runs if run.night in ids]), nights=nights)


class NightRun(NamedTuple):
    """A run, and its row."""

    row: RunRow
    run: MeasuredRun


def _rows_before(past: ExperimentHistory, night: NightRow) -> list[RunRow]:
    """Return the fit runs of the last nights before `night`, since somebody last accepted what there was."""
    place = {each.id: at for at, each in enumerate(past.nights)}
    accepted = [
        place[each.night]
        for each in past.decisions
        if each.kind != "drop" and each.night in place and place[each.night] <= place[night.id]
    ]
    first = max(accepted, default=0)
    ran = {run.night for run in past.runs if run.is_fit and first <= place[run.night] < place[night.id]}
    last = sorted(ran, key=lambda each: place[each])[-NIGHTS:]
    return [run for run in past.runs if run.is_fit and run.readable and run.night in last]


def _findings_of_night(
    before: Sequence[NightRun], tonight: Sequence[NightRun], answers: bool = True
) -> list[StoredFinding]:
    """Return what is wrong with `tonight` beside `before`, scenario by scenario and backend by backend.

    What a run shows by itself is known already. Without `answers`, what concerns them are doubts.
    """
    every = [each.run for each in (*before, *tonight)]
    found: dict[Finding, None] = dict.fromkeys(identity_findings(every))
    for group in sorted({each.row.group for each in tonight}):
        now = [each.run for each in tonight if each.row.group == group]
        then = _select_alike([each.run for each in before if each.row.group == group], now)
        alone = {finding for run in now for finding in run_findings(run) if finding.disqualifies}
        for finding in findings_of_sides(then, now, _SIDES):
            each = finding if then else replace(finding, worse=False)
            if each not in alone:
                found[each] = None
    ids = {each.run.name: each.row.id for each in tonight}
    mine = merge_alike([finding for finding in found if ids.keys() & set(finding.runs)], _run_groups(tonight))
    return [_stored_finding(finding, ids, answers) for finding in mine]


def _run_groups(tonight: Sequence[NightRun]) -> list[RunGroup]:
    """Return the runs of each scenario and backend, and all, by name."""
    groups = [
        RunGroup(f" of {group_name(group)}", [each.run.name for each in tonight if each.row.group == group])
        for group in sorted({each.row.group for each in tonight})
    ]
    return [*groups, RunGroup("", [each.run.name for each in tonight])]


def _with_findings(
    past: ExperimentHistory, night: NightRow, found: Sequence[StoredFinding]
) -> ExperimentHistory:
    """Return `past` with what was found on a night, whose runs are refused by it."""
    refused = {
        run: tuple(each.text for each in found if each.disqualifies and run in each.runs)
        for each in found
        for run in each.runs
    }
    return replace(
        past,
        nights=[
            replace(each, findings=tuple(found)) if each.id == night.id else each for each in past.nights
        ],
        runs=[
            replace(run, refused=refused.get(run.id, ())) if run.night == night.id else run
            for run in past.runs
        ],
    )


def _select_alike(before: Sequence[MeasuredRun], tonight: Sequence[MeasuredRun]) -> list[MeasuredRun]:
    """Return those of `before` that were of the last one's load, if they say as much of it as `tonight`."""
    says_load = tonight[0].directory.facts.load is not None
    mine = [run for run in before if (run.directory.facts.load is not None) == says_load]
    return [run for run in mine if load_facts(run) == load_facts(mine[-1])]


def _stored_finding(finding: Finding, ids: dict[str, int], answers: bool) -> StoredFinding:
    if not answers and finding.kind in ANSWERS:
        finding = replace(finding, demoted=True)
    remedy = finding.remedy
    if finding.disqualifies and finding.kind not in (FindingKind.COPY, FindingKind.OVERLAP):
        remedy = f"{remedy} {_UNTIL}"
    return StoredFinding(
        name=finding.label,
        level=finding.level,
        text=finding.text,
        remedy=remedy,
        worse=finding.worse,
        runs=tuple(ids[name] for name in finding.runs if name in ids),
    )


def _runs_around_news(
    runs: Sequence[RunRow], series: Sequence[SeriesResult]
) -> dict[Group, tuple[RunRow, RunRow]]:
    """Return the last run before the news and the last of all, by scenario and backend with news."""
    found = {}
    for group, since in {
        each.series.key.group: each.since for each in series if each.state == "news"
    }.items():
        mine = [run for run in runs if run.group == group and run.readable and run.is_fit]
        before = [run for run in mine if since is not None and run.started_at < since]
        if before:
            found[group] = before[-1], mine[-1]
    return found


def circumstances(runs: Mapping[Group, tuple[MeasuredRun, MeasuredRun]]) -> Iterator[str]:
    """Yield what differs between both runs of every scenario and backend, a sentence each (hostile)."""
    for group, both in runs.items():
        found = [
            f"{key} ({_value_text(one)} → {_value_text(other)})"
            for key, (one, other) in differing([_run_facts(run) for run in both], expected=_WEATHER)
        ]
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        name = group_name(group)
        if found:
            yield f"{name}: since then these differ, too: {', '.join(found[:_MOST_NAMED])}{more}"


def _run_facts(run: MeasuredRun) -> dict[str, object]:
    facts = run.directory.facts
    return {
        "program": facts.program.model_dump(),
        "host": facts.host.model_dump(),
        "storage": facts.storage
        and {
            **facts.storage.model_dump(),
            "facts": summed_up(facts.storage.facts),
            "tuning": tuned(facts.storage.tuning),
        },
        **load_facts(run),
    }


def _value_text(value: Value) -> str:
    text = ABSENT if value is None else str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
