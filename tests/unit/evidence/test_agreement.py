"""Answers of two sides are compared over one mix of requests."""

from pathlib import Path

import pytest

from plimsoll.analysis.evidence.answers import side_findings
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.statistics.routes import RouteAnswers
from plimsoll.rundir.read import RunDirectory
from tests.support.comparable import runs_of, write_both

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
