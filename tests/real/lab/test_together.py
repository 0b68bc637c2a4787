"""Scenarios together on hosts that exist (no root): one run, one clock, a run directory for each member."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.rundir.find import find_runs, relative_name
from plimsoll.rundir.records import HEADER_BYTES
from tests.support.programs import LONGEST_S, PLIMSOLL, REPLAY, ROOT, need, open_to_all, wait_for
from tests.support.servers import Nginx

LAB = """
name: {name}
out: {out}
backends:
  - name: one
    clone: {{driver: static, target: "{url}"}}
scenarios:
  - name: rush
    together:
      - {{scenario: download, options: {{path: /page.html, iterations: 40}}}}
      - {{scenario: replay, options: {{log: "{log}", rate: 50}}}}
    phases: {{before_s: 1, during_s: 2, after_s: 1}}
  - name: until-done
    together:
      - {{scenario: replay, name: crowd, options: {{log: "{log}", rate: 50}}}}
      - {{scenario: download, options: {{path: /page.html, iterations: 100}}}}
    phases: {{before_s: 0, during_s: null}}
saturator: {{kind: fio, folder: "{out}", size_bytes: 1M, rate_bytes_per_s: 1M, direct: false}}
warmup_s: 0.5
limits: {{settle_s: 0, failures: 2}}
observe: {{observe: [cpu, memory]}}
repeats: 1
"""


@pytest.fixture
def lab_yml(tmp_path: Path) -> Iterator[Path]:
    for program in (REPLAY, "fio"):
        need(program)
    root = tmp_path / "nginx"
    root.mkdir()
    open_to_all(root)
    nginx = Nginx(root)
    path, out = tmp_path / "lab.yml", tmp_path / "out"
    out.mkdir()
    name = f"test-{os.getpid() % 10000}"
    log = ROOT / "examples" / "access.log"
    path.write_text(LAB.format(name=name, out=out, url=nginx.url, log=log))
    yield path
    nginx.stop()


def plimsoll(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(PLIMSOLL), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def folder(lab_yml: Path) -> Path:
    (found,) = (lab_yml.parent / "out").glob("test-*")
    return found


def facts_of(run: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((run / "run.json").read_text())
    return facts


def test_each_member_is_a_run_of_its_own_that_knows_the_others(lab_yml: Path) -> None:
    done = plimsoll("run", lab_yml, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["finished"] == ["0001-rush--one--1", "0002-until-done--one--1"]
    runs = {relative_name(run): run for run in find_runs(folder(lab_yml) / "runs")}
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
    named = json.loads((folder(lab_yml) / "runs" / "0001-rush--one--1" / "together.json").read_text())
    assert named["members"] == ["replay", "download"]
    _one_clock(runs["0001-rush--one--1/replay"], runs["0001-rush--one--1/download"])
    _all_under_the_saturator(runs["0001-rush--one--1/download"])
    _all_under_the_saturator(runs["0002-until-done--one--1/download"])
    _read_by_all(lab_yml)


def _one_clock(crowd: Path, timed: Path) -> None:
    """The saturator's events and the host's seconds stand at the same instants, by either clock."""
    (other,) = facts_of(timed)["together"]["others"]
    apart_ns = -other["from_s"] * 1e9
    events = [_events(run) for run in (crowd, timed)]
    starts = [next(e for e in each if e["event"] == "fio" and e["phase"] == "start") for each in events]
    assert starts[0]["t_ns"] - starts[1]["t_ns"] == pytest.approx(apart_ns, abs=1e5)
    assert starts[1]["t_ns"] >= 1.5e9, "the phases begin when all have begun: with the last"
    hosts = [np.loadtxt(run / "host.csv", delimiter=",", skiprows=1, usecols=0) for run in (crowd, timed)]
    assert hosts[0] - hosts[1] == pytest.approx(apart_ns, abs=1e5)


def _all_under_the_saturator(timed: Path) -> None:
    """What ends by itself begins when the saturator works, whatever begins before it."""
    start_ns = next(e["t_ns"] for e in _events(timed) if e["event"] == "fio" and e["phase"] == "start")
    due_ns = np.load(timed / "requests.npy")["due_ns"]
    assert len(due_ns) in (40, 100)
    assert due_ns.min() >= start_ns
    together = facts_of(timed)["together"]
    assert together["began_s"] == pytest.approx(start_ns / 1e9, abs=1), "it was not kept waiting"
    assert together["began_s"] <= due_ns.min() / 1e9


def _events(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]


def _read_by_all(lab_yml: Path) -> None:
    """Every command that reads results finds each member, from the experiment's folder."""
    report = plimsoll("report", folder(lab_yml), "--json")
    assert report.returncode == 0, report.stderr
    told = json.loads(report.stdout)
    assert len(told["runs"]) == 4
    assert told["unreadable"] == []
    page = (folder(lab_yml) / "report.html").read_text(encoding="utf-8")
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
    finished = [path.name for path in (folder(lab_yml) / "runs").iterdir()]
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
    plan = json.loads(plimsoll("check", "--plan", lab_yml, "--json").stdout)
    planned = [step["words"] for chapter in plan["chapters"] for step in chapter["steps"] if "words" in step]
    loads = [words for words in planned if "--backend" in words]
    assert [words[words.index("--out") + 1] for words in loads] == [
        "${attempt}/replay",
        "${attempt}/download",
        "${attempt}/crowd",
        "${attempt}/download",
    ]
