"""A replay that is killed or interrupted: nothing that was written is lost, and it can be reported."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from plimsoll.rundir.records import HEADER_BYTES, RECORD
from tests.support.programs import LONGEST_S, REPLAY, ROOT, listens, need, wait_for
from tests.support.servers import Nginx


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "load.log"
    line = '192.0.2.{} - - [20/Nov/2026:10:00:{:02} +0000] "GET /{} HTTP/1.1" 200 1024 "-" "UA {}"\n'
    path.write_text("".join(line.format(i % 50 + 1, i // 5000, i % 500, i % 7) for i in range(60_000)))
    return path


def test_kill_loses_nothing_from_before_the_records_last_grew(
    nginx: Nginx, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "results"
    command = [
        need(REPLAY),
        "run",
        str(log),
        "--target",
        nginx.url,
        "--rate",
        "5000",
        "--out",
        str(out),
        "--quiet",
    ]
    process = subprocess.Popen(command)
    run = out / "latest"
    file = run / "requests.npy"
    enough = HEADER_BYTES + 10_000 * RECORD.itemsize
    wait_for("ten thousand are recorded", lambda: file.exists() and file.stat().st_size > enough)
    grew_at, size = time.time(), file.stat().st_size
    wait_for("more are", lambda: file.stat().st_size > size)
    process.kill()
    process.wait()
    nginx.stop()

    recorded = (file.stat().st_size - HEADER_BYTES) // RECORD.itemsize
    by_numpy = len(np.load(file, mmap_mode="r"))
    instants = [float(line.split("\t", 1)[0]) for line in nginx.log.read_text().splitlines()]
    # Each loop writes what it has recorded once a second.
    served_before = sum(instant < grew_at - 1 for instant in instants)
    assert served_before >= 1000
    assert served_before <= by_numpy <= recorded <= len(instants)
    assert json.loads((run / "run.json").read_text())["status"] == "running"
    assert not (run / "summary.json").exists()

    report = subprocess.run(
        [sys.executable, "-m", "plimsoll", "report", str(run), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.returncode == 0, report.stderr
    assert (run / "report.html").stat().st_size > 100_000


def test_the_embedded_origin_dies_with_a_killed_replay(log: Path, tmp_path: Path) -> None:
    command = [need(REPLAY), "run", str(log), "--out", str(tmp_path / "results"), "--rate", "100", "--quiet"]
    process = subprocess.Popen(command)
    run = tmp_path / "results" / "latest" / "run.json"
    wait_for("it has written the origin's files", run.exists)
    process.kill()
    process.wait()
    port = urlsplit(json.loads(run.read_text())["target"]["url"]).port
    assert port
    wait_for("nobody listens", lambda: not listens(port))


def interrupted(command: list[str], times: int, run: Path) -> tuple[int, str]:
    """Runs a replay and interrupts it once it has recorded something; its exit code and what it said."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    records = run / "requests.npy"
    wait_for("something is recorded", lambda: records.exists() and records.stat().st_size > HEADER_BYTES)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    _, text = process.communicate(timeout=LONGEST_S)
    return process.returncode, text


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_keeps_everything(nginx: Nginx, tmp_path: Path, times: int) -> None:
    run = tmp_path / "latest"
    command = [
        need(REPLAY),
        "run",
        str(ROOT / "examples" / "access.log"),
        "--target",
        nginx.url,
        "--out",
        str(tmp_path),
        "--quiet",
    ]
    code, said = interrupted(command, times, run)
    assert code == 1
    assert "interrupted" in said
    facts = json.loads((run / "run.json").read_text())
    summary = json.loads((run / "summary.json").read_text())
    assert facts["status"] == "interrupted"
    assert facts["reason"]
    requests = summary["requests"]
    assert len(np.load(run / "requests.npy")) == requests["sent"] > 0
    assert requests["unsent"] > 0
    if times == 1:  # the rest of the log was counted to its end
        assert requests["total"] == 5958
    assert requests["total"] == requests["sent"] + requests["unsent"] + sum(requests["skipped"].values())
