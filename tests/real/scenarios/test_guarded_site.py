"""Scenarios on a WordPress behind a real nginx that lets in who knows; and none of what they know is kept."""

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.programs import PLIMSOLL, free_port, listens, need, open_to_all, wait_for
from tests.support.scenario import Ran, files_with, ran
from tests.support.servers import make_pair
from tests.support.site import Site, run

TOKEN, COOKIE, USER, WORD = "tok-en-of-the-gate", "sesame-of-the-gate", "clone", "geheim-am-tor"
GATE = f"""
    auth_basic "clone";
    auth_basic_user_file {{root}}/users;
    if ($http_x_gate != "{TOKEN}") {{{{ return 403; }}}}
    if ($cookie_gate != "{COOKIE}") {{{{ return 403; }}}}
"""
MOVED = """
    location = /our-door {{
        proxy_pass {site}/wp-login.php$is_args$args;
    }}
    location = /wp-login.php {{ return 404; }}
    sub_filter_once off;
    sub_filter 'wp-login.php' 'our-door';
    proxy_redirect ~^(.*)wp-login\\.php(.*)$ $1our-door$2;
"""
NGINX = """
user www-data;
daemon off;
pid {root}/pid;
events {{ worker_connections 512; }}
http {{
    access_log {root}/access.log;
    client_body_temp_path {root}/body;
    proxy_temp_path {root}/proxy;
    client_max_body_size 100m;
    proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header Accept-Encoding "";
    proxy_set_header Authorization "";
    proxy_read_timeout 300s;
    server {{ listen 127.0.0.1:{gate}; {rules} location / {{ proxy_pass {site}; }} }}
    server {{ listen 127.0.0.1:{moved}; {door} location / {{ proxy_pass {site}; }} }}
    server {{
        listen 127.0.0.1:{tls} ssl;
        ssl_certificate {root}/server.pem;
        ssl_certificate_key {root}/server.key;
        ssl_client_certificate {root}/mine.pem;
        ssl_verify_client on;
        location / {{ proxy_pass {site}; }}
    }}
}}
"""


@dataclass(frozen=True)
class Guards:
    """Three ways to one site: through the gate, by certificate, and with another login."""

    folder: Path
    gate: str
    tls: str
    moved: str

    @property
    def keys(self) -> list[str]:
        """The options that open the gate."""
        return [
            *("--header-file", str(self.folder / "headers")),
            *("--basic-auth-file", str(self.folder / "basic")),
            *("--cookie-file", str(self.folder / "cookies")),
        ]

    @property
    def certificate(self) -> list[str]:
        pair = ("--client-cert", str(self.folder / "mine.pem"), "--client-key", str(self.folder / "mine.key"))
        return [*pair, "--insecure"]


@pytest.fixture(scope="module")
def guards(site_block: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guards]:
    root = tmp_path_factory.mktemp("guards")
    open_to_all(root)
    make_pair(root, "server")
    make_pair(root, "mine")
    files = {"headers": f"X-Gate: {TOKEN}", "basic": f"{USER}:{WORD}", "cookies": f"gate={COOKIE}"}
    for name, text in files.items():
        (root / name).write_text(text + "\n")
        (root / name).chmod(0o600)
    coded = run(need("openssl"), "passwd", "-apr1", WORD).stdout.strip()
    (root / "users").write_text(f"{USER}:{coded}\n")
    gate, tls, moved = free_port(), free_port(), free_port()
    given = {"root": root, "site": site_block.url, "gate": gate, "tls": tls, "moved": moved}
    text = NGINX.format(**given, rules=GATE.format(**given), door=MOVED.format(**given))
    (root / "nginx.conf").write_text(text)
    process = subprocess.Popen([need("nginx"), "-c", root / "nginx.conf", "-e", root / "error.log"])
    try:
        wait_for("nginx listens", lambda: all(map(listens, (gate, tls, moved))) and process.poll() is None)
        here = "http://127.0.0.1:"
        yield Guards(root, f"{here}{gate}", f"https://127.0.0.1:{tls}", f"{here}{moved}")
    finally:
        process.terminate()
        process.wait()


def no_secret_in(done: Ran, guards: Guards) -> None:
    """Nothing that lets in is in a file of the run, or was said."""
    key = (guards.folder / "mine.key").read_text().splitlines()[1]
    for secret in (TOKEN, COOKIE, WORD, key, "Y2xvbmU6Z2VoZWltLWFtLXRvcg"):
        assert files_with(done.directory, secret) == []
        assert secret not in done.said


SHORT = {
    "save-article": ["--iterations", "2", "--saves", "1", "--clean-up", "always"],
    "upload-images": ["--iterations", "2", "--clean-up", "always"],
    "download": ["--iterations", "2"],
    "visitors": ["--rate", "2", "--duration-s", "3", "--think-s", "0.1"],
    "browser": ["--iterations", "1", "--no-screenshots"],
}


# One of Locust's scenarios and k6's; the others of Locust's take the same way, and the browser takes long.
OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("upload-images", "download")]
BROWSER = pytest.param("browser", marks=pytest.mark.slow)


@pytest.mark.parametrize("scenario", ["save-article", "visitors", BROWSER, *OTHERS])
def test_who_knows_is_let_through_the_gate(scenario: str, guards: Guards, k6: Path, tmp_path: Path) -> None:
    if scenario == "browser":
        need("chromium")
    done = ran(scenario, guards.gate, tmp_path, *guards.keys, *SHORT[scenario])
    assert done.code == 0, done.said + done.details
    assert done.facts["status"] == "complete"
    no_secret_in(done, guards)


@pytest.mark.parametrize("scenario", ["save-article", "visitors", *OTHERS])
def test_who_has_the_certificate_is_let_in(scenario: str, guards: Guards, k6: Path, tmp_path: Path) -> None:
    done = ran(scenario, guards.tls, tmp_path, *guards.certificate, *SHORT[scenario])
    assert done.code == 0, done.said + done.details
    no_secret_in(done, guards)


@pytest.mark.parametrize("scenario", ["download", "visitors"])
def test_who_does_not_know_stays_outside(scenario: str, guards: Guards, k6: Path, tmp_path: Path) -> None:
    done = ran(scenario, guards.gate, tmp_path, *SHORT[scenario])
    assert done.code == 1
    assert "40" in done.facts["reason"] + done.details, "status 401 or 403"


@pytest.mark.parametrize("scenario", ["save-article", BROWSER])
def test_the_login_may_have_been_moved(scenario: str, guards: Guards, k6: Path, tmp_path: Path) -> None:
    if scenario == "browser":
        need("chromium")
    done = ran(scenario, guards.moved, tmp_path / "a", *SHORT[scenario], "--login-path", "/our-door")
    assert done.code == 0, done.said + done.details
    done = ran(scenario, guards.moved, tmp_path / "b", *SHORT[scenario])
    assert done.code == 1
    assert done.facts["status"] == "failed"


def test_no_process_list_shows_what_lets_in(guards: Guards, k6: Path, tmp_path: Path) -> None:
    command = [str(PLIMSOLL), "scenario", "visitors", "--target", guards.gate]
    more = ["--out", str(tmp_path), *guards.keys, "--rate", "2", "--duration-s", "3"]
    process = subprocess.Popen([*command, *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen = ""
    while process.poll() is None:
        seen += run("ps", "-eo", "args", "-ww").stdout
        time.sleep(0.3)
    assert process.returncode == 0
    assert "k6" in seen
    for secret in (TOKEN, COOKIE, WORD):
        assert secret not in seen


def test_a_password_in_the_address_is_refused(guards: Guards, tmp_path: Path) -> None:
    url = guards.gate.replace("://", f"://{USER}:{WORD}@")
    line = [str(PLIMSOLL), "scenario", "download", "--target", url, "--out", str(tmp_path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=os.environ)
    assert done.returncode == 2
    assert "--basic-auth-file FILE" in done.stderr
    assert WORD not in done.stderr
    assert list(tmp_path.iterdir()) == []
