"""Who gets an answer of `plimsoll serve`."""

from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers

from plimsoll.common.errors import SettingsError
from plimsoll.serve.application import Application
from plimsoll.serve.guard import COOKIE, find_refusal, parse_address, read_token, session_token
from tests.support.asking import ask

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
        ("a cookie that is none", {"cookie": "\x01=;;;=,"}, 303),
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
