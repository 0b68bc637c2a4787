"""`python -m benchmarks.sharing` on small logs, which the real `replay parse` reads; and its page."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from benchmarks.sharing.__main__ import main
from benchmarks.sharing.arrivals import read_logs
from tests.support.programs import ROOT

REPLAY = ROOT / "bin" / "replay"
SCALING = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


def line(address: str, second: int, method: str = "GET", agent: str = "Mozilla/5.0") -> str:
    stamp = f"22/Nov/2026:10:{second // 60:02}:{second % 60:02} +0000"
    return f'{address} - - [{stamp}] "{method} /page HTTP/1.1" 200 12 "-" "{agent}"\n'


@pytest.fixture(autouse=True)
def _built() -> None:
    if not os.access(REPLAY, os.X_OK):
        pytest.skip("bin/replay is not built: make build")


def asked(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.sharing", *words], capture_output=True, text=True, cwd=ROOT
    )


def figures(*words: str) -> dict[str, Any]:
    ran = asked("--json", *words)
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def test_what_a_replay_would_not_send_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(
        line("192.0.2.1", 0)
        + line("192.0.2.2", 1, "POST")
        + line("192.0.2.1", 2, "HEAD")
        + line("192.0.2.3", 9)
    )
    got = figures(str(log))
    assert got["requests"] == 3
    assert got["crowd"]["clients"] == 2
    assert [split["instances"] for split in got["splits"]] == [2, 4, 8, 16, 64]


def test_clients_are_those_of_a_replay(tmp_path: Path) -> None:
    """Also those whose user agent is none, is no UTF-8, or has what logs or JSON escape."""
    log = tmp_path / "access.log"
    agents = [b"caf\xe9", "né <&>".encode(), b"-", b"\\x22quoted\\x22", b"Mozilla/5.0 (X11)"]
    lines = [
        line(f"192.0.2.{i}", i, agent="AGENT").encode().replace(b"AGENT", a) for i, a in enumerate(agents)
    ]
    log.write_bytes(b"".join(lines))
    command = [str(REPLAY), "run", str(log), "--speed", "max", "--quiet", "--out", str(tmp_path / "results")]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    replayed = np.load(tmp_path / "results" / "latest" / "requests.npy")["client"]
    read = read_logs(REPLAY, [str(log)], None, 1).clients
    assert np.sort(read).tolist() == np.sort(replayed).tolist()
    assert len(np.unique(read)) == len(agents)


def test_the_same_seed_gives_the_same_figures_and_copies_multiply(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("".join(line(f"192.0.2.{i * i % 97}", i // 3) for i in range(600)))
    words = (str(log), "--copies", "5", "--instances", "3", "--utilisation", "0.4", "--request-us", "80")
    one = figures(*words)
    assert one == figures(*words)
    assert one != figures(*words, "--seed", "2")
    assert one["requests"] == 3000
    (split,) = one["splits"]
    assert split["lag"][0]["worst_ms"] >= split["lag"][0]["even_ms"]
    text = asked(*words).stdout
    assert "3,000 requests" in text
    assert f"{split['evenness']['largest_to_mean']:.2f}" in text


@pytest.mark.parametrize(
    ("says", "content", "words", "want"),
    [
        ("a log that nobody can read", "nothing of the kind\n" * 3, (), "no known format"),
        ("a log of one request", line("192.0.2.1", 0), (), "fewer than two"),
        ("an instance count of none", line("192.0.2.1", 0), ("--instances", "0"), "--instances"),
        ("a utilisation of one", line("192.0.2.1", 0), ("--utilisation", "1"), "--utilisation"),
    ],
)
def test_refusals(says: str, content: str, words: tuple[str, ...], want: str, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(content)
    ran = asked(str(log), *words)
    assert ran.returncode == 2, says
    assert want in ran.stderr, says
    assert "Traceback" not in ran.stderr


def test_every_option_is_documented_and_the_help_has_an_example() -> None:
    for parameter in main.params:
        if isinstance(parameter, click.Option):
            assert f"`{parameter.opts[-1] if parameter.name != 'log_format' else '--format'}" in SCALING
    assert re.search(r"Example:\n\s+python -m benchmarks.sharing ", asked("--help").stdout)
