"""Scenarios run as their users do, what they wrote, and what others saw meanwhile."""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import requests

from plimsoll import scenarios as registry
from plimsoll.rundir.read import RunDirectory
from plimsoll.scenarios.running.client import Reply, SentRequest, SiteClient
from plimsoll.scenarios.running.settings import ScenarioSettings
from tests.support.chromium import quiet_network
from tests.support.programs import LONGEST_S, PLIMSOLL, ROOT, eventually, free_port
from tests.support.rundir import load_records
from tests.support.site import PASSWORD

LOCUST = ROOT / ".venv" / "bin" / "locust"
# What WordPress 6.1 and nginx answer when something broke.
REST_FATAL = (
    '{"code":"internal_server_error","message":"<p>There has been a critical error on this website.<\\/p>",'
    '"data":{"status":500},"additional_errors":[]}'
)
NGINX = "<html><head><title>502 Bad Gateway</title></head><body><center>nginx/1.22.1</center></body></html>"


@dataclass(frozen=True)
class Ran:
    """One run: its exit code, what it said, its directory."""

    code: int
    said: str
    directory: Path

    @property
    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "run.json").read_text())
        return found

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "summary.json").read_text())
        return found

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.directory / "events.jsonl").read_text().splitlines()]

    @property
    def errors(self) -> list[tuple[str, str]]:
        """Step and kind of each step that failed."""
        return [(e["step"], e["kind"]) for e in self.events if e["event"] == "error"]

    @property
    def details(self) -> str:
        """The site's words about all that failed."""
        return "\n".join(e["detail"] for e in self.events if e["event"] == "error")

    @property
    def steps(self) -> Counter[str]:
        """How many requests each step has."""
        run = RunDirectory.open(self.directory)
        return Counter(run.route_name(int(number)) for number in load_records(run.path)["route"])

    @property
    def iterations(self) -> set[int]:
        """The iterations that have a request."""
        return set(load_records(self.directory)["line"].tolist()) - {0}


def account(user: str = "author", password: str = PASSWORD) -> dict[str, str]:
    return os.environ | {"PLIMSOLL_USER": user, "PLIMSOLL_PASSWORD": password}


def started(
    scenario: str, url: str, out: Path, *args: str, user: str = "author", password: str = PASSWORD
) -> "subprocess.Popen[str]":
    """A scenario that runs."""
    command = [str(PLIMSOLL), "scenario", scenario, "--target", url]
    if registry.find_scenario(scenario).changes:
        command.append("--i-may-change-this-site")
    return subprocess.Popen(
        [*command, "--out", str(out), *args],
        env=account(user, password),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: "subprocess.Popen[str]", out: Path) -> Ran:
    """What came of it. Its output is closed whatever happens: the next test would be blamed for it."""
    with process:
        try:
            said = process.communicate(timeout=LONGEST_S)[0]
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"still running after {LONGEST_S} s: {late.output}") from None
        finally:
            process.kill()
    return Ran(process.returncode, said, (out / "latest").resolve())


def ran(
    scenario: str, url: str, out: Path, *args: str, user: str = "author", password: str = PASSWORD
) -> Ran:
    """A scenario from its start to its end."""
    return ended(started(scenario, url, out, *args, user=user, password=password), out)


def start_locust(scenario: str, *args: str) -> "subprocess.Popen[str]":
    """Locust with a scenario of this checkout, or with a script: its path without `.py`."""
    return subprocess.Popen(
        [str(LOCUST), "-f", str(ROOT / "scenarios" / f"{scenario}.py"), *args],
        env=account(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def start_headless(scenario: str, url: str, out: Path, *args: str) -> "subprocess.Popen[str]":
    return start_locust(scenario, "--headless", "--only-summary", "--host", url, "--out", str(out), *args)


def start_master(scenario: str, url: str, out: Path, *args: str) -> tuple["subprocess.Popen[str]", int]:
    """A master that waits for two workers, and its port."""
    port = free_port()
    where = ("--master", "--master-bind-port", str(port), "--expect-workers", "2")
    return start_headless(scenario, url, out, *where, *args), port


@contextmanager
def workers(scenario: str, port: int) -> Iterator[list["subprocess.Popen[str]"]]:
    """Two of them until the end of the block; their output is nobody's."""
    with ExitStack() as stack:
        found = []
        for _ in range(2):
            worker = start_locust(scenario, "--worker", "--master-port", str(port))
            stack.callback(worker.communicate)
            stack.callback(worker.kill)
            Thread(target=worker.stdout.read if worker.stdout else str, daemon=True).start()
            found.append(worker)
        yield found


def run_with_workers(scenario: str, url: str, out: Path, *args: str) -> Ran:
    """What a master with two workers does."""
    master, port = start_master(scenario, url, out, *args)
    with workers(scenario, port):
        return ended(master, out)


def wait_for_step(process: "subprocess.Popen[str]", out: Path, step: str, times: int = 1) -> None:
    """Waits until a running scenario has recorded a step."""

    def is_there() -> bool:
        try:
            return Ran(0, "", (out / "latest").resolve()).steps[step] >= times
        except Exception:  # not there yet
            return False

    if eventually(lambda: is_there() or process.poll() is not None) and is_there():
        return
    process.kill()
    raise AssertionError(f"no step {step}: {process.communicate()[0]}")


def interrupt(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGINT)


@contextmanager
def changed(path: Path, text: str) -> Iterator[None]:
    """A file of the site with other text for a while; then as it was, or gone again.

    PHP looks at the time of a file that it knows again after two seconds.
    """
    before = path.read_bytes() if path.exists() else None
    try:
        _replace(path, text.encode())
        if before is not None:
            time.sleep(2.5)
        yield
    finally:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            _replace(path, before)
            time.sleep(2.5)


def _replace(path: Path, content: bytes) -> None:
    """Give a file other content at once: PHP never reads half of it."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    os.chown(new, *_owner(path if path.exists() else path.parent))
    new.replace(path)


def plugin(folder: Path, code: str) -> AbstractContextManager[None]:
    """A must-use plugin that the site has for a while: of a new name, so that PHP does not know it yet."""
    path = folder / "wordpress" / "wp-content" / "mu-plugins" / f"zz-test-{time.monotonic_ns()}.php"
    return changed(path, f"<?php\n{code}\n")


def other_nonces(folder: Path) -> AbstractContextManager[None]:
    """The site for a while as it is when every nonce has expired: cookies stay valid."""
    path = folder / "wordpress" / "wp-config.php"
    text, first, salt = path.read_text(), "foreach (\n    [\n        'AUTH_KEY',", "        'NONCE_SALT',\n"
    assert first in text
    assert salt in text
    new = f"define( 'NONCE_SALT', 'of a test' );\n{first}"
    return changed(path, text.replace(first, new).replace(salt, ""))


def _owner(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_uid, found.st_gid


def files_with(directory: Path, secret: str) -> list[Path]:
    """The files under a directory in which a text occurs."""
    return [p for p in directory.rglob("*") if p.is_file() and secret.encode() in p.read_bytes()]


def visitors_command(target: str, out: Path, *options: str) -> list[str]:
    line = [sys.executable, "-m", "plimsoll", "scenario", "visitors", "--target", target, "--out", str(out)]
    return [*line, "--duration-s", "3", "--think-s", "0.1", *options]


def visit(target: str, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        visitors_command(target, out, *options),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
    )


def run_browser(
    target: str,
    out: Path,
    *options: str,
    user: str = "author",
    password: str = PASSWORD,
    port: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Days of an author, on a network that nothing disturbs. `port`: the site's, if not the target's."""
    line = [sys.executable, "-m", "plimsoll", "scenario", "browser", "--target", target, "--out", str(out)]
    with quiet_network(port or urlsplit(target).port) as quiet:
        return quiet.run(
            [*line, "--user", user, "--i-may-change-this-site", "--timeout-s", "60", *options],
            timeout_s=600,
            cwd=ROOT,
            env=os.environ | {"PLIMSOLL_PASSWORD": password},
        )


def facts_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "run.json").read_text())
    return found


def requests_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "summary.json").read_text())["requests"]
    return found


@contextmanager
def site_client(url: str, **settings: Any) -> Iterator[tuple[SiteClient, list[SentRequest]]]:
    """A visitor's client, and what it has sent."""
    sent: list[SentRequest] = []
    site = SiteClient(ScenarioSettings(target=url, **settings), sent.append)
    yield site, sent
    site.close()


def write_secret(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def reply(body: str, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply("http://site/wp-admin/post.php", status, named, body.encode(), 1)


def nobody_came(elsewhere: socket.socket) -> bool:
    """Whether nobody connected to that socket."""
    try:
        elsewhere.accept()
    except BlockingIOError:
        return True
    return False


class Poll:
    """Asks for a page each 50 ms, whatever the answers take, and knows from when to when it failed."""

    def __init__(self, url: str, cookies: dict[str, str] | None = None) -> None:
        self._url, self._cookies = url, cookies or {}
        self._seen: list[tuple[float, bool]] = []
        self.late_ms = 0.0  # the most that a question came after its time
        self._ended = Event()
        self._thread = Thread(target=self._run)

    def __enter__(self) -> "Poll":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def outage_ms(self) -> float:
        """From the first failure to the first success after it, whatever came between."""
        found, since = 0.0, None
        for due_s, well in sorted(self._seen):
            if not well:
                since = due_s if since is None else since
            elif since is not None:
                found, since = found + due_s - since, None
        return found * 1000

    def differs_ms(self, run: Path) -> float:
        """How far its outage may be from that of a run: 200 ms, and what questions were late."""
        with (run / "probes.csv").open(newline="") as file:
            late_us = max(int(row["lag_us"]) for row in csv.DictReader(file))
        return 200 + self.late_ms + late_us / 1000

    def _run(self) -> None:
        with ThreadPoolExecutor(64) as pool:
            due_s = time.monotonic()
            while not self._ended.wait(max(due_s - time.monotonic(), 0)):
                pool.submit(self._ask, due_s)
                due_s += 0.05

    def _ask(self, due_s: float) -> None:
        self.late_ms = max(self.late_ms, (time.monotonic() - due_s) * 1000)
        try:
            well = requests.get(self._url, cookies=self._cookies, timeout=10).status_code == 200
        except requests.RequestException:
            well = False
        self._seen.append((due_s, well))
