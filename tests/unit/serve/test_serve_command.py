"""The command `plimsoll serve`: what it refuses, where it says it is, and that nobody keeps others out."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import uvicorn
from click.testing import CliRunner
from starlette.types import Receive, Scope, Send

from plimsoll.cli import main
from plimsoll.serve.guard import _listen, build_server, parse_address
from tests.support.programs import wait_for
from tests.support.rundir import records, write_run


@pytest.mark.parametrize(
    ("says", "arguments", "environment", "told"),
    [
        ("no folder", ["none"], {}, "no such folder"),
        ("all the world, without a token", [".", "--listen", "0.0.0.0:0"], {}, "so a token is required"),
        ("a name, without a token", [".", "--listen", "lab.example.org:0"], {}, "so a token is required"),
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
    monkeypatch.setattr("plimsoll.serve.guard._give_way", lambda: None)
    done = CliRunner().invoke(main, ["serve", *arguments], env=environment)
    assert done.exit_code == 2, says
    assert told in done.output
    assert "x" * 16 not in done.output


def test_a_port_that_is_taken_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.serve.guard._give_way", lambda: None)
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


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers once a request is whole: /long a while later, /stay never to the end."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"begun", "more_body": True})
    await asyncio.sleep({"/stay": 600.0, "/long": 0.3}.get(scope["path"], 0.0))
    await send({"type": "http.response.body", "body": b"ended"})


@pytest.fixture
def served() -> Iterator[tuple[uvicorn.Server, int]]:
    """A server and its port."""
    listener, server = _listen(parse_address("0.0.0.0:0")), build_server(_app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    wait_for("the server", lambda: server.started)
    yield server, listener.getsockname()[1]
    server.should_exit = server.force_exit = True
    thread.join()


def _connected(port: int, text: bytes, source: str = "127.0.0.1") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 60, (source, 0))
    connection.sendall(text)
    return connection


def _answer(port: int, path: str, source: str = "127.0.0.1") -> bytes:
    with _connected(
        port, f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode(), source
    ) as it:
        return b"".join(iter(lambda: it.recv(4096), b""))


BEGUN = b"GET / HTTP/1.1\r\nHost: a\r\n"
SLOW = [
    ("nothing at all", b""),
    ("half a head", BEGUN),
    ("half a body", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n"),
    ("half a head after a whole request", BEGUN + b"\r\n" + BEGUN),
]


def test_a_request_has_to_come_in_time_but_its_answer_may_take_longer(
    served: tuple[uvicorn.Server, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, port = served
    monkeypatch.setattr("plimsoll.serve.guard._REQUEST_S", 0.1)
    for says, text in SLOW:
        with _connected(port, text) as connection:
            connection.setblocking(False)
            wait_for(f"the end of {says}", lambda: _is_closed(connection, text), 30)  # noqa: B023 at once
    assert b"ended" in _answer(port, "/long")


def _is_closed(connection: socket.socket, text: bytes) -> bool:
    """Whether the other end closed it; where it did not, send some more of what was begun."""
    try:
        if text:
            connection.sendall(b"a: b\r\n")
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def test_no_address_keeps_another_one_out(served: tuple[uvicorn.Server, int]) -> None:
    server, port = served

    def count() -> int:
        return [getattr(one, "host", "") for one in server.server_state.connections].count("127.0.0.1")

    with contextlib.ExitStack() as held:
        for _ in range(60):
            idle = held.enter_context(_connected(port, BEGUN + b"\r\n"))
            assert b"begun" in _first(idle)
        assert b"ended" in _answer(port, "/"), "beside connections that are open for a further request"
        for number in range(150):
            held.enter_context(_connected(port, BEGUN, f"127.0.0.{1 + number % 3 // 2}"))
        for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
            assert b"ended" in _answer(port, "/", source), f"{source}, beside requests that never come"
        assert 0 < count() <= 50

        stay = b"GET /stay HTTP/1.1\r\nHost: a\r\n\r\n"
        answers = [held.enter_context(_connected(port, stay)) for _ in range(60)]
        got = [_first(each) for each in answers]
        assert (sum(b"begun" in each for each in got), got.count(b"")) == (50, 10)
        for source in ("127.0.0.2", "127.0.0.3"):
            assert b"ended" in _answer(port, "/", source), f"{source}, beside answers that never end"


def _first(connection: socket.socket) -> bytes:
    """Returns an answer up to what the application says; nothing where the connection was closed."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while b"begun" not in got and (more := connection.recv(4096)):
            got += more
    return got
