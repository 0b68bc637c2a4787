"""What Locust does with a run that may not begin, cannot begin, or loses a worker. No site is needed."""

import json
import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any
from urllib.request import urlopen

import pytest

from tests.support.programs import LONGEST_S, ROOT, free_port, listens, need, wait_for
from tests.support.scenario import LOCUST, account, ended, ran

FORM = b'<form name="loginform" method="post"><input name="log"><input name="pwd"></form>'
WRONG = FORM + b'<div id="login_error">The password you entered is incorrect.</div>'
ONE_FILE = ("--path", "/file")
LEAVE = "--i-may-change-this-site"


class _Site:
    """A site whose passwords are all wrong, and whose other pages have some bytes."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.passwords, self._lock = 0, Lock()
        self.answers = Event()
        self.answers.set()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def _answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                site.answers.wait()
                self._answer(FORM if "wp-login" in self.path else bytes(1 << 16))

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                with site._lock:
                    site.passwords += 1
                self._answer(WRONG)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http{'s' if certificate else ''}://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def end(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site() -> Iterator[_Site]:
    server = _Site()
    yield server
    server.end()


def _locust(scenario: str, *args: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [str(LOCUST), "-f", str(ROOT / "scenarios" / f"{scenario}.py"), *args],
        env=account(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _headless(scenario: str, site: _Site, out: Path, *further: str) -> "subprocess.Popen[str]":
    return _locust(scenario, "--headless", "--only-summary", "--host", site.url, "--out", str(out), *further)


@contextmanager
def _workers(scenario: str, port: int) -> Iterator[list["subprocess.Popen[str]"]]:
    """Two of them; their output is nobody's."""
    with ExitStack() as stack:
        workers = []
        for _ in range(2):
            worker = _locust(scenario, "--worker", "--master-port", str(port))
            stack.callback(worker.communicate)
            stack.callback(worker.kill)
            Thread(target=worker.stdout.read if worker.stdout else str, daemon=True).start()
            workers.append(worker)
        yield workers


def _with_workers(
    scenario: str, site: _Site, out: Path, *further: str
) -> tuple["subprocess.Popen[str]", int]:
    """A master that waits for two workers, and its port."""
    port = free_port()
    where = ("--master", "--master-bind-port", str(port), "--expect-workers", "2")
    return _headless(scenario, site, out, *where, *further), port


def test_a_refusal_ends_locust(site: _Site, tmp_path: Path) -> None:
    run = ended(_headless("save_article", site, tmp_path), tmp_path)
    assert run.code == 2, run.said
    assert "is not listed under clones" in run.said
    assert "Traceback" not in run.said
    assert not list(tmp_path.glob("*-save-article")), "no empty run directory is left"


def test_the_web_page_says_why_a_test_may_not_begin(site: _Site, tmp_path: Path) -> None:
    port = free_port()
    locust = _locust(
        "save_article", "--host", site.url, "--out", str(tmp_path), "--web-port", str(port), "--users", "1"
    )
    try:
        wait_for("the web page listens", lambda: listens(port))

        def asked(further: str = "") -> dict[str, Any]:
            form = f"user_count=1&spawn_rate=1&host={site.url}{further}".encode()
            with urlopen(f"http://127.0.0.1:{port}/swarm", form) as answer:
                said: dict[str, Any] = json.load(answer)
                return said

        refused = asked()
        assert refused["success"] is False
        assert "is not listed under clones" in refused["message"]
        wrong = asked("&iterations=none&i_may_change_this_site=true")
        assert (wrong["success"], wrong["message"].partition(":")[0]) == (False, "--iterations")
        assert asked("&i_may_change_this_site=true")["success"] is True, "the page is still there"
    finally:
        locust.terminate()
        said = locust.communicate(timeout=LONGEST_S)[0]
    assert "Traceback" not in said


def test_a_certificate_that_nobody_vouches_for_is_a_failed_step(tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.pem"
    making = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -keyout key.pem -out cert.pem"
    subprocess.run([need("openssl"), *making.split()], cwd=tmp_path, check=True, capture_output=True)
    certificate.write_text((tmp_path / "key.pem").read_text() + (tmp_path / "cert.pem").read_text())
    server = _Site(certificate)
    try:
        run = ran("download", server.url, tmp_path / "out", *ONE_FILE, "--iterations", "2")
    finally:
        server.end()
    assert run.code == 1, run.said
    assert {kind for _, kind in run.errors} == {"tls_failed"}
    assert "Traceback" not in run.said


def test_a_wrong_password_is_sent_once(site: _Site, tmp_path: Path) -> None:
    run = ran("save-article", site.url, tmp_path, "--users", "5", "--iterations", "10")
    assert run.code == 1, run.said
    assert site.passwords == 1, "a plug-in that locks accounts out counts each of them"
    assert "Traceback" not in run.said
    assert run.errors == [("log in", "login_failed")]


def test_a_wrong_password_shows_before_photographs_are_made(site: _Site, tmp_path: Path) -> None:
    store = tmp_path / "photographs"
    run = ran("upload-images", site.url, tmp_path / "out", "--cache", str(store), "--iterations", "2")
    assert run.code == 2, run.said
    assert "nobody can log in: log in: login failed: The password you entered is incorrect." in run.said
    assert not list(store.glob("**/*.jpg"))
    assert site.passwords == 1


def test_a_wrong_password_fails_a_run_with_workers(site: _Site, tmp_path: Path) -> None:
    master, port = _with_workers("save_article", site, tmp_path, "--users", "4", "--spawn-rate", "10", LEAVE)
    with _workers("save_article", port):
        run = ended(master, tmp_path)
    assert run.code == 1, run.said
    assert run.facts["status"] == "failed", run.said
    assert site.passwords <= 2, "each worker tries it once at most"
    assert "Traceback" not in run.said


def test_when_the_time_of_locust_is_up_the_workers_hand_in_what_they_did(site: _Site, tmp_path: Path) -> None:
    master, port = _with_workers(
        "download", site, tmp_path, *ONE_FILE, "-t", "5s", "--users", "2", "--iterations", "1000000"
    )
    with _workers("download", port):
        run = ended(master, tmp_path)
    assert "are elsewhere" not in run.said
    assert run.facts["status"] == "interrupted", run.said
    assert run.summary["requests"]["sent"] == sum(run.steps.values()) > 0


def _with_records(out: Path) -> list[Path]:
    """The shards' records that hold more than their header."""
    return [file for file in out.glob("*/shards/*/requests.npy") if file.stat().st_size > 512]


@pytest.fixture
def impatient(tmp_path: Path) -> str:
    """A download whose master takes workers for lost that are silent for three seconds."""
    script = tmp_path / "impatient.py"
    script.write_text(
        "from locust import runners\n"
        "from plimsoll.scenarios.download import *\n"
        "runners.HEARTBEAT_LIVENESS = 2\n"
    )
    return str(script.with_suffix(""))


@pytest.mark.slow
@pytest.mark.parametrize("killed", [1, 2], ids=["the other goes on", "nobody goes on"])
def test_workers_that_are_killed_do_not_hold_the_master(
    site: _Site, impatient: str, tmp_path: Path, killed: int
) -> None:
    load = ("--users", "2", "--spawn-rate", "10", "--duration-s", "10")
    master, port = _with_workers(impatient, site, tmp_path, *ONE_FILE, *load)
    with _workers("download", port) as workers:
        wait_for("both have records on the disk", lambda: len(_with_records(tmp_path)) == 2)
        for worker in workers[:killed]:
            worker.kill()
        run = ended(master, tmp_path)
    assert run.code == 1, run.said
    assert run.said.count("is lost") == killed
    assert run.facts["status"] in ("interrupted", "failed")


@pytest.mark.slow
def test_a_worker_that_was_frozen_does_its_share_when_it_is_back(
    site: _Site, impatient: str, tmp_path: Path
) -> None:
    load = ("--users", "2", "--spawn-rate", "10", "--iterations", "3000")
    master, port = _with_workers(impatient, site, tmp_path, *ONE_FILE, *load)
    with _workers("download", port) as workers:
        wait_for("both have records on the disk", lambda: len(_with_records(tmp_path)) == 2)
        site.answers.clear()  # so that the other is not done meanwhile
        workers[0].send_signal(signal.SIGSTOP)
        said = _read_until(master, "is lost")
        workers[0].send_signal(signal.SIGCONT)
        site.answers.set()
        run = ended(master, tmp_path)
    assert run.code == 0, said + run.said
    assert len(run.iterations) == 3000


def _read_until(process: "subprocess.Popen[str]", word: str) -> str:
    """What a process says up to the line with a word in it."""
    assert process.stdout
    said = ""
    for line in process.stdout:
        said += line
        if word in line:
            return said
    raise AssertionError(said)


TWICE = """
from locust import __version__, events
from locust.rpc import Message
from plimsoll.scenarios.download import *

@events.init.add_listener
def say_it_again_once(environment, **_):
    def again(**_):
        environment.events.spawning_complete.remove_listener(again)
        runner = environment.runner
        runner.client.send(Message("client_ready", __version__, runner.client_id))
    environment.events.spawning_complete.add_listener(again)
"""


@pytest.mark.slow
def test_a_worker_that_says_twice_that_it_is_ready_keeps_its_user(site: _Site, tmp_path: Path) -> None:
    """It does where the answer takes more than five seconds, and Locust deals the users anew."""
    master, port = _with_workers(
        "download", site, tmp_path, *ONE_FILE, "--users", "2", "--spawn-rate", "1", "--iterations", "2000"
    )
    script = tmp_path / "twice.py"
    script.write_text(TWICE)
    with _workers(str(script.with_suffix("")), port):
        run = ended(master, tmp_path)
    assert run.code == 0, run.said
    assert len(run.iterations) == 2000
