"""Runs in blocks of four, two a side: dealt within their block; those after the last whole block wait."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from plimsoll.rundir.facts import Load
from tests.support.comparable import (
    ORDERS,
    compare_json,
    finding_names,
    gated,
    runs_of,
    write_blocks,
    write_both,
    write_comparable,
)
from tests.support.rundir import change

GATES = gated("metric: p99.9, at_most_ratio: 1.1", keys="answers: false\n")
STEADY = [1.0, 1.01, 0.99, 1.0]


ROWS = [
    ("a drift from block to block does not count as spread", 12, 1.0, 1.5, "PASS"),
    ("a slower one is found through it", 12, 1.3, 1.5, "FAIL"),
    ("two whole blocks can decide", 8, 1.3, 1.5, "FAIL"),
    ("one block cannot", 4, 1.3, 1.5, "INCONCLUSIVE"),
]


@pytest.mark.parametrize(("what", "runs", "ratio", "drift", "verdict"), ROWS, ids=[row[0] for row in ROWS])
def test_verdicts_in_blocks(
    tmp_path: Path, what: str, runs: int, ratio: float, drift: float, verdict: str
) -> None:
    found = compare_json(write_blocks(tmp_path, runs, ratio, drift), GATES)
    (gate,) = found["gates"]
    assert gate["verdict"] == verdict, what
    if runs > 4:
        assert (gate["test"], gate["arrangements"]) == ("blocks", 6 ** (runs // 4))
    assert not {"order", "unequal-runs"} & finding_names(found)


def test_runs_after_the_last_whole_block_wait_and_are_named(tmp_path: Path) -> None:
    whole = compare_json(write_blocks(tmp_path / "whole", 8, 1.3), GATES)
    found = compare_json(write_blocks(tmp_path / "more", 11, 1.3), GATES)
    (gate,), (before,) = found["gates"], whole["gates"]
    assert gate["candidate"]["runs"] == before["candidate"]["runs"]
    assert gate["verdict"] == "FAIL"
    (waiting,) = [each for each in found["findings"] if each["name"] == "block-unfinished"]
    assert (
        "Not judged until their block of four is whole: 0009-replay--sata--5, 0011-replay--sata--6"
        in waiting["text"]
    )
    assert "0010-replay--nvme--5" in waiting["text"]


def test_what_is_missing_before_a_later_block_is_not_passed_over(tmp_path: Path) -> None:
    folder = write_blocks(tmp_path, 12, 1.3)
    gone = runs_of(folder)[1]
    gone.rename(tmp_path / gone.name)
    found = compare_json(folder, GATES)
    assert found["gates"][0]["verdict"] == "INCONCLUSIVE"
    assert "unequal-runs" in finding_names(found)


SLICES = ["2026-11-20T10:00:00.000000Z", "2026-11-20T10:02:00.000000Z"]
REQUESTS = [1500, 1800]  # of which 1,300 and 1,600 are due while the saturator works


def play(run: Path, part: str | None, **settings: Any) -> None:
    """Let a run have played a slice of its log."""
    change(run, load=Load.of({"timeout_s": 60.0, "from": part, **settings}).model_dump())


def write_slices(folder: Path, ratio: float = 1.0, place: Callable[[int], int] = lambda at: at // 4) -> Path:
    """Write two blocks, each of which played a slice of its own: the second has a fifth more requests."""
    for at in range(8):
        side, block = "BA".index((ORDERS[0] + ORDERS[1])[at]) ^ 1, at // 4
        backend = ("sata", "nvme")[side]
        repeat = 1 + sum((ORDERS[0] + ORDERS[1])[each] == "AB"[side] for each in range(at))
        experiment = {"name": "slices", "run": at + 1, "of": 8, "block": block + 1}
        tail_ms = 50 * (1 + block) * STEADY[at % 4] * (ratio if side else 1.0)
        name = f"{at + 1:04d}-replay--{backend}--{repeat}"
        run = write_comparable(
            folder / "runs" / name,
            backend,
            repeat,
            at,
            tail_ms,
            count=REQUESTS[place(at)],
            experiment=experiment,
        )
        play(run, SLICES[place(at)])
    return folder


@pytest.mark.parametrize(("ratio", "verdict"), [(1.0, "PASS"), (1.5, "FAIL")])
def test_blocks_may_play_slices_of_their_own(tmp_path: Path, ratio: float, verdict: str) -> None:
    found = compare_json(write_slices(tmp_path, ratio), GATES)
    (gate,) = found["gates"]
    assert (found["findings"], gate["verdict"], gate["test"]) == ([], verdict, "blocks")
    assert "Compared at" not in gate["says"], "runs of a slice have as many requests"
    assert not [each for each in found["differences"] if each["key"].startswith("load")]


def company(folder: Path, run: int, part: str) -> None:
    """Let what ran together with a run have played a slice."""
    path = sorted((folder / "runs").iterdir())[run]
    others = [{"member": "replay", "scenario": "replay", "crowd": True, "load": "d", "log_from": part}]
    change(path, together={"run": path.name, "entry": "rush", "member": "author", "others": others})


def all_company(folder: Path) -> None:
    for at in range(8):
        company(folder, at, SLICES[at // 4])


def play_all(runs: Sequence[Path], part: str) -> None:
    for run in runs:
        play(run, part)


def company_but_one(folder: Path) -> None:
    all_company(folder)
    company(folder, 0, SLICES[1])


OTHER_SLICES: list[tuple[str, Callable[[Path], None]]] = [
    ("one run of a block played the slice of another", lambda p: play(runs_of(p)[0], SLICES[1])),
    ("one side of a block did", lambda p: play_all(runs_of(p)[:2], SLICES[1])),
    ("the sides played other slices throughout", lambda p: play_all(runs_of(p)[2:], SLICES[0])),
    ("one run of a block played all of the log", lambda p: play(runs_of(p)[0], None)),
    ("the load of a block differs in more", lambda p: play(runs_of(p)[3], SLICES[1], max_connections=28)),
    ("so did what ran together with it", company_but_one),
]


@pytest.mark.parametrize(("what", "spoil"), OTHER_SLICES, ids=[row[0] for row in OTHER_SLICES])
@pytest.mark.parametrize("ratio", [1.0, 1.5], ids=["would pass", "would fail"])
def test_all_runs_of_a_block_play_one_slice(
    tmp_path: Path, what: str, spoil: Callable[[Path], None], ratio: float
) -> None:
    spoil(folder := write_slices(tmp_path, ratio))
    found = compare_json(folder, GATES)
    assert "other-load" in finding_names(found), what
    assert found["gates"][0]["verdict"] == "INCONCLUSIVE"


def test_company_that_plays_the_blocks_slice_is_no_finding(tmp_path: Path) -> None:
    all_company(folder := write_slices(tmp_path))
    assert "other-load" not in finding_names(compare_json(folder, GATES))


def test_sides_in_no_common_block_have_to_play_the_same_slices(tmp_path: Path) -> None:
    """Such as one side before a change and the other after it."""
    for name, swapped in (("same", False), ("other", True)):
        folder = write_both(tmp_path / name)
        for backend in ("sata", "nvme"):
            for at, run in enumerate(runs_of(folder, backend)):
                change(run, experiment={"name": backend, "run": at + 1, "of": 4, "block": at + 1})
                play(run, SLICES[0 if swapped and backend == "nvme" else at // 2])
        found = compare_json(folder, GATES)
        assert ("other-load" in finding_names(found)) is swapped
