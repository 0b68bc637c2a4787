"""The last night of an experiment, from the history to a judgement whose news the history remembers."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

from plimsoll.analysis.comparing.gates import Gates
from plimsoll.analysis.comparing.runs import ComparedRun
from plimsoll.analysis.regress.baseline import compared_runs
from plimsoll.analysis.regress.changes import LOOK_BACK
from plimsoll.analysis.regress.circumstances import circumstances, runs_around_news
from plimsoll.analysis.regress.daily import renew_days
from plimsoll.analysis.regress.evidence import NightRun, findings_of_night, rows_before, with_findings
from plimsoll.analysis.regress.judge import judge
from plimsoll.analysis.regress.judgement import Judgement, Terms
from plimsoll.analysis.regress.logstore import LogStore
from plimsoll.analysis.regress.rows import Past, RunRow
from plimsoll.analysis.regress.series import PERCENTILES
from plimsoll.analysis.regress.store import History


def judge_tonight(
    history: History, experiment: str, gates: Gates | None = None, terms: Terms | None = None
) -> Judgement | None:
    """Judge the last night of `experiment`; None where it has no night. The history notes what is reported.

    Judged again, the same night gives the same. Without `terms` no night is stale. Raises SettingsError
    without Otava.
    """
    with history.transaction():
        renew_days(history, experiment)
        past = past_of(history, experiment)
        if not past.nights:
            return None
        earlier: list[Judgement] = []
        if past.daily:
            earlier = _caught_up(history, past, gates)
            past = replace(past, changes=history.changes(experiment))
        else:
            past = _looked_at(history, past, gates is None or gates.answers)
        judgement = _judged(history, past, gates, terms)
    around = runs_around_news(past.runs, judgement.series)
    loaded = {group: (history.load(before), history.load(last)) for group, (before, last) in around.items()}
    notes = [*judgement.notes, *_told(earlier), *circumstances(loaded)]
    return replace(judgement, notes=notes, earlier=earlier)


def _judged(history: History, past: Past, gates: Gates | None, terms: Terms | None) -> Judgement:
    """Judge the last night of `past`; the history notes what is reported."""
    compared = {run.id: history.load(run) for run in compared_runs(past.nights, past.runs)}
    judgement, changes = judge(past, compared, gates, terms)
    history.note_changes(past.experiment, changes)
    return judgement


def _caught_up(history: History, past: Past, gates: Gates | None) -> list[Judgement]:
    """Judge the days that came along with the last one, in order, as if each had come by itself.

    So a log of many weeks tells what it would have told day by day. Return those with news.
    """
    seen = max((at for at, night in enumerate(past.nights) if night.findings is not None), default=-1)
    first = max(seen + 1, len(past.nights) - LOOK_BACK)
    found = []
    for count in range(first + 1, len(past.nights)):
        changes = history.changes(past.experiment)
        judgement = _judged(history, past_until(replace(past, changes=changes), count), gates, None)
        if judgement.news or judgement.recovered:
            found.append(judgement)
    for night in past.nights:
        if night.findings is None:
            history.note_findings(night.id, [])
    return found


def past_until(past: Past, count: int) -> Past:
    """Return what was known after the first `count` nights."""
    nights = past.nights[:count]
    ids = {night.id for night in nights}
    runs = [run for run in past.runs if run.night in ids]
    mine = {run.id for run in runs}
    return replace(
        past,
        nights=nights,
        runs=runs,
        figures=[row for row in past.figures if row.run in mine],
        error_shares=[row for row in past.error_shares if row[0] in mine],
    )


def _told(earlier: Iterable[Judgement]) -> Iterator[str]:
    """Yield what was found on days that came along with the last one, a sentence each (hostile)."""
    for judgement in earlier:
        for each in (*judgement.news, *judgement.recovered):
            yield f"{judgement.night.name}: {each.series.key.name} {each.says}"


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
        daily=LogStore(history).time_zone(experiment) is not None,
    )
