"""fsyncs by fio for real, small: the command's cells against what fio says itself, and what stays behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plimsoll.rundir.volumes import Engine
from tests.support.programs import LONGEST_S, ROOT, need, wait_for

OTHER_ENGINES = [one for one in Engine.__args__ if one != "psync"]  # type: ignore[attr-defined]
COMMAND = [sys.executable, "-m", "plimsoll", "fileio"]
SMALL = ["--fsync", "--file-size", "16M", "--no-progress"]
KEEPING = """#!/bin/sh
{real} "$@" >{kept}/output || {{ cat {kept}/output; exit 1; }}
cat {kept}/output
mv {kept}/output {kept}/"$(ls {kept} | wc -l)"
"""


def measure(folder: Path, *options: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    need("fio")
    return subprocess.run(
        [*COMMAND, str(folder), *SMALL, "--out", str(folder.parent / "cells"), *options],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"} if path else None,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


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


def test_the_recipe_and_each_call_are_measured_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "a disk: 'quoted' $(id)"
    folder.mkdir()
    programs, outputs = kept(tmp_path)
    options = ["--threads", "1,2", "--block-sizes", "4K", "--tests", "seqwr,rndwr", "--time-s", "1", "--json"]
    done = measure(folder, *options, path=programs)
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
def test_each_engine_counts_its_calls(engine: str, tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    options = [
        "--engines",
        engine,
        "--block-sizes",
        "4K",
        "--threads",
        "1",
        "--time-s",
        "1",
        "--direct",
        "--json",
    ]
    done = measure(folder, *options)
    if "Operation not permitted" in done.stderr and engine == "io_uring":
        pytest.skip("this kernel lets nobody use io_uring")
    assert done.returncode == 0, done.stderr
    for cell in json.loads(done.stdout)["cells"][1:]:
        assert cell["engine"] == engine and cell["direct"]
        assert cell["writes"] - 1 <= cell["syncs"] <= cell["writes"]
        assert cell["sync_ms"]["p50"] > 0


def test_the_recipe_alone_and_both_programs_share_a_file_and_a_report(tmp_path: Path) -> None:
    need("sysbench")
    folder = tmp_path / "disk"
    folder.mkdir()
    out = str(tmp_path / "cells.jsonl")
    own = [str(folder), "--no-progress", "--volume", "here", "--out", out]
    sysbench = ["--file-size", "64M", "--threads", "1", "--tests", "rndwr", "--time-s", "1"]
    for options in (sysbench, ["--fsync", "--preset", "etcd"]):
        done = subprocess.run(
            [*COMMAND, *own, *options], cwd=ROOT, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stderr
    assert "etcd" in done.stdout and "p99.9 (ms)" in done.stdout
    report = [sys.executable, "-m", "plimsoll", "report", out, "--json"]
    done = subprocess.run(report, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (len(found["fileio"]), len(found["fsync"])) == (1, 1)
    page = (tmp_path / "report.html").read_text()
    assert "What an fsync takes" in page and "The volumes, cell by cell" in page


def test_what_fio_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    done = measure(Path("/proc"), "--threads", "1", "--out", str(tmp_path / "c"))
    assert done.returncode == 2
    assert "cannot make /proc/plimsoll-fsync" in done.stderr
    broken = tmp_path / "bin" / "fio"
    broken.parent.mkdir()
    broken.write_text(
        "#!/bin/sh\necho 'fio: pid=1, err=28/file:filesetup.c: No space left on device' >&2\nexit 1\n"
    )
    broken.chmod(0o755)
    folder = tmp_path / "disk"
    folder.mkdir()
    done = measure(folder, "--threads", "1", path=broken.parent)
    assert done.returncode == 2
    assert (
        "fio ended with status 1: fio: pid=1, err=28/file:filesetup.c: No space left on device" in done.stderr
    )
    assert list(folder.iterdir()) == []


def begun(folder: Path, cells: Path) -> "subprocess.Popen[str]":
    need("fio")
    options = [*SMALL, "--out", str(cells), "--time-s", "3", "--block-sizes", "4K", "--threads", "2"]
    running = subprocess.Popen(
        [*COMMAND, str(folder), *options],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Python takes no Ctrl-C where its parent ignored it, as a job in the background does.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wait_for("it is in the middle", lambda: cells.exists() and any(folder.iterdir()))
    return running


@pytest.mark.slow
def test_ctrl_c_removes_the_files_and_kill_leaves_them_to_resume(tmp_path: Path) -> None:
    folder, cells = tmp_path / "disk", tmp_path / "cells"
    folder.mkdir()
    running = begun(folder, cells)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=LONGEST_S)[1]
    assert running.returncode == 1, said
    assert "continue with --resume" in said
    assert list(folder.iterdir()) == []

    cells.unlink()
    running = begun(folder, cells)
    running.kill()
    running.communicate(timeout=LONGEST_S)
    assert [path.name for path in folder.iterdir()] == ["plimsoll-fsync"]
    options = ["--time-s", "3", "--block-sizes", "4K", "--threads", "2"]
    again = measure(folder, *options)
    assert again.returncode == 2 and "use --resume to continue" in again.stderr, (
        "nothing is measured twice unasked"
    )
    done = measure(folder, *options, "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["cells"]) == 3
    assert list(folder.iterdir()) == []
