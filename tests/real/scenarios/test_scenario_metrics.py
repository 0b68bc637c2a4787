"""A scenario is scraped while it lasts, and what shows it is gone with it."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import requests

from tests.support.programs import LONGEST_S, REPLAY, free_port, need, wait_for
from tests.support.rundir import load_records
from tests.support.scenario import ended, interrupt, ran, started

_REQUESTS = re.compile(r'^plimsoll_requests_total\{backend="([^"]*)",.*scenario="([^"]*)",.*\} (\d+)$', re.M)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A server with one file."""
    need(REPLAY)
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "file").write_bytes(bytes(1 << 16))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def scraped(port: int) -> str:
    """What is shown now; nothing while nobody shows it."""
    try:
        return requests.get(f"http://127.0.0.1:{port}/metrics", timeout=LONGEST_S).text
    except requests.ConnectionError:
        return ""


def counted(text: str) -> dict[tuple[str, str], int]:
    """Requests by backend and scenario."""
    found: dict[tuple[str, str], int] = {}
    for backend, scenario, number in _REQUESTS.findall(text):
        found[backend, scenario] = found.get((backend, scenario), 0) + int(number)
    return found


def running(server: str, out: Path, port: int) -> "subprocess.Popen[str]":
    """A download that is shown, and has been seen."""
    flags = ("--path", "/file", "--iterations", "1000000", "--metrics", f"127.0.0.1:{port}")
    process = started("download", server, out, *flags)
    wait_for("a request is shown", lambda: process.poll() is not None or bool(counted(scraped(port))))
    assert process.poll() is None, process.communicate()[0]
    return process


def is_free(port: int) -> bool:
    return not scraped(port)


def test_a_scenario_is_shown_while_it_lasts(server: str, tmp_path: Path) -> None:
    out, port = tmp_path / "out", free_port()
    flags = ("--path", "/file", "--duration-s", "6", "--iterations", "100000", "--backend", "rust")
    process = started("download", server, out, *flags, "--metrics", f"127.0.0.1:{port}")
    seen: list[int] = []
    under_way = False
    while process.poll() is None:
        text = scraped(port)
        seen += counted(text).values()
        under_way |= 'plimsoll_run_info{backend="rust",run="' in text
        time.sleep(0.2)
    run = ended(process, out)
    assert run.code == 0, run.said
    assert f"Live figures: http://127.0.0.1:{port}/metrics" in run.said
    assert under_way
    assert seen == sorted(seen)
    assert len(set(seen)) >= 2, "it grows"
    assert seen[-1] <= len(load_records(run.directory))
    assert is_free(port)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_nothing_goes_on_once_it_was_ended(server: str, tmp_path: Path, by: signal.Signals) -> None:
    out, port = tmp_path / "out", free_port()
    process = running(server, out, port)
    if by == signal.SIGINT:
        interrupt(process)
    else:
        os.kill(process.pid, by)
    process.communicate(timeout=LONGEST_S)
    wait_for("nobody listens", lambda: is_free(port))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--metrics", "0.0.0.0:9464"], "--metrics-remote"),
        (["--metrics", "here"], "--metrics"),
        (["--metrics-remote"], "--metrics-remote is only for --metrics"),
    ],
    ids=["an address of all", "no address", "half of it"],
)
def test_what_is_wrong_is_said_before_anything_is_begun(
    server: str, tmp_path: Path, flags: list[str], says: str
) -> None:
    out = tmp_path / "out"
    run = ran("download", server, out, "--path", "/file", *flags)
    assert run.code == 2, run.said
    assert says in run.said
    assert not list(out.glob("*"))


def test_a_port_that_is_taken_is_said_before_anything_is_begun(server: str, tmp_path: Path) -> None:
    out, taken = tmp_path / "out", server.removeprefix("http://")
    run = ran("download", server, out, "--path", "/file", "--metrics", taken)
    assert run.code == 2, run.said
    assert taken in run.said
    assert not list(out.glob("*"))
