"""The last night of an experiment, from the history to a judgement whose news the history remembers."""

from collections.abc import Sequence
from dataclasses import replace

from analysis.comparing.gates import Gates
from analysis.history.baseline import chosen_nights, compared_runs
from analysis.history.circumstances import circumstances, runs_around_news
from analysis.history.judge import judge
from analysis.history.judgement import Judgement
from analysis.history.rows import Past
from analysis.history.series import PERCENTILES
from analysis.history.store import History
from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import printable


def judge_tonight(history: History, experiment: str, gates: Gates | None = None) -> Judgement | None:
    """Judge the last night of `experiment`; None where it has no night. The history notes what is reported.

    Judged again, the same night gives the same. Raises SettingsError without Otava.
    """
    with history.transaction():
        past = _past(history, experiment)
        if not past.nights:
            return None
        compared = {run.id: history.load(run) for run in compared_runs(past.nights, past.runs)}
        judgement, changes = judge(past, compared, gates)
        history.note_changes(experiment, changes)
    around = runs_around_news(past.runs, judgement.series)
    loaded = {group: (history.load(before), history.load(last)) for group, (before, last) in around.items()}
    return replace(judgement, notes=[*judgement.notes, *circumstances(loaded)])


def set_baseline(history: History, experiments: Sequence[str], night: str, gates: Gates | None) -> None:
    """Make `night` (its name, or `latest`) and those before it the baseline of the experiments that have it.

    Raises SettingsError where none has.
    """
    done = 0
    for name in experiments:
        before = judge_tonight(history, name, gates)  # what changed is found before it becomes the level
        changed = max((at for each in before.series for at in each.changes), default=0) if before else 0
        chosen = chosen_nights(history.nights(name), night, changed)
        if chosen is not None:
            history.set_baseline(chosen, name)
            history.accept_changes(name)
            done += 1
    if not done:
        last = [each.name for name in experiments for each in history.nights(name)][-5:]
        has = ", ".join(printable(each, 80) for each in last) or "none"
        raise SettingsError(
            f"--set-baseline {printable(night, 80)}: there is no such night; the last are: {has}"
        )


def _past(history: History, experiment: str) -> Past:
    metrics = [*PERCENTILES, *history.time_measures(experiment)]
    return Past(
        experiment=experiment,
        nights=history.nights(experiment),
        runs=history.runs(experiment),
        figures=list(history.figures(experiment, metrics)),
        error_shares=list(history.error_shares(experiment)),
        changes=history.changes(experiment),
    )
