"""Locust: a run that may not begin, cannot begin, or loses a worker; and examples/locust-workers. No site."""

import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Lock
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from tests.support.programs import LONGEST_S, ROOT, free_port, listens, need, wait_for
from tests.support.scenario import (
    LOCUST,
    ended,
    ran,
    run_with_workers,
    start_headless,
    start_locust,
    start_master,
    workers,
)
from tests.support.servers import Reply, serve_http

FORM = b'<form name="loginform" method="post"><input name="log"><input name="pwd"></form>'
WRONG = FORM + b'<div id="login_error">The password you entered is incorrect.</div>'
ONE_FILE = ("--path", "/file")
LEAVE = "--i-may-change-this-site"
COMPOSE = ROOT / "examples" / "locust-workers" / "compose.yml"


class Site:
    """A site whose passwords are all wrong, and whose other pages have some bytes."""

    def __init__(self) -> None:
        self.url, self.passwords, self._lock = "", 0, Lock()
        self.answers = Event()
        self.answers.set()

    def reply(self, method: str, path: str, _: bytes) -> Reply:
        if method == "POST":
            with self._lock:
                self.passwords += 1
            return 200, WRONG
        self.answers.wait()
        return 200, FORM if "wp-login" in path else bytes(1 << 16)


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()
    with serve_http(found.reply) as found.url:
        yield found


def test_a_refusal_ends_locust(site: Site, tmp_path: Path) -> None:
    run = ended(start_headless("save_article", site.url, tmp_path), tmp_path)
    assert run.code == 2, run.said
    assert "is not listed under clones" in run.said
    assert "Traceback" not in run.said
    assert not list(tmp_path.glob("*-save-article")), "no empty run directory is left"


def test_the_web_page_says_why_a_test_may_not_begin(site: Site, tmp_path: Path) -> None:
    port = free_port()
    locust = start_locust(
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
    with serve_http(Site().reply, certificate) as url:
        run = ran("download", url, tmp_path / "out", *ONE_FILE, "--iterations", "2")
    assert run.code == 1, run.said
    assert {kind for _, kind in run.errors} == {"tls_failed"}
    assert "Traceback" not in run.said


def test_a_wrong_password_is_sent_once(site: Site, tmp_path: Path) -> None:
    run = ran("save-article", site.url, tmp_path, "--users", "5", "--iterations", "10")
    assert run.code == 1, run.said
    assert site.passwords == 1, "a plug-in that locks accounts out counts each of them"
    assert "Traceback" not in run.said
    assert run.errors == [("log in", "login_failed")]


def test_a_wrong_password_shows_before_photographs_are_made(site: Site, tmp_path: Path) -> None:
    store = tmp_path / "photographs"
    run = ran("upload-images", site.url, tmp_path / "out", "--cache", str(store), "--iterations", "2")
    assert run.code == 2, run.said
    assert "nobody can log in: log in: login failed: The password you entered is incorrect." in run.said
    assert not list(store.glob("**/*.jpg"))
    assert site.passwords == 1


def test_a_wrong_password_fails_a_run_with_workers(site: Site, tmp_path: Path) -> None:
    run = run_with_workers("save_article", site.url, tmp_path, "--users", "4", "--spawn-rate", "10", LEAVE)
    assert run.code == 1, run.said
    assert run.facts["status"] == "failed", run.said
    assert site.passwords <= 2, "each worker tries it once at most"
    assert "Traceback" not in run.said


def test_when_the_time_of_locust_is_up_the_workers_hand_in_what_they_did(site: Site, tmp_path: Path) -> None:
    load = ("-t", "5s", "--users", "2", "--iterations", "1000000")
    run = run_with_workers("download", site.url, tmp_path, *ONE_FILE, *load)
    assert "are elsewhere" not in run.said
    assert run.facts["status"] == "interrupted", run.said
    assert run.summary["requests"]["sent"] == sum(run.steps.values()) > 0


def test_workers_end_when_their_time_is_up(site: Site, tmp_path: Path) -> None:
    load = ("--duration-s", "2", "--users", "2", "--spawn-rate", "10")
    run = run_with_workers("download", site.url, tmp_path, *ONE_FILE, *load)
    assert run.code == 0, run.said
    assert run.facts["status"] == "complete"
    clients = {number % 2 for number in run.iterations}
    assert clients == {0, 1}, "both workers had a share"
    assert run.facts["load"]["settings"]["users"] == 2, "the load is that of all workers"
    assert (tmp_path / "latest" / "shards" / "1").is_dir()
    shards = [json.loads(path.read_text()) for path in (tmp_path / "latest" / "shards").glob("*/run.json")]
    assert {one["load"]["digest"] for one in shards} == {run.facts["load"]["digest"]}


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
    site: Site, impatient: str, tmp_path: Path, killed: int
) -> None:
    load = ("--users", "2", "--spawn-rate", "10", "--duration-s", "10")
    master, port = start_master(impatient, site.url, tmp_path, *ONE_FILE, *load)
    with workers("download", port) as both:
        wait_for("both have records on the disk", lambda: len(_with_records(tmp_path)) == 2)
        for worker in both[:killed]:
            worker.kill()
        run = ended(master, tmp_path)
    assert run.code == 1, run.said
    assert run.said.count("is lost") == killed
    assert run.facts["status"] in ("interrupted", "failed")


@pytest.mark.slow
def test_a_worker_that_was_frozen_does_its_share_when_it_is_back(
    site: Site, impatient: str, tmp_path: Path
) -> None:
    load = ("--users", "2", "--spawn-rate", "10", "--iterations", "3000")
    master, port = start_master(impatient, site.url, tmp_path, *ONE_FILE, *load)
    with workers("download", port) as both:
        wait_for("both have records on the disk", lambda: len(_with_records(tmp_path)) == 2)
        site.answers.clear()  # so that the other is not done meanwhile
        both[0].send_signal(signal.SIGSTOP)
        said = _read_until(master, "is lost")
        both[0].send_signal(signal.SIGCONT)
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
def test_a_worker_that_says_twice_that_it_is_ready_keeps_its_user(site: Site, tmp_path: Path) -> None:
    """It does where the answer takes more than five seconds, and Locust deals the users anew."""
    master, port = start_master(
        "download", site.url, tmp_path, *ONE_FILE, "--users", "2", "--spawn-rate", "1", "--iterations", "2000"
    )
    script = tmp_path / "twice.py"
    script.write_text(TWICE)
    with workers(str(script.with_suffix("")), port):
        run = ended(master, tmp_path)
    assert run.code == 0, run.said
    assert len(run.iterations) == 2000


# examples/locust-workers: Compose reads it, and its commands, run on this host, end with one merged run.


def compose() -> list[str]:
    """Compose v2 where it is, else docker-compose."""
    docker = shutil.which("docker")
    if docker and subprocess.run([docker, "compose", "version"], capture_output=True).returncode == 0:
        return [docker, "compose"]
    return [need("docker-compose")]


def config(**variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*compose(), "-f", str(COMPOSE), "config"],
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **variables},
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
    )


def services(**variables: str) -> dict[str, Any]:
    done = config(**variables)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = yaml.safe_load(done.stdout)["services"]
    return found


def words(service: dict[str, Any]) -> list[str]:
    command = service["command"]
    return shlex.split(command) if isinstance(command, str) else command


def test_without_a_target_nothing_starts() -> None:
    done = config()
    assert done.returncode != 0
    assert "say which site" in done.stderr


def test_passwords_come_from_the_environment_and_are_on_no_command_line() -> None:
    known = {"PLIMSOLL_USER": "author", "PLIMSOLL_PASSWORD": "not for others"}
    for service in services(TARGET="http://clone.example", **known).values():
        assert service["environment"] == known
        assert "not for others" not in " ".join(words(service))


def test_its_commands_make_one_run_of_two_workers(site: Site, tmp_path: Path) -> None:
    out, port = tmp_path / "results", str(free_port())
    found = services(TARGET=site.url, SCENARIO="download", USERS="2", ITERATIONS="6")
    here = {"/results": str(out), "master": "127.0.0.1"}

    def start(name: str, *further: str) -> "subprocess.Popen[str]":
        command = [here.get(word, word) for word in words(found[name])]
        return subprocess.Popen(
            [str(LOCUST), *command, *further],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    master = start("master", "--master-bind-port", port)
    with start("worker", "--master-port", port) as one, start("worker", "--master-port", port) as other:
        run = ended(master, out)
        for worker in (one, other):
            worker.kill()
    assert run.code == 0, run.said
    assert run.facts["status"] == "complete"
    assert run.iterations == {1, 2, 3, 4, 5, 6}
    assert run.steps == {"download": 6}
    assert sorted(path.name for path in (run.directory / "shards").iterdir()) == ["0", "1"]
