"""Judges the last night of an experiment by the nights before it: data in, a judgement out. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from plimsoll.analysis.comparing.gates import Gates
from plimsoll.analysis.comparing.runs import ComparedRun
from plimsoll.analysis.regress.baseline import baseline_nights, gate_results
from plimsoll.analysis.regress.dropping import (
    Group,
    group_name,
    groups_of,
    is_dropped,
    series_is_dropped,
    without_dropped,
)
from plimsoll.analysis.regress.failures import Failures
from plimsoll.analysis.regress.judgement import Judgement, SeriesResult, Terms
from plimsoll.analysis.regress.look import Look
from plimsoll.analysis.regress.rows import ChangeRow, NightFinding, Past, RunRow
from plimsoll.analysis.regress.series import series_of, why_unfit
from plimsoll.common.durations import duration_text
from plimsoll.common.severity import gravest_first


def judge(
    past: Past,
    compared: Mapping[int, ComparedRun],
    gates: Gates | None = None,
    terms: Terms | None = None,
) -> tuple[Judgement, list[ChangeRow]]:
    """Judge the last night of `past`, which has one; return also the changes that the history is to note.

    `compared` are the runs of `baseline.compared_runs`, by their id. Without `terms` no night is stale.
    Changes that are reported again, since the same night is judged again, are among those returned. Raises
    SettingsError without Otava.
    """
    left = without_dropped(past)
    base = baseline_nights(left.nights)
    look = Look(left)
    series = look.results([each for each in series_of(left) if not series_is_dropped(past, each)])
    failures = Failures(left, look, base)
    judged_gates = [failures.result(each) for each in gate_results(left, compared, gates)]
    stale = "" if terms is None or is_dropped(past) else _stale(past, terms)
    judgement = Judgement(
        experiment=past.experiment,
        night=past.nights[-1],
        nights=len(past.nights),
        series=series,
        gates=judged_gates,
        unjudged=[*([stale] if stale else []), *_unjudged(past, left, series)],
        notes=[*_unfit_runs(left), *failures.mended],
        baseline=base,
        findings=_findings(left),
        decisions=list(past.decisions),
        tell_once=terms is not None and terms.tell_once,
        is_stale=bool(stale),
        daily=past.daily,
    )
    return judgement, [*look.reported, *failures.reported]


def _stale(past: Past, terms: Terms) -> str:
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


def _unjudged(past: Past, left: Past, series: Sequence[SeriesResult]) -> list[str]:
    """Return why tonight cannot be judged, a sentence each; none where it can (hostile)."""
    tonight = past.nights[-1]
    if is_dropped(past):
        return []
    there = [run for run in past.runs if run.night == tonight.id]
    if not there:
        return [f"{tonight.name} has no run at all: see what plimsoll run said"]
    found = []
    planned = tonight.facts.planned
    if planned is not None and len(there) < planned:
        found.append(f"{tonight.name} has {len(there)} of its {planned} runs: plimsoll run --resume ends it")
    return [*found, *(why for group in groups_of(left) for why in _missed(left, group, series))]


def _missed(past: Past, group: Group, series: Sequence[SeriesResult]) -> Iterator[str]:
    """Yield why a scenario on a backend, or a phase of it, is not judged tonight."""
    mine = [each for each in series if each.series.key.group == group]
    tails = [each for each in mine if not each.series.shares] or mine
    missed = [each for each in tails if each.tonight is None]
    if missed:
        first = missed[0]
        name, why = first.series.key.name, first.series.nights[-1].why or "did not run"
        last = first.series.judged[-1].night.name
        is_whole = len(missed) == len(tails)
        yield f"{name}: no figure tonight: {why.rstrip('.')}{_ending(past, group, name, last, is_whole)}"
    elif not mine and not any(_had_figures(past, group)):
        tonight = past.nights[-1].id
        runs = [run for run in past.runs if run.night == tonight and run.group == group]
        why = why_unfit(runs) or "no run of it gave one"
        yield f"{group_name(group)}: there was never a figure: {why.rstrip('.')}"


def _had_figures(past: Past, group: Group) -> Iterator[bool]:
    mine = {run.id for run in past.runs if run.group == group and run.is_fit}
    yield from (row.run in mine for row in past.figures)


def _ending(past: Past, group: Group, name: str, last: str, is_whole: bool) -> str:
    """Return since when it is missed, and how to drop what is gone for good."""
    tonight = past.nights[-1].id
    if is_whole and any(run.night == tonight and run.group == group for run in past.runs):
        return f"; the last was {last}"  # it runs, but not well: there is nothing to drop
    dropped = group_name(group) if is_whole else name
    return f"; the last was {last}. If it is gone for good: --drop '{dropped}' --note WHY"


def _findings(past: Past) -> list[NightFinding]:
    """Return what the gatekeeper found on tonight's runs, the gravest first."""
    ids = {run.id for run in past.runs}
    return gravest_first(each for each in past.nights[-1].findings or () if ids & set(each.runs))


def _unfit_runs(past: Past) -> list[str]:
    """Return which runs of tonight are unfit, and why (hostile)."""
    runs: Sequence[RunRow] = [run for run in past.runs if run.night == past.nights[-1].id]
    return [f"{run.name} {why}" for run in runs for why in run.unfit]
