"""Rehearsals: what is planted, what is found of it, what is promised, and which runs are taken."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from plimsoll.ab.rehearsal import PLANTS, Plant, Rehearsal
from plimsoll.ab.rehearsal_page import sentence_of_rehearsal
from plimsoll.analysis.compare.gates import Gate, Gates, Limit
from plimsoll.analysis.statistics.requests import KeptRequests
from plimsoll.cli import main
from tests.support.comparable import instant, write_blocks
from tests.support.rundir import change, change_records, records, write_run
from tests.unit.ab.test_trial import LOG

GATE = Gate(scenario="replay", metric="p99.9", at_most_ratio=1.1)
NO_ERRORS = Gate(scenario="replay", metric="error share", at_most_more=0.001)


def requests(count: int = 10_000) -> KeptRequests:
    """A hundred a second, 50 ms each; every tenth failed."""
    failed = np.arange(count) % 10 == 0
    due_ms = (np.arange(count) * 10).astype(np.uint32)
    return KeptRequests(due_ms, np.full(count, 50_000, np.uint32), np.zeros(count, np.uint16), failed)


def planted_ms(name: str) -> np.ndarray[Any, Any]:
    kept = requests()
    plant: Plant = PLANTS[name]
    slowed = plant(kept, np.random.default_rng(1))
    assert (slowed.response_us[kept.failed] == 50_000).all()
    assert len(slowed) == len(kept)
    return slowed.response_us[~kept.failed] / 1000


@pytest.mark.parametrize(
    ("name", "ms"),
    [
        ("nothing", 50.0),
        ("every answer × 1.1", 55.0),
        ("every answer × 1.2", 60.0),
        ("every answer × 1.5", 75.0),
    ],
)
def test_every_answer_is_slower(name: str, ms: float) -> None:
    assert planted_ms(name) == pytest.approx(ms)


@pytest.mark.parametrize(
    ("name", "share"), [("200 ms more in 0.1 % of answers", 0.001), ("200 ms more in 1 % of answers", 0.01)]
)
def test_some_answers_are_late(name: str, share: float) -> None:
    found = planted_ms(name)
    assert set(found) == {50.0, 250.0}
    assert (found == 250).mean() == pytest.approx(share, rel=0.5)


def test_what_is_due_in_a_stall_waits_for_its_end() -> None:
    found = planted_ms("a stall of 2 s in each run")
    assert (found > 50).sum() == pytest.approx(180, abs=2)
    assert found.max() == pytest.approx(2050, abs=10)


def rehearsal(blocks: int, apart: float = 0.1, *, looks: str = "blocks", gates: int = 1) -> Rehearsal:
    """Runs that lie so far apart, as a logarithm."""
    values = np.exp(np.random.default_rng(7).normal(0, apart, (blocks, 4)))
    both: tuple[tuple[Gate, Limit], ...] = ((GATE, "at_most_ratio"), (NO_ERRORS, "at_most_more"))
    asked = both[:gates]
    figures = (values[None], np.zeros((1, blocks, 4)))[:gates]
    return Rehearsal(Gates(gates=[gate for gate, _ in asked]), asked, figures, 300, looks, dealings=100)


@pytest.mark.parametrize("looks", ["blocks", "end"])
@pytest.mark.parametrize("gates", [1, 2])
def test_nothing_planted_fails_in_one_of_twenty_at_most(looks: str, gates: int) -> None:
    one = rehearsal(4, looks=looks, gates=gates)
    just_within = (one.values[0] * 1.1, *one.values[1:])
    assert one.judge(one.values)["FAIL"] == 0
    assert one.judge(just_within)["FAIL"] <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / one.dealings)


def test_what_is_far_slower_is_found_and_what_is_alike_passes() -> None:
    one = rehearsal(4, apart=0.02)
    assert one.judge((one.values[0] * 1.5,))["FAIL"] == 1
    assert one.judge(one.values)["PASS"] == 1


def test_runs_that_lie_closer_together_find_less_and_so_do_more_runs() -> None:
    close, far = rehearsal(4, apart=0.03), rehearsal(4, apart=0.1)
    assert close.finds_from is not None
    assert far.finds_from is not None
    assert 1.1 < close.finds_from < far.finds_from
    foretold = [far.foretold(runs) or 0 for runs in range(4, 41, 4)]
    assert foretold == sorted(foretold, reverse=True)
    assert far.foretold(8) == pytest.approx(far.finds_from)
    takes = far.foretell(1.2)
    assert takes is not None
    assert (far.foretold(takes) or 9) <= 1.2 < (far.foretold(takes - 2) or 9)


def test_the_range_holds_the_figure() -> None:
    one = rehearsal(4)
    between = one.finds_range()
    assert between is not None
    assert 1.1 < between[0] < (one.finds_from or 0) < between[1]


def test_lateness_is_judged_at_both_ends() -> None:
    in_time = rehearsal(4, apart=0.02)
    (values,) = in_time.values
    late = replace(in_time, values=(np.concatenate([1.15 * values, values]),))
    assert late.judge(late.values) == {"FAIL": 0, "PASS": 0, "INCONCLUSIVE": 1}
    assert late.judge((1.5 * late.values[0],))["FAIL"] == 1
    assert late.finds_from == pytest.approx(1.15 * (in_time.finds_from or 0), rel=0.01)
    assert "within the limit, and × 1.15 may be the load generator's own lateness." in (
        sentence_of_rehearsal(late)
    )


def test_the_sentence() -> None:
    said = sentence_of_rehearsal(rehearsal(4, apart=0.08))
    assert said.startswith("Here, 8 runs a side of 5 min (80 min) fail a candidate that is × 1.")
    assert "slower at p99.9 in 4 of 5 cases (× 1." in said
    assert "as far as 16 runs tell); × 1.2 takes " in said
    assert said.endswith("up to × 1.1 is within the limit. By construction at most 1 in 20 is a false alarm.")


def rehearse(folder: Path, *words: str | Path) -> Result:
    return CliRunner().invoke(main, ["rehearse", *map(str, words), "--out", str(folder / "out")])


def write_recorded(folder: Path, runs: int, backend: str = "sata") -> Path:
    """Runs of one site, one after another, whose p99 lie about 3 % apart."""
    draw = np.random.default_rng(1)
    for at in range(runs):
        table = records(1500)
        table["total_us"][:] = draw.lognormal(7, 0.5, 1500) * math.exp(draw.normal(0, 0.03))
        write_run(
            folder / f"{backend}-{at}",
            table,
            summary={"requests": {"total": 1500, "sent": 1500}, "duration_s": 1.5},
            scenario="replay",
            backend=backend,
            repeat=at + 1,
            started_at=instant(2 * at),
            ended_at=instant(2 * at + 1),
        )
    return folder


def test_existing_runs_are_rehearsed(tmp_path: Path) -> None:
    runs = write_recorded(tmp_path / "runs", 9)
    told = rehearse(tmp_path, "--from", runs, "--gate", "p99:1.2x", "--json")
    assert told.exit_code == 0, told.output
    found = json.loads(told.output)
    assert found["left_out"] == 1
    assert found["rehearsal"]["runs"] == 4
    shares = {each["planted"]: each["shares"] for each in found["rehearsal"]["planted"]}
    assert list(shares) == list(PLANTS)
    assert shares["nothing"]["FAIL"] == 0
    assert shares["a stall of 2 s in each run"]["FAIL"] == 1
    assert "slower at p99 in 4 of 5 cases" in found["says"]
    page = (tmp_path / "out" / "rehearsal.html").read_text()
    assert "What more runs would find" in page
    assert found["says"] in page
    assert json.loads((tmp_path / "out" / "rehearsal.json").read_text()) == found


def test_runs_that_were_sent_late_pass_nothing(tmp_path: Path) -> None:
    for run in write_recorded(tmp_path / "runs", 8).iterdir():
        change_records(run, lag_us=1500, late_us=1500)
    told = rehearse(tmp_path, "--from", tmp_path / "runs", "--gate", "p99:1.2x", "--json")
    found = json.loads(told.output)["rehearsal"]
    assert found["lateness"] > 1.2
    assert found["planted"][0]["shares"]["PASS"] == 0
    assert found["planted"][-1]["shares"]["FAIL"] == 1


def test_a_run_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    runs = write_recorded(tmp_path / "runs", 9)
    (runs / "sata-3" / "run.json").write_text("{")
    told = rehearse(tmp_path, "--from", runs, "--gate", "p99:1.2x")
    assert told.exit_code == 2, told.output
    assert "sata-3" in told.output
    assert "Move away what does not count, or repair it." in told.output


def test_a_killed_run_bars_a_verdict(tmp_path: Path) -> None:
    runs = write_recorded(tmp_path / "runs", 8)
    change(runs / "sata-3", status="interrupted", reason="killed")
    told = rehearse(tmp_path, "--from", runs, "--gate", "p99:1.2x")
    assert told.exit_code == 3, told.output
    assert told.output.startswith("No experiment of such runs is decided:\n- sata-3 ")


def test_refused(tmp_path: Path) -> None:
    few = write_recorded(tmp_path / "few", 7)
    both = write_blocks(tmp_path / "both", 16) / "runs"
    for words, says in (
        ([], "--target: is missing (or --from DIR)"),
        (["--from", few], "takes 8 runs of one site or more, and here are 7: add runs"),
        (["--from", both], "these are runs of several sites (nvme and sata): name those of one"),
        (["--from", few, LOG], "--from: takes runs as they are: leave LOG, --target and their options out"),
        (["--from", few, "--gate", "p99"], "--gate: p99: is not a limit"),
        (["--resume", tmp_path], "is not a folder of plimsoll rehearse"),
        (["--resume", tmp_path, "--runs", "8"], "--resume: the rehearsal has its settings"),
        (
            [LOG, "--target", "http://127.0.0.1:1", "--gate", "p99:1.2x"],
            "--target: http://127.0.0.1:1: does not",
        ),
    ):
        told = rehearse(tmp_path, *words)
        assert told.exit_code == 2, (words, told.output)
        assert says in told.output
