"""Records that cannot be what they claim: each row shows what is decided without the fault, and with it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.comparable import (
    change_side,
    compare_json,
    finding_names,
    gated,
    instant,
    runs_of,
)
from tests.support.rundir import change, change_records, change_summary, load_records, records, write_run

COUNT, LASTED_S = 2000, 12.0
SLOW = 60  # of each run: 3 %, so that p99 is one of them
GATES = gated("metric: p99, at_most_ratio: 1.1")
PAGE, IMAGE = 0, 1


def write_experiment(folder: Path, ratio: float) -> Path:
    """Four runs a side of one load, sent in bunches; the candidate's slow requests take `ratio` as long."""
    log = np.random.default_rng(1)
    due_ns = np.sort(np.floor(log.uniform(0, LASTED_S - 1, COUNT)) + log.uniform(0, 0.2, COUNT)) * 1e9
    route = np.where(log.random(COUNT) < 0.1, PAGE, IMAGE)
    sizes = log.integers(1, 20, COUNT) * 1000
    for number in range(8):
        side = (0, 1, 1, 0)[number % 4]
        random = np.random.default_rng(100 + number)
        total_us = 2000 * random.lognormal(0, 0.3, COUNT)
        slow = random.choice(COUNT, SLOW, replace=False)
        total_us[slow] = 50_000 * (ratio if side else 1) * random.lognormal(0, 0.02, SLOW)
        table = records(COUNT, due_ns=due_ns.astype("i8"), total_us=total_us, route=route)
        table["ttfb_us"] = table["total_us"] * 0.8
        table["bytes"] = table["logged_bytes"] = sizes
        name = ("sata", "nvme")[side]
        path = write_run(
            folder / "runs" / f"{number + 1:04d}-replay--{name}--{number // 2 + 1}",
            table,
            summary={"requests": {"total": COUNT, "sent": COUNT}, "duration_s": LASTED_S},
            backend=name,
            repeat=number // 2 + 1,
            started_at=instant(10 * number),
            ended_at=instant(10 * number + LASTED_S / 60),
            load={"digest": "d", "settings": {"timeout_s": 30.0}},
        )
        _sample_host(path, user=20.0)
    return folder


def _sample_host(path: Path, user: float) -> None:
    rows = "".join(f"{at}000000000,{user},{99 - user}\n" for at in range(1, 12))
    (path / "host.csv").write_text(f"t_ns,cpu.user_percent,cpu.idle_percent\n{rows}")


@pytest.fixture(scope="module")
def experiments(tmp_path_factory: pytest.TempPathFactory) -> dict[float, Path]:
    folder = tmp_path_factory.mktemp("experiments")
    return {ratio: write_experiment(folder / f"{ratio}", ratio) for ratio in (1.0, 3.0)}


def rewrite(path: Path, table: np.ndarray) -> None:
    """Put other records into a run, and let its summary count and sum them."""
    facts = json.loads((path / "run.json").read_text())
    summary = {"requests": {"total": len(table), "sent": len(table)}, "duration_s": LASTED_S}
    write_run(path, table, summary=summary, **facts)


def _drop_slowest(path: Path) -> None:
    table = load_records(path)
    rewrite(path, table[np.sort(np.argsort(table["total_us"])[: len(table) * 96 // 100])])


def _ask_for_others(path: Path) -> None:
    """Put other lines of the log, which are served fast, in the places of those that are slow."""
    table = load_records(path)
    slow, fast = (np.flatnonzero(part) for part in (table["total_us"] > 20_000, table["total_us"] <= 20_000))
    due_ns = table["due_ns"][slow]
    table[slow] = table[fast[: len(slow)]]
    table["due_ns"][slow] = due_ns
    rewrite(path, table)


def _delay_slowest(path: Path) -> None:
    """Let slow requests be due when most of their time had passed."""
    table = load_records(path)
    slow = table["total_us"] > 20_000
    table["due_ns"] += np.where(slow, table["total_us"] * 700, 0)
    table["total_us"] = np.where(slow, table["total_us"] * 0.3, table["total_us"])
    rewrite(path, table)


def _end_early(path: Path) -> None:
    table = load_records(path)
    rewrite(path, table[table["due_ns"] < 10.1e9])
    change(path, ended_at=instant(10 * (int(path.name[:4]) - 1) + 10.5 / 60))


def _hide_slowest(path: Path) -> None:
    change_records(path, load_records(path)["total_us"] > 20_000, flags=8)


def _exchange(folder: Path) -> None:
    """Exchange the records of the sides, without their sums."""
    for one, other in zip(runs_of(folder, "sata"), runs_of(folder), strict=True):
        tables = load_records(one), load_records(other)
        rewrite(one, tables[1])
        rewrite(other, tables[0])
        for path in (one, other):
            change_summary(path, records_sha256=None)


def _repeat(folder: Path, spread: float) -> None:
    """Let each run of the candidate be its first, with so much noise."""
    first, *others = (load_records(path) for path in runs_of(folder))
    for number, (path, _) in enumerate(zip(runs_of(folder)[1:], others, strict=True)):
        noise = np.random.default_rng(number).normal(1, spread, COUNT)
        change_records(path, total_us=first["total_us"] * noise, ttfb_us=0, client=number)


def _all(change_one: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: [change_one(path) for path in runs_of(folder)]


def _lasted(seconds: float) -> Callable[[Path], object]:
    def stretch(path: Path) -> None:
        number = int(path.name[:4]) - 1
        change(path, ended_at=instant(10 * number + seconds / 60), started_at=instant(10 * number))

    return _all(stretch)


def _count(**requests: Any) -> Callable[[Path], object]:
    return _all(lambda path: change_summary(path, requests={"sent": COUNT, **requests}))


def _keep_busy(folder: Path) -> None:
    for path in runs_of(folder, "sata"):
        _sample_host(path, user=98.0)


Row = tuple[str, float, Callable[[Path], object], str]
REFUSED: list[Row] = [
    ("1 % was due when the run ended early", 1.0, _count(total=COUNT + 20, unsent=20), "unsent"),
    (
        "1 % was left out since too many waited",
        1.0,
        _count(total=COUNT + 20, skipped={"cap_reached": 20}),
        "unsent",
    ),
    (
        "its slow requests are called warm-up, though there is none",
        3.0,
        _all(_hide_slowest),
        "hidden-requests",
    ),
    ("its slowest 4 % are gone from records, count and sum", 3.0, _all(_drop_slowest), "missing-requests"),
    (
        "its runs end before the log does, and say that they are complete",
        3.0,
        _all(_end_early),
        "missing-requests",
    ),
    ("both sides' records are exchanged, and their sums removed", 3.0, _exchange, "no-sum"),
    ("12 s of records took 400 s by the clock on the wall", 1.0, _lasted(400), "other-clock"),
    ("12 s of records took 6 s by it: one clock goes at half speed", 1.0, _lasted(6), "other-clock"),
]
DOUBTED: list[Row] = [
    (
        "bunched requests became even",
        1.0,
        lambda p: change_side(p, "nvme", due_ns=np.linspace(0, 11e9, COUNT)),
        "other-schedule",
    ),
    ("other lines of the log took the places of the slow ones", 3.0, _all(_ask_for_others), "other-schedule"),
    ("slow requests were due later than the log has it", 3.0, _all(_delay_slowest), "other-schedule"),
    (
        "all records are of one line of the log",
        1.0,
        lambda p: change_side(p, "nvme", line=7),
        "impossible-records",
    ),
    ("each run repeats the first but for who asked", 1.0, lambda p: _repeat(p, 0.0), "repeated-noise"),
    ("each run repeats the first with 1 % of noise", 1.0, lambda p: _repeat(p, 0.01), "repeated-noise"),
    (
        "a fifth of the images became pages",
        1.0,
        lambda p: change_side(p, "nvme", slice(COUNT // 5), route=PAGE),
        "other-mix",
    ),
    (
        "the clock went in steps of 16 ms",
        1.0,
        _all(
            lambda path: change_records(
                path, total_us=16_000 * (1 + load_records(path)["total_us"] // 800), ttfb_us=0
            )
        ),
        "coarse-clock",
    ),
    (
        "1 % took no time",
        1.0,
        lambda p: change_side(p, "nvme", slice(20), total_us=0, ttfb_us=0),
        "impossible-records",
    ),
    (
        "all that was slow took 49.123 ms",
        3.0,
        _all(
            lambda path: change_records(
                path, load_records(path)["total_us"] > 20_000, total_us=49_123, ttfb_us=0
            )
        ),
        "impossible-records",
    ),
    (
        "nothing took over 54 ms",
        3.0,
        _all(
            lambda path: change_records(
                path, load_records(path)["total_us"] > 54_000, total_us=54_000, ttfb_us=0
            )
        ),
        "impossible-records",
    ),
    (
        "1 % has its first byte after its last",
        1.0,
        lambda p: change_side(p, "nvme", slice(20), ttfb_us=10_000_000),
        "impossible-records",
    ),
    (
        "1 % is of a route that has no name",
        1.0,
        lambda p: change_side(p, "nvme", slice(20), route=77),
        "impossible-records",
    ),
    (
        "the baseline's processors were kept busy",
        1.0,
        _keep_busy,
        "busier-side",
    ),
]


def spoil(experiments: dict[float, Path], row: Row, folder: Path) -> dict[str, Any]:
    """Compare a copy of an experiment, then again with the fault of `row`; return what is found then."""
    _, ratio, fault, _ = row
    shutil.copytree(experiments[ratio], folder / "x")
    true = compare_json(folder / "x", GATES)
    assert (true["verdict"], finding_names(true) - {"rare-stalls"}) == (
        "FAIL" if ratio > 1 else "PASS",
        set(),
    ), "without the fault"
    shutil.rmtree(folder / "x")
    shutil.copytree(experiments[ratio], folder / "x")
    fault(folder / "x")
    return compare_json(folder / "x", GATES)


@pytest.mark.parametrize("row", REFUSED, ids=[row[0] for row in REFUSED])
def test_nothing_is_decided_on_altered_records(
    experiments: dict[float, Path], row: Row, tmp_path: Path
) -> None:
    found = spoil(experiments, row, tmp_path)
    assert (found["verdict"], found["exit"]) == ("INCONCLUSIVE", 3)
    assert finding_names(found) - {"rare-stalls"} == {row[3]}


@pytest.mark.parametrize("row", DOUBTED, ids=[row[0] for row in DOUBTED])
def test_what_no_run_records_is_a_doubt(experiments: dict[float, Path], row: Row, tmp_path: Path) -> None:
    found = spoil(experiments, row, tmp_path)
    assert row[3] in finding_names(found)
    assert {each["level"] for each in found["findings"]} == {"warn"}


DIVERTED: list[tuple[str, dict[str, Any]]] = [
    ("redirected", {"status": 302}),
    ("answered by a short error page", {"bytes": 300}),
]


@pytest.mark.parametrize(("what", "answer"), DIVERTED, ids=[row[0] for row in DIVERTED])
@pytest.mark.parametrize("backend", ["nvme", "sata"])
def test_slow_requests_that_are_answered_otherwise_than_the_log_has_it_hide_no_tail(
    experiments: dict[float, Path], what: str, answer: dict[str, Any], backend: str, tmp_path: Path
) -> None:
    def divert(folder: Path) -> None:
        """Leave 1.5 % slow; answer half of those of one side otherwise, and fast."""
        for path in [*runs_of(folder, "sata"), *runs_of(folder)]:
            total_us = load_records(path)["total_us"]
            order = np.argsort(total_us)
            slow, fast = order[-30:], order[-SLOW:-30]
            if backend in path.name:
                slow, diverted = slow[15:], slow[:15]
                change_records(path, diverted, **answer)
                fast = np.concatenate([fast, diverted])
            change_records(path, slow, total_us=total_us[slow] / (3 if "nvme" in path.name else 1), ttfb_us=0)
            change_records(path, fast, total_us=total_us[fast] / 25, ttfb_us=0)

    found = spoil(experiments, ("", 3.0, divert, ""), tmp_path)
    assert finding_names(found) - {"rare-stalls"} == {"odd-answers"}, what
    gate = next(each for each in found["gates"] if each["metric"] == "p99")
    assert (gate["verdict"], gate["estimate"] < 1) == ("INCONCLUSIVE", backend == "nvme")


def _slow_pages(folder: Path) -> None:
    """Let pages, a tenth of the requests, take 36 times as long, and all that was slow a third."""
    for path in runs_of(folder):
        table = load_records(path)
        slow, page = table["total_us"] > 20_000, table["route"] == PAGE
        times = np.where(slow, 0.35, np.where(page, 6, 1))
        change_records(path, total_us=table["total_us"] * times, ttfb_us=0)


def test_a_kind_of_requests_that_moved_against_the_verdict_allows_no_pass(
    experiments: dict[float, Path], tmp_path: Path
) -> None:
    found = spoil(experiments, ("", 1.0, _slow_pages, ""), tmp_path)
    assert (found["verdict"], found["exit"]) == ("INCONCLUSIVE", 3)
    assert finding_names(found) == {"slower-routes"}
    (gate,) = (each for each in found["gates"] if each["metric"] == "p99")
    assert gate["estimate"] < 1
    assert "page × " in gate["says"]
