"""What a run's limits became, and who sent it, stands in its report: what is amiss above all figures."""

import html
import re
from pathlib import Path

import pytest

from plimsoll.analysis.report.report import make_report
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


@pytest.mark.parametrize(
    ("why", "sender", "shown"),
    [
        (
            "the server waited",
            {"ran_ms_per_s": 803.2, "others_wait_ms_per_s": 412.4, "cores_busy": 0.97},
            "in each second the generator took 803 ms of a core, and other programs waited 412 ms for one; "
            "the cores were busy for 97 % of the time.",
        ),
        (
            "a server that is not seen",
            {"cores_busy": 0.97},
            "; the cores were busy for 97 % of the time. Part",
        ),
        ("time to spare", {"ran_ms_per_s": 803, "others_wait_ms_per_s": 12, "cores_busy": 0.4}, ""),
        ("others busy", {"ran_ms_per_s": 3, "others_wait_ms_per_s": 812, "cores_busy": 0.8}, ""),
        ("another machine", {"beside_server": False, "cores_busy": 0.99}, ""),
    ],
)
def test_a_machine_that_is_shared_is_named(
    tmp_path: Path, why: str, sender: dict[str, object], shown: str
) -> None:
    sender = {"beside_server": True, "cores": 1, "threads": 1, "nice": 0} | sender
    write_run(tmp_path / "run", records(2000), sender=sender)
    text = text_of(make_report([tmp_path / "run"]).path)
    assert ("was sent from the server's own machine" in text) == bool(shown), why
    assert shown in text, why
    assert ("1 thread, nice 0, on the server's machine" in text) == bool(sender["beside_server"]), "a fact"


def test_limits_of_a_killed_run_are_not_judged(tmp_path: Path) -> None:
    write_run(tmp_path / "run", records(2000), limits=["p99=1s"], status="running")
    (tmp_path / "run" / "summary.json").unlink(missing_ok=True)
    assert "p99=1s not judged" in text_of(make_report([tmp_path / "run"]).path)
