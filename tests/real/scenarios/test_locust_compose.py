"""examples/locust-workers: Compose reads it, and its commands, run on this host, end with one merged run."""

import os
import shlex
import shutil
import subprocess
import threading
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.programs import LONGEST_S, ROOT, free_port, need
from tests.support.scenario import LOCUST, Ran

COMPOSE = ROOT / "examples" / "locust-workers" / "compose.yml"


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
    ran = config(**variables)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = yaml.safe_load(ran.stdout)["services"]
    return found


def words(service: dict[str, Any]) -> list[str]:
    command = service["command"]
    return shlex.split(command) if isinstance(command, str) else command


def test_without_a_target_nothing_starts() -> None:
    ran = config()
    assert ran.returncode != 0
    assert "say which site" in ran.stderr


def test_passwords_come_from_the_environment_and_are_on_no_command_line() -> None:
    account = {"PLIMSOLL_USER": "author", "PLIMSOLL_PASSWORD": "not for others"}
    for service in services(TARGET="http://clone.example", **account).values():
        assert service["environment"] == account
        assert "not for others" not in " ".join(words(service))


@pytest.fixture
def site(tmp_path: Path) -> Any:
    """A site with one file."""
    folder = tmp_path / "www" / "static"
    folder.mkdir(parents=True)
    (folder / "download.tar.gz").write_bytes(bytes(100_000))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder.parent))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_its_commands_make_one_run_of_two_workers(site: str, tmp_path: Path) -> None:
    out, port = tmp_path / "results", str(free_port())
    found = services(TARGET=site, SCENARIO="download", USERS="2", ITERATIONS="6")
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
    workers = [start("worker", "--master-port", port) for _ in range(2)]
    try:
        said = master.communicate(timeout=LONGEST_S)[0]
    finally:
        for process in (master, *workers):
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
            process.communicate()
    run = Ran(master.returncode, said, (out / "latest").resolve())
    assert run.code == 0, run.said
    assert run.facts["status"] == "complete"
    assert run.iterations == {1, 2, 3, 4, 5, 6}
    assert run.steps == {"download": 6}
    assert sorted(path.name for path in (run.directory / "shards").iterdir()) == ["0", "1"]
