"""What a verdict does not claim, by the command: unequal counts, rare stalls, further looks, too few runs."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binomtest

from plimsoll.analysis.compare.comparison import LOOKS_FILE, DecisionLook, number_look
from plimsoll.analysis.statistics.binomial import BinomialTest
from plimsoll.analysis.statistics.percentiles import P999
from plimsoll.analysis.statistics.permutation import error_of_look, t_cdf, t_quantile
from plimsoll.analysis.statistics.requests import KeptRequests, cut_alike
from plimsoll.analysis.statistics.stalls import excluded_share, find_far_worse, worst_us
from plimsoll.cli import main
from plimsoll.rundir.records import Records
from tests.support.comparable import instant, runs_of, write_both
from tests.support.rundir import change, records, write_run

Shape = Callable[[np.random.Generator, str, int], Records]


def compared(folder: Path, *more: str) -> tuple[int, dict[str, Any]]:
    arguments = ["compare", str(folder), "--baseline", "sata", "--candidate", "nvme", "--json", *more]
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, json.loads(result.stdout)


def gates_of(folder: Path, *gates: str) -> tuple[str, str]:
    path = folder / "gates.yml"
    path.write_text(
        "answers: false\ngates:\n" + "".join(f"- {{scenario: replay, {gate}}}\n" for gate in gates)
    )
    return "--gates", str(path)


def experiment(folder: Path, shape: Shape, repeats: int = 4, seed: int = 1) -> Path:
    """Write runs in the order ABBA; `shape` draws the records of one."""
    random = np.random.default_rng(seed)
    for repeat in range(1, repeats + 1):
        for place, backend in enumerate(("sata", "nvme") if repeat % 2 else ("nvme", "sata")):
            at = 2 * (repeat - 1) + place
            table = shape(random, backend, repeat)
            summary = {"requests": {"total": len(table), "sent": len(table)}, "duration_s": 60}
            write_run(
                folder / "runs" / f"{at + 1:04d}-replay--{backend}--{repeat}",
                table,
                summary=summary,
                scenario="replay",
                backend=backend,
                repeat=repeat,
                started_at=instant(2 * at),
                ended_at=instant(2 * at + 1),
            )
    return folder


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
        _, found = compared(folder, *gates_of(folder, "metric: p99.9, at_most_ratio: 1.0"))
        (gate,) = found["gates"]
        passed += gate["verdict"] == "PASS"
        assert "Compared at 1,000 requests of each run, of the 1,000 to 10,000" in gate["says"], what
    assert passed <= 3, what


def test_equal_counts_stay_as_they_are(tmp_path: Path) -> None:
    folder = experiment(tmp_path, lambda random, *_: requests(random, 3000))
    _, found = compared(folder, *gates_of(folder, "metric: p99.9, at_most_ratio: 1.1"))
    assert "Compared at" not in found["gates"][0]["says"]


def _times(count: int, length_ms: int) -> KeptRequests:
    due_ms = np.linspace(0, length_ms, count).astype(np.uint32)
    nothing = np.zeros(count, dtype=np.uint16)
    return KeptRequests(due_ms, np.arange(count, dtype=np.uint32), nothing, nothing.astype(np.bool_))


ALIKE: list[tuple[str, tuple[int, int], tuple[int, int], tuple[int, int] | None]] = [
    ("one request fewer is another rank", (2000, 9000), (1999, 9000), (1999, 9000)),
    ("one fewer of very many is none", (200_500, 9000), (200_501, 9000), None),
    ("a shorter run cuts the longer one", (4000, 40_000), (1000, 10_000), (1000, 10_000)),
    ("a rarer load is thinned over all its time", (4000, 10_000), (1000, 10_000), (1000, 10_000)),
]


@pytest.mark.parametrize(("what", "one", "other", "both"), ALIKE, ids=[row[0] for row in ALIKE])
def test_runs_are_cut_alike(
    what: str, one: tuple[int, int], other: tuple[int, int], both: tuple[int, int] | None
) -> None:
    cut = cut_alike([_times(*one), _times(*other)], P999)
    if both is None:
        assert cut is None, what
        return
    assert cut is not None
    for each in cut:
        assert len(each) == both[0], what
        assert each.lasted_ms == pytest.approx(both[1], rel=0.02), what


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
    gates = gates_of(tmp_path, "metric: p99, at_most_ratio: 1.1")
    code, found = compared(experiment(tmp_path / "stalls", stalling(2), 6), *gates)
    assert (code, found["verdict"]) == (3, "INCONCLUSIVE")
    (gate,) = found["gates"]
    assert "1 of the candidate's 6 runs stalled: in 0003-replay--nvme--2" in gate["says"]
    assert gate["p_pass"] <= 0.05, "the runs' p99 alone would have been a PASS"
    (finding,) = [each for each in found["findings"] if each["name"] == "rare-stalls"]
    assert finding["runs"] == ["0003-replay--nvme--2"]
    assert compared(experiment(tmp_path / "none", stalling(0), 6), *gates)[1]["verdict"] == "PASS"


def test_a_stall_keeps_no_broken_limit_from_failing(tmp_path: Path) -> None:
    def slower(random: np.random.Generator, backend: str, repeat: int) -> Records:
        table = stalling(2)(random, backend, repeat)
        table["total_us"] *= 3 if backend == "nvme" else 1
        return table

    folder = experiment(tmp_path, slower, 6)
    assert compared(folder, *gates_of(folder, "metric: p99, at_most_ratio: 1.1"))[1]["verdict"] == "FAIL"


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
RATIO, ALONE = "metric: p99.9, at_most_ratio: 1.1", "metric: p99.9, at_most_ms: 60"
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
    _, found = compared(tmp_path, *gates_of(tmp_path, gate))
    assert found["verdict"] == verdict, what
    assert ("by the load generator's doing" in found["gates"][0]["says"]) == (verdict == "INCONCLUSIVE")
    told = {run for each in found["findings"] if each["name"] == "shared-machine" for run in each["runs"]}
    much = [name for name, sender in (("sata", baseline), ("nvme", candidate)) if sender is MUCH]
    assert told == {run.name for name in much for run in runs_of(tmp_path, name)}


def test_what_many_runs_have_in_common_is_said_of_the_first_three(tmp_path: Path) -> None:
    write_both(tmp_path, repeats=5)
    for run in (*runs_of(tmp_path, "sata"), *runs_of(tmp_path, "nvme")):
        change(run, sender=MUCH)
    arguments = ["compare", str(tmp_path), "--baseline", "sata", "--candidate", "nvme"]
    printed = " ".join(CliRunner().invoke(main, arguments).stdout.split())
    assert printed.count("was sent from the server's own machine") == 3
    assert "warning: And 7 more problems of this kind." in printed


def test_a_pass_says_what_it_does_not_exclude(tmp_path: Path) -> None:
    _, found = compared(write_both(tmp_path, repeats=5))
    passed = [gate for gate in found["gates"] if gate["verdict"] == "PASS" and gate["metric"] != "answers"]
    assert passed
    for gate in passed:
        assert gate["excluded_share"] == pytest.approx(1 - 0.05 ** (1 / 5))
        assert "excludes, at 95 %, only stalls that come in more than 45 % of runs" in gate["claim"]


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

    folder = experiment(tmp_path, shape, repeats)
    gates = gates_of(folder, "metric: stalls over 500 ms, at_most_share_of_runs: 0.1")
    _, found = compared(folder, *gates)
    (gate,) = found["gates"]
    assert gate["verdict"] == verdict, what
    assert says in gate["says"], what
    assert gate["test"] == "binomial"
    assert gate["candidate"]["level"] == pytest.approx(hit / repeats)


@pytest.mark.parametrize(("hit", "runs"), [(0, 5), (1, 30), (3, 10), (10, 10)])
def test_the_share_of_runs_is_held_to_its_limit_by_the_binomial_test(hit: int, runs: int) -> None:
    found = BinomialTest(hit, runs, 0.1, 0.05)
    above, below = (binomtest(hit, runs, 0.1, alternative=each) for each in ("greater", "less"))
    assert found.p_above(0.1) == pytest.approx(above.pvalue)
    assert found.p_below(0.1) == pytest.approx(below.pvalue)
    assert found.least_p == pytest.approx(above.pvalue if hit else below.pvalue)
    assert found.lower(0.05) == pytest.approx(above.proportion_ci(0.95).low)
    assert found.upper(0.05) == pytest.approx(below.proportion_ci(0.95).high)


@pytest.mark.parametrize(("hit", "runs", "decide"), [(0, 5, 29), (0, 28, 29), (1, 5, 33), (3, 3, 4)])
def test_the_runs_that_decide_are_the_fewest(hit: int, runs: int, decide: int) -> None:
    assert BinomialTest(hit, runs, 0.1, 0.05).runs_to_decide(0.0, 0.05) == decide


WORST: list[tuple[str, list[float], list[float], list[int]]] = [
    ("all alike", [200, 210, 190, 205], [195, 205, 200, 210], []),
    ("one far off", [200, 210, 190, 205], [195, 1000, 200, 210], [1]),
    ("two far off do not hide one another", [200, 210, 190, 205], [1000, 1100, 200, 210], [0, 1]),
    ("the baseline is as bad", [200, 1000, 190, 205], [195, 1000, 200, 210], []),
    ("nobody feels it", [2, 2.1, 1.9, 2.05], [1.95, 10, 2, 2.1], []),
    ("less than twice as slow", [200, 210, 190, 205], [195, 400, 200, 210], []),
    ("one run shows no spread", [200], [1000], []),
]


@pytest.mark.parametrize(("what", "baseline", "candidate", "which"), WORST, ids=[row[0] for row in WORST])
def test_runs_that_are_far_worse(
    what: str, baseline: list[float], candidate: list[float], which: list[int]
) -> None:
    assert find_far_worse(baseline, candidate) == which, what


def test_the_slowest_ten_in_a_row_are_no_single_requests() -> None:
    times = np.ones(1000)
    times[::50] = 900
    assert worst_us(times) == 1
    times[300:312] = 900
    assert worst_us(times) == 900
    assert worst_us(np.ones(9)) is None


def test_further_looks_are_remembered_and_spend_what_is_left(tmp_path: Path) -> None:
    write_both(tmp_path, 1.08, 4)
    assert compared(tmp_path)[1]["look"] == 1
    assert compared(tmp_path)[1]["look"] == 1, "the same runs are the same look"
    write_both(tmp_path, 1.08, 6)
    found = compared(tmp_path)[1]
    assert found["look"] == 2
    assert "another-look" in [each["name"] for each in found["findings"]]
    write_both(tmp_path, 1.08, 8)
    assert compared(tmp_path)[1]["look"] == 3
    assert len(json.loads((tmp_path / LOOKS_FILE).read_text())["looks"]) == 3


def test_a_second_look_has_to_be_surer(tmp_path: Path) -> None:
    """The runs are the same; that they were decided on before, when they were fewer, is all that differs."""
    for folder, looked in ((tmp_path / "once", False), (tmp_path / "twice", True)):
        write_both(folder, 1.35, 4, spread=lambda side, repeat: 1 + 0.1 * ((repeat * 7 + side * 3) % 5))
        if looked:
            compared(folder)
        write_both(folder, 1.35, 5, spread=lambda side, repeat: 1 + 0.1 * ((repeat * 7 + side * 3) % 5))
    gates = gates_of(tmp_path, "metric: p99.9, at_most_ratio: 1.1")
    once, twice = (compared(tmp_path / each, *gates)[1]["gates"][0] for each in ("once", "twice"))
    assert once["p_fail"] == twice["p_fail"]
    assert 0.0061 < once["p_fail"] <= 0.0429
    assert (once["verdict"], twice["verdict"]) == ("FAIL", "INCONCLUSIVE")


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    write_both(tmp_path)
    (tmp_path / f".{LOOKS_FILE}.{os.getpid()}.new").mkdir()  # in the way of what is written
    found = compared(tmp_path)[1]
    assert found["verdict"] == "PASS"
    assert any("This look was not remembered" in warning for warning in found["warnings"])


def test_a_damaged_memory_of_looks_is_no_first_look(tmp_path: Path) -> None:
    write_both(tmp_path)
    (tmp_path / LOOKS_FILE).write_text("{")
    arguments = ["compare", str(tmp_path), "--baseline", "sata", "--candidate", "nvme"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "it is unknown how often these runs were decided on" in result.stderr


def _look(baseline: str, candidate: str) -> DecisionLook:
    return DecisionLook(frozenset(baseline.split()), frozenset(candidate.split()))


LOOKS: list[tuple[str, list[DecisionLook], DecisionLook, int]] = [
    ("the first", [], _look("a b", "x y"), 1),
    ("the same again", [_look("a b", "x y")], _look("a b", "x y"), 1),
    ("with more runs", [_look("a b", "x y")], _look("a b c", "x y z"), 2),
    ("without one that did not please", [_look("a b", "x y")], _look("a b", "x"), 2),
    ("another experiment", [_look("a b", "x y")], _look("c d", "v w"), 1),
    ("another candidate", [_look("a b", "x y")], _look("a b", "v w"), 1),
    ("the first again, after the second", [_look("a", "x"), _look("a b", "x y")], _look("a", "x"), 1),
]


@pytest.mark.parametrize(("what", "before", "look", "number"), LOOKS, ids=[row[0] for row in LOOKS])
def test_the_number_of_a_look(what: str, before: list[DecisionLook], look: DecisionLook, number: int) -> None:
    assert number_look(look, before) == number, what


def test_all_looks_together_spend_no_more_than_there_is() -> None:
    shares = [error_of_look(0.05, look) for look in range(1, 30)]
    assert sum(shares) == pytest.approx(0.05)
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(3 / 70), "what four runs a side take for three gates"


@pytest.mark.parametrize(
    ("repeats", "says"), [(3, "3 decide nothing, but 4 runs a side"), (5, "5 runs a side")]
)
def test_the_power_is_that_of_these_runs(tmp_path: Path, repeats: int, says: str) -> None:
    quiet = write_both(tmp_path / "quiet", repeats=repeats)
    noisy = write_both(
        tmp_path / "noisy",
        repeats=repeats,
        spread=lambda side, repeat: math.exp(0.8 * ((repeat * 7 + side * 3) % 5 - 2)),
    )
    gates = gates_of(tmp_path, "metric: p99.9, at_most_ratio: 1.1")
    one, other = (compared(folder, *gates)[1]["gates"][0] for folder in (quiet, noisy))
    for gate in (one, other):
        assert says in gate["power"]
        assert "(FAIL), or ×" in gate["power"]
        assert (gate["fails_from"] is None) == (repeats == 3)
    if repeats == 5:
        assert 1.1 < one["fails_from"] < 1.3
        assert other["fails_from"] > 3
        assert other["passes_to"] == pytest.approx(1.1**2 / other["fails_from"])


def test_the_page_says_what_these_runs_would_have_found(tmp_path: Path) -> None:
    write_both(tmp_path)
    page = tmp_path / "page.html"
    compared(tmp_path, "--html", str(page))
    text = page.read_text(encoding="utf-8")
    assert "4 runs a side that lie as far apart as these find in 4 of 5 cases" in text
    assert "only stalls that come in more than 53 % of runs" in text


STUDENT = [(6.314, 1, 0.95), (2.353, 3, 0.95), (1.943, 6, 0.95), (2.571, 5, 0.975), (-2.353, 3, 0.05)]


@pytest.mark.parametrize(("t", "df", "share"), STUDENT)
def test_students_t_is_that_of_the_tables(t: float, df: int, share: float) -> None:
    assert t_cdf(t, df) == pytest.approx(share, abs=1e-4)
    assert t_quantile(share, df) == pytest.approx(t, abs=1e-3)


def test_the_excluded_share_of_29_runs_is_ten_percent() -> None:
    assert excluded_share(29, 0.95) < 0.1 < excluded_share(28, 0.95)
