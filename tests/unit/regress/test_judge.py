"""Judging a night by rows alone: no file, no database."""

from collections.abc import Sequence
from dataclasses import replace

from plimsoll.analysis.regress.judge import judge
from plimsoll.analysis.regress.nights import (
    ExperimentHistory,
    FigureRow,
    NightFacts,
    NightKey,
    NightRow,
    RunRow,
)


def past(values_ms: Sequence[float]) -> ExperimentHistory:
    """A night a value, each with one run of one scenario on one backend."""
    nights, runs = [], []
    for at in range(1, len(values_ms) + 1):
        began = f"2026-01-{at:02d}T02:00:00.000000Z"
        nights.append(
            NightRow(at, NightFacts(NightKey("study", f"night {at}"), began, 1, ""), baseline=False)
        )
        runs.append(RunRow(at, at, "replay", "nvme", "1", (), "", "", str(at), began, 0, True, False))
    figures = [FigureRow(at, "whole", "p99.9", value, "ms") for at, value in enumerate(values_ms, 1)]
    return ExperimentHistory("study", nights, runs, figures, [], [])


QUIET = [50 + at % 3 for at in range(25)]


def test_quiet_nights_report_nothing() -> None:
    judgement, changes = judge(past(QUIET), {})
    assert (judgement.verdict, changes) == ("steady", [])


def test_a_regression_is_reported_with_its_first_night_and_both_levels() -> None:
    slower = past([*QUIET, 80, 81, 82])
    judgement, (change,) = judge(slower, {})
    assert judgement.verdict == "worse"
    assert (change.kind, change.group, change.night, change.found) == ("worse", ("replay", "nvme"), 26, 28)
    assert 50 < change.before < 52
    assert 80 < change.after < 82
    again, (same,) = judge(replace(slower, changes=[change]), {})
    assert (again.verdict, same) == ("worse", change), "judged again, the same night gives the same"


def test_a_change_that_was_reported_is_known_until_it_is_accepted() -> None:
    _, (change,) = judge(past([*QUIET, 80, 81, 82]), {})
    next_night = past([*QUIET, 80, 81, 82, 80])
    known, changes = judge(replace(next_night, changes=[change]), {})
    assert ([each.state for each in known.series], changes) == (["known"], [])
    accepted, _ = judge(replace(next_night, changes=[replace(change, accepted=True)]), {})
    assert [each.state for each in accepted.series] == ["steady"]


def test_a_night_without_its_runs_cannot_be_judged() -> None:
    whole = past(QUIET)
    judgement, _ = judge(replace(whole, runs=whole.runs[:-1], figures=whole.figures[:-1]), {})
    assert judgement.verdict == "unjudged"
    assert judgement.unjudged == ["night 25 has no run at all: see what plimsoll run said"]
