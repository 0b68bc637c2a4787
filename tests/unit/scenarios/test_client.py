"""The client names what goes wrong on the way, stays on its site, and times what it sends."""

import io
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from plimsoll.scenarios.running.client import SentRequest, SiteClient, StepFailedError
from plimsoll.scenarios.running.settings import ScenarioSettings

Answer = Callable[[socket.socket, bytes], None]


def reply(text: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n{headers}\r\n".encode() + text


def saying(data: bytes) -> Answer:
    return lambda connection, request: connection.sendall(data)


def resetting(connection: socket.socket, request: bytes) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silent(connection: socket.socket, request: bytes) -> None:
    connection.settimeout(20)
    connection.recv(1)


@contextmanager
def server(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[tuple[int, list[bytes]]]:
    """A server that gives each connection one answer; its port, and what it was asked."""
    asked: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            try:
                connection = tls.wrap_socket(connection, server_side=True) if tls else connection
            except ssl.SSLError:
                continue
            with connection:
                request = b""
                try:
                    while b"\r\n\r\n" not in request and (piece := connection.recv(65536)):
                        request += piece
                except ssl.SSLError:
                    continue  # a client without a certificate
                asked.append(request)
                if request:
                    answer(connection, request)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


@contextmanager
def client(url: str, **settings: Any) -> Iterator[tuple[SiteClient, list[SentRequest]]]:
    sent: list[SentRequest] = []
    site = SiteClient(ScenarioSettings(target=url, **settings), sent.append)
    yield site, sent
    site.close()


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (resetting, "reset", "the peer resets the connection"),
        (saying(b""), "closed_early", "the peer closes without a word"),
        (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), "closed_early", "half a body"),
        (saying(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "bad_response", "what came is no HTTP"),
        (silent, "timeout", "nothing comes in time"),
        (saying(reply(b"gone", "404 Not Found")), "http_error", "a status that is no success"),
        (saying(reply(b"<b>Fatal error</b>: x")), "php_fatal", "trouble in a reply of status 200"),
    ],
)
def test_what_goes_wrong_is_named_in_the_record_and_raised(answer: Answer, kind: str, says: str) -> None:
    with (
        server(answer) as (port, _),
        client(f"http://127.0.0.1:{port}", timeout_s=1) as (site, sent),
        pytest.raises(StepFailedError) as failed,
    ):
        site.get("a step", "page")
    assert failed.value.kind == kind, f"{says}: {failed.value}"
    assert [(one.step, one.error) for one in sent] == [("a step", kind)]


def test_nobody_listening_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with client(f"http://127.0.0.1:{port}") as (site, sent), pytest.raises(StepFailedError) as failed:
        site.get("a step", "page")
    assert failed.value.kind == "connect_refused"
    assert sent[0].status == 0


def test_redirects_within_the_site_are_requests_of_their_own() -> None:
    def answer(connection: socket.socket, request: bytes) -> None:
        found = b"/second" in request
        connection.sendall(reply(b"here") if found else reply(b"", "302 Found", "Location: /second\r\n"))

    with server(answer) as (port, _), client(f"http://127.0.0.1:{port}") as (site, sent):
        assert site.get_page("a step", "first").text == "here"
    assert [one.status for one in sent] == [302, 200]


def test_a_redirect_to_another_host_is_refused() -> None:
    elsewhere = saying(reply(b"", "302 Found", "Location: http://127.0.0.2:1/\r\n"))
    with (
        server(elsewhere) as (port, asked),
        client(f"http://127.0.0.1:{port}") as (site, _sent),
        pytest.raises(StepFailedError, match="not the target") as failed,
    ):
        site.get_page("a step", "first")
    assert failed.value.hopeless
    assert len(asked) == 1


def test_redirects_without_end_are_ended() -> None:
    around = saying(reply(b"", "302 Found", "Location: /again\r\n"))
    with (
        server(around) as (port, _),
        client(f"http://127.0.0.1:{port}") as (site, sent),
        pytest.raises(StepFailedError, match="over 5 redirects"),
    ):
        site.get_page("a step", "first")
    assert len(sent) == 6


def test_a_stream_is_handed_on_as_it_comes() -> None:
    def answer(connection: socket.socket, request: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for word in (b"one", b"two", b"three"):
            connection.sendall(b"%x\r\n%s\r\n" % (len(word), word))
            time.sleep(0.05)
        connection.sendall(b"0\r\n\r\n")

    pieces: list[tuple[int, bytes]] = []
    with server(answer) as (port, _), client(f"http://127.0.0.1:{port}") as (site, sent):
        got = site.get("a step", "page", on_chunk=lambda at_ns, piece: pieces.append((at_ns, piece)))
    assert b"".join(piece for _, piece in pieces) == b"onetwothree"
    assert len(pieces) == 3
    assert [at for at, _ in pieces] == sorted(at for at, _ in pieces)
    assert got.body == b""
    assert sent[0].bytes == 11


def test_connect_to_leads_elsewhere_under_the_sites_name() -> None:
    with (
        server(saying(reply(b"a clone"))) as (port, asked),
        client("http://www.example.org/blog", connect_to=f"127.0.0.1:{port}") as (site, sent),
    ):
        assert site.get("a step", "page").text == "a clone"
    assert asked[0].startswith(b"GET /blog/page HTTP/1.1\r\n")
    assert b"\r\nHost: www.example.org\r\n" in asked[0]
    assert sent[0].url == "http://www.example.org/blog/page"


def test_cookies_come_back_and_connections_are_timed() -> None:
    cookie = saying(reply(b"", headers="Set-Cookie: seen=1; Path=/\r\nConnection: close\r\n"))
    with server(cookie) as (port, asked), client(f"http://127.0.0.1:{port}") as (site, sent):
        site.get("first", "page")
        site.get("second", "page")
    assert site.cookies == {"seen": "1"}
    assert b"Cookie: seen=1" in asked[1]
    assert all(one.connect_us > 0 for one in sent)
    assert all(0 < one.ttfb_us <= one.total_us for one in sent)


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with server(saying(reply(b"direct"))) as (port, _), client(f"http://127.0.0.1:{port}") as (site, _sent):
        assert site.get("a step", "page").text == "direct"


def test_a_body_is_streamed_with_its_length(tmp_path: Any) -> None:
    from plimsoll.scenarios.upload_images import Multipart

    path = tmp_path / "photograph.jpg"
    path.write_bytes(bytes(range(256)) * 1000)
    got = io.BytesIO()

    def answer(connection: socket.socket, request: bytes) -> None:
        head, _, body = request.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += connection.recv(65536)
        got.write(body)
        connection.sendall(reply(b"taken"))

    with (
        server(answer) as (port, _),
        client(f"http://127.0.0.1:{port}") as (site, _sent),
        Multipart({"name": "x", "_wpnonce": "n"}, "async-upload", path, "p.jpg", "image/jpeg") as body,
    ):
        site.post("upload", "up", data=body, headers={"Content-Type": body.content_type})
    sent = got.getvalue()
    assert path.read_bytes() in sent
    assert b'name="_wpnonce"\r\n\r\nn\r\n' in sent
    assert b'name="async-upload"; filename="p.jpg"\r\nContent-Type: image/jpeg\r\n\r\n' in sent
    assert sent.endswith(b"--\r\n")
