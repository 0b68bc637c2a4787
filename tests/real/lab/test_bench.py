"""`make bench`, in small: a real WordPress on real pools, a real send, and a report on all of it."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from plimsoll.lab.clones.golden import Golden, SiteSettings
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.steps.runner import StepRunner
from plimsoll.rundir.find import find_runs
from tests.support.disks import clear, cut_off, left_in, left_of, run
from tests.support.programs import PLIMSOLL, REPLAY, ROOT, need
from tests.support.site import left_behind, need_docker

pytestmark = pytest.mark.slow

NAME = f"bench-{os.getpid() % 10000}"


@pytest.fixture(scope="module")
def lab_yml(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    for program in (REPLAY, "zpool", "losetup"):
        need(program)
    need_docker()
    folder = tmp_path_factory.mktemp("bench")
    text = (ROOT / "examples" / "one-machine.yml").read_text(encoding="utf-8")
    for key, value in {
        "name: one-machine": f"name: {NAME}\nout: {folder}/out\nwork: {folder}/work",
        "log: examples": f"log: {ROOT}/examples",
        "repeats: .*": "repeats: 1",
        "phases: .*": "phases: {before_s: 3, during_s: 25, after_s: 3}",  # on that disk a login takes seconds
        "(scenario: upload-images)": rf"\1\n        options: {{images: {_pictures(folder)}}}",
        "warmup_s: .*": "warmup_s: 2",
        # So slow that the send meets the limit on any machine, however busy its processors are.
        "like: rotating": "operations_per_s: 60",
        ", port: [0-9]+": "",
    }.items():
        text, found = re.subn(key, value, text)
        assert found, key
    file = folder / "lab.yml"
    file.write_text(text, encoding="utf-8")
    yield file
    subprocess.run([PLIMSOLL, "clean", file], timeout=600, check=False)
    golden = golden_of(file)
    run(lambda machine: StepRunner(machine).do(golden.forget()))
    assert list(Path(golden.work).iterdir()) == []


def _pictures(folder: Path) -> Path:
    """Small ones, which are made at once."""
    pictures = folder / "pictures"
    pictures.mkdir()
    for number in (1, 2):
        Image.new("RGB", (800, 600), (40 * number, 80, 90)).save(pictures / f"{number}.jpg")
    return pictures


def golden_of(lab_yml: Path) -> Golden:
    """The site that is copied."""
    return Golden(SiteSettings(), str(lab_yml.parent / "work"), str(ROOT))


@pytest.fixture(scope="module")
def begun(lab_yml: Path) -> None:
    """An experiment before was cut off while it filled the site that is copied."""
    golden = golden_of(lab_yml)
    site = f"plimsoll-{golden.name}"

    async def filled_in_part(machine: LocalMachine) -> None:
        await cut_off(golden.make(), f"{site}[-_]seed", StepRunner(machine))
        assert not await golden.whole(machine)
        assert {one.what for one in await golden.find(machine, "x")} >= {f"the container {site}-db"}
        await clear(machine, lambda there: golden.find(there, "x"))
        assert left_behind(site) == []

    run(filled_in_part)


@pytest.fixture(scope="module")
def planned(lab_yml: Path) -> list[tuple[bool, list[str]]]:
    """The words of every command of the plan, and whether it is a saturator's."""
    done = subprocess.run(
        [PLIMSOLL, "check", "--plan", lab_yml, "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    chapters = json.loads(done.stdout)["chapters"]
    steps = [step for chapter in chapters for step in chapter["steps"] if "words" in step]
    return [(step["part"].startswith("saturate"), step["words"]) for step in steps]


@pytest.fixture(scope="module")
def results(lab_yml: Path, begun: None, planned: list[tuple[bool, list[str]]]) -> Path:
    """The folder of the experiment, which `make bench` carried out."""
    done = subprocess.run(
        ["/usr/bin/make", "bench", f"LAB={lab_yml}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (lab_yml.parent / "out").glob(f"{NAME}-*")
    return folder


def test_every_scenario_is_run_on_every_backend(results: Path) -> None:
    runs = [json.loads((path / "run.json").read_text()) for path in find_runs(results / "runs")]
    assert {run["status"] for run in runs} == {"complete"}
    members = {f"rush-hour/{member}" for member in ("replay", "save-article", "upload-images")}
    scenarios = {"replay", "visitors", *members}
    assert {(run["scenario"], run["backend"]) for run in runs} == {
        (scenario, backend) for scenario in scenarios for backend in ("nvme", "rotating")
    }
    for each in runs:
        others = {f"rush-hour/{other['member']}" for other in each.get("together", {}).get("others", [])}
        assert {each["scenario"], *others} == (members if each["scenario"] in members else {each["scenario"]})
    assert all(run["storage"]["emulated"] for run in runs)
    assert all(run["storage"]["facts"]["pools"] for run in runs)


def test_the_report_shows_the_slow_disk_as_the_slow_one(results: Path) -> None:
    assert (results / "report.html").stat().st_size > 100_000
    done = subprocess.run(
        [PLIMSOLL, "report", results / "runs", "--out", results / "again.html", "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    phases = json.loads(done.stdout)["phases"]
    for scenario in phases:
        found = {each["backend"]: each for each in scenario["backends"]}
        slow, fast = found["rotating"], found["nvme"]
        assert {"before", "during", "after"} == set(slow["phases"]) == set(fast["phases"])
        # The disk says so itself; how much of that visitors feel is for the experiment to say, not a test.
        assert slow["disk_read_latency_ms"]["during"] > fast["disk_read_latency_ms"]["during"]
        assert slow["send_bytes_per_s"] < fast["send_bytes_per_s"]


def test_what_was_planned_is_what_was_carried_out(
    results: Path, planned: list[tuple[bool, list[str]]]
) -> None:
    lines = map(json.loads, (results / "commands.jsonl").read_text(encoding="utf-8").splitlines())
    done = [line["words"] for line in lines if "words" in line]
    patterns = [(saturates, _pattern(words)) for saturates, words in planned]
    at = iter(done)
    for saturates, pattern in patterns:
        if not saturates:  # how many rounds of a send fit into a run is for the disk to say
            assert any(_matches(pattern, one) for one in at), f"was planned, and not carried out: {pattern}"
    repeated = (results / "attempts").exists()  # what a failed run is cleared away with is in no plan
    for one in done:
        assert repeated or any(_matches(pattern, one) for _, pattern in patterns), f"was not planned: {one}"
    sends = [pattern for saturates, pattern in patterns if saturates and "send" in pattern]
    assert sends
    assert all(any(_matches(pattern, one) for one in done) for pattern in sends[:1])


def _pattern(words: list[str]) -> list[str]:
    """What was captured, and the number of a saturator's round, are known only when it is done."""
    return [
        re.sub(r"00000\d$", "[0-9]{6}", re.sub(r"\\\$\\\{[a-z_]+\\\}", ".+", re.escape(word)))
        for word in words
    ]


def _matches(pattern: list[str], words: list[str]) -> bool:
    return len(pattern) == len(words) and all(
        re.fullmatch(part, word, re.DOTALL) for part, word in zip(pattern, words, strict=True)
    )


def test_nothing_is_left(results: Path, lab_yml: Path) -> None:
    assert left_of(NAME) == []
    assert left_in(lab_yml.parent / "work") == []
    golden = golden_of(lab_yml)

    async def is_kept(machine: LocalMachine) -> None:
        assert await golden.whole(machine), "for the next experiment"
        assert await golden.find(machine, "x") == []

    run(is_kept)


_TAILS = ("p50", "p99", "p99.9")


def _plain(run: Path, within: tuple[float, float] = (0, float("inf"))) -> tuple[int, dict[str, Any]]:
    """Failures, and percentiles of response times in ms, by docs/statistics.md and a plain loop.

    Of a percentile that is a failure's there is only a lower bound: `("at least", ms)`.
    """
    facts = json.loads((run / "run.json").read_text())
    timeout_ms = facts["load"]["settings"]["timeout_s"] * 1000
    times: list[tuple[float, bool]] = []
    for record in np.load(run / "requests.npy"):
        if record["flags"] & 8 or not within[0] <= record["due_ns"] < within[1]:
            continue
        status, logged = int(record["status"]), int(record["logged_status"])
        wrong = (status >= 500 and logged < 500) or (status == 429 and logged != 429)
        failed = bool(record["error"]) or wrong or (status >= 400 and 0 < logged < 400)
        took_ms = (int(record["lag_us"]) + int(record["total_us"])) / 1000
        times.append((max(took_ms, timeout_ms) if failed else took_ms, failed))
    times.sort()
    found: dict[str, Any] = {}
    for name, parts in zip(_TAILS, (500, 990, 999), strict=True):
        place = -(-parts * len(times) // 1000)
        if len(times) < 1000 / (1000 - parts):
            found[name] = None
            continue
        value_ms = times[place - 1][0]
        bound = any(failed for _, failed in times[:place])
        found[name] = ("at least", value_ms) if bound else value_ms
    return sum(failed for _, failed in times), found


def _told(figures: dict[str, Any]) -> dict[str, Any]:
    """The same of the report's JSON."""
    bounds = figures.get("censored", {})
    return {name: ("at least", bounds[name]) if name in bounds else figures[name] for name in _TAILS}


def test_headline_table_scatter_and_verdict_agree_on_how_failures_count(results: Path) -> None:
    runs = sorted(path for path in (results / "runs").iterdir() if "-replay--" in path.name)
    assert len(runs) == 2
    report = subprocess.run(
        [PLIMSOLL, "report", *runs, "--out", results / "replays.html", "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    told = json.loads(report.stdout)
    page = re.sub(r"<[^>]+>", " ", (results / "replays.html").read_text(encoding="utf-8"))
    compared = subprocess.run(
        [PLIMSOLL, "compare", *runs, "--json"], capture_output=True, text=True, timeout=300, check=False
    )
    assert compared.returncode == 3, "one run a side decides nothing"
    verdicts = json.loads(compared.stdout)
    gates = {(gate["phase"], gate["metric"]): gate for gate in verdicts["gates"]}
    for path, side in zip(runs, ("baseline", "candidate"), strict=True):
        backend = json.loads((path / "run.json").read_text())["backend"]
        failures, whole = _plain(path)
        mine = next(each for each in told["runs"] if each["backend"] == backend)
        assert mine["requests"]["failures"] == failures
        assert _told(mine["response_ms"]) == whole
        events = map(json.loads, (path / "events.jsonl").read_text().splitlines())
        sends = [event["t_ns"] for event in events if event["event"] == "zfs-send"]  # its start, its stop
        _, during = _plain(path, (sends[0], sends[-1]))
        (scenario,) = told["phases"]
        table = next(each for each in scenario["backends"] if each["backend"] == backend)["phases"]
        assert _told(table["during"]["response_ms"]) == during
        shown = next(name for name in reversed(_TAILS) if whole[name] is not None)
        if isinstance(whole[shown], tuple):
            assert f"≥ {whole[shown][1] / 1000:.3g} s" in page
            assert any(finding["name"] == "censored" for finding in verdicts["findings"])
        else:
            assert gates["whole", shown][side]["runs"] == [pytest.approx(whole[shown])]
        assert failures == 0 or "failed" in page
        for window in mine["windows"]["windows"]:  # the points of the scatter
            lost, _ = _plain(path, (window["start_s"] * 1e9, window["stop_s"] * 1e9))
            assert ("max" in window["censored"]) is (lost > 0)
