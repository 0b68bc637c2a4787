"""Who replays whom is the same here and in Go; `python -m benchmarks.sharing` on small logs, and its page."""

import base64
import json
import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sharing.__main__ import main
from benchmarks.sharing.arrivals import read_logs
from benchmarks.sharing.share import client_of, even_bounds, owners, place
from tests.support.programs import ROOT

TABLE = ROOT / "replay" / "traffic" / "testdata" / "shares.json"
CLIENTS: list[dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", CLIENTS, ids=lambda row: str(row["client"]))
def test_clients_are_numbered_and_shared_as_the_table_of_the_replay_has_it(row: dict[str, Any]) -> None:
    address, agent = base64.b64decode(row["address_base64"]), base64.b64decode(row["user_agent_base64"])
    assert client_of(address, agent) == row["client"]
    assert row["owners"]
    for sequence, owner in row["owners"].items():
        bounds = [Fraction(bound) for bound in sequence.split(",")]
        assert owners(np.array([row["client"]], dtype=np.uint32), bounds).tolist() == [owner]


def test_the_table_has_a_client_for_each_of_four_instances() -> None:
    assert {row["owners"]["0,1/4,1/2,3/4,1"] for row in CLIENTS} == {0, 1, 2, 3}


numbers = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=50)


@given(numbers, st.integers(1, 100))
def test_shares_are_a_partition(clients: list[int], instances: int) -> None:
    owner = owners(np.array(clients, dtype=np.uint32), even_bounds(instances))
    assert ((owner >= 0) & (owner < instances)).all()
    by_client: dict[int, set[int]] = {}
    for client, instance in zip(clients, owner, strict=True):
        by_client.setdefault(client, set()).add(int(instance))
    assert all(len(instances_of) == 1 for instances_of in by_client.values())


@given(st.lists(st.integers(0, 2**32 - 1), unique=True, max_size=50))
def test_no_two_clients_have_the_same_place(clients: list[int]) -> None:
    assert len(np.unique(place(np.array(clients, dtype=np.uint32)))) == len(clients)


@given(numbers, st.integers(1, 20))
def test_twice_as_many_instances_cut_each_share_in_two(clients: list[int], instances: int) -> None:
    array = np.array(clients, dtype=np.uint32)
    fewer, more = owners(array, even_bounds(instances)), owners(array, even_bounds(2 * instances))
    assert (more // 2 == fewer).all()


# The program, on small logs that the real `replay parse` reads.


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
