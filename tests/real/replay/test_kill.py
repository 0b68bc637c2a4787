"""kill -9 in a replay at 5,000 requests a second: what was recorded stays, and can be reported."""

import json
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from tests.support.programs import REPLAY, listens, need, wait_for
from tests.support.servers import Nginx

HEADER_BYTES = 512


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
    wait_for(
        "ten thousand are recorded", lambda: file.exists() and file.stat().st_size > HEADER_BYTES + 680_000
    )
    grew_at, size = time.time(), file.stat().st_size
    wait_for("more are", lambda: file.stat().st_size > size)
    process.kill()
    process.wait()
    nginx.stop()

    recorded = (file.stat().st_size - HEADER_BYTES) // 68
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
