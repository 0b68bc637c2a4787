"""The last night of an experiment, from the history to a judgement whose news the history remembers."""

from dataclasses import replace

from analysis.comparing.gates import Gates
from analysis.history.baseline import compared_runs
from analysis.history.circumstances import circumstances, runs_around_news
from analysis.history.judge import judge
from analysis.history.judgement import Judgement, Terms
from analysis.history.rows import Past
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
        compared = {run.id: history.load(run) for run in compared_runs(past.nights, past.runs)}
        judgement, changes = judge(past, compared, gates, terms)
        history.note_changes(experiment, changes)
    around = runs_around_news(past.runs, judgement.series)
    loaded = {group: (history.load(before), history.load(last)) for group, (before, last) in around.items()}
    return replace(judgement, notes=[*judgement.notes, *circumstances(loaded)])


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
