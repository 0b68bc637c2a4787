"""Experiments whose disks are at another machine, over a real sshd: saturated, observed, measured there."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.labs import (
    APART,
    end_when,
    experiment_of,
    lines_of,
    need_lab,
    own_name,
    planned,
    plimsoll,
    run_lab,
    status_of,
    write_lab,
)
from tests.support.programs import need, wait_for
from tests.support.servers import Nginx, Sshd

pytestmark = pytest.mark.usefixtures("apart")

LAB = """
name: $name
out: $folder/out
hosts:
  - {name: far, address: 127.0.0.1, $access}
backends:
  - name: far
    host: far
    clone: {driver: static, target: "$target", reset: [[touch, "$folder/out/reset"]]}
    saturator: {kind: fio, folder: "$folder/a disk", size_bytes: 4194304}
scenarios:
  - scenario: replay
    options: {log: "$log", rate: 50}
phases: {before_s: 0.5, during_s: 6, after_s: 0.5}
warmup_s: 0
limits: {settle_s: 0}
observe: {observe: [cpu, diskstats]}
repeats: 2
"""
FILEIO = """
name: $name
out: $folder/out
hosts:
  - {name: far, address: 127.0.0.1, $access}
fileio:
  {tests: [rndwr, seqwr], threads: [2], file_size: 16M, time_s: 1, backends: [far],
  fsync: {calls: [fdatasync], block_sizes: [4K], threads: [2], file_size: 8M, time_s: 1}}
backends:
  - name: far
    host: far
    disk: {kind: folder, path: "$folder/a disk"}
    clone: {driver: static, target: "$target"}
scenarios:
  - scenario: replay
    options: {log: "$log", rate: 50}
phases: {before_s: 0.3, during_s: 0.5, after_s: 0.3}
warmup_s: 0
limits: {settle_s: 0}
observe: {observe: [cpu]}
repeats: 1
"""
CELLS = [("rndwr", None), ("seqwr", None), ("seqwr", "etcd"), ("seqwr", "")]


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """What is a disk at the other machine."""
    folder = tmp_path / "a disk"
    folder.mkdir()
    return folder


def test_a_host_is_saturated_and_observed_over_a_connection_that_breaks_once(
    tmp_path: Path, sshd: Sshd, nginx: Nginx, disk: Path
) -> None:
    need_lab("fio")
    lab_yml = write_lab(tmp_path, own_name("ssh"), LAB, access=sshd.access, target=nginx.url)
    command: list[str | Path] = [*APART, "run", lab_yml, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for("fio is at work", lambda: list(disk.iterdir()))
        subprocess.run([need("pkill"), "-KILL", "-P", str(sshd.process.pid)], check=True)
        out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    runs = sorted((experiment_of(lab_yml) / "runs").iterdir())
    assert len(json.loads(out)["finished"]) == len(runs) == 2
    broken, whole = [(run / "events.jsonl").read_text() for run in runs]
    for events in (broken, whole):
        assert '"event": "fio", "phase": "start"' in events
        assert '"event": "fio bytes"' in events
    assert all((run / "host.csv").read_text().count("\n") >= 4 for run in runs)
    assert list(disk.iterdir()) == [], "fio's files are removed"
    assert '"event": "fio retry", "error": ' in broken, "the report shows it"
    assert "retry" not in whole


@pytest.fixture
def fileio_yml(tmp_path: Path, sshd: Sshd, nginx: Nginx, disk: Path) -> Path:
    need_lab("fio", "sysbench")
    return write_lab(tmp_path, own_name("far"), FILEIO, access=sshd.access, target=nginx.url)


def cells_of(lab_yml: Path) -> list[dict[str, Any]]:
    found = (lab_yml.parent / "out").glob("*/fileio.jsonl")
    return [cell for path in found for cell in lines_of(path)]


def is_whole(lab_yml: Path, disk: Path) -> None:
    """Each cell is here once, and nothing is left there."""
    cells = cells_of(lab_yml)
    assert {cell["volume"] for cell in cells} == {"far"}
    assert [(cell["test"], cell["preset"] or "" if "preset" in cell else None) for cell in cells] == CELLS
    assert all(cell["syncs"] > 0 for cell in cells[2:])
    assert list(disk.iterdir()) == []


def test_the_volume_there_is_measured_and_shown_here(fileio_yml: Path, disk: Path) -> None:
    checked = plimsoll("check", fileio_yml)
    assert checked.returncode == 0, checked.stderr
    plan, _ = planned(fileio_yml)
    chapter = next(each for each in plan["chapters"] if each["says"].startswith("measure the volume"))
    assert chapter["says"] == "measure the volume of far with sysbench fileio and fio"
    assert chapter["machine"] == "far"
    outcome, said = run_lab(fileio_yml)
    assert "far: measuring its volume with sysbench and fio: 4 cells" in said
    assert outcome["not_measured"] == {}
    is_whole(fileio_yml, disk)
    page = (experiment_of(fileio_yml) / "report.html").read_text()
    assert "What an fsync takes" in page
    assert "p99.9 (ms): far" in page
    assert status_of(experiment_of(fileio_yml))["fileio"] == {
        "total": 4,
        "finished": 4,
        "failed": {},
    }
    assert "Accepted publickey" in (fileio_yml.parent / "sshd.log").read_text()


@pytest.mark.slow
def test_after_a_kill_what_lacks_is_measured_and_what_was_left_there_goes(
    fileio_yml: Path, disk: Path
) -> None:
    fileio_yml.write_text(fileio_yml.read_text().replace("time_s: 1", "time_s: 4"))

    def fio_writes_the_last() -> bool:
        return len(cells_of(fileio_yml)) == 3 and bool(list(disk.glob("*.fileio/plimsoll-fsync")))

    end_when(("run", fileio_yml), fio_writes_the_last)
    assert len(cells_of(fileio_yml)) == 3
    assert list(disk.glob("*.fileio/plimsoll-fsync")), "killed while fio wrote"
    done = plimsoll("run", "--resume", fileio_yml)
    assert done.returncode == 0, done.stderr
    is_whole(fileio_yml, disk)
