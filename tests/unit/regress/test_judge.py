"""Judging nights: by rows alone, and how often it errs and finds in simulated histories.

PLIMSOLL_SLOW=1 simulates the tables of docs/statistics.md anew, which takes half an hour on one core.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from plimsoll.analysis.regress import changes
from plimsoll.analysis.regress.judge import judge
from plimsoll.analysis.regress.levels import find_changes
from plimsoll.analysis.regress.nights import (
    ExperimentHistory,
    FigureRow,
    NightFacts,
    NightKey,
    NightRow,
    RunRow,
)
from tests.support.docs import statistics_table
from tests.verdicts.regress import (
    PLAIN,
    TABLES,
    alarms,
    alike,
    any_of,
    delays,
    drifting,
    episodes,
    fails,
    false_alarms,
    nightly,
    normal,
    series,
    without_our_test,
)


def past(values_ms: Sequence[float], late_ms: Sequence[float] = ()) -> ExperimentHistory:
    """A night a value, each with one run of one scenario on one backend; and how late the last were."""
    nights, runs = [], []
    for at in range(1, len(values_ms) + 1):
        began = f"2026-01-{at:02d}T02:00:00.000000Z"
        nights.append(
            NightRow(at, NightFacts(NightKey("study", f"night {at}"), began, 1, ""), baseline=False)
        )
        runs.append(RunRow(at, at, "replay", "nvme", "1", (), "", "", str(at), began, 0, True, False))
    lates = [0.0] * (len(values_ms) - len(late_ms)) + [*late_ms]
    figures = [
        FigureRow(at, "whole", "p99.9", value, "ms", value - late)
        for at, (value, late) in enumerate(zip(values_ms, lates, strict=True), 1)
    ]
    return ExperimentHistory("study", nights, runs, figures, [], [])


QUIET = [50.0 + at % 3 for at in range(25)]


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


SLOWER = [80.0, 81.0, 82.0]
LATE_BEFORE = [30 + each for each in QUIET]
LATE_NIGHTS: list[tuple[str, list[float], Sequence[float], str, str]] = [
    ("nobody was late", [*QUIET, *SLOWER], [], "news", "worse"),
    ("lateness is too little to be the step", [*QUIET, *SLOWER], [10] * 3, "news", "worse"),
    ("each night was late alike", [*QUIET, *SLOWER], [5] * 28, "news", "worse"),
    ("lateness may be the step", [*QUIET, *SLOWER], [29, 30, 31], "late", "unjudged"),
    ("lateness before may hide one", [*LATE_BEFORE, *SLOWER], [30] * 25 + [0] * 3, "late", "unjudged"),
    ("late nights as fast as the others", [*QUIET, 51, 50, 52], [20] * 3, "steady", "steady"),
    ("late nights before faster ones", [*LATE_BEFORE, 50, 51, 52], [30] * 25 + [0] * 3, "steady", "steady"),
]


@pytest.mark.parametrize(
    ("what", "values_ms", "late_ms", "state", "verdict"), LATE_NIGHTS, ids=[row[0] for row in LATE_NIGHTS]
)
def test_a_change_stands_where_the_generators_lateness_shows_it_least(
    what: str, values_ms: list[float], late_ms: list[float], state: str, verdict: str
) -> None:
    judgement, changes = judge(past(values_ms, late_ms), {})
    assert ([each.state for each in judgement.series], judgement.verdict) == ([state], verdict), what
    assert len(changes) == (state == "news")
    assert any("only the load generator was late" in why for why in judgement.unjudged) == (state == "late")


@pytest.mark.parametrize(("late_ms", "state"), [(0, "recovered"), (30, "known")])
def test_nights_have_recovered_where_they_are_as_before_with_all_lateness(late_ms: float, state: str) -> None:
    _, (change,) = judge(past([*QUIET[:18], *SLOWER]), {})
    back = past([*QUIET[:18], *SLOWER, *SLOWER, *(50 + late_ms + at % 3 for at in range(5))], [late_ms] * 5)
    judgement, _ = judge(replace(back, changes=[change]), {})
    assert [each.state for each in judgement.series] == [state]


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


FEW = 20


@pytest.mark.slow
@pytest.mark.parametrize("noise", PLAIN, ids=[noise.name for noise in PLAIN])
def test_quiet_nights_are_quiet(noise: object) -> None:
    assert false_alarms(noise, FEW) == 0  # type: ignore[arg-type]


def test_the_document_promises_five_percent_for_quiet_nights() -> None:
    _, any_series, _, any_gate = dict(_rows("quiet"))[PLAIN[-1].name]
    assert any_series <= 5
    assert any_gate <= 5


@pytest.mark.slow
def test_otava_alone_would_cry_wolf() -> None:
    with without_our_test():
        assert false_alarms(alike(0.5, 0.1), FEW) > 0.5
    assert false_alarms(alike(0.5, 0.1), FEW) <= 0.1


@pytest.mark.parametrize(("ratio", "soon"), [(1.3, 8), (1.5, 5), (2.0, 4)])
def test_regressions_are_found_and_soon(ratio: float, soon: int) -> None:
    found = delays(normal(0.1), ratio, FEW)
    assert len(found) >= FEW - 1
    assert np.median(found) <= soon


def test_a_gate_does_not_fail_on_quiet_nights_and_fails_on_slow_ones() -> None:
    assert fails(normal(0.1), 5) == []
    assert len(fails(normal(0.1), 5, ratio=1.5)) == 5


@pytest.mark.slow
def test_a_drift_that_adds_up_is_an_alarm_and_a_small_one_is_none() -> None:
    random = np.random.default_rng(4)
    assert sum(alarms(drifting(5).of(random, 100)) is not None for _ in range(FEW)) <= 1


def test_neither_order_nor_size_of_the_figures_matters_to_the_test() -> None:
    quiet = normal(0.1).of(np.random.default_rng(5), 60)
    quiet[50:] += 0.5
    (change,) = find_changes(list(quiet))
    (larger,) = find_changes(list(quiet + 7))
    (mirrored,) = find_changes(list(-quiet))
    assert change.at == larger.at == mirrored.at == 50
    assert change.p == pytest.approx(larger.p) == pytest.approx(mirrored.p)


@pytest.mark.parametrize("slower", [(5, 6), (0,)], ids=["weekends", "Mondays"])
def test_a_step_is_found_although_some_days_are_slower(slower: tuple[int, ...]) -> None:
    logs = normal(0.05).of(np.random.default_rng(9), 47)
    logs[np.isin(np.arange(47) % 7, slower)] += np.log(1.3)
    assert alarms(logs) is None
    logs[42:] += np.log(1.2)
    assert alarms(logs) is not None
    assert find_changes(list(logs)) == [], "or the days of the week change nothing"


def test_nights_that_are_like_their_neighbours_make_a_later_step_less_sure() -> None:
    random = np.random.default_rng(11)
    later = np.concatenate([random.normal(1, 0.1, 12), random.normal(1.4, 0.1, 6)])
    unlike, similar = (
        find_changes([*noise.of(random, 60), *later])[-1] for noise in (normal(0.1), alike(0.7, 0.1))
    )
    assert unlike.at == similar.at == 72
    assert unlike.p <= changes.NEWS_P < similar.p


def test_a_constant_series_has_no_change_and_a_constant_step_has_one() -> None:
    assert find_changes([1.0] * 40) == []
    (change,) = find_changes([1.0] * 30 + [1.5] * 5)
    assert (change.at, change.after_count) == (30, 5)


def test_of_many_nights_the_last_are_looked_at() -> None:
    logs = normal(0.1).of(np.random.default_rng(6), 400)
    logs[390:] += 0.6
    whole = series(logs)
    found = [change for change in find_changes(whole.scaled) if changes.is_sure(change, 400)]
    assert [change.at for change in found] == [390]


UNREPORTED = [
    ("nothing was reported", [30], [], [30]),
    ("it was reported", [30], [30], []),
    ("it was reported, and lies a little apart now", [32], [30], []),
    ("a second one while the first is reported", [30, 36], [30], [36]),
    ("both were reported", [30, 36], [31, 37], []),
    ("what was reported is long ago", [60], [30], [60]),
    ("one reported one stands for one", [29, 31], [30], [31]),
]


@pytest.mark.parametrize(
    ("what", "places", "reported", "left"), UNREPORTED, ids=[row[0] for row in UNREPORTED]
)
def test_what_was_reported_is_not_reported_again(
    what: str, places: list[int], reported: list[int], left: list[int]
) -> None:
    assert changes.select_unreported(places, reported) == left, what


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_the_document_has_the_rates_that_come_out(table: str) -> None:
    rows, histories = TABLES[table]
    _, *found = rows(histories)
    stated = _rows(table)
    assert [name for name, _ in stated] == [row[0] for row in found]
    for (name, figures), row in zip(stated, found, strict=True):
        assert figures == pytest.approx(_figures(row[1:]), abs=2.0), name


def test_any_of_eight_is_what_it_says() -> None:
    assert any_of(0.01) == pytest.approx(1 - 0.99**8)


def _rows(table: str) -> list[tuple[str, list[float]]]:
    return [(name, _figures(cells)) for name, *cells in statistics_table(f"{table} nights")[1:]]


def _figures(cells: list[str]) -> list[float]:
    return [float(figure) for cell in cells for figure in re.findall(r"[\d.]+", cell)]


HISTORIES = 20
RETURNS = [
    ("it is mended for a week", 6, 7, False),
    ("it lasted three weeks, and is mended for five nights", 21, 5, False),
    ("it was accepted, and then it was mended for a week", 6, 7, True),
    ("it was accepted three weeks long, and then it was mended for three weeks", 21, 21, True),
]


@pytest.mark.slow
@pytest.mark.parametrize(("what", "lasts", "gap", "accepts"), RETURNS, ids=[row[0] for row in RETURNS])
def test_each_return_of_a_step_is_reported(what: str, lasts: int, gap: int, accepts: bool) -> None:
    found = episodes(normal(0.1), 1.5, lasts, gap, HISTORIES, accepts)
    assert sum(one.reported is not None for one in found) == HISTORIES, what
    assert sum(one.mended is not None for one in found) == HISTORIES, "the mend is reported"
    assert sum(one.reported_again is not None for one in found) == HISTORIES, "the return is news"
    assert sum(one.false_mends for one in found) == 0
    assert np.median([one.mended for one in found if one.mended]) <= 4


@pytest.mark.slow
def test_a_regression_that_lasts_is_not_taken_for_mended() -> None:
    found = [*episodes(normal(0.2), 1.5, 60, 10, 5), *episodes(alike(0.5, 0.1), 1.5, 60, 10, 5)]
    assert sum(one.false_mends for one in found) == 0


def test_every_state_of_a_history() -> None:
    logs = np.random.default_rng(8).normal(0, 0.05, 70)
    logs[40:50] += np.log(1.5)
    logs[60:] += np.log(1.5)
    states = list(nightly(logs, 36))
    assert [state for at, state in enumerate(states) if not at or state != states[at - 1]] == [
        "steady",
        "news",
        "known",
        "recovered",
        "steady",
        "news",
        "known",
    ]
    assert (states.count("news"), states.count("recovered")) == (2, 1), "each is told once"
