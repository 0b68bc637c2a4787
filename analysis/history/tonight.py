"""The last night of an experiment, from the history to a judgement whose news the history remembers."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from analysis.comparing.gates import Gates
from analysis.comparing.runs import ComparedRun
from analysis.history.baseline import compared_runs
from analysis.history.circumstances import circumstances, runs_around_news
from analysis.history.evidence import NightRun, findings_of_night, rows_before, with_findings
from analysis.history.judge import judge
from analysis.history.judgement import Judgement, Terms
from analysis.history.rows import Past, RunRow
from analysis.history.series import PERCENTILES
from analysis.history.store import History


def judge_tonight(
    history: History, experiment: str, gates: Gates | None = None, terms: Terms | None = None
) -> Judgement | None:
    """Judge the last night of `experiment`; None where it has no night. The history notes what is reported.

    Judged again, the same night gives the same. Without `terms` no night is stale. Raises SettingsError
    without Otava.
    """
    with history.transaction():
        past = past_of(history, experiment)
        if not past.nights:
            return None
        past = _looked_at(history, past, gates is None or gates.answers)
        compared = {run.id: history.load(run) for run in compared_runs(past.nights, past.runs)}
        judgement, changes = judge(past, compared, gates, terms)
        history.note_changes(experiment, changes)
    around = runs_around_news(past.runs, judgement.series)
    loaded = {group: (history.load(before), history.load(last)) for group, (before, last) in around.items()}
    return replace(judgement, notes=[*judgement.notes, *circumstances(loaded)])


def _looked_at(history: History, past: Past, answers: bool) -> Past:
    """Let the gatekeeper look at tonight and at nights that are new; return `past` with what it found."""

    @cache
    def loaded(row: RunRow) -> ComparedRun:
        return history.load(row)

    def night_runs(rows: Iterable[RunRow]) -> list[NightRun]:
        return [NightRun(row, nights[row.night], loaded(row)) for row in rows if row.readable]

    nights = {night.id: night for night in past.nights}
    for night in past.nights:
        if night.findings is not None and night is not past.nights[-1]:
            continue
        mine = [replace(row, refused=()) for row in past.runs if row.night == night.id]
        found = findings_of_night(night_runs(rows_before(past, night)), night_runs(mine), answers)
        history.note_findings(night.id, found)
        past = with_findings(past, night, found)
    return past


def past_of(history: History, experiment: str) -> Past:
    """Return all that the history knows of `experiment`."""
    metrics = [*PERCENTILES, *history.time_measures(experiment)]
    return Past(
        experiment=experiment,
        nights=history.nights(experiment),
        runs=history.runs(experiment),
        figures=list(history.figures(experiment, metrics)),
        error_shares=list(history.error_shares(experiment)),
        changes=history.changes(experiment),
        decisions=history.decisions(experiment),
    )
