"""`plimsoll init`, as it is called: by flags, on a terminal, and against real sites and logs."""

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll.cli import main
from tests.support.programs import ROOT

LOG = str(ROOT / "examples" / "access.log")


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def sites() -> Iterator[str]:
    """Serve two sites, and return their base URLs as an answer."""
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), _Site) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield " ".join(f"http://127.0.0.1:{server.server_port}" for server in servers)
    for server in servers:
        server.shutdown()
        server.server_close()


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["init", *words])


def flags(folder: Path, **others: str) -> list[str]:
    said = {"log": LOG, "site": "own", "disks": f"old={folder}", "duration": "2h", "limits": "10%"} | others
    return ["--out", str(folder), *(f"--{key}={value}" for key, value in said.items())]


def test_what_it_writes_is_accepted_by_the_whole_check(
    sites: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(*flags(tmp_path, site=sites, disks="old new", limits="10% 800ms"))
    assert done.exit_code == 0, done.output
    assert f"plimsoll check {tmp_path / 'lab.yml'}\n" in done.output
    assert "--baseline old --candidate new --gates" in done.output
    monkeypatch.setattr("plimsoll.lab.experiment.machines.LOCK_PATH", str(tmp_path / "nobody's lock"))
    monkeypatch.chdir(tmp_path)
    checked = CliRunner().invoke(main, ["check", str(tmp_path / "lab.yml"), "--json"])
    assert checked.exit_code == 0, checked.output


@pytest.mark.parametrize("words", [[], ["--no-probe"]])
def test_clones_of_our_own_site(words: list[str], tmp_path: Path) -> None:
    done = run(*flags(tmp_path), *words, "--json")
    assert done.exit_code == 0, done.output
    printed = json.loads(done.output)
    assert (printed["lab"], printed["gates"]) == (str(tmp_path / "lab.yml"), str(tmp_path / "gates.yml"))
    assert 3600 < printed["about_s"] <= 7200
    checked = CliRunner().invoke(main, ["check", "--no-probe", printed["lab"]])
    assert checked.exit_code == 0, checked.output


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    assert run(*flags(tmp_path)).exit_code == 0
    former = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done = run(*flags(tmp_path, limits="20%"))
    assert done.exit_code == 2
    assert "lab.yml and " in done.output
    assert "exist, and nothing is overwritten: choose another --out" in done.output
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == former
    (tmp_path / "lab.yml").unlink()
    (tmp_path / "lab.yml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "gates.yml").unlink()
    assert run(*flags(tmp_path)).exit_code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lab.yml"]


def test_a_folder_that_cannot_be_written_into_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(*flags(tmp_path), "--out", str(tmp_path / "file" / "below"))
    assert done.exit_code == 2
    assert "cannot be written" in done.output


def test_every_wrong_answer_is_reported_at_once(tmp_path: Path) -> None:
    wrong = flags(
        tmp_path, log="/nowhere.log", site="http://127.0.0.1:9", disks="A", duration="soon", limits="fast"
    )
    done = run(*wrong, "--name", "My Lab")
    assert done.exit_code == 2
    for says in (
        "--name: My Lab: must be lower-case",
        "--log: ",
        "--site: http://127.0.0.1:9: does not serve the site: ",
        "--duration: must be a duration",
        "--limits: fast: is not a limit",
    ):
        assert f"Error: {says}" in done.output
    assert list(tmp_path.iterdir()) == []


def test_too_short_a_time_says_what_would_do(tmp_path: Path) -> None:
    done = run(*flags(tmp_path, duration="1m"))
    assert done.exit_code == 2
    assert "--duration: 4 runs on each disk" in done.output
    assert "give at least" in done.output


def test_without_a_terminal_all_missing_flags_are_named(tmp_path: Path) -> None:
    done = run("--out", str(tmp_path), "--site", "own")
    assert done.exit_code == 2
    for flag in ("--log", "--disks", "--duration", "--limits"):
        assert f"Error: {flag} is missing, and there is no terminal to ask on: " in done.output
    assert "--site is missing" not in done.output


def test_a_log_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cat.jpg").write_bytes(b"\xff\xd8 no log\n" * 50)
    done = run(*flags(tmp_path, log=str(tmp_path / "cat.jpg")))
    assert done.exit_code == 2
    assert "no known format matches" in done.output


def test_it_asks_on_a_terminal_until_an_answer_is_right(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    answers = ["/nowhere.log", LOG, "own", f"old={tmp_path}", "1m", "", "very", ""]
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "plimsoll", "init", "--out", str(folder)]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, text=True) as asked:
        os.close(theirs)
        os.write(ours, ("\n".join(answers) + "\n").encode())
        shown = b""
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not read:
                break
            shown += read
        assert asked.wait(timeout=120) == 0, shown.decode()
    os.close(ours)
    text = shown.decode()
    for says in ("1/5 Which log?", "5/5 Which limits?", "give at least", "very: is not a limit", "Wrote "):
        assert says in text
    assert {path.name for path in folder.iterdir()} == {"lab.yml", "gates.yml"}
