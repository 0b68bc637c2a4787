"""`plimsoll fileio` for real, small: cells by sysbench, fsyncs by fio against fio's words; what stays."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plimsoll.rundir.volumes import Engine
from tests.support.labs import plimsoll
from tests.support.programs import LONGEST_S, ROOT, need, wait_for

OTHER_ENGINES = [one for one in Engine.__args__ if one != "psync"]  # type: ignore[attr-defined]
SYSBENCH = ("--file-size", "64M", "--threads", "2", "--no-progress")
FSYNC = ("--fsync", "--file-size", "16M", "--no-progress")
KEEPING = """#!/bin/sh
{real} "$@" >{kept}/output || {{ cat {kept}/output; exit 1; }}
cat {kept}/output
mv {kept}/output {kept}/"$(ls {kept} | wc -l)"
"""


@pytest.fixture(autouse=True)
def programs() -> None:
    for program in ("sysbench", "fio"):
        need(program)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What is measured, whose name a shell would read."""
    found = tmp_path / "a disk: 'quoted' $(id)"
    found.mkdir()
    return found


def words(folder: Path, *options: str) -> list[str | Path]:
    return ["fileio", folder, "--out", folder.parent / "cells", *options]


def measure(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return plimsoll(*words(folder, *options))


def begun(folder: Path, *options: str) -> "subprocess.Popen[str]":
    """A measurement that is in the middle."""
    running = subprocess.Popen(
        [sys.executable, "-m", "plimsoll", *words(folder, *options)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Python takes no Ctrl-C where its parent ignored it, as a job in the background does.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    cells = folder.parent / "cells"
    wait_for("it is in the middle", lambda: cells.exists() and any(folder.iterdir()))
    return running


def test_every_test_is_measured_and_nothing_is_left(folder: Path) -> None:
    done = measure(folder, *SYSBENCH, "--time-s", "1", "--json")
    assert done.returncode == 0, done.stderr
    cells = json.loads(done.stdout)["cells"]
    assert [cell["test"] for cell in cells] == ["rndrd", "seqrd", "rndwr", "seqwr", "rndrw"]
    for cell in cells:
        assert cell["volume"] == str(folder)
        assert cell["reads"] + cell["writes"] > 0
        assert abs(cell["reads"] + cell["writes"] + cell["fsyncs"] - cell["events"]) <= 2
        assert abs(cell["throughput_mib_per_s"] * 64 - cell["iops"]) <= 1.0, "64 blocks a MiB"
    assert list(folder.iterdir()) == []


# Each: its options, and what a kill leaves in the folder.
PROGRAMS = pytest.mark.parametrize(
    ("options", "left"),
    [
        pytest.param(
            (*SYSBENCH, "--time-s", "2", "--tests", "rndrd,seqrd,rndwr"), "plimsoll-fileio", id="sysbench"
        ),
        pytest.param(
            (*FSYNC, "--time-s", "3", "--block-sizes", "4K", "--threads", "2"),
            "plimsoll-fsync",
            id="fio",
            marks=pytest.mark.slow,
        ),
    ],
)


@PROGRAMS
def test_ctrl_c_removes_the_files_and_resume_goes_on(
    folder: Path, options: tuple[str, ...], left: str
) -> None:
    running = begun(folder, *options)
    os.kill(running.pid, signal.SIGINT)
    text = running.communicate(timeout=LONGEST_S)[1]
    assert running.returncode == 1, text
    assert "continue with --resume" in text
    assert list(folder.iterdir()) == [], f"{left} is gone"

    cells = folder.parent / "cells"
    kept = cells.read_text(encoding="utf-8")
    is_resumed(folder, options)
    assert cells.read_text(encoding="utf-8").startswith(kept), "what was finished stays as it is"


@PROGRAMS
def test_kill_leaves_files_that_resume_removes(folder: Path, options: tuple[str, ...], left: str) -> None:
    running = begun(folder, *options)
    running.kill()
    running.communicate(timeout=LONGEST_S)
    assert [path.name for path in folder.iterdir()] == [left]
    is_resumed(folder, options)


def is_resumed(folder: Path, options: tuple[str, ...]) -> None:
    again = measure(folder, *options)
    assert again.returncode == 2, "nothing is measured twice unasked"
    assert "use --resume to continue" in again.stderr
    done = measure(folder, *options, "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["cells"]) == 3
    assert list(folder.iterdir()) == []


# fsyncs, by fio.


def kept(directory: Path) -> tuple[Path, Path]:
    """A folder whose fio keeps what it prints in the other, a file for each cell: 1, 2, …"""
    programs, outputs = directory / "bin", directory / "kept"
    for made in (programs, outputs):
        made.mkdir()
    program = programs / "fio"
    program.write_text(KEEPING.format(real=need("fio"), kept=outputs))
    program.chmod(0o755)
    return programs, outputs


def is_right(cell: dict[str, Any], job: dict[str, Any]) -> None:
    """Holds a cell against fio's own document, by other means than the program's."""
    synced, written = job["sync"]["lat_ns"], job["write"]
    assert (cell["syncs"], cell["writes"]) == (synced["N"], written["total_ios"])
    assert cell["writes"] - cell["threads"] <= cell["syncs"] <= cell["writes"], "a call after each write"
    for name, fios, fewest in (
        ("p50", "50.000000", 2),
        ("p99", "99.000000", 100),
        ("p99.9", "99.900000", 1000),
    ):
        for found, told in ((cell["sync_ms"], synced), (cell["write_ms"], written["clat_ns"])):
            expected = min(told["percentile"][fios], told["max"]) / 1e6 if told["N"] >= fewest else None
            assert found[name] == pytest.approx(expected)
    assert cell["sync_ms"]["max"] == pytest.approx(synced["max"] / 1e6)
    assert job["job options"]["ioengine"] == cell["engine"]
    assert job["job options"]["bs"] == str(cell["block_bytes"])
    assert job["job options"][cell["call"]] == "1"
    assert job["read"]["total_ios"] == 0


def test_the_recipe_and_each_call_are_measured_and_nothing_is_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, outputs = kept(folder.parent)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    options = ["--threads", "1,2", "--block-sizes", "4K", "--tests", "seqwr,rndwr", "--time-s", "1", "--json"]
    done = measure(folder, *FSYNC, *options)
    assert done.returncode == 0, done.stderr
    cells = json.loads(done.stdout)["cells"]
    assert [(cell["preset"], cell["call"], cell["test"], cell["threads"]) for cell in cells] == [
        ("etcd", "fdatasync", "seqwr", 1),
        *(
            (None, call, test, n)
            for call in ("fdatasync", "fsync")
            for test in ("seqwr", "rndwr")
            for n in (1, 2)
        ),
    ]
    for at, cell in enumerate(cells, 1):
        assert cell["volume"] == str(folder)
        is_right(cell, json.loads((outputs / str(at)).read_text())["jobs"][0])
    assert cells[0]["writes"] == (22 << 20) // 2300, "the recipe, whole"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "engine", ["psync", *(pytest.param(one, marks=pytest.mark.slow) for one in OTHER_ENGINES)]
)
def test_each_engine_counts_its_calls(engine: str, folder: Path) -> None:
    options = ("--block-sizes", "4K", "--threads", "1", "--time-s", "1", "--direct", "--json")
    done = measure(folder, *FSYNC, "--engines", engine, *options)
    if "Operation not permitted" in done.stderr and engine == "io_uring":
        pytest.skip("this kernel lets nobody use io_uring")
    assert done.returncode == 0, done.stderr
    for cell in json.loads(done.stdout)["cells"][1:]:
        assert cell["engine"] == engine and cell["direct"]
        assert cell["writes"] - 1 <= cell["syncs"] <= cell["writes"]
        assert cell["sync_ms"]["p50"] > 0


def test_the_recipe_alone_and_both_programs_share_a_file_and_a_report(folder: Path) -> None:
    sysbench = ("--file-size", "64M", "--threads", "1", "--tests", "rndwr", "--time-s", "1")
    for options in (sysbench, ("--fsync", "--preset", "etcd")):
        done = measure(folder, "--no-progress", "--volume", "here", *options)
        assert done.returncode == 0, done.stderr
    assert "etcd" in done.stdout and "p99.9 (ms)" in done.stdout
    cells = (folder.parent / "cells").rename(folder.parent / "cells.jsonl")
    report = plimsoll("report", cells, "--json")
    assert report.returncode == 0, report.stderr
    found = json.loads(report.stdout)
    assert (len(found["fileio"]), len(found["fsync"])) == (1, 1)
    page = (folder.parent / "report.html").read_text()
    assert "What an fsync takes" in page and "The volumes, cell by cell" in page


def test_what_fio_refuses_is_told_in_its_words(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = plimsoll("fileio", "/proc", *FSYNC, "--threads", "1", "--out", folder.parent / "c")
    assert done.returncode == 2
    assert "cannot make /proc/plimsoll-fsync" in done.stderr
    says = "fio: pid=1, err=28/file:filesetup.c: No space left on device"
    broken = folder.parent / "bin" / "fio"
    broken.parent.mkdir()
    broken.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{broken.parent}:{os.environ['PATH']}")
    done = measure(folder, *FSYNC, "--threads", "1")
    assert done.returncode == 2
    assert f"fio ended with status 1: {says}" in done.stderr
    assert list(folder.iterdir()) == []
