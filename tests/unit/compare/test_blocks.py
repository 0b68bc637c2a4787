"""Runs in blocks of four, two a side: dealt within their block; those after the last whole block wait."""

from pathlib import Path

import pytest

from tests.support.comparable import compare_json, finding_names, gated, runs_of, write_comparable

ORDERS = ["BAAB", "AABB", "ABAB", "BBAA"]
GATES = gated("metric: p99.9, at_most_ratio: 1.1", keys="answers: false\n")
STEADY = [1.0, 1.01, 0.99, 1.0]


def write_blocks(folder: Path, runs: int, ratio: float = 1.0, drift: float = 1.0) -> Path:
    """Write the first `runs` of an experiment; each block takes `drift` times as long as the one before."""
    places = [(block, side) for block, order in enumerate(ORDERS) for side in order]
    for at, (block, side) in enumerate(places[:runs]):
        backend = "nvme" if side == "B" else "sata"
        tail_ms = 50 * drift**block * STEADY[at % 4] * (ratio if side == "B" else 1.0)
        repeat = 1 + sum(other == side for _, other in places[:at])
        name = f"{at + 1:04d}-replay--{backend}--{repeat}"
        experiment = {"name": "blocks", "run": at + 1, "of": len(places), "block": block + 1}
        write_comparable(folder / "runs" / name, backend, repeat, at, tail_ms, experiment=experiment)
    return folder


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
