"""What the scripts of `make site` do before, without, and after Docker."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gevent.server import StreamServer

from tests.support.programs import ROOT, need
from tests.support.servers import serve_wsgi

SITE = ROOT / "site"
_TOOLS = ("sh", "dirname", "id", "timeout", "cat")


def test_a_disk_that_is_too_small_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    settings = {"BACKEND_DIR": str(tmp_path / "a" / "site"), "SITE_SIZE": "large", "SITE_LARGE_GIB": "999999"}
    done = subprocess.run(
        [SITE / "up"], env=os.environ | settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "a site of size large needs 1250001 GiB" in done.stderr
    assert list(tmp_path.iterdir()) == []


def machine(folder: Path, **programs: str) -> str:
    """A PATH with these programs of Docker, each a script, and with what scripts of the shell need."""
    folder.mkdir()
    for tool in _TOOLS:
        found = shutil.which(tool)
        assert found
        (folder / tool).symlink_to(found)
    for name, script in programs.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return str(folder)


GOOD = "exit 0"
NO_PLUGIN = '[ "$1" != compose ]'
NO_DAEMON = '[ "$1" = info ] && { echo "Cannot connect to the Docker daemon" >&2; exit 1; }; exit 0'
NOT_MINE = '[ "$1" = info ] && { echo "permission denied while trying to connect" >&2; exit 1; }; exit 0'
NEITHER = "exit 1"


def daemon_of(says: str) -> str:
    """The `docker` of a daemon that says this of itself."""
    return f'[ "$1" != info ] || echo "{says}"'


PLAIN = daemon_of("Debian GNU/Linux 12 (bookworm) [name=seccomp,profile=default]")
ROOTLESS = daemon_of("Debian GNU/Linux 12 (bookworm) [name=seccomp,profile=builtin name=rootless]")
REMAPPED = daemon_of("Debian GNU/Linux 12 (bookworm) [name=seccomp,profile=builtin name=userns]")
DESKTOP = daemon_of("Docker Desktop [name=seccomp,profile=unconfined]")


NEEDS: list[tuple[str, dict[str, str], list[str]]] = [
    ("all is there", {"docker": GOOD}, []),
    ("Compose is the older program", {"docker": NO_PLUGIN, "docker_compose": GOOD}, []),
    ("a daemon as most are", {"docker": PLAIN}, []),
    ("a daemon without root", {"docker": ROOTLESS}, ["this machine's own network"]),
    ("a daemon whose root is another user", {"docker": REMAPPED}, ["this machine's own network"]),
    ("a daemon in a machine of its own", {"docker": DESKTOP}, ["this machine's own network"]),
    ("nothing is there", {}, ["Docker is not installed", "Compose is not installed"]),
    ("Compose alone", {"docker_compose": GOOD}, ["Docker is not installed"]),
    ("no Compose", {"docker": NO_PLUGIN}, ["Compose is not installed"]),
    ("the daemon sleeps", {"docker": NO_DAEMON}, ["systemctl start docker"]),
    ("somebody else's daemon", {"docker": NOT_MINE}, ["usermod -aG docker"]),
    (
        "neither daemon nor Compose",
        {"docker": NEITHER},
        ["systemctl start docker", "Compose is not installed"],
    ),
]


@pytest.mark.parametrize(("why", "programs", "says"), NEEDS, ids=[row[0] for row in NEEDS])
def test_all_that_is_missing_is_said_at_once(
    tmp_path: Path, why: str, programs: dict[str, str], says: list[str]
) -> None:
    path = machine(tmp_path / "bin", **programs)
    done = subprocess.run([SITE / "needs"], env={"PATH": path}, capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    assert done.returncode == (2 if says else 0), why
    assert len(lines) == len(says), "and nothing that is not missing"
    for line, words in zip(lines, says, strict=True):
        assert line.startswith("make site: ")
        assert words in line


def test_make_site_says_what_is_missing_before_it_builds_anything(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    shutil.copy(ROOT / "Makefile", clone)
    shutil.copytree(SITE, clone / "site")
    shutil.copytree(ROOT / "tools", clone / "tools", ignore=shutil.ignore_patterns("node_modules"))
    path = machine(tmp_path / "bin")
    for tool in ("make", "sed", "python3", "grep"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or tool)
    done = subprocess.run(
        [need("make"), "-C", clone, "site"],
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "Docker is not installed" in done.stderr
    assert "Installing" not in done.stderr
    assert not (clone / ".venv").exists()


def _serves(url: str) -> int:
    return subprocess.run([sys.executable, SITE / "serves", url], check=False, timeout=60).returncode


def test_the_site_is_up_when_the_published_port_serves_a_whole_page() -> None:
    def answer(environ: dict[str, Any], start: Any) -> list[bytes]:
        path = environ["PATH_INFO"]
        start("503 Down" if path == "/down" else "200 OK", [])
        return [b"half a pa" if path == "/half" else b"<html></html>"]

    with serve_wsgi(answer) as url:
        assert [_serves(url + path) for path in ("/", "/down", "/half")] == [0, 1, 1]
    assert _serves(url + "/") == 1, "nobody listens"


def test_a_port_that_takes_connections_and_drops_them_does_not_serve() -> None:
    server = StreamServer(("127.0.0.1", 0), lambda connection, _: connection.close())
    server.start()
    try:
        assert _serves(f"http://127.0.0.1:{server.server_port}/") == 1, "as a dying proxy of Docker's"
    finally:
        server.stop()
