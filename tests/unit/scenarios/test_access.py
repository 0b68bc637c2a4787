"""What lets into a guarded site: read from files of one's own, sent to the target alone, shown nowhere."""

import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll.common.errors import SettingsError
from plimsoll.common.hostile import REDACTED
from plimsoll.scenarios import browser, visitors
from plimsoll.scenarios.running.access import read_access, read_cookies, read_headers
from plimsoll.scenarios.running.client import StepFailedError
from plimsoll.scenarios.running.clonelist import Credentials
from plimsoll.scenarios.running.session import load_of_scenario
from plimsoll.scenarios.running.settings import ScenarioSettings, WordpressSettings, validate_options
from plimsoll.scenarios.settings import BrowserSettings, VisitorsSettings
from tests.support.programs import need
from tests.support.scenario import site_client, write_secret
from tests.support.servers import http_reply, make_pair, saying, serve_raw

URL, TLS = "http://127.0.0.1:8080", "https://clone.example"
TOKEN = "tok-en-of-the-gate"  # noqa: S105


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return make_pair(tmp_path, "mine")


NETSCAPE = ".clone.example\tTRUE\t/\tTRUE\t{}\tgate\t" + TOKEN
HEADERS: list[tuple[str, str, str | tuple[tuple[str, str], ...]]] = [
    (
        "one a line, and comments",
        f"# mine\n\nX-Gate: {TOKEN}\nX-B:b: c \n",
        (("X-Gate", TOKEN), ("X-B", "b: c")),
    ),
    ("no colon", "X-Gate\n", "line 1 is not a header"),
    ("a name with a space", "X Gate: 1\n", "line 1 is not a header"),
    ("no value", "\nX-Gate:\n", "line 2: the value of X-Gate"),
    ("a value that is not ASCII", "X-Gate: \u00e4\n", "must be ASCII"),
    ("cookies have a file of their own", "cookie: a=b\n", "--cookie-file"),
    ("the host is the target's", "Host: other\n", "cannot be set"),
    ("twice", "A: 1\na: 2\n", "line 2: a is set twice"),
    ("nothing", "# none\n", "has no header"),
]


COOKIES: list[tuple[str, str, str | tuple[tuple[str, str], ...]]] = [
    ("one a line", f"gate={TOKEN}\nb=\n", (("gate", TOKEN), ("b", ""))),
    ("a value with =", "a=b=c\n", (("a", "b=c"),)),
    ("a browser's file", f"# Netscape HTTP Cookie File\n{NETSCAPE.format(0)}\n", (("gate", TOKEN),)),
    ("a cookie that scripts cannot see", f"#HttpOnly_{NETSCAPE.format(4102444800)}\n", (("gate", TOKEN),)),
    ("an old one", NETSCAPE.format(1), "all 1 have expired"),
    ("two in a line", "a=b; c=d\n", "line 1 is not a cookie"),
    ("no value", "gate\n", "write name=value"),
    ("nothing", "", "has no cookie"),
]


FILES = [(read_headers, *row) for row in HEADERS] + [(read_cookies, *row) for row in COOKIES]


@pytest.mark.parametrize(
    ("read", "why", "text", "wanted"), FILES, ids=[f"{row[0].__name__}: {row[1]}" for row in FILES]
)
def test_a_file_of_headers_or_cookies_is_read_or_refused(
    tmp_path: Path,
    read: Callable[[Path], object],
    why: str,
    text: str,
    wanted: str | tuple[tuple[str, str], ...],
) -> None:
    path = write_secret(tmp_path / "file", text)
    if isinstance(wanted, tuple):
        assert read(path) == wanted, why
        return
    with pytest.raises(SettingsError, match=wanted) as refused:
        read(path)
    assert TOKEN not in str(refused.value)


def test_cookies_of_other_hosts_stay_where_they_are(tmp_path: Path) -> None:
    lines = ["clone.example\tFALSE\t/\tFALSE\t0\ta\t1", "#HttpOnly_.example\tTRUE\t/\tFALSE\t0\tb\t2"]
    lines += ["bank.example\tFALSE\t/\tTRUE\t0\tc\t3", "example\tFALSE\t/\tFALSE\t0\td\t4"]
    path = write_secret(tmp_path / "cookies.txt", "\n".join(lines))
    settings = validate_options(ScenarioSettings, {"target": TLS, "cookie_file": path})
    assert read_access(settings).cookies == (("a", "1"), ("b", "2"))
    with pytest.raises(SettingsError, match=r"has no cookie for other\.test: all 4 are of other hosts"):
        read_access(validate_options(ScenarioSettings, {"target": "http://other.test", "cookie_file": path}))


def test_all_that_is_wrong_is_said_at_once_and_no_secret_with_it(tmp_path: Path) -> None:
    given = {
        "target": "http://anna:geheimnis@host",
        "header_file": write_secret(tmp_path / "h", f"X-Gate: {TOKEN}\n", 0o644),
        "basic_auth_file": write_secret(tmp_path / "b", f"{TOKEN}\n"),
        "cookie_file": tmp_path / "none",
        "client_key": write_secret(tmp_path / "k", TOKEN),
        "login_path": "https://elsewhere/login",
    }
    with pytest.raises(SettingsError) as refused:
        validate_options(WordpressSettings, given)
    problems = str(refused.value)
    for line in (
        "--target: must not contain a user or password",
        f"--header-file: {tmp_path}/h is readable by others; run: chmod 600 {tmp_path}/h",
        f"--basic-auth-file: the first line of {tmp_path}/b must be user:password",
        f"--cookie-file: {tmp_path}/none cannot be read",
        "--client-key: needs --client-cert FILE",
        "--login-path: must be a path on the site",
    ):
        assert line in problems
    assert "--basic-auth-file FILE" in problems.splitlines()[0], "the remedy for a password in the address"
    assert "geheimnis" not in problems
    assert TOKEN not in problems


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
@pytest.mark.parametrize("name", ["header_file", "basic_auth_file", "cookie_file"])
def test_files_that_others_may_read_are_refused(tmp_path: Path, name: str, mode: int) -> None:
    path = write_secret(tmp_path / "f", "a:b=c\n", mode)
    with pytest.raises(SettingsError, match=f"chmod 600 {path}"):
        validate_options(ScenarioSettings, {"target": URL, name: path})


def test_two_headers_for_one_password_are_refused(tmp_path: Path) -> None:
    given = {
        "header_file": write_secret(tmp_path / "h", "authorization: Bearer x\n"),
        "basic_auth_file": write_secret(tmp_path / "b", "a:b\n"),
    }
    with pytest.raises(SettingsError, match="--basic-auth-file: cannot be combined with the Authorization"):
        validate_options(ScenarioSettings, {"target": URL} | given)


def test_certificates_and_keys_have_to_fit(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    cert, key = pair
    _, other = make_pair(tmp_path, "other")
    both = write_secret(tmp_path / "both.pem", cert.read_text() + key.read_text())
    closed = tmp_path / "closed.key"
    command = [need("openssl"), "ec", "-in", str(key), "-aes128", "-passout", "pass:abcdef"]
    subprocess.run([*command, "-out", str(closed)], check=True, capture_output=True)
    closed.chmod(0o600)

    def refusal(**given: Any) -> str:
        try:
            validate_options(ScenarioSettings, {"target": TLS} | given)
        except SettingsError as error:
            return str(error)
        return ""

    assert refusal(client_cert=cert, client_key=key) == ""
    assert refusal(client_cert=both) == ""
    assert "give --client-key FILE" in refusal(client_cert=cert)
    assert "of one pair?" in refusal(client_cert=cert, client_key=other)
    assert "asks for a passphrase" in refusal(client_cert=cert, client_key=closed)
    no_key = write_secret(tmp_path / "no.key", cert.read_text())
    assert "holds no private key" in refusal(client_cert=cert, client_key=no_key)
    assert "target with https://" in refusal(client_cert=cert, client_key=key, target=URL)
    key.chmod(0o640)
    assert f"chmod 600 {key}" in refusal(client_cert=cert, client_key=key)
    both.chmod(0o644)
    assert f"chmod 600 {both}" in refusal(client_cert=both)


def guarded(tmp_path: Path, **further: Any) -> dict[str, Any]:
    return {
        "header_file": write_secret(tmp_path / "h", f"X-Gate: {TOKEN}\n"),
        "basic_auth_file": write_secret(tmp_path / "b", "clone:geheimnis\n"),
        "cookie_file": write_secret(tmp_path / "c", "gate=open-sesame\n"),
        **further,
    }


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_every_request_has_them_and_a_redirect_elsewhere_has_nothing(tmp_path: Path, host: str) -> None:
    elsewhere = socket.create_server(("127.0.0.1", 0))
    there = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/"

    def answer(connection: socket.socket, request: bytes) -> None:
        line = f"Location: {there if b'/second' in request else '/second'}\r\nSet-Cookie: gate=newer\r\n"
        connection.sendall(http_reply(b"", "302 Found", line))

    with (
        elsewhere,
        serve_raw(answer) as (port, asked),
        site_client(f"http://{host}:{port}", **guarded(tmp_path)) as (site, _),
        pytest.raises(StepFailedError, match="not the target"),
    ):
        site.get_page("a step", "first")
    elsewhere_was_asked = _asked(elsewhere)
    assert not elsewhere_was_asked
    assert len(asked) == 2
    for request, cookie in zip(asked, (b"open-sesame", b"newer"), strict=True):
        assert f"X-Gate: {TOKEN}".encode() in request
        assert b"Authorization: Basic Y2xvbmU6Z2VoZWltbmlz" in request
        assert b"Cookie: gate=" + cookie + b"\r\n" in request, "the site's own, once it has set one"


def _asked(listening: socket.socket) -> bool:
    try:
        listening.setblocking(False)
        listening.accept()
    except OSError:
        return False
    return True


def test_what_a_site_shows_of_them_is_not_kept(tmp_path: Path) -> None:
    mirror = saying(
        http_reply(f"sent: {TOKEN} clone:geheimnis Y2xvbmU6Z2VoZWltbmlz".encode(), "404 Not Found")
    )
    with (
        serve_raw(mirror) as (port, _),
        site_client(f"http://127.0.0.1:{port}", **guarded(tmp_path)) as (site, sent),
        pytest.raises(StepFailedError) as failed,
    ):
        site.get("a step", "page")
    for text in (str(failed.value), repr(sent)):
        assert TOKEN not in text
        assert "geheimnis" not in text
        assert "Y2xvbmU6" not in text
        assert REDACTED in text


def test_a_site_that_asks_for_a_certificate_gets_it(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    own_cert, own_key = make_pair(tmp_path, "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own_cert, own_key)
    context.load_verify_locations(pair[0])
    context.verify_mode = ssl.CERT_REQUIRED
    shown: list[Any] = []

    def answer(connection: socket.socket, request: bytes) -> None:
        assert isinstance(connection, ssl.SSLSocket)
        shown.append(connection.getpeercert())
        connection.sendall(http_reply(b"here"))

    with serve_raw(answer, context) as (port, _):
        known = {"client_cert": pair[0], "client_key": pair[1]}
        with site_client(f"https://127.0.0.1:{port}", insecure=True, **known) as (site, _):
            assert site.get("a step", "page").text == "here"
        with (
            site_client(f"https://127.0.0.1:{port}", insecure=True) as (site, _),
            pytest.raises(StepFailedError),
        ):
            site.get("a step", "page")
    assert shown[0]["subject"] == ((("commonName", "mine"),),)
    assert len(shown) == 1


def test_a_run_keeps_neither_files_nor_what_is_in_them(tmp_path: Path) -> None:
    settings = validate_options(WordpressSettings, {"target": URL, "login_path": "/door"} | guarded(tmp_path))
    kept = (
        str(settings.recorded_settings())
        + str(load_of_scenario("save-article", settings, {}))
        + repr(read_access(settings))
    )
    assert "door" in kept
    for text in (str(tmp_path), TOKEN, "geheimnis", "open-sesame"):
        assert text not in kept


def test_a_script_gets_what_is_in_the_files_and_shows_it_nowhere(
    tmp_path: Path, pair: tuple[Path, Path]
) -> None:
    cert, key = pair
    given = guarded(tmp_path, target=TLS, client_cert=cert, client_key=key)
    script = visitors.script_settings(validate_options(VisitorsSettings, given))
    assert script.access["headers"] == {"X-Gate": TOKEN, "Authorization": "Basic Y2xvbmU6Z2VoZWltbmlz"}
    assert script.access["cookies"] == {"gate": "open-sesame"}
    assert script.access["key"] == key.read_text()
    assert TOKEN not in repr(script)
    assert script.header_file is None


def test_a_browser_takes_all_but_a_certificate(tmp_path: Path, pair: tuple[Path, Path]) -> None:
    cert, key = pair
    with pytest.raises(SettingsError) as refused:
        validate_options(BrowserSettings, {"target": TLS, "client_cert": cert, "client_key": key})
    assert str(refused.value).startswith("--client-cert: cannot be given to a browser: Chromium takes no")
    asked = validate_options(BrowserSettings, {"target": URL} | guarded(tmp_path))
    script = browser.script_settings(
        asked, Credentials("anna", "pw-of-anna"), tmp_path / "i", tmp_path / "run", "a-run"
    )
    assert script.access["cookies"] == {"gate": "open-sesame"}
    assert {"pw-of-anna", TOKEN, "open-sesame", "geheimnis"} <= set(script.secrets)
    assert TOKEN not in repr(script)
