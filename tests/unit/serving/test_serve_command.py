"""The command `plimsoll serve`: what it refuses, and that it says where it is."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from plimsoll.cli import main
from tests.support.rundir import records, write_run


@pytest.mark.parametrize(
    ("says", "arguments", "environment", "told"),
    [
        ("no folder", ["none"], {}, "there is no such folder"),
        ("all the world, without a token", [".", "--listen", "0.0.0.0:0"], {}, "which takes a token"),
        ("a name, without a token", [".", "--listen", "lab.example.org:0"], {}, "which takes a token"),
        ("no address", [".", "--listen", "8090"], {}, "give HOST:PORT"),
        ("a short token", ["."], {"PLIMSOLL_SERVE_TOKEN": "short"}, "16 or more letters and digits"),
        ("no token in a file", [".", "--token-file", "none"], {}, "none cannot be read"),
        (
            "an address of another machine",
            [".", "--listen", "192.0.2.1:0"],
            {"PLIMSOLL_SERVE_TOKEN": "x" * 16},
            "cannot be listened on",
        ),
    ],
)
def test_what_it_refuses(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    says: str,
    arguments: list[str],
    environment: dict[str, str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("plimsoll.serving.command._give_way", lambda: None)
    done = CliRunner().invoke(main, ["serve", *arguments], env=environment)
    assert done.exit_code == 2, says
    assert told in done.output
    assert "x" * 16 not in done.output


def test_a_port_that_is_taken_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.serving.command._give_way", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = CliRunner().invoke(main, ["serve", str(tmp_path), "--listen", address])
    assert done.exit_code == 2
    assert "cannot be listened on: Address already in use" in done.output


def test_it_answers_until_it_is_interrupted(tmp_path: Path) -> None:
    write_run(tmp_path / "run", records(10), backend="nvme")
    command = [sys.executable, "-m", "plimsoll", "serve", str(tmp_path), "--listen", "127.0.0.1:0"]
    environment = {name: value for name, value in os.environ.items() if name != "PLIMSOLL_SERVE_TOKEN"}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment | {"PYTHONUNBUFFERED": "1", "XDG_CACHE_HOME": str(tmp_path / ".caches")},
    ) as process:
        assert process.stdout
        url = process.stdout.readline().rpartition(" ")[2].strip()
        assert "replay: nvme" in requests.get(url, timeout=60).text
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19, "every other program goes first"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert (process.returncode, said) == (0, "")
    (index,) = (tmp_path / ".caches" / "plimsoll" / "serve").iterdir()
    assert str(tmp_path) in index.read_text()
