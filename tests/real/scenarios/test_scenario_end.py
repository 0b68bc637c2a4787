"""How a scenario ends before its iterations are done: its time is up, or a signal came. No site is needed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

import pytest

from tests.support.programs import LONGEST_S, ROOT, free_port
from tests.support.scenario import LOCUST, Ran, ended, ran, started, wait_for_step

PATH = ("--path", "/file")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A server with one file of a megabyte."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "file").write_bytes(bytes(1 << 20))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class _Mortal:
    """A server that is killed when it has answered so many requests, and comes back after a pause, if any."""

    def __init__(self, answers: int, pause_s: float | None) -> None:
        self._left, self._pause_s, self._lock = answers, pause_s, Lock()
        self._server = self._begun(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _begun(self, address: tuple[str, int]) -> ThreadingHTTPServer:
        mortal = self

        class Handler(_Quiet):
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


def test_workers_end_when_their_time_is_up(server: str, tmp_path: Path) -> None:
    port = str(free_port())
    locust = [str(LOCUST), "-f", str(ROOT / "scenarios" / "download.py")]
    where = ("--host", server, "--out", str(tmp_path), *PATH)
    what = ("--headless", "--only-summary", "--duration-s", "2", "--users", "2", "--spawn-rate", "10")
    master = subprocess.Popen(
        [*locust, *where, *what, "--master", "--master-bind-port", port, "--expect-workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    workers = [
        subprocess.Popen(
            [*locust, "--worker", "--master-port", port],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    try:
        run = ended(master, tmp_path)
    finally:
        for worker in workers:
            with suppress(subprocess.TimeoutExpired):
                worker.wait(30)
            worker.kill()
            worker.wait()
    assert run.code == 0, run.said
    assert run.facts["status"] == "complete"
    clients = {number % 2 for number in run.iterations}
    assert clients == {0, 1}, "both workers had a share"
    assert run.facts["load"]["settings"]["users"] == 2, "the load is that of all workers"
    assert (tmp_path / "latest" / "shards" / "1").is_dir()
    shards = [json.loads(path.read_text()) for path in (tmp_path / "latest" / "shards").glob("*/run.json")]
    assert {one["load"]["digest"] for one in shards} == {run.facts["load"]["digest"]}


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
        "from plimsoll.scenarios.download import Download, Settings\n"
        "from plimsoll.scenarios.running.locustfile import run_headless\n"
        "settings = Settings(target='http://127.0.0.1:9', out=Path(sys.argv[1]), duration_s=1e-9)\n"
        "run_headless(Download, settings, lambda *_: None, print)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, check=True, timeout=LONGEST_S
    )
    facts = json.loads((tmp_path / "latest" / "run.json").read_text())
    assert (facts["status"], facts["reason"]) == ("failed", "no iteration began within 1e-09 s")
