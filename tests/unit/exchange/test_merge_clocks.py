"""A merge says how well instants of several machines line up."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.exchange.merge import merge_shards
from plimsoll.rundir.facts import Merged
from tests.support.rundir import INSTANCES_START, records, write_instance, write_run

GOOD = {"synchronised": True, "max_error_ms": 1.0}
LATER = "2026-11-22T10:00:02.500000Z"


def merged(folder: Path, shards: list[dict[str, Any]], **facts: Any) -> tuple[Merged, list[int], str]:
    """What a merge of instances says, when their requests (one each, due after 1 ms) are due, its start."""
    for index, shard in enumerate(shards):
        keys = {"started_at": shard.pop("started_at", INSTANCES_START), **facts}
        sequence = [str(number) for number in range(len(shards) + 1)]
        write_instance(
            folder / str(index),
            index,
            records(1, due_ns=1_000_000),
            shard={
                "of": len(shards),
                "sequence": sequence,
                "planned": [1] * len(shards),
                "segment": "0:1",
                **shard,
            },
            **keys,
        )
    run = merge_shards([folder], folder / "merged")
    assert run.facts.merged is not None
    due_ns = np.load(folder / "merged" / "requests.npy")["due_ns"].tolist()
    return run.facts.merged, due_ns, f"{run.facts.started_at:%H:%M:%S.%f}"


@pytest.mark.parametrize(
    ("clocks", "error_ms", "level", "sentence", "why"),
    [
        (
            [GOOD, {"synchronised": True, "max_error_ms": 2.4}, {"synchronised": True, "max_error_ms": 0.5}],
            3.4,
            "note",
            "The instances' clocks may differ by up to 3.4 ms.",
            "at worst the two worst err in opposite directions",
        ),
        (
            [GOOD, GOOD, {"synchronised": False, "max_error_ms": 16000.0}],
            None,
            "warn",
            "The clock of instance 3 is not synchronised: how far it is off is unknown.",
            "the kernel's bound says nothing of a clock that nobody sets",
        ),
        (
            [{"synchronised": False}, GOOD, {"synchronised": False}],
            None,
            "warn",
            "The clocks of instances 1 and 3 are not synchronised: how far they are off is unknown.",
            "several",
        ),
        (
            [GOOD, None, GOOD],
            None,
            "warn",
            "The clock of instance 2 is of unknown quality: the system does not say how far it is off.",
            "a kernel that does not say",
        ),
        (
            [{"synchronised": None, "max_error_ms": 3.0}, {"synchronised": True}, GOOD],
            None,
            "warn",
            "The clocks of instances 1 and 2 are of unknown quality: the system does not say how far they "
            "are off.",
            "half of an answer is none",
        ),
    ],
)
def test_clocks_are_as_good_as_they_say(
    tmp_path: Path, clocks: list[Any], error_ms: float | None, level: str, sentence: str, why: str
) -> None:
    said, due_ns, start = merged(tmp_path, [{"clock": clock} for clock in clocks])
    assert (said.clock_error_ms, said.placed_by) == (error_ms, "start_at"), why
    assert [(each.level, each.text) for each in said.says] == [(level, sentence)], why
    assert (due_ns, start) == ([1_000_000] * 3, "10:00:00.000000")


def test_who_shares_a_start_is_not_moved_by_when_its_clock_said_that_it_began(tmp_path: Path) -> None:
    late = {"started_at": LATER}
    said, due_ns, start = merged(tmp_path, [{}, late])
    assert (due_ns, start) == ([1_000_000] * 2, "10:00:00.000000")
    assert said.says[0].level == "warn"
    assert said.says[0].text == "Instance 2 of 2 (0:1) noted its start 2.5 s after the one that all share."


def test_who_has_no_start_in_common_is_placed_by_its_own_clock(tmp_path: Path) -> None:
    own = {"start_at": None}
    said, due_ns, start = merged(tmp_path, [{**own, "started_at": LATER}, own])
    assert (said.placed_by, due_ns, start) == ("started_at", [1_000_000, 2_501_000_000], "10:00:00.000000")
    assert [(each.level, each.text) for each in said.says] == [
        (
            "warn",
            "The instances got no common start: their starts differ by 2.5 s by their own clocks, by "
            "which they are placed.",
        ),
        ("note", "The instances' clocks may differ by up to 2 ms."),
    ]


@pytest.mark.parametrize("other", [None, LATER])
def test_who_was_told_another_start_did_not_replay_with_the_others(tmp_path: Path, other: str | None) -> None:
    said, due_ns, _ = merged(tmp_path, [{}, {"start_at": other, "started_at": LATER}])
    assert (said.placed_by, due_ns) == ("started_at", [1_000_000, 2_501_000_000])
    assert said.says[0].level == "bad"
    assert said.says[0].text == (
        "The instances did not all get the same start (start_at), so they did not replay together: their "
        "starts differ by 2.5 s, and they are placed by their own clocks."
    )


def test_an_instance_that_died_before_its_start_needs_no_place(tmp_path: Path) -> None:
    write_instance(tmp_path / "0", 0, shard={"start_at": None})
    write_instance(tmp_path / "1", 1, 0, status="running", started_at=None, shard={"start_at": None})
    facts = merge_shards([tmp_path], tmp_path / "merged", now_s=2e9).facts
    assert f"{facts.started_at:%H:%M:%S}" == "10:00:00"
    assert facts.reason is not None
    assert "instance 2 of 4 (1/4:1/2) was killed after 0 of its 100 requests; 100 unsent" in facts.reason


def test_shards_of_no_replay_say_how_far_apart_they_began(tmp_path: Path) -> None:
    write_run(tmp_path / "a", records(1), started_at=INSTANCES_START, loop="closed")
    write_run(tmp_path / "b", records(1), started_at=LATER, loop="closed")
    facts = merge_shards([tmp_path], tmp_path / "merged").facts
    assert facts.merged is not None
    assert [(each.level, each.text) for each in facts.merged.says] == [
        ("note", "The shards began within 2.5 s by their own clocks, and are placed by them.")
    ]
    assert facts.merged.clock_error_ms is None
