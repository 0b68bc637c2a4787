"""A scenario that the lab lets begin later: it waits with its first iteration until it is told."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from plimsoll.rundir.read import RunDirectory, read_facts
from plimsoll.scenarios.running.settings import BEGIN_VARIABLE
from tests.support.programs import ROOT


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def started(site: str, out: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "plimsoll", "scenario", "download", "--target", site, "--path", "/x"]
    return subprocess.Popen(
        [*command, "--out", str(out), *words, "--no-progress"],
        cwd=ROOT,
        env=os.environ | {BEGIN_VARIABLE: str(out / "begin")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def begun(out: Path) -> Path:
    """Wait until its clock runs, and return its run directory."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for path in out.glob("2*/run.json"):
            return path.parent
        time.sleep(0.05)
    raise AssertionError("it did not begin")


def test_its_clock_runs_and_nothing_is_sent_until_it_is_told(site: str, tmp_path: Path) -> None:
    with started(site, tmp_path, "--iterations", "3", "--users", "3") as process:
        run = begun(tmp_path)
        time.sleep(0.5)
        assert process.poll() is None
        assert (run / "requests.npy").stat().st_size <= 1024, "no record yet"
        told_ns = time.time_ns()
        (tmp_path / "begin").touch()
        assert process.wait(60) == 0
    found = RunDirectory.open(run)
    assert found.facts.started_at is not None
    first_ns = min(int(block["due_ns"].min()) for block in found.requests.blocks())
    assert found.facts.started_at.timestamp() * 1e9 + first_ns >= told_ns - 1e6


def test_one_that_is_never_told_ends_when_its_time_is_up(site: str, tmp_path: Path) -> None:
    with started(site, tmp_path, "--duration-s", "0.5") as process:
        assert process.wait(60) == 1
    assert read_facts(begun(tmp_path)).reason == "no iteration began within 0.5 s"


def test_one_that_waits_ends_when_it_is_asked_to(site: str, tmp_path: Path) -> None:
    with started(site, tmp_path, "--iterations", "3") as process:
        run = begun(tmp_path)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1
    assert read_facts(run).status == "interrupted"
