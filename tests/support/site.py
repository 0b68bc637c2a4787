"""The site under test, as `make site` starts it, and a small one that is filled once for all tests."""

import fcntl
import hashlib
import json
import os
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import ROOT, free_port, need, skip_or_fail

PASSWORD = "plimsoll-clone"  # noqa: S105 (a clone's, on loopback; it stands in the documentation)
START_S = 900  # with the image, from nothing, on a slow machine
ROLES = ("front", "varnish", "web", "php", "db", "mirror")


def run(*command: str | Path, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Runs a command; its exit code is the caller's to judge."""
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=timeout_s, check=False
    )


def need_docker() -> None:
    """Skips the test where Docker does not answer, fails it in the lab's own CI."""
    need("docker")
    if run("docker", "info").returncode != 0:
        skip_or_fail("the Docker daemon does not answer: tools/need-docker starts it")


@dataclass(frozen=True)
class Reply:
    """One reply: its status, headers (names in lower case) and text."""

    status: int
    headers: dict[str, str]
    text: str


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


@dataclass
class Browser:
    """Somebody's cookies, and requests with them. Redirects are not followed."""

    url: str
    jar: CookieJar = field(default_factory=CookieJar)

    def ask(self, path: str, form: dict[str, str] | None = None, method: str | None = None) -> Reply:
        """The reply to a GET, or to a POST of `form`."""
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar), _Stay())
        body = None if form is None else urllib.parse.urlencode(form).encode()
        request = urllib.request.Request(self.url + path, body, method=method)  # noqa: S310
        try:
            with opener.open(request, timeout=300) as reply:
                return _read(reply.status, dict(reply.headers), reply.read())
        except urllib.error.HTTPError as error:
            return _read(error.code, dict(error.headers), error.read())

    def log_in(self, user: str = "admin", password: str = PASSWORD) -> Reply:
        """Logs in to WordPress as a browser does: the form first, for its cookie."""
        self.ask("/wp-login.php")
        form = {"log": user, "pwd": password, "wp-submit": "Log In", "testcookie": "1"}
        return self.ask("/wp-login.php", form | {"redirect_to": "/wp-admin/"})


def _read(status: int, headers: dict[str, str], body: bytes) -> Reply:
    lower = {name.lower(): value for name, value in headers.items()}
    return Reply(status, lower, body.decode(errors="replace"))


@dataclass(frozen=True)
class Site:
    """A running site: where it answers, and where its data lies."""

    name: str
    url: str
    folder: Path

    def browser(self) -> Browser:
        return Browser(self.url)

    def answers(self) -> bool:
        """Whether it shows a page that no cache answers."""
        try:
            return self.browser().ask("/wp-login.php").status == 200
        except OSError:
            return False

    def facts(self) -> dict[str, Any]:
        """What `site.json` says."""
        found: dict[str, Any] = json.loads((self.folder / "site.json").read_text())
        return found

    def on(self, role: str, *command: str) -> str:
        """What a command prints in a role's container."""
        done = run("docker", "exec", f"{self.name}-{role}", *command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def sql(self, query: str, database: str = "wordpress") -> list[list[str]]:
        """The rows that a query finds."""
        client = ("mariadb", "--no-defaults", "-S", "/run/mysqld/mysqld.sock", "-N", "-B", database)
        return [line.split("\t") for line in self.on("db", *client, "-e", query).splitlines()]

    def cache_counts(self) -> Counter[str]:
        """How many requests Varnish has answered how. Its threads tell what they did once they rest."""
        names = {"MAIN.cache_hit": "hit", "MAIN.cache_miss": "miss", "MAIN.s_pass": "pass"}
        told = self.on("varnish", "varnishstat", "-1", *(word for name in names for word in ("-f", name)))
        rows = (line.split() for line in told.splitlines())
        return Counter({names[name]: int(value) for name, value, *_ in rows})

    def php(self, script: str) -> str:
        """What a script of tests/support/php prints, run in the site's own PHP."""
        code = (ROOT / "tests" / "support" / "php" / script).read_text()
        command = [need("docker"), "exec", "-i", f"{self.name}-php", "php8.2"]
        done = subprocess.run(command, input=code, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, _all(done)
        return done.stdout

    def stop(self, role: str) -> None:
        assert run("docker", "stop", "-t", "60", f"{self.name}-{role}").returncode == 0

    def start(self, role: str) -> None:
        assert run("docker", "start", f"{self.name}-{role}").returncode == 0

    def forget_neighbours(self) -> None:
        """Let the roles find out who is gone: who remembers its hardware address waits a minute for it."""
        for role in ROLES:
            pid = run("docker", "inspect", "-f", "{{.State.Pid}}", f"{self.name}-{role}").stdout.strip()
            if pid != "0":
                done = run(need("nsenter"), "-t", pid, "-n", need("ip"), "neigh", "flush", "all")
                assert done.returncode == 0, done.stderr

    def logs(self, lines: int = 20) -> str:
        """The last lines of every role, for a failure's message."""
        said = {r: run("docker", "logs", "--tail", str(lines), f"{self.name}-{r}") for r in ROLES}
        return "\n".join(f"== {role}\n{_all(done)}" for role, done in said.items())


def make(
    target: str, settings: dict[str, str], timeout_s: float = START_S
) -> subprocess.CompletedProcess[str]:
    """Runs a target of the Makefile with its settings in the environment, and none of the caller's own."""
    callers = ("SITE_", "MAKE", "MFLAGS", "BACKEND_DIR", "WP_UPGRADE_ZIP", "KEEP", "IMAGES")
    if folder := settings.get("BACKEND_DIR"):  # a site is not to come into the project's own list
        settings = {"SITE_CONFIG": str(Path(folder).with_name("plimsoll.yml"))} | settings
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(callers)}
    return subprocess.run(
        [need("make"), "--no-print-directory", "-C", str(ROOT), target],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env=inherited | settings,
    )


def start_site(folder: Path, name: str, editor: str) -> Site:
    """Starts a small site on a folder that is new or filled; shows why where it cannot.

    The name gets the process id, so that two test sessions on one machine do not meet.
    """
    name, port = f"{name}-{os.getpid()}", free_port()
    settings = {"BACKEND_DIR": str(folder), "SITE_NAME": name, "SITE_PORT": str(port)}
    done = make("site", settings | {"SITE_SIZE": "small", "SITE_EDITOR": editor})
    site = Site(name, f"http://127.0.0.1:{port}", folder)
    if done.returncode != 0:
        logs = site.logs()
        make("site-down", {"BACKEND_DIR": str(folder), "SITE_NAME": name})
        pytest.fail(f"make site failed ({done.returncode}):\n{_all(done)}\n{logs}")
    return site


def end_site(site: Site) -> None:
    """Ends a site, and sees that nothing of it is left."""
    done = make("site-down", {"BACKEND_DIR": str(site.folder)})
    assert done.returncode == 0, _all(done)
    assert left_behind(site.name) == []
    assert not site.folder.exists(), f"left behind: {sorted(site.folder.rglob('*'))[:20]}"


def left_behind(name: str) -> list[str]:
    """Containers, networks and volumes of a site that are still there."""
    project = f"label=com.docker.compose.project={name}"
    found = [
        *run("docker", "ps", "-aq", "--filter", project).stdout.split(),
        *run("docker", "ps", "-aq", "--filter", f"label=plimsoll.site={name}").stdout.split(),
        *run("docker", "network", "ls", "-q", "--filter", project).stdout.split(),
        *run("docker", "volume", "ls", "-q", "--filter", project).stdout.split(),
    ]
    return sorted(set(found))


def running_site(setting: str) -> Site:
    """The site that a developer has running: URL:BACKEND_DIR."""
    url, _, folder = setting.rpartition(":")
    mark = (Path(folder) / ".plimsoll-site").read_text()
    name = next(line.removeprefix("name=") for line in mark.splitlines() if line.startswith("name="))
    return Site(name, url, Path(folder))


def checksums(site: Site) -> dict[str, str]:
    """A checksum of each table's rows, without what time alone has put there."""
    tables = [row[0] for row in site.sql("SHOW TABLES") if row[0] != "wp_options"]
    found = {row[0]: row[1] for row in site.sql(f"CHECKSUM TABLE {', '.join(tables)} EXTENDED")}
    options = site.sql(
        "SELECT option_name, MD5(option_value), autoload FROM wp_options"
        " WHERE option_name NOT LIKE '%transient%' OR option_name LIKE '%transient_feed%' ORDER BY 1"
    )
    return found | {"wp_options": hashlib.sha256(repr(options).encode()).hexdigest()}


def file_checksums(folder: Path) -> dict[str, str]:
    """A checksum of each file that seeding made."""
    paths = [
        p for part in ("wordpress", "static", "mirror") for p in (folder / part).rglob("*") if p.is_file()
    ]
    return {str(p.relative_to(folder)): _checksum(p) for p in sorted(paths)}


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def _all(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout + done.stderr


# Filled once, also for the tests of other workers: they use copies of it.


@dataclass(frozen=True)
class Filled:
    """The data of a site that does not run, as it was filled."""

    folder: Path
    tables: dict[str, str]  # checksum by table
    files: dict[str, str]  # checksum by path under the folder

    def facts(self) -> dict[str, Any]:
        """What `site.json` says."""
        found: dict[str, Any] = json.loads((self.folder / "site.json").read_text())
        return found

    def copy_to(self, folder: Path) -> None:
        """Copy the data; `make site` takes a folder with the mark of another name for its own."""
        subprocess.run([need("cp"), "-a", "--reflink=auto", self.folder, folder], check=True)


@contextmanager
def filled_site(root: Path) -> Iterator[Filled]:
    """The site below `root`, filled by who is first to want it and removed by who is last."""
    root.mkdir(exist_ok=True)
    with _users(root) as before:
        if not (root / "sums").exists():
            _fill(root)
        (root / "users").write_text(str(before + 1))
    yield Filled(root / "data", *json.loads((root / "sums").read_text()))
    with _users(root) as before:
        (root / "users").write_text(str(before - 1))
        if before == 1:
            (root / "sums").unlink()
            _remove(root / "data")


@contextmanager
def _users(root: Path) -> Iterator[int]:
    """How many use it, which nobody changes meanwhile."""
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        users = root / "users"
        yield int(users.read_text()) if users.exists() else 0


def _fill(root: Path) -> None:
    site = start_site(root / "data", "plimsoll-filled", "block")
    sums = [checksums(site), file_checksums(site.folder)]
    done = make("site-down", {"BACKEND_DIR": str(site.folder), "KEEP": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    (root / "sums").write_text(json.dumps(sums))


def _remove(folder: Path) -> None:
    done = make("site-down", {"BACKEND_DIR": str(folder)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert not folder.exists()
