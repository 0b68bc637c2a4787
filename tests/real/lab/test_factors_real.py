"""An experiment with factors on hosts that exist: every variant is run once a repeat."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.real.lab.test_experiment import folder, plimsoll, two_nginx
from tests.support.disks import left_of
from tests.support.programs import REPLAY, ROOT, need
from tests.support.servers import Nginx

LAB = """
name: {name}
out: {out}
backends:
  - name: one
    clone: {{driver: static, target: "{one}"}}
  - name: two
    clone: {{driver: static, target: "{two}"}}
scenarios:
  - scenario: replay
    options: {{log: "{log}", rate: 50}}
factors:
  - {{name: rate, key: scenarios.replay.options.rate, values: [20, 60]}}
  - {{name: swappiness, values: [{now}, 61], backends: [two]}}
goal_ms: 500
phases: {{before_s: 0.3, during_s: 0.4, after_s: 0.3}}
warmup_s: 0.2
limits: {{settle_s: 0, failures: 2}}
observe: {{observe: [cpu, memory]}}
repeats: 1
"""
SWAPPINESS = Path("/proc/sys/vm/swappiness")
RUNS = 2 + 4

__all__ = ["two_nginx"]


@pytest.fixture
def lab_yml(tmp_path: Path, two_nginx: tuple[Nginx, Nginx]) -> Path:
    need(REPLAY)
    if not os.access(SWAPPINESS, os.W_OK):
        pytest.skip("only root can tune")
    path = tmp_path / "lab.yml"
    one, two = two_nginx
    log = ROOT / "examples" / "access.log"
    name = f"test-f{os.getpid() % 10000}"
    out = tmp_path / "out"
    now = SWAPPINESS.read_text().strip()
    path.write_text(LAB.format(name=name, out=out, one=one.url, two=two.url, log=log, now=now))
    return path


def runs_of(lab_yml: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in sorted(folder(lab_yml).glob("runs/*/run.json"))]


def test_each_variant_runs_at_its_levels_and_says_them(lab_yml: Path) -> None:
    before = SWAPPINESS.read_text()
    planned = json.loads(plimsoll("check", "--plan", lab_yml, "--json").stdout)
    assert [each["clone"] for each in planned["variants"]] == ["one"] * 2 + ["two"] * 4
    done = plimsoll("run", lab_yml, "--json")
    assert done.returncode == 0, done.stderr
    assert SWAPPINESS.read_text() == before
    runs = runs_of(lab_yml)
    assert len(runs) == len(planned["runs"]) == RUNS
    assert set(Counter(run["backend"] for run in runs).values()) == {1}
    for run in runs:
        factors = run["factors"]
        assert isinstance(factors, dict)
        assert list(factors) == ["backend", "rate"] + ["swappiness"] * (factors["backend"] == "two")
        command = run["command"]
        assert isinstance(command, list)
        assert command[command.index("--rate") + 1] == factors["rate"]
        experiment = run["experiment"]
        assert isinstance(experiment, dict)
        assert experiment["goal_ms"] == 500
        assert experiment["levels"]["rate"] == ["20", "60"]
    report = Path(json.loads(done.stdout)["report"]).read_text()
    assert "What each factor did" in report
    carried_out = (folder(lab_yml) / "commands.jsonl").read_text().splitlines()
    # A run of two variants: set, and put back. The level that the host has already needs neither.
    assert sum(str(SWAPPINESS) in line for line in carried_out) == 2 * 2


POOLS = """
name: {name}
out: {folder}/out
work: {folder}/work
backends:
  - name: zfs
    disk: {{kind: emulated, filesystem: zfs, size_bytes: 512M}}
    clone: {{driver: raft, target: "{url}", megabytes: 24}}
scenarios:
  - scenario: replay
    options: {{log: "{log}", rate: 400}}
saturator: {{kind: zfs-send}}
factors:
  - {{name: recordsize, values: [128K, 16K]}}
  - {{name: send-rate, values: [2000000, 4000000, 8000000]}}
goal_ms: 60000
phases: {{before_s: 0.3, during_s: 3, after_s: 0.3}}
warmup_s: 0.2
limits: {{settle_s: 0, failures: 2}}
observe: {{observe: [cpu]}}
repeats: 1
"""


def test_pools_are_made_at_their_record_size_and_share_it_among_rates(
    tmp_path: Path, two_nginx: tuple[Nginx, Nginx]
) -> None:
    for program in (REPLAY, "zpool", "losetup"):
        need(program)
    if os.geteuid() != 0:
        pytest.skip("only root can make disks")
    file = tmp_path / "lab.yml"
    name, log = f"pool-{os.getpid() % 10000}", ROOT / "examples" / "access.log"
    file.write_text(POOLS.format(name=name, folder=tmp_path, url=two_nginx[0].url, log=log))
    words = [sys.executable, "-m", "tests.support.raft", "run", str(file), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=500, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (experiment,) = (tmp_path / "out").glob(f"{name}-*")
    runs = [json.loads(path.read_text()) for path in sorted(experiment.glob("runs/*/run.json"))]
    assert len(runs) == 6
    for run in runs:
        properties = run["storage"]["facts"]["datasets"][0]["properties"]
        assert properties["recordsize"] == run["factors"]["recordsize"]
    carried_out = [json.loads(line) for line in (experiment / "commands.jsonl").read_text().splitlines()]
    pools = [one["words"] for one in carried_out if one.get("words", [])[:2] == ["zpool", "create"]]
    assert len(pools) == 2
    report = [sys.executable, "-m", "plimsoll", "report", str(experiment), "--json"]
    told = json.loads(subprocess.run(report, capture_output=True, check=True, cwd=ROOT).stdout)["factors"][0]
    assert len(told["ranking"]) == 6
    assert told["percentile"] == "p99.9"
    assert "At every rate that was tried, up to 8 MB/s, p99.9 stays under 60 s" in told["sentences"][0]
    assert left_of(name) == []
