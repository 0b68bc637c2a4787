"""`fileio` in lab.yml, on emulated disks: each cell once, through kill -9 and Ctrl-C, and in the report."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.disks import left_in, left_of
from tests.support.programs import LONGEST_S, REPLAY, ROOT, need, wait_for
from tests.support.servers import Nginx

PLIMSOLL = [sys.executable, "-m", "tests.support.raft"]
NAME = f"volumes-{os.getpid() % 10000}"
LAB = """
name: {name}
out: {folder}/out
work: {folder}/work
fileio: {{tests: [seqwr, rndrd], threads: [1], file_size: 16M, time_s: 1}}
backends:
  - name: ext4
    disk: {{kind: emulated, filesystem: ext4, size_bytes: 512M, bytes_per_s: 200M}}
    clone: {{driver: raft, target: "{url}"}}
    tuning: {{vm: {{swappiness: 33}}}}
  - name: zfs
    disk: {{kind: emulated, filesystem: zfs, size_bytes: 512M}}
    clone: {{driver: raft, target: "{url}"}}
  - name: real
    clone: {{driver: static, target: "{url}"}}
scenarios:
  - scenario: replay
    options: {{log: "{log}", rate: 20}}
phases: {{before_s: 0.3, during_s: 0.5, after_s: 0.3}}
warmup_s: 0.2
limits: {{settle_s: 0, retry_s: 0}}
observe: {{observe: [cpu]}}
repeats: 1
"""


@pytest.fixture
def lab_yml(tmp_path: Path, nginx: Nginx) -> Iterator[Path]:
    for program in (REPLAY, "zpool", "losetup", "sysbench"):
        need(program)
    if os.geteuid() != 0:
        pytest.skip("needs root: make test-lab")
    file = tmp_path / "lab.yml"
    log = ROOT / "examples" / "access.log"
    file.write_text(LAB.format(name=NAME, folder=tmp_path, url=nginx.url, log=log))
    yield file
    plimsoll("clean", file)
    shutil.rmtree(tmp_path / "work", ignore_errors=True)


def plimsoll(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*PLIMSOLL, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, cwd=ROOT)


def stopped(words: list[str], how: signal.Signals, file: Path, cells: int) -> None:
    """Run plimsoll until so many cells are finished and the next one is measured, and end it."""
    process = subprocess.Popen(
        [*PLIMSOLL, *words], stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT
    )
    wait_for("they are finished", lambda: len(cells_of(file)) >= cells or process.poll() is not None)
    time.sleep(0.3)
    process.send_signal(how)
    _, said = process.communicate(timeout=LONGEST_S)
    assert len(cells_of(file)) >= cells, said


def folder(file: Path) -> Path | None:
    return next((file.parent / "out").glob(f"{NAME}-*"), None)


def cells_of(file: Path) -> list[dict[str, Any]]:
    path = (folder(file) or file) / "fileio.jsonl"
    try:
        return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def is_whole(file: Path) -> None:
    """Each cell of each volume is there once, and nothing else is."""
    found = Counter((cell["volume"], cell["test"], cell["threads"]) for cell in cells_of(file))
    wanted = yaml.safe_load(file.read_text())["fileio"]
    assert set(found) == set(product(("ext4", "zfs"), wanted["tests"], wanted["threads"]))
    assert set(found.values()) == {1}, "nothing twice"
    assert left_of(NAME) == []
    assert left_in(file.parent / "work") == []


def test_the_plan_has_the_very_commands_that_are_carried_out_before_the_runs(lab_yml: Path) -> None:
    planned = json.loads(plimsoll("check", "--plan", lab_yml, "--json").stdout)
    says = [chapter["says"] for chapter in planned["chapters"]]
    assert says[:4] == [
        "make ext4",
        "measure the volume of ext4 with sysbench fileio",
        "make zfs",
        "measure the volume of zfs with sysbench fileio",
    ]
    done = plimsoll("run", lab_yml, "--json")
    assert done.returncode == 0, done.stderr
    assert "fileio does not measure real: it has no disk in lab.yml." in done.stderr
    is_whole(lab_yml)
    directory = folder(lab_yml)
    assert directory
    carried_out = [json.loads(line) for line in (directory / "commands.jsonl").read_text().splitlines()]
    for backend in ("ext4", "zfs"):
        ran = [line["words"] for line in carried_out if line["backend"] == backend and "words" in line]
        chapter = planned["chapters"][says.index(f"measure the volume of {backend} with sysbench fileio")]
        wanted = [
            words_of_sysbench(step["words"]) for step in chapter["steps"] if words_of_sysbench(step["words"])
        ]
        assert [words_of_sysbench(words) for words in ran if words_of_sysbench(words)] == wanted
        assert len(wanted) == 1 + 1 + 2 + 1 + 2, "folder, files, cells, files after each seqwr, clean-up"
    page = (directory / "report.html").read_text()
    assert "The volumes, cell by cell" in page
    assert "MiB/s: ext4" in page and "p99.9 (ms): zfs" in page
    status = json.loads(plimsoll("status", directory, "--json").stdout)
    assert status["state"] == "finished"
    assert status["fileio"] == {"total": 4, "finished": 4, "failed": {}}


def words_of_sysbench(words: list[str]) -> list[str]:
    """The words of sysbench, and of what makes and removes its own folder."""
    for program in ("mkdir", "sysbench", "rmdir"):
        if program in words and any("plimsoll-fileio" in word or word == "sysbench" for word in words):
            return words[words.index(program) :]
    return []


@pytest.mark.slow
def test_killed_twice_and_interrupted_each_cell_is_measured_once(lab_yml: Path) -> None:
    text = lab_yml.read_text().replace(
        "tests: [seqwr, rndrd], threads: [1]", "tests: [rndrd, seqwr, rndrw], threads: [1, 2]"
    )
    lab_yml.write_text(text)
    begin, go_on = ["run", str(lab_yml)], ["run", "--resume", str(lab_yml)]
    stopped(begin, signal.SIGKILL, lab_yml, 2)
    stopped(go_on, signal.SIGKILL, lab_yml, 7)
    files = list((lab_yml.parent / "work").glob("*/mnt/*.fileio/*/test_file.*"))
    assert files, "kill -9 came while a cell was measured"
    stopped(go_on, signal.SIGINT, lab_yml, 9)
    assert left_of(NAME) == [], "Ctrl-C removes everything at once"
    assert left_in(lab_yml.parent / "work") == []
    status = json.loads(plimsoll("status", folder(lab_yml) or "", "--json").stdout)
    assert status["state"] == "stopped"
    assert 9 <= status["fileio"]["finished"] < 12
    done = plimsoll(*go_on, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["not_measured"] == {}
    is_whole(lab_yml)


def test_files_that_a_crash_left_are_cleaned(lab_yml: Path) -> None:
    stopped(["run", str(lab_yml)], signal.SIGKILL, lab_yml, 1)
    listed = plimsoll("clean", lab_yml, "--list").stdout
    mounted = lab_yml.parent / "work" / f"plimsoll-{NAME}--ext4" / "mnt"
    assert f"ext4 on local: the test files in {mounted}/" in listed
    assert plimsoll("clean", lab_yml).returncode == 0
    assert left_of(NAME) == []
    assert left_in(lab_yml.parent / "work") == []


def test_what_fails_is_told_and_the_runs_go_on_and_it_is_measured_later(
    lab_yml: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "bin" / "sysbench"
    broken.parent.mkdir()
    broken.write_text('#!/bin/sh\ncase " $* " in *" run "*) echo "FATAL: no such luck"; exit 1;; esac\n')
    broken.chmod(0o755)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{broken.parent}:{path}"
    try:
        done = plimsoll("run", lab_yml, "--json")
    finally:
        os.environ["PATH"] = path
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert result["not_done"] == []
    assert len(result["finished"]) == 3
    assert result["not_measured"].keys() == {"ext4", "zfs"}
    assert "zfs: fileio failed: seqwr with 1 thread" in done.stderr
    assert "FATAL: no such luck" in result["not_measured"]["zfs"]
    assert left_of(NAME) == []
    again = plimsoll("run", "--resume", lab_yml, "--json")
    assert again.returncode == 0, again.stderr
    is_whole(lab_yml)


def test_an_experiment_can_be_extended_by_it(lab_yml: Path) -> None:
    text = lab_yml.read_text()
    lab_yml.write_text("".join(line for line in text.splitlines(True) if not line.startswith("fileio")))
    assert plimsoll("run", lab_yml).returncode == 0
    assert cells_of(lab_yml) == []
    lab_yml.write_text(text)
    done = plimsoll("run", "--extend", lab_yml, "--json")
    assert done.returncode == 0, done.stderr
    assert "fileio: there in the file, none in this experiment: taken over." in done.stderr
    assert len(json.loads(done.stdout)["finished"]) == 3
    is_whole(lab_yml)
