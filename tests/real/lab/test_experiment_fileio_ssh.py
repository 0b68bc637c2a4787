"""`fileio` of lab.yml on another machine, over a real sshd: sysbench and fio there, the cells here."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import LONGEST_S, REPLAY, ROOT, need, wait_for
from tests.support.servers import Nginx, Sshd

PLIMSOLL = [sys.executable, "-m", "plimsoll"]
LAB = """
name: {name}
out: {out}
hosts:
  - {{name: far, address: 127.0.0.1, {access}}}
fileio:
  {{tests: [rndwr, seqwr], threads: [2], file_size: 16M, time_s: {time_s}, backends: [far],
  fsync: {{calls: [fdatasync], block_sizes: [4K], threads: [2], file_size: 8M, time_s: {time_s}}}}}
backends:
  - name: far
    host: far
    disk: {{kind: folder, path: "{disk}"}}
    clone: {{driver: static, target: "{target}"}}
scenarios:
  - scenario: replay
    options: {{log: "{log}", rate: 50}}
phases: {{before_s: 0.3, during_s: 0.5, after_s: 0.3}}
warmup_s: 0
limits: {{settle_s: 0}}
observe: {{observe: [cpu]}}
repeats: 1
"""
CELLS = [("rndwr", None), ("seqwr", None), ("seqwr", "etcd"), ("seqwr", "")]


@pytest.fixture
def lab_yml(tmp_path: Path, sshd: Sshd, nginx: Nginx) -> Path:
    for program in (REPLAY, "fio", "sysbench"):
        need(program)
    path, disk = tmp_path / "lab.yml", tmp_path / "a disk"
    disk.mkdir()
    text = LAB.format(
        name=f"far-{os.getpid() % 10000}",
        out=tmp_path / "out",
        access=sshd.access,
        time_s=1,
        disk=disk,
        target=nginx.url,
        log=ROOT / "examples" / "access.log",
    )
    path.write_text(text)
    return path


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*PLIMSOLL, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)


def cells_of(lab_yml: Path) -> list[dict[str, Any]]:
    found = list((lab_yml.parent / "out").glob("far-*/fileio.jsonl"))
    return [json.loads(line) for path in found for line in path.read_text().splitlines() if line.strip()]


def is_whole(lab_yml: Path) -> None:
    """Each cell is here once, and nothing is left there."""
    cells = cells_of(lab_yml)
    assert {cell["volume"] for cell in cells} == {"far"}
    assert [(cell["test"], cell["preset"] or "" if "preset" in cell else None) for cell in cells] == CELLS
    assert all(cell["syncs"] > 0 for cell in cells[2:])
    assert list((lab_yml.parent / "a disk").iterdir()) == []


def test_the_volume_there_is_measured_and_shown_here(lab_yml: Path, sshd: Sshd) -> None:
    checked = run("check", lab_yml)
    assert checked.returncode == 0, checked.stderr
    planned = json.loads(run("check", "--plan", lab_yml, "--json").stdout)
    chapter = next(each for each in planned["chapters"] if each["says"].startswith("measure the volume"))
    assert chapter["says"] == "measure the volume of far with sysbench fileio and fio"
    assert chapter["machine"] == "far"
    done = run("run", lab_yml, "--json")
    assert done.returncode == 0, done.stderr
    assert "far: measuring its volume with sysbench and fio: 4 cells" in done.stderr
    assert json.loads(done.stdout)["not_measured"] == {}
    is_whole(lab_yml)
    directory = next((lab_yml.parent / "out").glob("far-*"))
    page = (directory / "report.html").read_text()
    assert "What an fsync takes" in page
    assert "p99.9 (ms): far" in page
    status = json.loads(run("status", directory, "--json").stdout)
    assert status["fileio"] == {"total": 4, "finished": 4, "failed": {}}
    assert "Accepted publickey" in (lab_yml.parent / "sshd.log").read_text()


@pytest.mark.slow
def test_after_a_kill_what_lacks_is_measured_and_what_was_left_there_goes(lab_yml: Path) -> None:
    lab_yml.write_text(lab_yml.read_text().replace("time_s: 1", "time_s: 4"))
    process = subprocess.Popen([*PLIMSOLL, "run", str(lab_yml)], stderr=subprocess.DEVNULL, cwd=ROOT)

    def writes() -> bool:
        assert process.poll() is None
        at_work = list((lab_yml.parent / "a disk").glob("*.fileio/plimsoll-fsync"))
        return len(cells_of(lab_yml)) == 3 and bool(at_work)

    wait_for("fio writes the last one", writes)
    process.send_signal(signal.SIGKILL)
    process.wait(LONGEST_S)
    assert len(cells_of(lab_yml)) == 3
    assert list((lab_yml.parent / "a disk").glob("*.fileio/plimsoll-fsync")), "killed while fio wrote"
    done = run("run", "--resume", lab_yml)
    assert done.returncode == 0, done.stderr
    is_whole(lab_yml)
