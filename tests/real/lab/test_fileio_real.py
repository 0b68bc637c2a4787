"""sysbench for real, small: the command's table against what sysbench says itself."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.programs import LONGEST_S, ROOT, need, wait_for

COMMAND = [sys.executable, "-c", "from plimsoll.lab.fileio import fileio; fileio()"]
SMALL = ["--file-size", "64M", "--threads", "2", "--no-progress"]


def measure(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    need("sysbench")
    return subprocess.run(
        [*COMMAND, str(folder), *SMALL, "--out", str(folder.parent / "cells"), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_every_test_is_measured_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "a disk; 'quoted' $(id)"
    folder.mkdir()
    done = measure(folder, "--time-s", "1", "--json")
    assert done.returncode == 0, done.stderr
    cells = json.loads(done.stdout)["cells"]
    assert [cell["test"] for cell in cells] == ["rndrd", "seqrd", "rndwr", "seqwr", "rndrw"]
    for cell in cells:
        assert cell["volume"] == str(folder)
        assert cell["reads"] + cell["writes"] > 0
        assert abs(cell["reads"] + cell["writes"] + cell["fsyncs"] - cell["events"]) <= 2
        assert abs(cell["throughput_mib_per_s"] * 64 - cell["iops"]) <= 1.0, "64 blocks a MiB"
    assert list(folder.iterdir()) == []


def test_ctrl_c_removes_the_files_and_resume_goes_on(tmp_path: Path) -> None:
    need("sysbench")
    folder = tmp_path / "disk"
    folder.mkdir()
    cells = tmp_path / "cells"
    options = [*SMALL, "--out", str(cells), "--time-s", "2", "--tests", "rndrd,seqrd,rndwr"]
    running = subprocess.Popen(
        [*COMMAND, str(folder), *options],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Python takes no Ctrl-C where its parent ignored it, as a job in the background does.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wait_for("it is in the middle", lambda: cells.exists() and any(folder.iterdir()))
    os.kill(running.pid, signal.SIGINT)
    said = running.communicate(timeout=LONGEST_S)[1]
    assert running.returncode == 1, said
    assert "continue with --resume" in said
    assert list(folder.iterdir()) == []

    kept = cells.read_text(encoding="utf-8")
    again = measure(folder, "--time-s", "2", "--tests", "rndrd,seqrd,rndwr")
    assert again.returncode and "use --resume to continue" in again.stderr, (
        "nothing is measured twice unasked"
    )
    done = measure(folder, "--time-s", "2", "--tests", "rndrd,seqrd,rndwr", "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["cells"]) == 3
    assert cells.read_text(encoding="utf-8").startswith(kept), "what was finished stays as it is"


def test_kill_leaves_files_that_resume_removes(tmp_path: Path) -> None:
    need("sysbench")
    folder = tmp_path / "disk"
    folder.mkdir()
    cells = tmp_path / "cells"
    options = [*SMALL, "--out", str(cells), "--time-s", "1", "--tests", "rndrd,seqrd"]
    running = subprocess.Popen([*COMMAND, str(folder), *options], cwd=ROOT, stderr=subprocess.DEVNULL)
    wait_for("it is in the middle", lambda: cells.exists() and any(folder.iterdir()))
    running.kill()
    running.wait(LONGEST_S)
    assert [path.name for path in folder.iterdir()] == ["plimsoll-fileio"]
    done = measure(folder, "--time-s", "1", "--tests", "rndrd,seqrd", "--resume")
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == []
