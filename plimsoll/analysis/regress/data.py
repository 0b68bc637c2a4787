"""The JSON that `--json` prints."""

from collections.abc import Sequence

from plimsoll.analysis.regress.baseline import as_json as gate_json
from plimsoll.analysis.regress.judgement import EXIT_CODES, Judgement, SeriesResult, overall
from plimsoll.analysis.regress.rows import Decision, NightFinding


def as_json(judgements: Sequence[Judgement]) -> dict[str, object]:
    """Return all of it."""
    verdict = overall(list(judgements))
    return {
        "format": 1,
        "verdict": verdict,
        "exit_code": EXIT_CODES[verdict],
        "experiments": [_experiment(each) for each in judgements],
    }


def _experiment(judgement: Judgement) -> dict[str, object]:
    return {
        "experiment": judgement.experiment,
        "night": judgement.night.name,
        "nights": judgement.nights,
        "verdict": judgement.verdict,
        "series": [_series(each, judgement.is_red(each)) for each in judgement.series],
        "baseline": [night.name for night in judgement.baseline],
        "gates": [gate_json(each) for each in judgement.gates],
        "unjudged": judgement.unjudged,
        "findings": [_finding(each) for each in judgement.findings],
        "notes": judgement.notes,
        "decisions": [_decision(each) for each in judgement.decisions],
    }


def _finding(found: NightFinding) -> dict[str, object]:
    return {
        "name": found.name,
        "level": found.level.value,
        "worse": found.worse,
        "text": found.text,
        "remedy": found.remedy,
    }


def _decision(decided: Decision) -> dict[str, object]:
    return {
        "kind": decided.kind,
        "name": decided.name,
        "at": decided.at,
        "by": decided.by or None,
        "note": decided.note or None,
    }


def _series(result: SeriesResult, fails: bool) -> dict[str, object]:
    key = result.series.key
    return {
        "scenario": key.scenario,
        "backend": key.backend,
        "phase": key.phase,
        "metric": key.metric,
        "unit": result.series.unit,
        "state": result.state,
        "fails": fails,
        "says": result.says,
        "tonight": result.tonight,
        "before": result.level,
        "nights": len(result.series.values),
    }
