"""The last night of an experiment, judged by the nights before it: data in, a judgement out. Pure.

Gates are judged as `plimsoll compare` decides, by the last nights against the baseline's. The night is the
unit: runs of one night share it, and are more alike than those of two. So each night gives one value, and
as many nights of either side are compared as it takes.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from statistics import fmean

from plimsoll.analysis.compare.decision import Question, Verdict, decide
from plimsoll.analysis.compare.gates import LIMITS, Gate, Gates, Limit, NoFigureError, default_gates
from plimsoll.analysis.compare.questions import value_of, without_lateness
from plimsoll.analysis.evidence.generator import load_facts
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.evidence.sides import Side
from plimsoll.analysis.evidence.storage import differing
from plimsoll.analysis.regress.changes import SeriesReview
from plimsoll.analysis.regress.judgement import GateResult, Judgement, JudgingOptions, SeriesResult
from plimsoll.analysis.regress.nights import (
    ChangeRow,
    Decision,
    ExperimentHistory,
    Group,
    NightRow,
    NightSeries,
    RunRow,
    SeriesKey,
    build_series,
    describe_unfit,
    explain_unfit,
    group_name,
)
from plimsoll.common.errors import gravest_first
from plimsoll.common.units import counted, duration_text

BASELINE_NIGHTS = 14
LAST_NIGHTS = 7
_MOST_KINDS = 3
LOOKS = 100  # nights over which all looks together are to be wrong no more often than one look may be
_RunsByNight = dict[int, list[MeasuredRun]]


def judge(
    past: ExperimentHistory,
    compared: Mapping[int, MeasuredRun],
    gates: Gates | None = None,
    terms: JudgingOptions | None = None,
) -> tuple[Judgement, list[ChangeRow]]:
    """Judge the last night of `past`, which has one; return also the changes that the history is to note.

    `compared` are the runs of `compared_runs`, by their id. Without `terms` no night is stale.
    Changes that are reported again, since the same night is judged again, are among those returned. Raises
    SettingsError without Otava.
    """
    left = _without_dropped(past)
    base = baseline_nights(left.nights)
    look = SeriesReview(left)
    results = look.results([each for each in build_series(left) if not _is_series_dropped(past, each)])
    series, untold = _select_told(results)
    failures = GateReview(left, look, base)
    judged_gates = [failures.result(each) for each in _gate_results(left, compared, gates)]
    stale = "" if terms is None or _is_dropped(past) else _find_staleness(past, terms)
    ids = {run.id for run in left.runs}
    tonight = [run for run in left.runs if run.night == past.nights[-1].id]
    judgement = Judgement(
        experiment=past.experiment,
        night=past.nights[-1],
        nights=len(past.nights),
        series=series,
        gates=judged_gates,
        unjudged=[*([stale] if stale else []), *_find_unjudged(past, left, series)],
        notes=[
            *describe_unfit([(run.name, why) for run in tonight for why in run.unfit], len(tonight)),
            *failures.mended,
            *untold,
        ],
        baseline=base,
        findings=gravest_first(each for each in left.nights[-1].findings or () if ids & set(each.runs)),
        decisions=list(past.decisions),
        tell_once=terms is not None and terms.tell_once,
        is_stale=bool(stale),
        daily=past.daily,
    )
    return judgement, [*look.reported, *failures.reported]


def _select_told(results: Sequence[SeriesResult]) -> tuple[list[SeriesResult], list[str]]:
    """Return the series that have a row, and of how many kinds of requests more it could be said (hostile).

    A kind of requests has a row where there is something to say of it; no more than three of one state have.
    """
    told = [each for each in results if not each.series.is_route]
    kinds: dict[tuple[Group, str], list[SeriesResult]] = {}
    for each in results:
        if each.series.is_route and (each.is_open or each.state in ("news", "recovered", "better", "late")):
            kinds.setdefault((each.series.key.group, each.state), []).append(each)
    untold = []
    for (group, state), mine in kinds.items():
        mine.sort(key=lambda each: (each.level or 1) / (each.tonight or 1), reverse=state == "better")
        told += mine[:_MOST_KINDS]
        if len(mine) > _MOST_KINDS:
            more = counted(len(mine) - _MOST_KINDS, "more kind")
            untold.append(f"{group_name(group)}: {more} of requests moved as those above did")
    return told, untold


def _find_staleness(past: ExperimentHistory, terms: JudgingOptions) -> str:
    """Return that a newer night is overdue, or that this one cannot have begun yet; empty where neither."""
    night = past.nights[-1]
    began = max((run.started_at for run in past.runs if run.night == night.id), default="")
    age_s = (terms.at - datetime.fromisoformat(began or night.facts.started_at)).total_seconds()
    if age_s > terms.stale_after_s:
        return (
            f"{night.name} is the newest night, and began {duration_text(age_s)} ago, which is more than "
            f"{duration_text(terms.stale_after_s)} (--stale-after): see why no night came after it"
        )
    if -age_s > terms.stale_after_s:
        return f"{night.name} begins in {duration_text(-age_s)}: see the clock of the machine that it ran on"
    return ""


def _find_unjudged(
    past: ExperimentHistory, left: ExperimentHistory, series: Sequence[SeriesResult]
) -> list[str]:
    """Return why tonight cannot be judged, a sentence each; none where it can (hostile)."""
    tonight = past.nights[-1]
    if _is_dropped(past):
        return []
    there = [run for run in past.runs if run.night == tonight.id]
    if not there:
        return [f"{tonight.name} has no run at all: see what plimsoll run said"]
    found = []
    planned = tonight.facts.planned
    if planned is not None and len(there) < planned:
        found.append(f"{tonight.name} has {len(there)} of its {planned} runs: plimsoll run --resume ends it")
    found += [f"{each.series.key.name}: {each.says}" for each in series if each.state == "late"]
    return [*found, *(why for group in _list_groups(left) for why in _find_missing(left, group, series))]


def _find_missing(past: ExperimentHistory, group: Group, series: Sequence[SeriesResult]) -> Iterator[str]:
    """Yield why a scenario on a backend, or a phase of it, is not judged tonight."""
    mine = [each for each in series if each.series.key.group == group and not each.series.is_route]
    tails = [each for each in mine if not each.series.shares] or mine
    missed = [each for each in tails if each.tonight is None]
    if missed:
        first = missed[0]
        name, why = first.series.key.name, first.series.nights[-1].why or "did not run"
        last = first.series.judged[-1].night.name
        is_whole = len(missed) == len(tails)
        since = _describe_absence(past, group, name, last, is_whole)
        yield f"{name}: no figure tonight: {why.rstrip('.')}{since}"
        return
    fit = {run.id for run in past.runs if run.group == group and run.is_fit}
    if not mine and all(row.run not in fit for row in past.figures):
        tonight = past.nights[-1].id
        runs = [run for run in past.runs if run.night == tonight and run.group == group]
        why = explain_unfit(runs) or "no run of it gave one"
        yield f"{group_name(group)}: there was never a figure: {why.rstrip('.')}"


def _describe_absence(past: ExperimentHistory, group: Group, name: str, last: str, is_whole: bool) -> str:
    """Return since when it is missed, and how to drop what is gone for good."""
    tonight = past.nights[-1].id
    if is_whole and any(run.night == tonight and run.group == group for run in past.runs):
        return f"; the last was {last}"  # it runs, but not well: there is nothing to drop
    dropped = group_name(group) if is_whole else name
    return f"; the last was {last}. If it is gone for good: --drop '{dropped}' --note WHY"


def baseline_nights(nights: Sequence[NightRow]) -> list[NightRow]:
    """Return the baseline's nights: those that were set, and while they are few, the next ones."""
    marked = [at for at, night in enumerate(nights) if night.baseline]
    if not marked:
        return []
    first, last = marked[0], max(marked[-1], marked[0] + BASELINE_NIGHTS - 1)
    return list(nights[first : last + 1])


def chosen_nights(nights: Sequence[NightRow], name: str, changed: int) -> list[int] | None:
    """Return the ids of the nights that make night `name` (or `latest`) the baseline; None if there is none.

    They are it and those before it, but not from before place `changed`, where the level last changed.
    """
    at = next((at for at, night in enumerate(nights) if name in ("latest", night.name)), None)
    if at is None:
        return None
    at = len(nights) - 1 if name == "latest" else at
    first = max(at - BASELINE_NIGHTS + 1, changed if changed <= at else 0, 0)
    return [night.id for night in nights[first : at + 1]]


def _select_nights(nights: Sequence[NightRow]) -> tuple[list[NightRow], list[NightRow]]:
    """Return the baseline's nights, and the last ones after it; none without a baseline."""
    base = baseline_nights(nights)
    after = nights[nights.index(base[-1]) + 1 :] if base else []
    return base, list(after[-LAST_NIGHTS:])


def compared_runs(nights: Sequence[NightRow], runs: Sequence[RunRow]) -> list[RunRow]:
    """Return the runs of those nights by which gates are judged."""
    wanted = {night.id for side in _select_nights(nights) for night in side}
    return [run for run in runs if run.night in wanted and run.is_fit and run.readable]


def _gate_results(
    past: ExperimentHistory, compared: Mapping[int, MeasuredRun], gates: Gates | None
) -> list[GateResult]:
    """Return a verdict on every gate of every backend; none without a baseline.

    `compared` are the runs of `compared_runs`, by their id.
    """
    found: list[tuple[str, Gate, Limit, Question, tuple[int, int]]] = []
    by_backend: dict[str, list[RunRow]] = {}
    for run in compared_runs(past.nights, past.runs):
        by_backend.setdefault(run.backend, []).append(run)
    for backend, mine in sorted(by_backend.items()):
        sides = [_group_by_night(mine, compared, nights) for nights in _select_nights(past.nights)]
        limits = gates or default_gates(
            *(Side(backend, [run for night in side.values() for run in night], []) for side in sides)
        )
        for gate in limits.gates:
            for limit in LIMITS:
                if getattr(gate, limit) is not None:
                    question, counts = _ask_limit(gate, limit, sides, limits.least_runs)
                    found.append((backend, gate, limit, question, counts))
    if not found:
        return []
    verdicts = decide_nightly([each[3] for each in found], gates.confidence if gates else 0.95)
    return [
        GateResult(backend, gate, limit, question.at_most, verdict, counts)
        for (backend, gate, limit, question, counts), verdict in zip(found, verdicts, strict=True)
    ]


def decide_nightly(questions: Sequence[Question], confidence: float) -> list[Verdict]:
    """Decide as `plimsoll compare` does; but a FAIL has to stand a test that is made every night."""
    plain = decide(questions, confidence)
    if all(verdict.outcome != "FAIL" for verdict in plain):
        strict = plain
    else:
        strict = decide(questions, 1 - (1 - confidence) / LOOKS)
    return [_wait_when_close(*both) for both in zip(questions, plain, strict, strict=True)]


def _wait_when_close(question: Question, one: Verdict, other: Verdict) -> Verdict:
    if one.outcome == "FAIL" and other.outcome != "FAIL":
        says = "It looks worse than the limit, but a test that is made every night asks for more: wait."
        return replace(one, outcome="INCONCLUSIVE", says=says)
    # What is counted here is nights.
    return one if question.blocked else replace(one, says=re.sub(r"\brun(s?)\b", r"night\1", one.says))


def _group_by_night(
    runs: Sequence[RunRow], compared: Mapping[int, MeasuredRun], nights: Sequence[NightRow]
) -> _RunsByNight:
    wanted = {night.id for night in nights}
    found: _RunsByNight = {}
    for run in runs:
        if run.night in wanted:
            found.setdefault(run.night, []).append(compared[run.id])
    return found


def _ask_limit(
    gate: Gate, limit: Limit, sides: Sequence[_RunsByNight], least: int
) -> tuple[Question, tuple[int, int]]:
    """Ask one limit of one value a night."""
    problems: list[str] = []
    values: list[list[float]] = [[], []]
    prompt: list[list[float]] = [[], []]
    for runs, found, early in zip(sides, values, prompt, strict=True):
        for night in runs.values():
            judged = [run for run in night if run.scenario == gate.scenario]
            try:
                ends = [[value_of(run, gate) for run in each] for each in (judged, without_lateness(judged))]
            except NoFigureError as error:
                problems.append(f"{str(error).rstrip('.')}.")
                continue
            for mine, all_nights in zip(ends, (found, early), strict=True):
                if mine:
                    all_nights.append(
                        fmean(mine) if gate.metric_type.is_share else math.exp(fmean(map(math.log, mine)))
                    )
    counts = len(values[0]), len(values[1])
    problems = problems[:3]
    for name, count in zip(("The baseline has", "Since then there are"), counts, strict=True):
        if count < least:
            problems.append(
                f"{name} {counted(count, 'night')} of {gate.scenario}, and a verdict takes {least}: "
                f"{least - count} more."
            )
    done = [
        load_facts(run)
        for runs in sides
        for night in runs.values()
        for run in night
        if run.scenario == gate.scenario
    ]
    if different := differing(done):
        names = ", ".join(key for key, _ in different[:3])
        problems.append(
            f"The runs of {gate.scenario} are not of the same kind ({names}): set a new baseline."
        )
    question = Question(
        limit=limit,
        at_most=getattr(gate, limit),
        baseline=values[0],
        candidate=values[1],
        blocked=problems,
        prompt=(prompt[0], prompt[1]) if prompt != values and not problems else None,
    )
    return question, counts


class GateReview:
    """The gates of tonight. A FAIL is news, unless its scenario and backend was reported since the baseline.

    `reported` is what the history is to note, `mended` says which gates hold again (hostile).
    """

    def __init__(self, past: ExperimentHistory, look: SeriesReview, base: Sequence[NightRow]) -> None:
        self.reported: list[ChangeRow] = []
        self.mended: list[str] = []
        self._tonight = past.nights[-1].id
        self._place = {night.id: at for at, night in enumerate(past.nights)}
        self._since = self._place[base[-1].id] if base else len(past.nights)
        known = [row for row in look.known if row.kind in ("worse", "baseline")]
        self._open = [row for row in known if row.kind == "baseline" and row.recovered is None]
        self._known = {row.group for row in [*known, *look.reported] if self._is_known(row)}

    def _is_known(self, row: ChangeRow) -> bool:
        """Return whether a FAIL tonight is what `row` reported, and no news."""
        if row.kind == "better" or self._place[row.night] <= self._since:
            return False
        if row.recovered is None:
            return True
        # Nights of the regression are among those that the gate looks at.
        ago = len(self._place) - self._place[row.recovered]
        return row.kind == "worse" and ago < LAST_NIGHTS

    def result(self, result: GateResult) -> GateResult:
        """Return `result` with whether it is news, and report it where it is."""
        gate, group = result.gate, (result.gate.scenario, result.backend)
        if result.verdict.outcome == "PASS":
            return self._close_open(result)
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

    def _close_open(self, result: GateResult) -> GateResult:
        gate = result.gate
        key = (gate.scenario, result.backend, gate.phase, gate.metric)
        mine = [row for row in self._open if (row.scenario, row.backend, row.phase, row.metric) == key]
        if not mine:
            return result
        self.reported += [replace(row, recovered=self._tonight, recovery_found=self._tonight) for row in mine]
        self.mended.append(f"{result.name} keeps its limit again")
        return replace(result, is_recovered=True)


# A name by which something is dropped is that of an experiment, a scenario, a backend, `SCENARIO on BACKEND`,
# that with `, PHASE`, or a whole series. What is dropped and runs again is judged again.


def _list_groups(past: ExperimentHistory) -> list[Group]:
    """Return every scenario and backend that ever ran, in order."""
    return sorted({run.group for run in past.runs})


def names_that_drop(past: ExperimentHistory, series: list[NightSeries]) -> list[str]:
    """Return all names (hostile) by which something of `past` can be dropped."""
    names = [past.experiment, *(name for group in _list_groups(past) for name in _group_labels(group))]
    names += [name for each in series for name in _series_labels(each.key)]
    return [name for name in dict.fromkeys(names) if name]


def _is_dropped(past: ExperimentHistory) -> bool:
    """Return whether the experiment is dropped, and had no night since."""
    last = past.nights[-1].id
    return any(each.name == past.experiment and each.night == last for each in _drops(past))


def _without_dropped(past: ExperimentHistory) -> ExperimentHistory:
    """Return `past` without the scenarios and backends that were dropped, and did not run since."""
    groups, every = _list_groups(past), _is_dropped(past)
    gone = {group for group in groups if every or _is_group_dropped(past, group)}
    return past.with_runs([run for run in past.runs if run.group not in gone]) if gone else past


def _is_series_dropped(past: ExperimentHistory, series: NightSeries) -> bool:
    """Return whether a series is dropped by its own name, and has no value since."""
    nights = [night.night.id for night in series.judged[-1:]]
    return _is_dropped_after(past, nights, _series_labels(series.key))


def _is_group_dropped(past: ExperimentHistory, group: Group) -> bool:
    return _is_dropped_after(
        past, [run.night for run in past.runs if run.group == group], _group_labels(group)
    )


def _is_dropped_after(past: ExperimentHistory, nights: Sequence[int], names: Sequence[str]) -> bool:
    """Return whether one of `names` was dropped in the last of `nights`, or since."""
    place = {night.id: at for at, night in enumerate(past.nights)}
    last = max((place[night] for night in nights), default=-1)
    return any(each.name in names and last <= place[each.night] for each in _drops(past) if each.night)


def _drops(past: ExperimentHistory) -> Iterator[Decision]:
    return (each for each in past.decisions if each.kind == "drop")


def _group_labels(group: Group) -> list[str]:
    return [name for name in (*group, group_name(group)) if name]


def _series_labels(key: SeriesKey) -> list[str]:
    return [f"{group_name(key.group)}, {key.phase}", key.name]
