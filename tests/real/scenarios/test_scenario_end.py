"""How a scenario ends before its iterations are done: its time is up, or a signal came. No site is needed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.paths import ROOT
from tests.support.programs import free_port
from tests.support.scenario import LOCUST, LONGEST_S, Ran, ended, ran, started, wait_for_step

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


def numbers(run: Ran) -> list[int]:
    return sorted(run.iterations)


def test_a_run_whose_time_is_up_is_complete(server: str, tmp_path: Path) -> None:
    run = ran("download", server, tmp_path, *PATH, "--duration-s", "1", "--users", "3")
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
        "import sys, json; from pathlib import Path; from scenarios.download import Download, Settings\n"
        "from scenarios.running.headless import run_headless\n"
        "settings = Settings(target='http://127.0.0.1:9', out=Path(sys.argv[1]), duration_s=1e-9)\n"
        "run_headless(Download, settings, lambda *_: None, print)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, check=True, timeout=LONGEST_S
    )
    facts = json.loads((tmp_path / "latest" / "run.json").read_text())
    assert (facts["status"], facts["reason"]) == ("failed", "no iteration began within 1e-09 s")
