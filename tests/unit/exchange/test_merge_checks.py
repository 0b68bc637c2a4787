"""Shards that are not of one run are refused, all problems at once; how well their clocks line up is said."""

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from plimsoll.analysis.exchange.merge import merge_shards
from plimsoll.cli import main
from plimsoll.common.errors import RunDirectoryError
from plimsoll.rundir.check import records_sha256
from plimsoll.rundir.facts import Load, Merged
from plimsoll.rundir.records import RequestFile
from tests.support.rundir import (
    INSTANCES,
    INSTANCES_START,
    records,
    run_facts,
    shard_facts,
    write_instance,
    write_instances,
    write_run,
)


def merge(folder: Path, *arguments: str, out: str = "merged") -> Result:
    return CliRunner().invoke(main, ["merge", str(folder), "--out", str(folder / out), *arguments])


@pytest.mark.parametrize(
    ("changed", "sentence", "why"),
    [
        ({"speed": "10"}, "its speed is 10, but 1 in", "another pace"),
        ({"seed": 2}, "its seed is 2, but 1 in", "requests of one second fall on other instants"),
        ({"loop": "closed"}, "its loop is closed, but open in", "another kind of load"),
        ({"warmup_s": 5.0}, "its warm-up (s) is 5.0, but 0.0 in", "what is measured begins elsewhere"),
        (
            {"target": {"url": "http://b"}},
            "its target is http://b, but http://127.0.0.1:8080 in",
            "another site",
        ),
        ({"scenario": "visitors"}, "its scenario is visitors, but replay in", "another scenario"),
        (
            {"logs": [{"path": "/elsewhere/error.log"}]},
            "its list of logs is ['error.log'], but ['access.log'] in",
            "another log",
        ),
        (
            {"logs": [{**run_facts()["logs"][0], "valid": 5}]},
            "its count of the logs' lines",
            "a log of the same name that holds something else",
        ),
        (
            {"shard": {"planned": [99, 101, 100, 100]}},
            "its count of what each instance has to send",
            "another log",
        ),
        (
            {"shard": {"sequence": ["0", "1/8", "1/2", "3/4", "1"]}},
            "its sequence of segments is 0,1/8,1/2,3/4,1, but 0,1/4,1/2,3/4,1 in",
            "shares that overlap",
        ),
        (
            {"shard": {"of": 2, "sequence": ["0", "1/2", "1"], "planned": [200, 200]}},
            "its number of instances is 2, but 4 in",
            "another division",
        ),
    ],
)
def test_an_instance_of_another_run_is_refused(
    tmp_path: Path, changed: dict[str, Any], sentence: str, why: str
) -> None:
    write_instances(tmp_path)
    write_instance(tmp_path / "1", 1, **changed)
    result = merge(tmp_path)
    assert result.exit_code == 2, why
    assert f"{tmp_path / '1'}: {sentence}" in result.stderr, why
    assert not (tmp_path / "merged").exists()


LOADS: list[tuple[str, dict[str, Any] | None, int]] = [
    ("of one load", {"timeout_s": 30.0, "include": []}, 0),
    ("another time-out", {"timeout_s": 1.0, "include": []}, 2),
    ("an instance of an older version says nothing of its load", None, 0),
]


@pytest.mark.parametrize(("why", "settings", "code"), LOADS)
def test_instances_of_another_load_are_refused(
    tmp_path: Path, why: str, settings: dict[str, Any] | None, code: int
) -> None:
    load = Load.of({"timeout_s": 30.0, "include": []}).model_dump()
    write_instances(tmp_path, load=load)
    write_instance(tmp_path / "1", 1, load=None if settings is None else Load.of(settings).model_dump())
    result = merge(tmp_path)
    assert result.exit_code == code, why
    if code:
        assert f"{tmp_path / '1'}: its load differs from that of" in result.stderr, why
        assert "(timeout_s)" in result.stderr, why
        return
    assert json.loads((tmp_path / "merged" / "run.json").read_text())["load"] == load
    written = (tmp_path / "merged" / "requests.npy").read_bytes()[512:]
    summary = json.loads((tmp_path / "merged" / "summary.json").read_text())
    assert summary["records_sha256"] == sha256(written).hexdigest(), why


def test_a_log_may_lie_in_another_folder_on_each_machine(tmp_path: Path) -> None:
    write_instances(tmp_path)
    write_instance(tmp_path / "1", 1, logs=[{**run_facts()["logs"][0], "path": "/mnt/access.log"}])
    assert merge_shards([tmp_path], tmp_path / "merged").facts.status == "complete"


def test_who_was_killed_did_not_count_the_whole_log(tmp_path: Path) -> None:
    write_instances(tmp_path)
    read_so_far = [{**run_facts()["logs"][0], "lines": 17, "valid": 17}]
    write_instance(tmp_path / "0", 0, 5, status="running", logs=read_so_far, shard={"planned": None})
    facts = merge_shards([tmp_path], tmp_path / "merged").facts
    assert facts.logs[0].lines == 6000, "the counts are those of who went through it"


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    write_instances(tmp_path)
    write_instance(tmp_path / "1", 1, speed="10", seed=2)
    write_instance(tmp_path / "3", 2)
    with pytest.raises(RunDirectoryError) as refused:
        merge_shards([tmp_path], tmp_path / "merged")
    assert str(refused.value).splitlines() == [
        f"{tmp_path / '2'} and {tmp_path / '3'} are both instance 3 of 4 (1/2:3/4): give the right one",
        f"{tmp_path / '1'}: its speed is 10, but 1 in {tmp_path / '0'}: these are not shards of one run",
        f"{tmp_path / '1'}: its seed is 2, but 1 in {tmp_path / '0'}: these are not shards of one run",
    ]


def test_all_shards_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    write_instances(tmp_path)
    (tmp_path / "1" / "run.json").write_text("{")
    (tmp_path / "2" / "requests.npy").write_bytes(b"x" * 1000)
    with pytest.raises(RunDirectoryError) as refused:
        merge_shards([tmp_path], tmp_path / "merged")
    lines = str(refused.value).splitlines()
    assert len(lines) == 2
    assert f"{tmp_path / '1' / 'run.json'}: is not JSON" in lines[0]
    assert f"{tmp_path / '2' / 'requests.npy'}: is not a NumPy file" in lines[1]


@pytest.mark.parametrize(
    ("shard", "sentence", "why"),
    [
        ({"index": 4}, "index 4 is not one of 4", "they count from 0"),
        ({"planned": [1, 2]}, "planned has 2 entries, where 4 instances have 4", "a count is missing"),
        ({"sequence": ["0", "1"]}, "sequence has 2 entries, where 4 instances have 5", "a bound is missing"),
        ({"planned": [-1, 0, 0, 0]}, "shard.planned.0", "nobody sends less than nothing"),
    ],
)
def test_a_shard_that_contradicts_itself_is_damaged(
    tmp_path: Path, shard: dict[str, Any], sentence: str, why: str
) -> None:
    path = write_run(tmp_path / "a", records(3), shard={**shard_facts(0), **shard})
    with pytest.raises(RunDirectoryError) as refused:
        merge_shards([path], tmp_path / "merged")
    assert sentence in str(refused.value), why


def test_a_directory_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", records(3))
    (tmp_path / "same").symlink_to(path)
    with pytest.raises(RunDirectoryError, match=r"a and .*same are one directory: give it once"):
        merge_shards([path, tmp_path / "same"], tmp_path / "merged")


def test_a_run_that_is_whole_is_no_instance(tmp_path: Path) -> None:
    write_instances(tmp_path)
    write_run(tmp_path / "4", records(3))
    with pytest.raises(RunDirectoryError, match=r"4: is not an instance of a replay, but .*; leave it out"):
        merge_shards([tmp_path], tmp_path / "merged")


def test_a_merged_run_is_no_shard_and_does_not_count_among_those_of_a_folder(tmp_path: Path) -> None:
    write_instances(tmp_path)
    merge_shards([tmp_path], tmp_path / "merged")
    assert merge_shards([tmp_path], tmp_path / "again").facts.status == "complete"
    with pytest.raises(RunDirectoryError, match="merged: was itself merged: give the shards"):
        merge_shards([tmp_path / "0", tmp_path / "merged"], tmp_path / "third")


def test_a_folder_stands_for_the_shards_in_it(tmp_path: Path) -> None:
    write_instances(tmp_path / "shards")
    (tmp_path / "shards" / "latest").symlink_to("3")
    (tmp_path / "shards" / "notes").mkdir()
    run = merge_shards([tmp_path / "shards"], tmp_path / "merged")
    assert run.facts.status == "complete"
    assert run.facts.merged is not None
    assert run.facts.merged.of == [str(tmp_path / "shards" / str(index)) for index in range(4)]


def test_a_folder_without_shards_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunDirectoryError, match=r"empty: run.json is missing"):
        merge_shards([tmp_path / "empty"], tmp_path / "merged")


def test_a_record_that_is_due_at_an_impossible_instant_names_its_shard(tmp_path: Path) -> None:
    write_instances(tmp_path)
    write_instance(tmp_path / "2", 2, records(100, due_ns=-5))
    with pytest.raises(RunDirectoryError, match=r"2/requests.npy: a request is due at an impossible instant"):
        merge_shards([tmp_path], tmp_path / "merged")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "3"], "nothing half is left"


def test_a_shard_with_the_records_of_another_run_is_refused(tmp_path: Path) -> None:
    for folder, took_us in (("slow", 9000), ("fast", 300)):
        for index in range(INSTANCES):
            path = write_instance(
                tmp_path / folder / str(index), index, records(100, total_us=took_us + index)
            )
            noted = json.loads((path / "summary.json").read_text())
            noted["records_sha256"] = records_sha256(RequestFile.open(path / "requests.npy"))
            (path / "summary.json").write_text(json.dumps(noted))
    whole = merge(tmp_path / "slow", out="../m")
    assert whole.exit_code == 0
    shutil.copyfile(tmp_path / "fast/2/requests.npy", tmp_path / "slow/2/requests.npy")
    result = merge(tmp_path / "slow", out="../other")
    assert result.exit_code == 2
    assert (
        "slow/2: the records in requests.npy are not those that summary.json was written of" in result.stderr
    )
    assert not (tmp_path / "other").exists()


def test_names_from_shards_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    hostile = "\x1b[2J\u202e"
    write_instances(tmp_path)
    write_instance(tmp_path / "1", 1, speed=hostile)
    result = merge(tmp_path, out="m")
    assert result.exit_code == 2
    write_instance(tmp_path / "1", 1, status="failed", reason=hostile, shard={"segment": hostile})
    result = merge(tmp_path, out="m")
    assert result.exit_code == 1
    assert "\x1b" not in result.output
    assert "\u202e" not in result.output
    facts = json.loads((tmp_path / "m" / "run.json").read_text())
    assert "\x1b" not in facts["reason"]


def test_a_copied_shard_is_refused_by_the_command(tmp_path: Path) -> None:
    for name in ("0", "1", "2"):
        table = records(300, client=int(name) + 1)
        write_run(tmp_path / name, table, summary={"requests": {"sent": 300}}, scenario="visitors")
    shutil.copytree(tmp_path / "2", tmp_path / "3")
    result = merge(tmp_path)
    assert result.exit_code == 2
    assert "hold the same records: one is a copy; leave it out" in result.stderr
    shutil.rmtree(tmp_path / "3")
    assert merge(tmp_path).exit_code == 0


# Clocks: how well instants of several machines line up.


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
