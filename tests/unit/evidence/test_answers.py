"""Wrong answers never win, whatever mix of requests either side has."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.analysis.evidence.answers import side_findings
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.statistics.routes import RouteAnswers
from plimsoll.cli import main
from plimsoll.rundir.read import RunDirectory
from tests.support.comparable import REQUESTS, runs_of, write_both
from tests.support.rundir import change, records

GATES = "gates:\n- {scenario: replay, metric: p99, at_most_ratio: 1.1}\n"


def verdict(folder: Path, gates: str = GATES) -> dict[str, Any]:
    """What the command says of sata and nvme in `folder`; its exit code is under `exit`."""
    path = folder / "gates.yml"
    path.write_text(gates)
    line = [
        "compare",
        str(folder),
        "--baseline",
        "sata",
        "--candidate",
        "nvme",
        "--gates",
        str(path),
        "--json",
    ]
    result = CliRunner().invoke(main, line)
    found: dict[str, Any] = json.loads(result.stdout)
    return found | {"exit": result.exit_code}


def names(found: dict[str, Any]) -> set[str]:
    return {finding["name"] for finding in found["findings"]}


def rewrite(path: Path, spoil: Callable[[np.ndarray], object]) -> None:
    """Change the records of a run."""
    data = (path / "requests.npy").read_bytes()
    table = np.frombuffer(data[512:], dtype=records(0).dtype).copy()
    spoil(table)
    (path / "requests.npy").write_bytes(data[:512] + table.tobytes())


def columns(part: slice, **values: int) -> Callable[[np.ndarray], object]:
    def spoil(table: np.ndarray) -> None:
        for name, value in values.items():
            table[name][part] = value

    return spoil


MOST = slice(0, REQUESTS * 9 // 10)


FAST = {"total_us": 300, "ttfb_us": 250}


REFUSED_AT_ONCE = {"status": 0, "bytes": 0, "error": 1, "total_us": 300, "ttfb_us": 0}


def _all(folder: Path, backend: str, spoil: Callable[[np.ndarray], object]) -> None:
    for path in runs_of(folder, backend):
        rewrite(path, spoil)


def _redirected(folder: Path) -> None:
    for side in ("sata", "nvme"):
        _all(folder, side, columns(MOST, status=302))


ANSWERS: list[tuple[str, Callable[[Path], object], str, str]] = [
    (
        "90 % answered 404 in 0.3 ms on the candidate",
        lambda p: _all(p, "nvme", columns(MOST, status=404, **FAST)),
        "FAIL",
        "more-failures",
    ),
    (
        "90 % answered 429 on the candidate",
        lambda p: _all(p, "nvme", columns(MOST, status=429, **FAST)),
        "FAIL",
        "more-failures",
    ),
    (
        "half fast 500s on the candidate, and only the p99 is gated",
        lambda p: _all(p, "nvme", columns(slice(0, REQUESTS // 2), status=500, **FAST)),
        "FAIL",
        "more-failures",
    ),
    (
        "all bodies of the candidate are empty, with status 200",
        lambda p: _all(p, "nvme", columns(slice(None), bytes=0, **FAST)),
        "FAIL",
        "empty-answers",
    ),
    (
        "both sides answer with redirects where the log has pages",
        lambda p: _redirected(p),
        "INCONCLUSIVE",
        "not-as-logged",
    ),
    (
        "the candidate redirects, the baseline answers",
        lambda p: _all(p, "nvme", columns(slice(0, 100), status=302)),
        "INCONCLUSIVE",
        "other-answers",
    ),
    (
        "the candidate's pages are twice as long",
        lambda p: _all(p, "nvme", columns(slice(None), bytes=2048, logged_bytes=-1)),
        "INCONCLUSIVE",
        "other-answers",
    ),
    (
        "the candidate's server died in the middle",
        lambda p: _all(p, "nvme", columns(slice(REQUESTS // 2, None), **REFUSED_AT_ONCE)),
        "FAIL",
        "more-failures",
    ),
]


@pytest.mark.parametrize(("what", "spoil", "outcome", "name"), ANSWERS, ids=[row[0] for row in ANSWERS])
def test_wrong_answers_never_win(
    tmp_path: Path, what: str, spoil: Callable[[Path], object], outcome: str, name: str
) -> None:
    spoil(write_both(tmp_path))
    found = verdict(tmp_path)
    assert found["verdict"] == outcome, what
    assert name in names(found)
    assert "PASS" not in {gate["verdict"] for gate in found["gates"]}


def test_a_failing_baseline_is_a_doubt_and_no_verdict_of_its_own(tmp_path: Path) -> None:
    write_both(tmp_path)
    _all(tmp_path, "sata", columns(slice(0, 300), status=503))
    found = verdict(tmp_path, GATES.replace("1.1", "3"))
    assert "fewer-failures" in names(found)
    assert "more-failures" not in names(found)


def test_answers_can_be_turned_off_by_name_and_are_still_named(tmp_path: Path) -> None:
    write_both(tmp_path)
    _all(tmp_path, "nvme", columns(slice(0, 100), status=302))
    assert verdict(tmp_path)["verdict"] == "INCONCLUSIVE"
    found = verdict(tmp_path, "answers: false\n" + GATES)
    assert found["verdict"] == "PASS"
    assert "other-answers" in names(found)
    assert [gate["metric"] for gate in found["gates"]] == ["p99"]


def test_a_dead_target_is_seen_in_the_records(tmp_path: Path) -> None:
    write_both(tmp_path)
    for path in runs_of(tmp_path):
        rewrite(path, lambda table: table["due_ns"].__imul__(10))
        rewrite(path, columns(slice(REQUESTS // 2, None), **REFUSED_AT_ONCE))
    found = verdict(tmp_path)
    assert found["exit"] == 1
    dead = [finding for finding in found["findings"] if finding["name"] == "target-died"]
    assert len(dead) == 4
    assert all(finding["worse"] for finding in dead)


def test_runs_that_failed_since_their_target_died_show_the_candidate_to_be_worse(tmp_path: Path) -> None:
    write_both(tmp_path)
    for path in runs_of(tmp_path):
        rewrite(path, lambda table: table["due_ns"].__imul__(10))
        rewrite(path, columns(slice(REQUESTS // 2, None), **REFUSED_AT_ONCE))
        change(path, status="failed", reason="the target did not answer any more")
    found = verdict(tmp_path)
    assert found["verdict"] == "FAIL"
    assert names(found) >= {"target-died", "incomplete"}


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
    assert {each.label for each in side_findings([one], [other], "author")} == kinds
