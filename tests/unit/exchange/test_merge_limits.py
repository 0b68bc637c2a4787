"""The limits of a merged run are judged over the records of all instances, as bin/replay judges its own."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from plimsoll.analysis.exchange.merge import judge_limit
from plimsoll.cli import main
from tests.support.programs import ROOT
from tests.support.rundir import INSTANCES, records, write_instance

LOAD = {"digest": "9f86d0", "settings": {"timeout_s": 30.0}}
CASES = json.loads((ROOT / "tests" / "fixtures" / "limits.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["says"] for case in CASES])
def test_limits_are_judged_as_in_go(case: dict[str, Any]) -> None:
    found = judge_limit(case["limit"], case["summary"], case["status"], case["generator_limited"])
    assert (found.outcome, found.says) == (case["outcome"], case["sentence"])


@pytest.mark.parametrize(
    ("why", "limit"), [("Go's units together", "p99=1m1.5s"), ("microseconds", "p99=61500000us")]
)
def test_times_are_read_as_go_writes_them(why: str, limit: str) -> None:
    summary: dict[str, Any] = {
        "requests": {"sent": 100, "warmup": 0, "failures": 0},
        "response_ms": {"p99": 61_500.0},
        "service_ms": {},
    }
    assert judge_limit(limit, summary, "complete", False).says.endswith("within 61.5 s"), why
    summary["response_ms"]["p99"] = 61_500.001
    assert judge_limit(limit, summary, "complete", False).outcome == "exceeded", why


def shards(folder: Path, limits: list[str], last: str = "complete") -> None:
    """Four instances of 250 requests: of one, 5 fail."""
    for index in range(INSTANCES):
        table = records(250)
        if index == 0:
            table["error"][:5], table["status"][:5] = 1, 0
        status = last if index == INSTANCES - 1 else "complete"
        write_instance(folder / str(index), index, table, limits=limits, load=LOAD, status=status)


@pytest.mark.parametrize(
    ("why", "limits", "last", "code", "says"),
    [
        ("no instance alone has enough", ["p99.9=20s"], "complete", 1, "p99.9=20s: exceeded"),
        ("one instance alone would be over it", ["errors=1%"], "complete", 0, "errors=1%: kept: 5 of 1,000"),
        ("all together are", ["errors=0.4%"], "complete", 1, "errors=0.4%: exceeded: 5 of 1,000"),
        ("too few even so", ["p99.99=20s"], "complete", 3, "p99.99=20s: not judged"),
        ("a part of a run keeps nothing", ["errors=1%"], "failed", 1, "errors=1%: not judged"),
    ],
)
def test_all_instances_together_are_judged(
    tmp_path: Path, why: str, limits: list[str], last: str, code: int, says: str
) -> None:
    shards(tmp_path, limits, last)
    ran = CliRunner().invoke(main, ["merge", str(tmp_path), "--out", str(tmp_path / "merged")])
    assert ran.exit_code == code, ran.output
    assert f"limit {says}" in ran.output, why
    run = json.loads((tmp_path / "merged" / "run.json").read_text())
    summary = json.loads((tmp_path / "merged" / "summary.json").read_text())
    assert run["limits"] == limits == [one["limit"] for one in summary["limits"]]


def test_a_run_without_limits_says_nothing_of_them(tmp_path: Path) -> None:
    shards(tmp_path, [])
    ran = CliRunner().invoke(main, ["merge", str(tmp_path), "--out", str(tmp_path / "merged")])
    assert ran.exit_code == 0
    assert "limit " not in ran.output
    assert "limits" not in json.loads((tmp_path / "merged" / "run.json").read_text())
