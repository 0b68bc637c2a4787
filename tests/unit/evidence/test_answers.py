"""Wrong answers never win, whatever mix of requests either side has."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from plimsoll.analysis.evidence.answers import side_findings
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.statistics.routes import RouteAnswers
from plimsoll.rundir.read import RunDirectory
from tests.support.comparable import (
    REQUESTS,
    change_side,
    compare_json,
    finding_names,
    gated,
    runs_of,
    write_both,
)
from tests.support.rundir import change, change_records, load_records

P99 = gated("metric: p99, at_most_ratio: 1.1")
MOST = slice(0, REQUESTS * 9 // 10)
FAST = {"total_us": 300, "ttfb_us": 250}
REFUSED_AT_ONCE = {"status": 0, "bytes": 0, "error": 1, "total_us": 300, "ttfb_us": 0}
ANSWERS: list[tuple[str, Callable[[Path], object], str, str]] = [
    (
        "90 % answered 404 in 0.3 ms on the candidate",
        lambda p: change_side(p, "nvme", MOST, status=404, **FAST),
        "FAIL",
        "more-failures",
    ),
    (
        "90 % answered 429 on the candidate",
        lambda p: change_side(p, "nvme", MOST, status=429, **FAST),
        "FAIL",
        "more-failures",
    ),
    (
        "half fast 500s on the candidate, and only the p99 is gated",
        lambda p: change_side(p, "nvme", slice(0, REQUESTS // 2), status=500, **FAST),
        "FAIL",
        "more-failures",
    ),
    (
        "all bodies of the candidate are empty, with status 200",
        lambda p: change_side(p, "nvme", slice(None), bytes=0, **FAST),
        "FAIL",
        "empty-answers",
    ),
    (
        "both sides answer with redirects where the log has pages",
        lambda p: change_side(p, "*", MOST, status=302),
        "INCONCLUSIVE",
        "not-as-logged",
    ),
    (
        "the candidate redirects, the baseline answers",
        lambda p: change_side(p, "nvme", slice(0, 100), status=302),
        "INCONCLUSIVE",
        "other-answers",
    ),
    (
        "the candidate's pages are twice as long",
        lambda p: change_side(p, "nvme", slice(None), bytes=2048, logged_bytes=-1),
        "INCONCLUSIVE",
        "other-answers",
    ),
    (
        "the candidate's server died in the middle",
        lambda p: change_side(p, "nvme", slice(REQUESTS // 2, None), **REFUSED_AT_ONCE),
        "FAIL",
        "more-failures",
    ),
]


@pytest.mark.parametrize(("what", "spoil", "outcome", "name"), ANSWERS, ids=[row[0] for row in ANSWERS])
def test_wrong_answers_never_win(
    tmp_path: Path, what: str, spoil: Callable[[Path], object], outcome: str, name: str
) -> None:
    spoil(write_both(tmp_path))
    found = compare_json(tmp_path, P99)
    assert found["verdict"] == outcome, what
    assert name in finding_names(found)
    assert "PASS" not in {gate["verdict"] for gate in found["gates"]}


def test_a_failing_baseline_is_a_doubt_and_no_verdict_of_its_own(tmp_path: Path) -> None:
    write_both(tmp_path)
    change_side(tmp_path, "sata", slice(0, 300), status=503)
    found = compare_json(tmp_path, P99.replace("1.1", "3"))
    assert "fewer-failures" in finding_names(found)
    assert "more-failures" not in finding_names(found)


def test_answers_can_be_turned_off_by_name_and_are_still_named(tmp_path: Path) -> None:
    write_both(tmp_path)
    change_side(tmp_path, "nvme", slice(0, 100), status=302)
    assert compare_json(tmp_path, P99)["verdict"] == "INCONCLUSIVE"
    found = compare_json(tmp_path, "answers: false\n" + P99)
    assert found["verdict"] == "PASS"
    assert "other-answers" in finding_names(found)
    assert [gate["metric"] for gate in found["gates"]] == ["p99"]


def test_a_dead_target_is_seen_in_the_records(tmp_path: Path) -> None:
    write_both(tmp_path)
    _kill_target(tmp_path)
    found = compare_json(tmp_path, P99)
    assert found["exit"] == 1
    dead = [finding for finding in found["findings"] if finding["name"] == "target-died"]
    assert [(len(finding["runs"]), finding["worse"]) for finding in dead] == [(4, True)]


def test_runs_that_failed_since_their_target_died_show_the_candidate_to_be_worse(tmp_path: Path) -> None:
    write_both(tmp_path)
    _kill_target(tmp_path)
    for path in runs_of(tmp_path):
        change(path, status="failed", reason="the target did not answer any more")
    found = compare_json(tmp_path, P99)
    assert found["verdict"] == "FAIL"
    assert finding_names(found) >= {"target-died", "incomplete"}


def _kill_target(folder: Path) -> None:
    """Let the candidate's server die in the middle of runs that last ten times as long."""
    for path in runs_of(folder):
        began = json.loads((path / "run.json").read_text())["started_at"]
        change(
            path, ended_at=f"{datetime.fromisoformat(began) + timedelta(seconds=15):%Y-%m-%dT%H:%M:%S.%fZ}"
        )
        change_records(path, due_ns=10 * load_records(path)["due_ns"])
        change_records(path, slice(REQUESTS // 2, None), **REFUSED_AT_ONCE)


IMAGE, PROGRESS = "POST async-upload.php", "HEAD image"


def answered(whole: int, empty: int = 0, elsewhere: int = 0, failures: int = 0) -> RouteAnswers:
    """Answers of one route: with a body, without one, redirections, failures."""
    answers = RouteAnswers(failures=failures, bodies=whole + empty, empty=empty)
    answers.kinds[[0, 2, 3]] = failures, whole + empty, elsewhere
    return answers


CASES: list[tuple[str, dict[str, RouteAnswers], dict[str, RouteAnswers], set[str]]] = [
    (
        "a fast disk's images are asked for less often, by requests that never have a body",
        {IMAGE: answered(20), PROGRESS: answered(0, empty=180)},
        {IMAGE: answered(20), PROGRESS: answered(0, empty=60)},
        set(),
    ),
    (
        "the same, and a third of the pages is empty",
        {IMAGE: answered(60), PROGRESS: answered(0, empty=60)},
        {IMAGE: answered(40, empty=20), PROGRESS: answered(0, empty=180)},
        {"empty-answers"},
    ),
    (
        "one side saved more often, and each save ends with a redirection",
        {IMAGE: answered(100), "POST post.php": answered(0, elsewhere=100)},
        {IMAGE: answered(100), "POST post.php": answered(0, elsewhere=40)},
        set(),
    ),
    (
        "a route that only one side has, and that fails there",
        {IMAGE: answered(100)},
        {IMAGE: answered(100), "GET wp-login.php": answered(0, failures=30)},
        {"more-failures"},
    ),
    (
        "routes that share no name are compared as wholes",
        {"GET a": answered(100)},
        {"GET b": answered(60, empty=40)},
        {"empty-answers"},
    ),
    (
        "a request that always fails was tried again and again on one side",
        {IMAGE: answered(900), PROGRESS: answered(0, failures=1)},
        {IMAGE: answered(900), PROGRESS: answered(0, failures=60)},
        {"more-failures"},
    ),
]


@pytest.mark.parametrize(("what", "first", "second", "kinds"), CASES, ids=[case[0] for case in CASES])
def test_answers_are_compared_over_one_mix(
    tmp_path: Path,
    what: str,
    first: dict[str, RouteAnswers],
    second: dict[str, RouteAnswers],
    kinds: set[str],
) -> None:
    write_both(tmp_path)
    directory = RunDirectory.open(runs_of(tmp_path)[0])
    one, other = (MeasuredRun(directory, answers=routes) for routes in (first, second))
    assert {each.label for each in side_findings([one], [other], ("one", "other"), "author")} == kinds
