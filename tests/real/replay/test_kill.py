"""kill -9 in a replay at 5,000 requests a second: what was recorded stays, and can be reported."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from tests.support.programs import REPLAY, Nginx, need


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "load.log"
    line = '192.0.2.{} - - [20/Nov/2026:10:00:{:02} +0000] "GET /{} HTTP/1.1" 200 1024 "-" "UA {}"\n'
    path.write_text("".join(line.format(i % 50 + 1, i // 5000, i % 500, i % 7) for i in range(60_000)))
    return path


def test_kill_loses_no_more_than_the_last_second(nginx: Nginx, log: Path, tmp_path: Path) -> None:
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
    time.sleep(4.3)
    process.kill()
    process.wait()
    killed_at = time.time()
    time.sleep(0.5)
    nginx.stop()

    run = out / "latest"
    records = (run / "requests.npy").stat().st_size - 512
    recorded = records // 68
    by_numpy = len(np.load(run / "requests.npy", mmap_mode="r"))
    instants = [float(line.split("\t", 1)[0]) for line in nginx.log.read_text().splitlines()]
    # One second between flushes, and what one flush and the kill take on a busy machine.
    served_before = sum(instant < killed_at - 1.5 for instant in instants)
    assert served_before > 1000, "the replay did not get under way"
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
    until = time.monotonic() + 120  # it writes the origin's files first
    while not run.exists() and time.monotonic() < until:
        time.sleep(0.1)
    process.kill()
    process.wait()
    listening = json.loads(run.read_text())["target"]["url"]
    time.sleep(2)
    address = urlsplit(listening)
    with socket.socket() as probe:
        assert probe.connect_ex((address.hostname, address.port)) != 0, "it listens on"
