"""What became of a run's limits stands in its report: over one above all figures, kept among the facts."""

import html
import re
from pathlib import Path

import pytest

from plimsoll.analysis.report.make import make_report
from tests.support.rundir import records, write_run


def text_of(path: Path) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", path.read_text(encoding="utf-8"))).split())


@pytest.mark.parametrize(
    ("why", "outcome", "shown", "hidden"),
    [
        ("over it", "exceeded", "Limit p99=1s exceeded: it is 2 s <b>.", "<b>"),
        ("nobody knows", "not judged", "Limit p99=1s not judged: it is 2 s <b>.", "exceeded"),
        ("kept", "kept", "p99=1s kept", "Limit p99=1s"),
    ],
)
def test_limits_are_in_the_report(tmp_path: Path, why: str, outcome: str, shown: str, hidden: str) -> None:
    verdict = {"limit": "p99=1s", "outcome": outcome, "says": "it is 2 s <b>"}
    write_run(tmp_path / "run", records(2000), summary={"limits": [verdict]}, limits=["p99=1s"])
    made = make_report([tmp_path / "run"])
    page = made.path.read_text(encoding="utf-8")
    assert shown in text_of(made.path), why
    assert f"p99=1s {outcome}" in text_of(made.path), "among the facts"
    assert hidden not in (page if hidden == "<b>" else text_of(made.path)), why


def test_limits_of_a_killed_run_are_not_judged(tmp_path: Path) -> None:
    write_run(tmp_path / "run", records(2000), limits=["p99=1s"], status="running")
    (tmp_path / "run" / "summary.json").unlink(missing_ok=True)
    assert "p99=1s not judged" in text_of(make_report([tmp_path / "run"]).path)
