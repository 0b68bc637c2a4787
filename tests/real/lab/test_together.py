"""What one run is made of, on hosts that exist: scenarios together on one clock, and levels of factors."""

import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.rundir.find import find_runs, relative_name
from plimsoll.rundir.records import HEADER_BYTES
from tests.support.disks import left_of
from tests.support.labs import (
    RAFT,
    carried_out,
    experiment_of,
    lines_of,
    need_lab,
    own_name,
    planned,
    plimsoll,
    run_lab,
    runs_of,
    write_lab,
)
from tests.support.programs import LONGEST_S, PLIMSOLL, wait_for
from tests.support.servers import Nginx

LAB = """
name: $name
out: $folder/out
backends:
  - name: one
    clone: {driver: static, target: "$url"}
scenarios:
  - name: rush
    together:
      - {scenario: download, options: {path: /page.html, iterations: 40}}
      - {scenario: replay, options: {log: "$log", rate: 50}}
    phases: {before_s: 1, during_s: 2, after_s: 1}
  - name: until-done
    together:
      - {scenario: replay, name: crowd, options: {log: "$log", rate: 50}}
      - {scenario: download, options: {path: /page.html, iterations: 100}}
    phases: {before_s: 0, during_s: null}
saturator: {kind: fio, folder: "$folder/out", size_bytes: 1M, rate_bytes_per_s: 1M, direct: false}
warmup_s: 0.5
limits: {settle_s: 0, failures: 2}
observe: {observe: [cpu, memory]}
repeats: 1
"""


@pytest.fixture
def lab_yml(tmp_path: Path, nginx: Nginx) -> Path:
    need_lab("fio")
    (tmp_path / "out").mkdir()  # where fio's files are
    return write_lab(tmp_path, own_name("test"), LAB, url=nginx.url)


def facts_of(run: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((run / "run.json").read_text())
    return facts


def test_each_member_is_a_run_of_its_own_that_knows_the_others(lab_yml: Path) -> None:
    outcome, _ = run_lab(lab_yml)
    assert outcome["finished"] == ["0001-rush--one--1", "0002-until-done--one--1"]
    runs = {relative_name(run): run for run in find_runs(experiment_of(lab_yml) / "runs")}
    assert list(runs) == [
        "0001-rush--one--1/download",
        "0001-rush--one--1/replay",
        "0002-until-done--one--1/crowd",
        "0002-until-done--one--1/download",
    ]
    facts = {name: facts_of(run) for name, run in runs.items()}
    assert {each["status"] for each in facts.values()} == {"complete"}
    assert {each["scenario"] for each in facts.values()} == {
        "rush/download",
        "rush/replay",
        "until-done/crowd",
        "until-done/download",
    }
    download = facts["0001-rush--one--1/download"]
    assert download["experiment"] == {"name": download["experiment"]["name"], "run": 1, "of": 2}
    assert download["phases"] == {"warmup_s": 0.5, "before_s": 1.0, "during_s": 2.0, "after_s": 1.0}
    (crowd,) = download["together"]["others"]
    assert (crowd["member"], crowd["crowd"], crowd["speed"]) == ("replay", True, "rate 50/s")
    assert crowd["from_s"] < 0 < 4 < crowd["to_s"], (
        "the crowd was there from before the first to after the last"
    )
    assert facts["0002-until-done--one--1/crowd"]["together"]["stopped"]
    assert not facts["0002-until-done--one--1/download"]["together"]["stopped"]
    named = json.loads((experiment_of(lab_yml) / "runs" / "0001-rush--one--1" / "together.json").read_text())
    assert named["members"] == ["replay", "download"]
    is_on_one_clock(runs["0001-rush--one--1/replay"], runs["0001-rush--one--1/download"])
    is_under_the_saturator(runs["0001-rush--one--1/download"])
    is_under_the_saturator(runs["0002-until-done--one--1/download"])
    is_read_by_all(lab_yml)


def is_on_one_clock(crowd: Path, timed: Path) -> None:
    """The saturator's events and the host's seconds stand at the same instants, by either clock."""
    (other,) = facts_of(timed)["together"]["others"]
    apart_ns = -other["from_s"] * 1e9
    events = [lines_of(run / "events.jsonl") for run in (crowd, timed)]
    starts = [next(e for e in each if e["event"] == "fio" and e["phase"] == "start") for each in events]
    assert starts[0]["t_ns"] - starts[1]["t_ns"] == pytest.approx(apart_ns, abs=1e5)
    assert starts[1]["t_ns"] >= 1.5e9, "the phases begin when all have begun: with the last"
    hosts = [np.loadtxt(run / "host.csv", delimiter=",", skiprows=1, usecols=0) for run in (crowd, timed)]
    assert hosts[0] - hosts[1] == pytest.approx(apart_ns, abs=1e5)


def is_under_the_saturator(timed: Path) -> None:
    """What ends by itself begins when the saturator works, whatever begins before it."""
    start_ns = next(
        e["t_ns"] for e in lines_of(timed / "events.jsonl") if e["event"] == "fio" and e["phase"] == "start"
    )
    due_ns = np.load(timed / "requests.npy")["due_ns"]
    assert len(due_ns) in (40, 100)
    assert due_ns.min() >= start_ns
    together = facts_of(timed)["together"]
    assert together["began_s"] == pytest.approx(start_ns / 1e9, abs=1), "it was not kept waiting"
    assert together["began_s"] <= due_ns.min() / 1e9


def is_read_by_all(lab_yml: Path) -> None:
    """Every command that reads results finds each member, from the experiment's folder."""
    report = plimsoll("report", experiment_of(lab_yml), "--json")
    assert report.returncode == 0, report.stderr
    contents = json.loads(report.stdout)
    assert len(contents["runs"]) == 4
    assert contents["unreadable"] == []
    page = (experiment_of(lab_yml) / "report.html").read_text(encoding="utf-8")
    assert "disturbed each other" not in page
    assert "runs of experiment" not in page, "all runs are there"


def test_a_member_that_is_killed_fails_the_run_and_nothing_of_it_runs_on(lab_yml: Path) -> None:
    lab_yml.write_text(
        lab_yml.read_text().replace("failures: 2", "failures: 1").replace("during_s: 2", "during_s: 60")
    )
    with subprocess.Popen([PLIMSOLL, "run", str(lab_yml)], stderr=subprocess.PIPE, text=True) as process:
        out = lab_yml.parent / "out"

        def has_recorded() -> bool:
            files = out.glob("test-*/attempts/*/**/replay*/**/requests.npy")
            return any(file.stat().st_size > HEADER_BYTES for file in files)

        wait_for("it has recorded", has_recorded)
        os.kill(_process("replay", lab_yml), signal.SIGKILL)
        _, said = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 1
    assert "replay: the run is running" in said
    assert _processes(lab_yml) == []
    finished = [path.name for path in (experiment_of(lab_yml) / "runs").iterdir()]
    assert finished == ["0002-until-done--one--1"], "only the entry whose member was killed is set aside"


def _process(program: str, lab_yml: Path) -> int:
    return next(number for number, words in _processes(lab_yml) if Path(words[0]).name == program)


def _processes(lab_yml: Path) -> list[tuple[int, list[str]]]:
    """Processes that load for this experiment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_text(errors="replace").split("\0")
        except OSError:
            continue
        if "--out" in words and words[words.index("--out") + 1].startswith(str(lab_yml.parent)):
            found.append((int(path.parent.name), words))
    return found


def test_a_plan_has_the_commands_of_all_members_and_they_are_what_is_carried_out(lab_yml: Path) -> None:
    loads = [words for words in planned(lab_yml)[1] if "--backend" in words]
    assert [words[words.index("--out") + 1] for words in loads] == [
        "${attempt}/replay",
        "${attempt}/download",
        "${attempt}/crowd",
        "${attempt}/download",
    ]


# Factors: every variant is run once a repeat, at its levels.

FACTORS = """
name: $name
out: $folder/out
backends:
  - name: one
    clone: {driver: static, target: "$url"}
  - name: two
    clone: {driver: static, target: "$url"}
scenarios:
  - scenario: replay
    options: {log: "$log", rate: 50}
factors:
  - {name: rate, key: scenarios.replay.options.rate, values: [20, 60]}
  - {name: swappiness, values: [$now, 61], backends: [two]}
goal_ms: 500
phases: {before_s: 0.3, during_s: 0.4, after_s: 0.3}
warmup_s: 0.2
limits: {settle_s: 0, failures: 2}
observe: {observe: [cpu, memory]}
repeats: 1
"""
SWAPPINESS = Path("/proc/sys/vm/swappiness")
POOLS = """
name: $name
out: $folder/out
work: $folder/work
backends:
  - name: zfs
    disk: {kind: emulated, filesystem: zfs, size_bytes: 512M}
    clone: {driver: raft, target: "$url", megabytes: 24}
scenarios:
  - scenario: replay
    options: {log: "$log", rate: 400}
saturator: {kind: zfs-send}
factors:
  - {name: recordsize, values: [128K, 16K]}
  - {name: send-rate, values: [2000000, 4000000, 8000000]}
goal_ms: 60000
phases: {before_s: 0.3, during_s: 3, after_s: 0.3}
warmup_s: 0.2
limits: {settle_s: 0, failures: 2}
observe: {observe: [cpu]}
repeats: 1
"""


def test_each_variant_runs_at_its_levels_and_says_them(tmp_path: Path, nginx: Nginx) -> None:
    need_lab(as_root=True)
    before = SWAPPINESS.read_text()
    lab_yml = write_lab(tmp_path, own_name("test-f"), FACTORS, url=nginx.url, now=before.strip())
    plan, _ = planned(lab_yml)
    assert [each["clone"] for each in plan["variants"]] == ["one"] * 2 + ["two"] * 4
    outcome, _ = run_lab(lab_yml)
    assert SWAPPINESS.read_text() == before
    runs = runs_of(experiment_of(lab_yml))
    assert len(runs) == len(plan["runs"]) == 2 + 4
    assert set(Counter(run["backend"] for run in runs).values()) == {1}
    for run in runs:
        factors, command = run["factors"], run["command"]
        assert list(factors) == ["backend", "rate"] + ["swappiness"] * (factors["backend"] == "two")
        assert command[command.index("--rate") + 1] == factors["rate"]
        assert run["experiment"]["goal_ms"] == 500
        assert run["experiment"]["levels"]["rate"] == ["20", "60"]
    assert "What each factor did" in Path(outcome["report"]).read_text()
    lines = (experiment_of(lab_yml) / "commands.jsonl").read_text().splitlines()
    # A run of two variants: set, and put back. The level that the host has already needs neither.
    assert sum(str(SWAPPINESS) in line for line in lines) == 2 * 2


def test_pools_are_made_at_their_record_size_and_share_it_among_rates(tmp_path: Path, nginx: Nginx) -> None:
    need_lab("zpool", "losetup", as_root=True)
    name = own_name("pool")
    lab_yml = write_lab(tmp_path, name, POOLS, url=nginx.url)
    run_lab(lab_yml, program=RAFT)
    experiment = experiment_of(lab_yml)
    runs = runs_of(experiment)
    assert len(runs) == 6
    for run in runs:
        properties = run["storage"]["facts"]["datasets"][0]["properties"]
        assert properties["recordsize"] == run["factors"]["recordsize"]
    assert len([words for words in carried_out(experiment) if words[:2] == ["zpool", "create"]]) == 2
    effect = json.loads(plimsoll("report", experiment, "--json").stdout)["factors"][0]
    assert len(effect["ranking"]) == 6
    assert effect["percentile"] == "p99.9"
    assert "At every rate that was tried, up to 8 MB/s, p99.9 stays under 60 s" in effect["sentences"][0]
    assert left_of(name) == []
