"""The client names what goes wrong on the way and in a reply, stays on its site, and times what it sends."""

import socket
import ssl
import struct
import time

import pytest
import requests
import urllib3.exceptions as u3

from plimsoll.scenarios.running.client import StepFailedError, error_kind, find_failure, visible_text
from tests.support.scenario import NGINX, REST_FATAL, reply, site_client
from tests.support.servers import Answer, http_reply, saying, serve_raw


def resetting(connection: socket.socket, request: bytes) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def silent(connection: socket.socket, request: bytes) -> None:
    connection.settimeout(20)
    connection.recv(1)


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (resetting, "reset", "the peer resets the connection"),
        (saying(b""), "closed_early", "the peer closes without a word"),
        (saying(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), "closed_early", "half a body"),
        (saying(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "bad_response", "what came is no HTTP"),
        (silent, "timeout", "nothing comes in time"),
        (saying(http_reply(b"gone", "404 Not Found")), "http_error", "a status that is no success"),
        (saying(http_reply(b"<b>Fatal error</b>: x")), "php_fatal", "trouble in a reply of status 200"),
    ],
)
def test_what_goes_wrong_is_named_in_the_record_and_raised(answer: Answer, kind: str, says: str) -> None:
    with (
        serve_raw(answer) as (port, _),
        site_client(f"http://127.0.0.1:{port}", timeout_s=1) as (site, sent),
        pytest.raises(StepFailedError) as failed,
    ):
        site.get("a step", "page")
    assert failed.value.kind == kind, f"{says}: {failed.value}"
    assert [(one.step, one.error) for one in sent] == [("a step", kind)]


def test_nobody_listening_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with site_client(f"http://127.0.0.1:{port}") as (site, sent), pytest.raises(StepFailedError) as failed:
        site.get("a step", "page")
    assert failed.value.kind == "connect_refused"
    assert sent[0].status == 0


def test_redirects_within_the_site_are_requests_of_their_own() -> None:
    def answer(connection: socket.socket, request: bytes) -> None:
        found = b"/second" in request
        connection.sendall(
            http_reply(b"here") if found else http_reply(b"", "302 Found", "Location: /second\r\n")
        )

    with serve_raw(answer) as (port, _), site_client(f"http://127.0.0.1:{port}") as (site, sent):
        assert site.get_page("a step", "first").text == "here"
    assert [one.status for one in sent] == [302, 200]


@pytest.mark.parametrize(
    ("location", "problem", "hopeless", "requests_sent"),
    [
        pytest.param("http://127.0.0.2:1/", "not the target", True, 1, id="to another host"),
        pytest.param("/again", "over 5 redirects", False, 6, id="without end"),
    ],
)
def test_redirects_that_are_refused(location: str, problem: str, hopeless: bool, requests_sent: int) -> None:
    with (
        serve_raw(saying(http_reply(b"", "302 Found", f"Location: {location}\r\n"))) as (port, asked),
        site_client(f"http://127.0.0.1:{port}") as (site, sent),
        pytest.raises(StepFailedError, match=problem) as failed,
    ):
        site.get_page("a step", "first")
    assert failed.value.hopeless == hopeless
    assert len(asked) == len(sent) == requests_sent


def test_a_stream_is_handed_on_as_it_comes() -> None:
    def answer(connection: socket.socket, request: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for word in (b"one", b"two", b"three"):
            connection.sendall(b"%x\r\n%s\r\n" % (len(word), word))
            time.sleep(0.05)
        connection.sendall(b"0\r\n\r\n")

    pieces: list[tuple[int, bytes]] = []
    with serve_raw(answer) as (port, _), site_client(f"http://127.0.0.1:{port}") as (site, sent):
        page = site.get("a step", "page", on_chunk=lambda at_ns, piece: pieces.append((at_ns, piece)))
    assert b"".join(piece for _, piece in pieces) == b"onetwothree"
    assert len(pieces) == 3
    assert [at for at, _ in pieces] == sorted(at for at, _ in pieces)
    assert page.body == b""
    assert sent[0].bytes == 11


def test_connect_to_leads_elsewhere_under_the_sites_name() -> None:
    with (
        serve_raw(saying(http_reply(b"a clone"))) as (port, asked),
        site_client("http://www.example.org/blog", connect_to=f"127.0.0.1:{port}") as (site, sent),
    ):
        assert site.get("a step", "page").text == "a clone"
    assert asked[0].startswith(b"GET /blog/page HTTP/1.1\r\n")
    assert b"\r\nHost: www.example.org\r\n" in asked[0]
    assert sent[0].url == "http://www.example.org/blog/page"


def test_cookies_come_back_and_connections_are_timed() -> None:
    cookie = saying(http_reply(b"", headers="Set-Cookie: seen=1; Path=/\r\nConnection: close\r\n"))
    with serve_raw(cookie) as (port, asked), site_client(f"http://127.0.0.1:{port}") as (site, sent):
        site.get("first", "page")
        site.get("second", "page")
    assert site.cookies == {"seen": "1"}
    assert b"Cookie: seen=1" in asked[1]
    assert all(one.connect_us > 0 for one in sent)
    assert all(0 < one.ttfb_us <= one.total_us for one in sent)


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with (
        serve_raw(saying(http_reply(b"direct"))) as (port, _),
        site_client(f"http://127.0.0.1:{port}") as (site, _sent),
    ):
        assert site.get("a step", "page").text == "direct"


# Errors: the reason why there was no response.


def _verify_failed() -> requests.exceptions.SSLError:
    """As requests raises it: the innermost error has a word as its reason, not an exception."""
    inner = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate")
    inner.reason = "CERTIFICATE_VERIFY_FAILED"
    pool = u3.MaxRetryError(None, "/", u3.SSLError(inner))  # type: ignore[arg-type]
    return requests.exceptions.SSLError(pool)


ERRORS = [
    ("a certificate that nobody vouches for", _verify_failed(), "tls_failed"),
    ("a reason that is a word names nothing", u3.HTTPError("odd"), "bad_response"),
    (
        "an address where nobody listens",
        requests.ConnectionError(ConnectionRefusedError()),
        "connect_refused",
    ),
    ("silence", requests.ReadTimeout(), "timeout"),
    ("an error of our own", ValueError("ours"), "other"),
]


@pytest.mark.parametrize(("why", "error", "kind"), ERRORS, ids=[row[0] for row in ERRORS])
def test_error_kind(why: str, error: Exception, kind: str) -> None:
    assert error_kind(error) == kind, why


# Replies: what is wrong with one, by the texts of WordPress 6.1 and 6.8.


def page(message: str) -> str:
    """A page of wp_die()."""
    style = ".button:hover { color: #006ba1; } @font-face { src: url(disk.woff) }"
    return (
        '<!DOCTYPE html><html lang="en-US"><head><title>WordPress &rsaquo; Error</title>'
        f'<style type="text/css">{style}</style></head>'
        f'<body id="error-page"><div class="wp-die-message">{message}</div></body></html>'
    )


EXPIRED = page("The link you followed has expired.</p><p><a href='http://site/'>Please try again</a>.")
NOT_ALLOWED = page("Sorry, you are not allowed to access this page.")
CRITICAL = page("<p>There has been a critical error on this website.</p><p><a href='#'>Learn more</a>.</p>")
NO_DATABASE = page("<h1>Error establishing a database connection</h1>")
REST_NONCE = '{"code":"rest_cookie_invalid_nonce","message":"Cookie check failed","data":{"status":403}}'
REST_CREATE = (
    '{"code":"rest_cannot_create","message":"Sorry, you are not allowed to create posts as this user.",'
    '"data":{"status":401}}'
)
REST_PUBLISH = (
    '{"code":"rest_cannot_publish","message":"Sorry, you are not allowed to publish posts in this post type."'
    ',"data":{"status":403}}'
)
VARNISH = (
    "<!DOCTYPE html><html><head><title>503 Backend fetch failed</title></head><body>"
    "<h1>Error 503 Backend fetch failed</h1><h3>Guru Meditation:</h3><p>XID: 720947</p>"
    "<hr><p>Varnish cache server</p></body></html>"
)
SHOWN_FATAL = (
    "<p>text</p><br />\n<b>Fatal error</b>:  Uncaught Error: Call to undefined function f() in /x.php:3\n"
    "Stack trace:\n#0 {main}\n  thrown in <b>/data/x.php</b> on line <b>3</b><br />"
)
MEMORY = "<b>Fatal error</b>:  Allowed memory size of 268435456 bytes exhausted in <b>/data/x.php</b>"


LONG_TEXT = "<p>text</p>" * 60_000
FAILURES: list[tuple[str, int, str | None, str]] = [
    ("<html><body>A page</body></html>", 200, None, "a page"),
    ("", 302, None, "a redirect"),
    (EXPIRED, 403, "nonce_expired", "a form's nonce"),
    (page("Are you sure you want to do this?"), 403, "nonce_expired", "as WordPress before 4.9 said it"),
    (REST_NONCE, 403, "nonce_expired", "a nonce of REST"),
    ("-1", 403, "nonce_expired", "a nonce of admin-ajax"),
    (NOT_ALLOWED, 403, "no_permission", "a page of the administration"),
    (REST_CREATE, 401, "no_permission", "REST, not even drafts"),
    (REST_PUBLISH, 403, "no_permission", "REST, drafts only"),
    (CRITICAL, 500, "php_fatal", "WordPress's own page about it"),
    (REST_FATAL, 500, "php_fatal", "the same as JSON"),
    (SHOWN_FATAL, 200, "php_fatal", "shown in a page of status 200"),
    (MEMORY, 200, "php_fatal", "out of memory"),
    ("PHP Parse error:  syntax error, unexpected", 200, "php_fatal", "as the command line prints it"),
    (NO_DATABASE, 500, "backend_dead", "the database is gone"),
    (VARNISH, 503, "backend_dead", "Varnish answers"),
    (NGINX, 502, "backend_dead", "nginx answers"),
    (page("No space left on device"), 500, "out_of_disk", "the system's words"),
    ("Got error 28: No space left on device (Errcode: 28)", 500, "out_of_disk", "MariaDB's words"),
    ("Could not copy file. disk_full", 200, "out_of_disk", "the updater's"),
    (page("Briefly unavailable for scheduled maintenance."), 503, "upgrade_locked", "maintenance mode"),
    ("Not here", 404, "http_error", "any other status"),
    ("", 500, "http_error", "an empty page"),
    ("", 429, "http_error", "too many requests"),
    (f"{LONG_TEXT}<b>Fatal error</b>{LONG_TEXT}", 200, None, "an article deep in a page"),
]


@pytest.mark.parametrize(("body", "status", "kind", "says"), FAILURES, ids=[row[3] for row in FAILURES])
def test_a_failure_is_named(body: str, status: int, kind: str | None, says: str) -> None:
    found = find_failure(reply(body, status))
    assert (found.kind if found else None) == kind, says


def test_a_dead_backend_is_known_by_its_headers() -> None:
    found = find_failure(reply("", 503, x_varnish="123"))
    assert found
    assert found.kind == "backend_dead"


def test_a_plugin_that_answers_503_is_no_proxy() -> None:
    found = find_failure(reply("<html><body>The house is full, come back later.</body></html>", 503))
    assert found
    assert found.kind == "http_error"
    assert "The house is full" in found.detail


def test_the_detail_is_what_a_person_would_read() -> None:
    found = find_failure(reply(NOT_ALLOWED, 403))
    assert found
    assert "Sorry, you are not allowed to access this page." in found.detail
    assert "<" not in found.detail
    assert len(visible_text("word " * 1000)) <= 200
