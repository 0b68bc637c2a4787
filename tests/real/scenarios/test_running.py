"""A scenario until its end: shown while it lasts, its time up, interrupted, its target dead. No site."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

import pytest
import requests

from tests.support.programs import LONGEST_S, REPLAY, ROOT, free_port, need, wait_for
from tests.support.rundir import load_records
from tests.support.scenario import Ran, ended, interrupt, ran, started, wait_for_step
from tests.support.servers import of_files, serve_http

PATH = ("--path", "/file")
_REQUESTS = re.compile(r'^plimsoll_requests_total\{backend="([^"]*)",.*scenario="([^"]*)",.*\} (\d+)$', re.M)


@pytest.fixture
def server() -> Iterator[str]:
    """A server with one file of a megabyte."""
    need(REPLAY)
    with serve_http(of_files({"/file": bytes(1 << 20)})) as url:
        yield url


class _Mortal:
    """A server that is killed when it has answered so many requests, and comes back after a pause, if any."""

    def __init__(self, answers: int, pause_s: float | None) -> None:
        self._left, self._pause_s, self._lock = answers, pause_s, Lock()
        self._server = self._begun(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _begun(self, address: tuple[str, int]) -> ThreadingHTTPServer:
        mortal = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Length", "5")
                self.end_headers()
                self.wfile.write(b"hello")
                mortal.answered()

        server = ThreadingHTTPServer(address, Handler)
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return server

    def answered(self) -> None:
        with self._lock:
            self._left -= 1
            dies = self._left == 0
        if dies:
            Thread(target=self._die, daemon=True).start()

    def _die(self) -> None:
        address = self._server.server_address[:2]
        self.end()
        if self._pause_s is not None:
            time.sleep(self._pause_s)
            self._server = self._begun((str(address[0]), int(address[1])))

    def end(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.mark.parametrize(
    ("pause_s", "status"),
    [(None, "failed"), pytest.param(1.0, "complete", marks=pytest.mark.slow)],
    ids=["killed in the run", "back after a second"],
)
def test_a_run_whose_target_died_is_not_complete(tmp_path: Path, pause_s: float | None, status: str) -> None:
    mortal = _Mortal(30, pause_s)
    try:
        load = ("--rate", "10", "--duration-s", "8", "--pages-per-visit", "1", "--think-s", "0", "--no-files")
        run = ran("visitors", mortal.url, tmp_path, *load)
    finally:
        if pause_s is not None:
            mortal.end()
    assert run.facts["status"] == status, run.said
    assert (run.facts["reason"] or "").startswith("the target gave no answer after ") == (status == "failed")
    assert run.summary["requests"]["errors"] >= 5
    assert run.code == 1 or status == "complete", run.said
    own = json.loads((run.directory / "k6-summary.json").read_text())["metrics"]
    assert "p(99.9)" in own["http_req_duration"], "k6's own summary has the percentile that all is about"


def numbers(run: Ran) -> list[int]:
    return sorted(run.iterations)


def test_a_run_whose_time_is_up_is_complete(server: str, tmp_path: Path) -> None:
    run = ran("download", server, tmp_path, *PATH, "--duration-s", "3", "--users", "3")
    assert run.code == 0, run.said
    assert run.facts["status"] == "complete"
    assert run.facts["scenario_settings"]["iterations"] is None
    assert numbers(run) == list(range(1, len(run.iterations) + 1)), "each once, none left out"
    assert len(run.iterations) > 3


def test_the_iterations_may_be_done_before_the_time_is_up(server: str, tmp_path: Path) -> None:
    run = ran("download", server, tmp_path, *PATH, "--duration-s", "600", "--iterations", "4")
    assert run.code == 0, run.said
    assert (run.facts["status"], numbers(run)) == ("complete", [1, 2, 3, 4])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_as_interrupted(server: str, tmp_path: Path, number: signal.Signals) -> None:
    process = started("download", server, tmp_path, *PATH, "--duration-s", "600")
    wait_for_step(process, tmp_path, "download", 3)
    process.send_signal(number)
    run = ended(process, tmp_path)
    assert run.code == 1, run.said
    assert run.facts["status"] == "interrupted"
    assert "iterations were done" in run.facts["reason"]
    assert run.summary["requests"]["sent"] == sum(run.steps.values())


def test_nothing_that_began_in_time_is_a_failed_run(tmp_path: Path) -> None:
    """Logging in, or starting, took longer than there was time."""
    code = (
        "import sys, json; from pathlib import Path\n"
        "from plimsoll.scenarios.download import Download, DownloadSettings\n"
        "from plimsoll.scenarios.running.locustfile import run_headless\n"
        "settings = DownloadSettings(target='http://127.0.0.1:9', out=Path(sys.argv[1]), duration_s=1e-9)\n"
        "run_headless(Download, settings, lambda *_: None, print)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, check=True, timeout=LONGEST_S
    )
    facts = json.loads((tmp_path / "latest" / "run.json").read_text())
    assert (facts["status"], facts["reason"]) == ("failed", "no iteration began within 1e-09 s")


# It is scraped while it lasts, and what shows it is gone with it.


def scraped(port: int) -> str:
    """What is shown now; nothing while nobody shows it."""
    try:
        return requests.get(f"http://127.0.0.1:{port}/metrics", timeout=LONGEST_S).text
    except requests.ConnectionError:
        return ""


def counted(text: str) -> dict[tuple[str, str], int]:
    """Requests by backend and scenario."""
    found: dict[tuple[str, str], int] = {}
    for backend, scenario, number in _REQUESTS.findall(text):
        found[backend, scenario] = found.get((backend, scenario), 0) + int(number)
    return found


def running(server: str, out: Path, port: int) -> "subprocess.Popen[str]":
    """A download that is shown, and has been seen."""
    flags = (*PATH, "--iterations", "1000000", "--metrics", f"127.0.0.1:{port}")
    process = started("download", server, out, *flags)
    wait_for("a request is shown", lambda: process.poll() is not None or bool(counted(scraped(port))))
    assert process.poll() is None, process.communicate()[0]
    return process


def is_free(port: int) -> bool:
    return not scraped(port)


def test_a_scenario_is_shown_while_it_lasts(server: str, tmp_path: Path) -> None:
    out, port = tmp_path / "out", free_port()
    flags = (*PATH, "--duration-s", "6", "--iterations", "100000", "--backend", "rust")
    process = started("download", server, out, *flags, "--metrics", f"127.0.0.1:{port}")
    seen: list[int] = []
    under_way = False
    while process.poll() is None:
        text = scraped(port)
        seen += counted(text).values()
        under_way |= 'plimsoll_run_info{backend="rust",run="' in text
        time.sleep(0.2)
    run = ended(process, out)
    assert run.code == 0, run.said
    assert f"Live figures: http://127.0.0.1:{port}/metrics" in run.said
    assert under_way
    assert seen == sorted(seen)
    assert len(set(seen)) >= 2, "it grows"
    assert seen[-1] <= len(load_records(run.directory))
    assert is_free(port)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_nothing_goes_on_once_it_was_ended(server: str, tmp_path: Path, by: signal.Signals) -> None:
    out, port = tmp_path / "out", free_port()
    process = running(server, out, port)
    if by == signal.SIGINT:
        interrupt(process)
    else:
        os.kill(process.pid, by)
    process.communicate(timeout=LONGEST_S)
    wait_for("nobody listens", lambda: is_free(port))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--metrics", "0.0.0.0:9464"], "--metrics-remote"),
        (["--metrics", "here"], "--metrics"),
        (["--metrics-remote"], "--metrics-remote is only for --metrics"),
    ],
    ids=["an address of all", "no address", "half of it"],
)
def test_what_is_wrong_is_said_before_anything_is_begun(
    server: str, tmp_path: Path, flags: list[str], says: str
) -> None:
    out = tmp_path / "out"
    run = ran("download", server, out, *PATH, *flags)
    assert run.code == 2, run.said
    assert says in run.said
    assert not list(out.glob("*"))


def test_a_port_that_is_taken_is_said_before_anything_is_begun(server: str, tmp_path: Path) -> None:
    out, taken = tmp_path / "out", server.removeprefix("http://")
    run = ran("download", server, out, *PATH, "--metrics", taken)
    assert run.code == 2, run.said
    assert taken in run.said
    assert not list(out.glob("*"))
