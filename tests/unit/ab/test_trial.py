"""The plan of a trial: what is refused, how long and how many its runs are, and its limits."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.ab.targets import ServedSide
from plimsoll.ab.trial import TrialPlan, plan_trial
from plimsoll.common.errors import SettingsError
from tests.support.programs import ROOT

LOG = str(ROOT / "examples/access.log")  # 99 requests a second
SIDES = (ServedSide("baseline", "http://10.0.0.5"), ServedSide("candidate", "http://10.0.0.6"))


def plan(**given: Any) -> TrialPlan:
    return plan_trial("ab", [LOG], SIDES, **given)


REFUSED = [
    ("no pace at all", {"speed": 0}, "--speed: must be greater than 0"),
    ("half a block", {"runs": 5}, "--runs: must be an even number from 4 to 100"),
    ("too few for a verdict", {"runs": 2}, "--runs: must be an even number from 4 to 100"),
    ("two lengths", {"runs": 8, "within": "1h"}, "--runs and --within: give one of them"),
    ("a time without a unit", {"within": "60"}, "--within: must be a duration"),
    ("a limit in another unit", {"limits": ["p99.9:10%"]}, "p99.9:10%: is not a limit: write p99.9:1.10x"),
    (
        "a figure that is not known",
        {"limits": ["p98:1.1x"]},
        "figures: p99.9, p99, p95, p90, p50, mean, errors",
    ),
    ("no error at all", {"limits": ["errors:0%"]}, "errors:0%: is not a limit"),
    ("a control character", {"limits": ["\x1b[2J"]}, r"\x1b[2J: is not a limit"),
    (
        "runs that are too short for the figure",
        {"limits": ["p99.9:1.1x"], "duration": "5s"},
        "takes 1,000 requests in each run, and in 5 s this log has about 496 at speed 1, more or less: give "
        "--duration 16s, or --speed 3.1",
    ),
    ("too little time", {"within": "1m"}, "--within: the fewest runs that decide, 4 a side, take 14 min"),
]


@pytest.mark.parametrize(("why", "given", "says"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused(why: str, given: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError) as refused:
        plan(**given)
    assert says in str(refused.value), why


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(SettingsError) as refused:
        plan(speed=-1, runs=3, limits=["p99"], duration="x")
    assert len(str(refused.value).splitlines()) == 4


def test_without_limits_the_highest_percentile_has_the_usual_margin() -> None:
    first, second = plan().gates.gates
    assert (first.metric, first.at_most_ratio) == ("p99.9", 1.1)
    assert (second.metric, second.at_most_more) == ("error share", 0.001)
    assert plan(duration="5s").gates.gates[0].metric == "p99"


LIMITS = [
    ("p99.9:1.2x", ("p99.9", "at_most_ratio", 1.2)),
    ("p99:480ms", ("p99", "at_most_ms", 480)),
    ("mean:1.5s", ("mean", "at_most_ms", 1500)),
    ("errors:0.5%", ("error share", "at_most_more", 0.005)),
]


@pytest.mark.parametrize(("text", "gate"), LIMITS)
def test_limits(text: str, gate: tuple[str, str, float]) -> None:
    (found,) = plan(limits=[text]).gates.gates
    assert (found.metric, getattr(found, gate[1])) == (gate[0], gate[2])


def test_a_run_has_ten_requests_beyond_the_figure() -> None:
    assert plan(limits=["p99:1.1x"]).lab.phases.during_s == pytest.approx(10.07, abs=0.1)
    assert plan(limits=["p99.9:1.1x"], speed=0.2).lab.phases.during_s == 300


def test_it_fills_the_time_that_there_is() -> None:
    lab = plan(within="1h", duration="60s").lab
    assert lab.repeats == 26
    assert plan().lab.repeats == 8


def test_runs_come_in_blocks_against_both_sides_with_one_name(tmp_path: Path) -> None:
    sides = (
        ServedSide("baseline", "https://shop.example", "10.0.0.5:443", True),
        ServedSide("candidate", "https://shop.example", "10.0.0.6:443", True),
    )
    lab = plan_trial("ab", [LOG], sides, out=tmp_path).lab
    assert lab.order == "blocks"
    clones = [backend.clone.model_dump() for backend in lab.backends]
    assert [(each["target"], each["connect_to"]) for each in clones] == [
        ("https://shop.example", "10.0.0.5:443"),
        ("https://shop.example", "10.0.0.6:443"),
    ]
    assert lab.scenarios[0].options["flags"] == ["--insecure"]
