"""From measured runs to questions: which gates are asked, at which counts, and what forbids an answer."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.analysis.compare.comparison import Comparison, compare
from plimsoll.analysis.compare.page import comparison_page, phase_table
from plimsoll.cli import main
from plimsoll.rundir.events import FELT
from plimsoll.rundir.records import Records
from tests.support.comparable import (
    BACKENDS,
    compare_json,
    gated,
    instant,
    judged,
    reasons,
    runs_of,
    write_both,
)
from tests.support.experiment import add_events, measure_event, write_scripted_experiment
from tests.support.rundir import change, records, write_run


def test_the_default_gates_ask_for_the_tail_and_for_errors(tmp_path: Path) -> None:
    found = judged(write_both(tmp_path))
    assert [each.gate.name for each in found.judged] == [
        "replay during: p99.9",
        "replay whole: p99.9",
        "replay whole: error share",
        "replay whole: answers",
    ]
    assert found.verdict == "PASS"
    assert found.exit_code == 0
    assert found.warnings == []
    assert [len(each.question.candidate) for each in found.judged] == [4, 4, 4, 4]


METRICS: list[tuple[str, int, list[tuple[str, float]], list[str]]] = [
    ("a thousand", 1500, [], ["during p99.9", "whole p99.9"]),
    ("a thousand in the whole run alone", 1100, [], ["during p99", "whole p99.9"]),
    ("a hundred", 400, [], ["during p99", "whole p99"]),
    ("measures", 50, [("publish", 900.0), ("save", 20.0)], ["whole measure publish"]),
    ("steps", 50, [], ["whole measure page"]),
]


@pytest.mark.parametrize(("what", "count", "measures", "metrics"), METRICS, ids=[row[0] for row in METRICS])
def test_what_is_asked_of_short_runs(
    tmp_path: Path, what: str, count: int, measures: list[tuple[str, float]], metrics: list[str]
) -> None:
    write_both(tmp_path, count=count, measures=measures)
    found = judged(tmp_path)
    asked = [f"{each.gate.phase} {each.gate.metric}" for each in found.judged]
    assert [each for each in asked if not re.search("error|answers|during measure", each)] == metrics
    assert all(each.verdict.outcome == "PASS" for each in found.judged)


@pytest.mark.parametrize("felt", ["", *FELT])
def test_an_upgrade_is_judged_by_how_long_it_took(tmp_path: Path, felt: str) -> None:
    for run in write_scripted_experiment(tmp_path, ["upgrade-wordpress"]):
        if felt:
            add_events(run, measure_event(f"{felt}visitors", 900_000.0, 1, iteration=1))
    found = compare([tmp_path], "nvme-mirror", "rotating")
    assert "measure upgrade" in [each.gate.metric for each in found.judged]


RATIO, ALONE = "metric: p99.9, at_most_ratio: 1.1", "metric: p99.9, at_most_ms: 60"
Shape = Callable[[np.random.Generator, str, int], Records]


def experiment(folder: Path, shape: Shape, repeats: int = 4, seed: int = 1) -> Path:
    """Write runs in the order ABBA; `shape` draws the records of one."""
    random = np.random.default_rng(seed)
    for repeat in range(1, repeats + 1):
        for place, backend in enumerate(("sata", "nvme") if repeat % 2 else ("nvme", "sata")):
            at = 2 * (repeat - 1) + place
            table = shape(random, backend, repeat)
            write_run(
                folder / "runs" / f"{at + 1:04d}-replay--{backend}--{repeat}",
                table,
                summary={"requests": {"total": len(table), "sent": len(table)}, "duration_s": 60},
                backend=backend,
                repeat=repeat,
                started_at=instant(5 * at),
                ended_at=instant(5 * at + (table["due_ns"] / 1e9 + table["total_us"] / 1e6).max() / 60),
            )
    return folder


def only(gate: str) -> str:
    return gated(gate, keys="answers: false\n")


def requests(random: np.random.Generator, count: int, rate: float = 100.0) -> Records:
    """Draw Pareto response times: the slower, the rarer, without end."""
    table = records(count)
    table["due_ns"] = (np.arange(count) * 1e9 / rate).astype(np.int64)
    table["total_us"] = np.minimum(1000 * (random.pareto(1.2, count) + 1), 5e7)
    return table


COUNTS: list[tuple[str, int, float]] = [
    ("a tenth of the rate", 1000, 10.0),
    ("a tenth of the time", 1000, 100.0),
]


@pytest.mark.parametrize(("what", "fewer", "rate"), COUNTS, ids=[row[0] for row in COUNTS])
def test_few_requests_are_compared_with_as_few(tmp_path: Path, what: str, fewer: int, rate: float) -> None:
    """p99.9 of 1,000 requests lies lower than that of 10,000 more often than not: 13 of 20 were a PASS."""
    passed = 0
    for seed in range(20):
        folder = experiment(
            tmp_path / str(seed),
            lambda random, side, _: (
                requests(random, 10_000) if side == "sata" else requests(random, fewer, rate)
            ),
            seed=seed,
        )
        (gate,) = compare_json(folder, only("metric: p99.9, at_most_ratio: 1.0"))["gates"]
        passed += gate["verdict"] == "PASS"
        assert "Compared at 1,000 requests of each run, of the 1,000 to 10,000" in gate["says"], what
    assert passed <= 3, what


def test_equal_counts_stay_as_they_are(tmp_path: Path) -> None:
    folder = experiment(tmp_path, lambda random, *_: requests(random, 3000))
    found = compare_json(folder, only(RATIO))
    assert "Compared at" not in found["gates"][0]["says"]


def steady(random: np.random.Generator, count: int = 2000) -> Records:
    table = records(count)
    table["due_ns"] = np.arange(count) * 10_000_000
    table["total_us"] = 1000 * np.exp(random.normal(0, 0.3, count)) * math.exp(random.normal(0, 0.02))
    return table


def stalling(which: int) -> Shape:
    """Return runs of which one of the candidate's stalls for a second; its p99 looks past that."""

    def shape(random: np.random.Generator, backend: str, repeat: int) -> Records:
        table = steady(random, 20_000)
        if backend == "nvme" and repeat == which:
            table["total_us"][5000:5100] += np.linspace(1_000_000, 10_000, 100).astype(np.uint32)
        return table

    return shape


def test_one_run_that_stalls_is_no_pass(tmp_path: Path) -> None:
    gates = only("metric: p99, at_most_ratio: 1.1")
    found = compare_json(experiment(tmp_path / "stalls", stalling(2), 6), gates)
    assert (found["exit"], found["verdict"]) == (3, "INCONCLUSIVE")
    (gate,) = found["gates"]
    assert "1 of the candidate's 6 runs stalled: in 0003-replay--nvme--2" in gate["says"]
    assert gate["p_pass"] <= 0.05, "the runs' p99 alone would have been a PASS"
    (finding,) = [each for each in found["findings"] if each["name"] == "rare-stalls"]
    assert finding["runs"] == ["0003-replay--nvme--2"]
    assert compare_json(experiment(tmp_path / "none", stalling(0), 6), gates)["verdict"] == "PASS"


def test_a_stall_keeps_no_broken_limit_from_failing(tmp_path: Path) -> None:
    def slower(random: np.random.Generator, backend: str, repeat: int) -> Records:
        table = stalling(2)(random, backend, repeat)
        table["total_us"] *= 3 if backend == "nvme" else 1
        return table

    folder = experiment(tmp_path, slower, 6)
    assert compare_json(folder, only("metric: p99, at_most_ratio: 1.1"))["verdict"] == "FAIL"


STALL_GATES: list[tuple[str, int, int, str, str]] = [
    ("29 clean runs, at the first look, are one too few", 29, 0, "INCONCLUSIVE", "it takes 30 or more clean"),
    ("30 clean runs", 30, 0, "PASS", ""),
    ("one that stalls", 30, 1, "INCONCLUSIVE", "more run"),
    ("one in three", 30, 10, "FAIL", ""),
]


@pytest.mark.parametrize(
    ("what", "repeats", "hit", "verdict", "says"), STALL_GATES, ids=[row[0] for row in STALL_GATES]
)
def test_the_gate_on_rare_stalls(
    tmp_path: Path, what: str, repeats: int, hit: int, verdict: str, says: str
) -> None:
    def shape(random: np.random.Generator, backend: str, repeat: int) -> Records:
        table = steady(random, 200)
        if backend == "nvme" and repeat <= hit:
            table["total_us"][50:80] += 900_000
        return table

    gates = only("metric: stalls over 500 ms, at_most_share_of_runs: 0.1")
    (gate,) = compare_json(experiment(tmp_path, shape, repeats), gates)["gates"]
    assert gate["verdict"] == verdict, what
    assert says in gate["says"], what
    assert gate["test"] == "binomial"
    assert gate["candidate"]["level"] == pytest.approx(hit / repeats)


def on_one_machine(ran_ms: float, waited_ms: float) -> dict[str, Any]:
    return {
        "beside_server": True,
        "cores": 1,
        "threads": 1,
        "nice": 0,
        "ran_ms_per_s": ran_ms,
        "others_wait_ms_per_s": waited_ms,
        "cores_busy": 0.5,
    }


MUCH, LITTLE = on_one_machine(600, 450), on_one_machine(600, 20)
SHARED_MACHINES: list[tuple[str, str, float, Any, Any, str]] = [
    ("a slow candidate kept waiting may be the generator's doing", RATIO, 1.5, LITTLE, MUCH, "INCONCLUSIVE"),
    ("a candidate that is no slower though kept waiting", RATIO, 1.0, LITTLE, MUCH, "PASS"),
    ("a baseline kept waiting makes the candidate look good", RATIO, 1.0, MUCH, LITTLE, "INCONCLUSIVE"),
    ("a candidate slower than a baseline kept waiting", RATIO, 1.5, MUCH, LITTLE, "FAIL"),
    ("both kept waiting alike", RATIO, 1.5, MUCH, MUCH, "FAIL"),
    ("a busy machine, where the generator took little", RATIO, 1.5, LITTLE, on_one_machine(20, 900), "FAIL"),
    ("another machine", RATIO, 1.5, LITTLE, None, "FAIL"),
    ("too slow by itself, and kept waiting", ALONE, 1.5, MUCH, MUCH, "INCONCLUSIVE"),
    ("fast enough by itself, though kept waiting", ALONE, 1.0, MUCH, MUCH, "PASS"),
]


@pytest.mark.parametrize(
    ("what", "gate", "ratio", "baseline", "candidate", "verdict"),
    SHARED_MACHINES,
    ids=[row[0] for row in SHARED_MACHINES],
)
def test_no_verdict_rests_on_what_the_generator_may_have_taken(
    tmp_path: Path, what: str, gate: str, ratio: float, baseline: Any, candidate: Any, verdict: str
) -> None:
    write_both(tmp_path, ratio, repeats=5)
    for name, sender in (("sata", baseline), ("nvme", candidate)):
        for run in runs_of(tmp_path, name):
            change(run, sender=sender)
    found = compare_json(tmp_path, only(gate))
    assert found["verdict"] == verdict, what
    assert ("by the load generator's doing" in found["gates"][0]["says"]) == (verdict == "INCONCLUSIVE")
    named = {run for each in found["findings"] if each["name"] == "shared-machine" for run in each["runs"]}
    much = [name for name, sender in (("sata", baseline), ("nvme", candidate)) if sender is MUCH]
    assert named == {run.name for name in much for run in runs_of(tmp_path, name)}


def test_what_many_runs_have_in_common_is_said_once_with_its_range(tmp_path: Path) -> None:
    write_both(tmp_path, repeats=5)
    for number, run in enumerate(runs_of(tmp_path, "*")):
        change(run, sender=MUCH | {"others_wait_ms_per_s": 300 + number})
    printed = " ".join(CliRunner().invoke(main, ["compare", str(tmp_path), *BACKENDS]).stdout.split())
    assert printed.count("was sent from the server's own machine") == 1
    assert "warning: 10 of 10 runs: each was sent from the server's own machine" in printed
    assert "other programs waited 300–309 ms for one" in printed


def test_both_sides_stand_before_during_and_after_with_what_no_gate_names(tmp_path: Path) -> None:
    write_both(tmp_path, 2.0, measures=[("image ready", 250.0)])
    for path in runs_of(tmp_path, "nvme"):
        add_events(path, measure_event("image ready", 50.0, 10**8))
    found = judged(tmp_path)
    assert not any("image ready" in each.gate.name for each in found.judged)
    table = phase_table(found)
    assert table is not None
    rows = {row.name: row.cells for row in table.rows}
    assert rows["replay: image ready, nvme"] == ["50 ms", "250 ms", "–", "5 ×"]
    assert rows["replay: image ready, sata"] == ["–", "250 ms", "–", "–"]
    assert rows["replay: p99.9, nvme"][1].startswith("10")
    page = comparison_page(found)
    assert "<td>replay: image ready, nvme</td><td>50 ms</td><td>250 ms</td>" in page


def test_without_a_saturator_there_are_no_phases(tmp_path: Path) -> None:
    write_both(tmp_path, saturator=None, measures=[("image ready", 250.0)])
    assert phase_table(judged(tmp_path)) is None


def test_a_measure_counts_in_the_phase_in_which_it_began(tmp_path: Path) -> None:
    write_both(tmp_path)
    for path in runs_of(tmp_path, "*"):
        add_events(path, measure_event("save", 150.0, 3 * 10**8))
    during, before = (
        judged(tmp_path, gated(f"phase: {phase}, metric: measure save, at_most_ratio: 2"))
        for phase in ("during", "before")
    )
    assert "has no save during the saturator" in reasons(during)
    assert before.verdict == "PASS"


def _with_saves(folder: Path, failed: dict[str, int], saves: int = 12) -> Comparison:
    """Judge runs whose saves take 50 ms, but for the last ones of a side, which fail."""
    write_both(folder)
    for side in ("nvme", "sata"):
        good = saves - failed.get(side, 0)
        events = [measure_event("saved", 50.0, 300_000_000 + n, iteration=n) for n in range(1, good + 1)]
        events += [_failed(300_000_000 + n, n) for n in range(good + 1, saves + 1)]
        for path in runs_of(folder, side):
            add_events(path, *events)
    return judged(folder, gated("phase: whole, metric: measure saved, at_most_ratio: 1.5"))


def _failed(t_ns: int, iteration: int) -> dict[str, Any]:
    return {"t_ns": t_ns, "event": "iteration failed", "iteration": iteration, "took_ms": 20.0}


def _named(found: Comparison) -> list[str]:
    return [finding.label for finding in found.findings]


def test_a_disk_on_which_saves_fail_gets_no_pass_for_saving(tmp_path: Path) -> None:
    found = _with_saves(tmp_path, {"nvme": 5})
    assert found.verdict == "INCONCLUSIVE", "its median alone, of what succeeded, would be as before"
    assert "20 of 48 tries on nvme (42 %)" in reasons(found)
    assert "none of 48 tries on sata" in reasons(found)
    assert "A side that fails more is never the faster one" in reasons(found)
    assert _named(found).count("failed-measures") == 1


def test_where_most_saves_fail_the_gate_is_broken(tmp_path: Path) -> None:
    found = _with_saves(tmp_path, {"nvme": 7})
    assert found.verdict == "FAIL"
    assert "censored" in _named(found)


def test_failures_of_the_baseline_are_said_and_prevent_no_pass(tmp_path: Path) -> None:
    found = _with_saves(tmp_path, {"sata": 5})
    assert found.verdict == "PASS"
    assert "failed-measures" in _named(found)


def test_a_failure_in_hundreds_is_no_doubt(tmp_path: Path) -> None:
    found = _with_saves(tmp_path, {"nvme": 1}, saves=120)
    assert found.verdict == "PASS"
    assert "failed-measures" not in _named(found)


def test_failures_stand_beside_each_measure(tmp_path: Path) -> None:
    _with_saves(tmp_path, {})
    for path in runs_of(tmp_path, "sata"):
        add_events(path, *(_failed(10**8, iteration) for iteration in (20, 21, 22)))
        add_events(path, *(measure_event("saved", 5.0, 10**8, iteration=iteration) for iteration in (1, 2)))
    table = phase_table(judged(tmp_path, gated("phase: during, metric: measure saved, at_most_ratio: 1.5")))
    assert table is not None
    rows = {row.name: row.cells for row in table.rows}
    assert "failed)" in rows["replay: saved, sata"][0]
    assert "failed)" not in rows["replay: saved, nvme"][0]
