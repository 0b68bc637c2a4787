"""Who gets an answer of `plimsoll serve`: what it refuses, and that nobody keeps others out."""

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
from typing import Any

import pytest
import requests
import uvicorn
from click.testing import CliRunner
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from plimsoll.cli import main
from plimsoll.common.errors import SettingsError
from plimsoll.serve.application import Application
from plimsoll.serve.guard import (
    COOKIE,
    _listen,
    build_server,
    find_refusal,
    parse_address,
    read_token,
    session_token,
)
from tests.support.pages import ask
from tests.support.programs import wait_for
from tests.support.rundir import records, write_run

TOKEN = "0123456789" + "abcdef"
NAMES = frozenset({"lab.example.org"})


@pytest.mark.parametrize(
    ("says", "headers", "status"),
    [
        ("a browser that was given the address", {}, 200),
        ("localhost, through a tunnel, by another port", {"host": "localhost:9999"}, 200),
        ("an IPv6 address", {"host": "[::1]:8090"}, 200),
        ("a name that was allowed", {"host": "lab.example.org:8090"}, 200),
        ("a link of its own page", {"sec-fetch-site": "same-origin"}, 200),
        ("an address that was typed", {"sec-fetch-site": "none"}, 200),
        ("a stranger's name that leads here (DNS rebinding)", {"host": "evil.example:8090"}, 421),
        ("the same, beginning like an address", {"host": "127.0.0.1.evil.example"}, 421),
        ("the same, with an address before an @", {"host": "127.0.0.1@evil.example"}, 421),
        ("an allowed name with something before it", {"host": "x.lab.example.org"}, 421),
        ("no host", {"host": None}, 421),
        ("an empty host", {"host": ""}, 421),
        ("a page of another site", {"sec-fetch-site": "cross-site"}, 403),
        ("a page of another port of this machine", {"sec-fetch-site": "same-site"}, 403),
        ("a page of another origin, from an old browser", {"origin": "http://evil.example"}, 403),
        ("a page in a sandbox", {"origin": "null"}, 403),
        ("a page of another port", {"origin": "http://127.0.0.1:8091"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/", "/live", "/static/serve.css"])
def test_only_browsers_that_mean_this_server_get_something(
    tmp_path: Path, says: str, headers: dict[str, Any], status: int, path: str
) -> None:
    answer = ask(Application(tmp_path).app(NAMES), path, headers=headers)
    assert answer.status == status, says
    if status != 200:
        assert str(tmp_path) not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "access-control-allow-origin" not in answer.headers


def test_a_request_with_two_hosts_is_refused() -> None:
    headers = Headers(raw=[(b"host", b"localhost"), (b"host", b"localhost")])
    found = find_refusal("GET", headers, NAMES)
    assert found is not None
    assert found.status == 421


@pytest.mark.parametrize(
    ("says", "headers", "status"),
    [
        ("nothing", {}, 303),
        ("nothing, and no browser", {"accept": "*/*"}, 401),
        ("another token", {"accept": "*/*", "authorization": "Bearer fedcba9876543210"}, 401),
        ("the token in another way", {"accept": "*/*", "authorization": f"Basic {TOKEN}"}, 401),
        ("the token as the session", {"cookie": f"{COOKIE}={TOKEN}"}, 303),
        ("the token in the address", {"referer": f"http://127.0.0.1:8090/?token={TOKEN}"}, 303),
        ("an invalid cookie", {"cookie": "\x01=;;;=,"}, 303),
        ("the token", {"authorization": f"Bearer {TOKEN}"}, 200),
        ("the session", {"cookie": f"a=b; {COOKIE}={session_token(TOKEN)}"}, 200),
    ],
)
def test_with_a_token_only_who_has_it_gets_something(
    tmp_path: Path, says: str, headers: dict[str, Any], status: int
) -> None:
    app = Application(tmp_path, TOKEN).app()
    answer = ask(app, f"/?token={TOKEN}", headers=headers)
    assert answer.status == status, says
    assert str(tmp_path) not in answer.text or status == 200


def test_the_token_opens_a_session_that_scripts_cannot_read(tmp_path: Path) -> None:
    app = Application(tmp_path, TOKEN).app()
    own = {"origin": "http://127.0.0.1:8090", "sec-fetch-site": "same-origin"}
    answer = ask(app, "/login", "POST", f"token={TOKEN}".encode(), own)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie
    assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    assert ask(app, "/", headers={"cookie": cookie.partition(";")[0]}).status == 200


@pytest.mark.parametrize(
    ("says", "headers", "body", "status"),
    [
        ("another token", {"origin": "http://127.0.0.1:8090"}, b"token=fedcba9876543210", 403),
        ("another site's form", {"origin": "http://evil.example"}, b"token=0123456789abcdef", 403),
        ("a form whose origin is hidden", {"origin": "null"}, b"token=0123456789abcdef", 403),
        ("no origin at all", {}, b"token=0123456789abcdef", 403),
        ("far too much", {"origin": "http://127.0.0.1:8090"}, b"token=" + b"x" * 5000, 413),
    ],
)
def test_no_other_form_opens_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    says: str,
    headers: dict[str, str],
    body: bytes,
    status: int,
) -> None:
    monkeypatch.setattr("plimsoll.serve.application._WRONG_TOKEN_S", 0.0)
    answer = ask(Application(tmp_path, TOKEN).app(), "/login", "POST", body, headers)
    assert answer.status == status, says
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/live", "/compare", "/runs/x", "/documents/x", "/static/live.js"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_else_takes_anything_but_a_get(tmp_path: Path, path: str, method: str) -> None:
    own = {"origin": "http://127.0.0.1:8090", "sec-fetch-site": "same-origin"}
    assert ask(Application(tmp_path).app(), path, method, headers=own).status == 405


@pytest.mark.parametrize(
    ("text", "loopback", "url"),
    [
        ("127.0.0.1:8090", True, "http://127.0.0.1:8090/"),
        ("localhost:8090", True, "http://localhost:8090/"),
        ("[::1]:8090", True, "http://[::1]:8090/"),
        ("127.9.9.9:8090", True, "http://127.9.9.9:8090/"),
        ("0.0.0.0:8090", False, "http://127.0.0.1:8090/"),
        ("192.0.2.1:8090", False, "http://192.0.2.1:8090/"),
        ("lab.example.org:8090", False, "http://lab.example.org:8090/"),
    ],
)
def test_addresses(text: str, loopback: bool, url: str) -> None:
    address = parse_address(text)
    assert address.is_loopback is loopback
    assert address.url(8090) == url


@pytest.mark.parametrize(
    "text", ["", "8090", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "a@b:80", "a:80/b"]
)
def test_what_is_no_address_is_told(text: str) -> None:
    with pytest.raises(SettingsError, match=r"give HOST:PORT"):
        parse_address(text)


def test_the_token_comes_from_a_file_that_nobody_else_reads_or_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\nsecond line\n")
    file.chmod(0o644)
    with pytest.raises(SettingsError, match=r"is open to others; run: chmod 600"):
        read_token(file, {})
    file.chmod(0o600)
    assert read_token(file, {}) == TOKEN
    assert read_token(None, {"PLIMSOLL_SERVE_TOKEN": TOKEN}) == TOKEN
    assert read_token(None, {}) is None
    for short in ("short", "with a space in it", "ünïcödé-ünïcödé-ünïcödé"):
        with pytest.raises(SettingsError, match=r"16 or more letters and digits"):
            read_token(None, {"PLIMSOLL_SERVE_TOKEN": short})
    file.write_text("")
    with pytest.raises(SettingsError, match=r"--token-file"):
        read_token(file, {"PLIMSOLL_SERVE_TOKEN": TOKEN})


@pytest.mark.parametrize(
    ("says", "arguments", "environment", "told"),
    [
        ("no folder", ["none"], {}, "is not there"),
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
