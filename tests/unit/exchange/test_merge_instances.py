"""A merge names every instance that did not come to its end, and judges limits and members of all."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from plimsoll.analysis.exchange.limits import judge_limit
from plimsoll.analysis.exchange.merge import merge_shards
from plimsoll.cli import main
from plimsoll.rundir.facts import Summary
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import MEMBER, QUEUED, SENT_TO_LOGIN, WARMUP
from tests.support.programs import ROOT
from tests.support.rundir import INSTANCES, records, write_instance, write_instances


def merge(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["merge", str(folder), "--out", str(folder / "merged"), *arguments])


def merged(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    run = folder / "merged"
    return json.loads((run / "run.json").read_text()), json.loads((run / "summary.json").read_text())


def test_instances_that_all_came_to_their_end_make_a_complete_run(tmp_path: Path) -> None:
    write_instances(tmp_path, skipped={"method_not_allowed": 3})
    result = merge(tmp_path)
    facts, summary = merged(tmp_path)
    assert (result.exit_code, facts["status"], facts["reason"]) == (0, "complete", None)
    assert summary["requests"]["skipped"] == {"method_not_allowed": 12}, "each skipped those of its clients"
    assert summary["requests"]["total"] == 412
    assert facts["logs"][0]["lines"] == 6000, "every instance read the whole log: its lines count once"
    assert "shard" not in facts
    assert [each["index"] for each in summary["instances"]] == [0, 1, 2, 3]


PLANNED = [250, 251, 2500, 250]


@pytest.mark.parametrize(
    ("ending", "status", "entry", "sentence", "why"),
    [
        (
            {"table": 1234, "status": "running"},
            "interrupted",
            ("killed", 1234, 1266),
            "instance 3 of 4 (1/2:3/4) was killed after 1,234 of its 2,500 requests; 1,266 unsent",
            "the survivors know what it had to send",
        ),
        (
            {"table": 0, "status": "running"},
            "interrupted",
            ("killed", None, 2500),
            "instance 3 of 4 (1/2:3/4) was killed before its first records were written out: nothing is "
            "known of it; all of its 2,500 requests count as unsent",
            "what it sent in its first second is on no disk",
        ),
        (
            {"table": 1234, "status": "running", "still": False},
            "interrupted",
            ("running", 1234, 1266),
            "instance 3 of 4 (1/2:3/4) had not ended after 1,234 of its 2,500 requests; 1,266 unsent",
            "it may still be at work",
        ),
        (
            {
                "table": 1000,
                "status": "interrupted",
                "reason": "interrupted by the user.",
                "skipped": {"cap_reached": 400, "not_http": 7},
                "unsent": 1100,
            },
            "interrupted",
            ("interrupted", 1000, 1100),
            "instance 3 of 4 (1/2:3/4) was interrupted after 1,000 of its 2,500 requests; 1,100 unsent: "
            "interrupted by the user",
            "what the engine skipped was planned, what never entered the schedule was not",
        ),
        (
            {"table": 1, "status": "failed", "reason": "the disk is full", "unsent": 2499},
            "failed",
            ("failed", 1, 2499),
            "instance 3 of 4 (1/2:3/4) failed after 1 of its 2,500 requests; 2,499 unsent: the disk is full",
            "one that failed fails the run",
        ),
        (
            {"table": 2400, "sent": 2500},
            "failed",
            ("truncated", 2500, 0),
            "instance 3 of 4 (1/2:3/4) is truncated: the records of 100 of the 2,500 requests that it sent "
            "are gone",
            "its records were cut off by who copied them",
        ),
        (
            {"table": 2300, "sent": 2400, "unsent": 100, "status": "interrupted"},
            "interrupted",
            ("interrupted", 2400, 100),
            "instance 3 of 4 (1/2:3/4) was interrupted after 2,400 of its 2,500 requests; 100 unsent; the "
            "records of 100 of the 2,400 requests that it sent are gone",
            "both at once",
        ),
    ],
)
def test_an_instance_that_did_not_end_is_named(
    tmp_path: Path,
    ending: dict[str, Any],
    status: str,
    entry: tuple[str, int | None, int],
    sentence: str,
    why: str,
) -> None:
    for index in (0, 1, 3):
        write_instance(tmp_path / f"i{index}", index, PLANNED[index], shard={"planned": PLANNED})
    write_instance(tmp_path / "i2", 2, shard={"planned": None}, **ending)
    result = merge(tmp_path)
    facts, summary = merged(tmp_path)
    assert (result.exit_code, facts["status"], facts["reason"]) == (1, status, sentence), why
    assert sentence[:60] in result.stdout
    dead = summary["instances"][2]
    assert (dead["status"], dead["sent"], dead["unsent"]) == entry, why
    counted = summary["requests"]
    assert counted["unsent"] == entry[2]
    assert counted["total"] == counted["sent"] + sum(counted["skipped"].values()) + counted["unsent"]
    assert counted["sent"] == 751 + ending["table"], "sent is what there are records of"


def test_an_instance_whose_directory_was_not_given_is_missing(tmp_path: Path) -> None:
    for index in (0, 3):
        write_instance(tmp_path / f"i{index}", index, PLANNED[index], shard={"planned": PLANNED})
    assert merge(tmp_path).exit_code == 1
    facts, summary = merged(tmp_path)
    assert facts["status"] == "interrupted"
    assert facts["reason"] == (
        "instance 2 of 4 (1/4:1/2) is missing: its run directory was not given; all of its 251 requests "
        "count as unsent. Instance 3 of 4 (1/2:3/4) is missing: its run directory was not given; all of its "
        "2,500 requests count as unsent"
    )
    assert (summary["requests"]["unsent"], summary["requests"]["total"]) == (2751, 3251)
    assert [each["status"] for each in summary["instances"]] == ["complete", "missing", "missing", "complete"]
    assert (summary["instances"][1]["sent"], summary["instances"][1]["directory"]) == (None, None)


@pytest.mark.parametrize(
    ("dead", "sentence", "why"),
    [
        (
            {"status": "running"},
            "instance 3 of 4 (1/2:3/4) was killed after 100 requests; how many it left unsent is not known, "
            "since no instance went through the log to its end",
            "nobody knows what it had to send",
        ),
        (
            {"status": "interrupted", "unsent": 3},
            "instance 3 of 4 (1/2:3/4) was interrupted after 100 requests; how many it left unsent is not "
            "known, since no instance went through the log to its end",
            "what it says itself is only what it had read",
        ),
    ],
)
def test_what_nobody_knows_is_null_and_never_0(
    tmp_path: Path, dead: dict[str, Any], sentence: str, why: str
) -> None:
    unknown = {"planned": None}
    for index in (0, 1):
        write_instance(tmp_path / f"i{index}", index, shard=unknown, status="interrupted")
    write_instance(tmp_path / "i2", 2, shard=unknown, **dead)
    assert merge(tmp_path).exit_code == 1
    facts, summary = merged(tmp_path)
    assert sentence in facts["reason"].replace("Instance", "instance"), why
    assert (
        "instance 4 of 4 (3/4:1) is missing: its run directory was not given; how many requests it had is not"
        in (facts["reason"].replace("Instance", "instance"))
    )
    assert (summary["requests"]["unsent"], summary["requests"]["total"]) == (None, None), why
    assert summary["requests"]["sent"] == 300
    assert {each["unsent"] for each in summary["instances"]} == {None}
    run = RunDirectory.open(tmp_path / "merged")
    assert run.summary is not None
    assert run.summary.requests.unsent is None, "readers take null for what it is"


def test_what_a_dead_instance_skipped_is_said_not_to_be_known(tmp_path: Path) -> None:
    for index in (0, 1):
        write_instance(tmp_path / f"i{index}", index, skipped={"not_http": 1})
    write_instance(tmp_path / "i2", 2, 50, status="running")
    said = [each.text for each in merge_shards([tmp_path], tmp_path / "merged").facts.merged.says]  # type: ignore[union-attr]
    assert (
        "What instances 3 and 4 skipped is unknown: the counts of skipped requests are the others'." in said
    )


def test_counts_that_do_not_add_up_are_said(tmp_path: Path) -> None:
    write_instances(tmp_path)
    write_instance(tmp_path / "1", 1, 90)
    says = merge_shards([tmp_path], tmp_path / "merged").facts.merged.says  # type: ignore[union-attr]
    said = [each for each in says if each.level == "warn"]
    assert [each.text for each in said] == [
        "The counts of instance 2 of 4 (1/4:1/2) do not add up: 90 sent, 0 skipped and 0 unsent of 100 "
        "planned."
    ]


def test_an_instance_that_sent_late_limits_the_run_and_is_named(tmp_path: Path) -> None:
    write_instances(tmp_path)
    reason = "the generator sent late: buy another machine"
    write_instance(tmp_path / "2", 2, generator_limited=True, generator_limited_reason=reason)
    result = merge(tmp_path)
    facts, summary = merged(tmp_path)
    assert facts["generator_limited"]
    assert facts["generator_limited_reason"] == f"instance 3 of 4 (1/2:3/4): {reason}"
    assert [each["generator_limited"] for each in summary["instances"]] == [False, False, True, False]
    assert result.exit_code == 0, "it is complete all the same"
    assert "buy another machine" in result.stdout


@pytest.mark.parametrize(
    ("late", "of", "status", "named", "why"),
    [
        (5, 1000, "running", "instance 3 of 4", "one that was killed could not judge itself: its records do"),
        (1, 400, "complete", "all instances together", "too few requests of each for a p99.9, enough of all"),
    ],
)
def test_lag_is_judged_by_the_records_too(
    tmp_path: Path, late: int, of: int, status: str, named: str, why: str
) -> None:
    for index in range(INSTANCES):
        lag_us = [0] * of
        if index == 2 or named.startswith("all"):
            lag_us[:late] = [50_000] * late
        ended = status if index == 2 else "complete"
        table = records(of, lag_us=lag_us)
        write_instance(tmp_path / str(index), index, table, status=ended, shard={"planned": [of] * INSTANCES})
    merge(tmp_path)
    facts, _ = merged(tmp_path)
    assert facts["generator_limited"], why
    assert facts["generator_limited_reason"].startswith(f"{named}"), why
    assert "50" in facts["generator_limited_reason"]


def test_a_closed_loop_is_not_limited_by_its_lag(tmp_path: Path) -> None:
    table = records(2000, lag_us=50_000)
    for index in range(INSTANCES):
        write_instance(
            tmp_path / str(index), index, table, loop="closed", shard={"planned": [2000] * INSTANCES}
        )
    merge(tmp_path)
    assert merged(tmp_path)[0]["generator_limited"] is False


def test_the_summary_has_what_it_promises_of_each_instance(tmp_path: Path) -> None:
    write_instances(tmp_path)
    result = merge(tmp_path, "--json")
    summary = json.loads(result.stdout)
    assert summary == merged(tmp_path)[1]
    assert summary["instances"][1] == {
        "name": "instance 2 of 4 (1/4:1/2)",
        "index": 1,
        "segment": "1/4:1/2",
        "directory": str(tmp_path / "1"),
        "host": "generator",
        "status": "complete",
        "sent": 100,
        "planned": 100,
        "unsent": 0,
        "errors": 0,
        "generator_limited": False,
        "lag_ms": {"p50": 0.0, "p99": 0.0, "p99.9": None, "max": 0.0},
        "response_ms": {"p50": 1.0, "p99": 1.0, "p99.9": None, "max": 1.0},
        "started_at": "2026-11-22T10:00:00.000000Z",
        "clock": {"synchronised": True, "max_error_ms": 1.0},
    }
    assert Summary.model_validate(summary).instances[1].lag_ms.p50 == 0
    assert "clocks may differ by up to 2 ms" in result.stderr, "what is to be known is said beside the JSON"


def test_events_say_whose_they_are_and_the_end_of_the_warm_up_comes_once(tmp_path: Path) -> None:
    events = [
        {"t_ns": 0, "event": "run", "phase": "start"},
        {"t_ns": 5, "event": "warm-up", "phase": "stop"},
        {"t_ns": 9, "event": "interrupt"},
    ]
    for index in range(INSTANCES):
        write_instance(tmp_path / str(index), index, events=events)
    merge_shards([tmp_path], tmp_path / "merged")
    found = [json.loads(line) for line in (tmp_path / "merged" / "events.jsonl").read_text().splitlines()]
    assert [each for each in found if each["event"] == "warm-up"] == [events[1]]
    assert [each["instance"] for each in found if each["event"] == "interrupt"] == [0, 1, 2, 3]
    ends = [(each["t_ns"], each["phase"]) for each in found if each["event"] == "run"]
    assert ends == [(0, "start"), (100_000_000, "stop")], "it stopped when its last request was done"


def test_lines_of_the_log_that_did_not_parse_are_kept_once(tmp_path: Path) -> None:
    for path in write_instances(tmp_path):
        (path / "rejects.log").write_text("access.log:3:1: %h: why: line\n")
    merge_shards([tmp_path], tmp_path / "merged")
    assert (tmp_path / "merged" / "rejects.log").read_text() == "access.log:3:1: %h: why: line\n"


# Limits: judged over the records of all instances, as bin/replay judges its own.


LOAD = {"digest": "9f86d0", "settings": {"timeout_s": 30.0}}
CASES = json.loads((ROOT / "tests" / "fixtures" / "limits.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["says"] for case in CASES])
def test_limits_are_judged_as_in_go(case: dict[str, Any]) -> None:
    found = judge_limit(case["limit"], case["summary"], case["status"], case["limited_otherwise"])
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


def test_both_ends_of_late_response_times_are_measured_as_in_go(tmp_path: Path) -> None:
    table = records(1000, lag_us=[1000] * 900 + [50_000] * 90 + [8_000_000] * 10)
    table["due_ns"], table["total_us"] = np.arange(1000) * 10_000_000, 300_000
    table["late_us"], table["flags"][990:] = np.minimum(table["lag_us"], 50_000), QUEUED
    for index in range(INSTANCES):
        write_instance(tmp_path / str(index), index, table[index::INSTANCES], load=LOAD)
    merge(tmp_path)
    _, summary = merged(tmp_path)
    prompt_ms = summary["prompt_ms"]
    assert [prompt_ms[name] for name in ("min", "p50", "p95", "max")] == [300.0, 301.0, 301.0, 8250.0]
    assert (summary["response_ms"]["p95"], summary["moved"]) == (350.0, 0.005)


def test_a_limit_is_kept_with_all_lateness(tmp_path: Path) -> None:
    for index in range(INSTANCES):
        table = records(250, lag_us=[0] * 245 + [50_000] * 5)
        write_instance(tmp_path / str(index), index, table, limits=["p99=20s", "p99=40ms"], load=LOAD)
    result = merge(tmp_path)
    assert "limit p99=20s: kept" in result.output
    assert "over 40 ms, but the generator sent late, and without that it is" in result.output
    assert merged(tmp_path)[0]["generator_limited"], "it is judged all the same"


def write_limited(folder: Path, limits: list[str], last: str = "complete") -> None:
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
    write_limited(tmp_path, limits, last)
    result = merge(tmp_path)
    assert result.exit_code == code, result.output
    assert f"limit {says}" in result.output, why
    facts, summary = merged(tmp_path)
    assert facts["limits"] == limits == [one["limit"] for one in summary["limits"]]


def test_a_run_without_limits_says_nothing_of_them(tmp_path: Path) -> None:
    write_limited(tmp_path, [])
    result = merge(tmp_path)
    assert result.exit_code == 0
    assert "limit " not in result.output
    assert "limits" not in merged(tmp_path)[0]


# Members: what those of all instances sent adds up.


TWO = {"clients": 2, "accounts": 2, "requests": 7, "sent_to_login": 3}
THREE = {"clients": 3, "accounts": 3, "requests": 7, "sent_to_login": 3}
NONE = {"clients": 0, "accounts": 0, "requests": 0, "sent_to_login": 0}


def write_with_members(
    folder: Path, members: list[dict[str, int] | None], flagged: int = INSTANCES, killed: bool = False
) -> None:
    """Instances with ten requests of members each: three of the warm-up, and three sent to the login."""
    for index, own in enumerate(members):
        table = records(100)
        if index < flagged:
            table["flags"][:10] |= MEMBER
            table["flags"][:3] |= WARMUP
            table["flags"][7:10] |= SENT_TO_LOGIN
        status: dict[str, Any] = {"status": "running"} if killed and index == INSTANCES - 1 else {}
        write_instance(folder / str(index), index, table, members=own, **status)


@pytest.mark.parametrize(
    ("why", "members", "flagged", "killed", "expected"),
    [
        (
            "clients add up, accounts are used from the first on by each",
            [TWO, THREE, TWO, TWO],
            4,
            False,
            {"clients": 9, "accounts": 3, "requests": 28, "sent_to_login": 12},
        ),
        (
            "an instance may have no members among its clients",
            [TWO, NONE, NONE, TWO],
            1,
            False,
            {"clients": 4, "accounts": 2, "requests": 7, "sent_to_login": 3},
        ),
        (
            "of a killed one the records tell what was sent, and nobody how many there were",
            [TWO, TWO, TWO, TWO],
            4,
            True,
            {"clients": None, "accounts": None, "requests": 28, "sent_to_login": 12},
        ),
    ],
)
def test_members_add_up(
    tmp_path: Path,
    why: str,
    members: list[dict[str, int] | None],
    flagged: int,
    killed: bool,
    expected: dict[str, int],
) -> None:
    write_with_members(tmp_path, members, flagged, killed)
    merge(tmp_path)
    assert merged(tmp_path)[1]["members"] == expected, why


def test_a_run_without_members_says_nothing_of_them(tmp_path: Path) -> None:
    write_with_members(tmp_path, [None] * INSTANCES, flagged=0)
    merge(tmp_path)
    assert "members" not in merged(tmp_path)[1]
