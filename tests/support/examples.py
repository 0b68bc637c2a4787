"""The examples of every command's help, and a folder like a fresh clone in which they run."""

import gzip
import os
import re
import shlex
import shutil
import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path

from tests.support.comparable import separated
from tests.support.experiment import cells, write_cells
from tests.support.programs import (
    DOCS,
    FIXTURES,
    LONGEST_S,
    PLIMSOLL,
    ROOT,
    free_port,
    listens,
    need,
    wait_for,
)
from tests.support.rundir import write_instance, write_instances

_SECTION = re.compile(r"^## `(plimsoll[^`]*)`\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
_EXAMPLES = re.compile(r"^( *)Examples:\n\n?((?:\1 +\S.*\n)+)", re.MULTILINE)
# What the examples listen on. A test has free ports in their place, since a site may run on these.
_PORTS = (8080, 8081, 8090, 8091, 8443, 9465, 2222)
_DEFAULT_PORTS = {"watch": 9464, "serve": 8090}
# Where the exit code is an answer.
_ANSWERS = ("ab", "rehearse", "compare", "signoff", "regress", "doctor", "lag")
_ASKS = ("clone add",)  # on the terminal, whether it may go on
_COMPLAINT = re.compile(r"^(Traceback|Error:|Usage:)", re.MULTILINE)

SERVERS = ("plimsoll watch", "plimsoll serve")  # until they are interrupted, with exit code 0
BEGUN = ("plimsoll replay examples/access.log",)  # a minute: begun, and interrupted
_TIMER = (
    "it changes the machine's timers, as tests/real/lab/test_schedule_systemd.py does with a name of its own"
)
_NIGHT = "it is a night of a schedule that is installed: tests/real/lab/test_schedule_systemd.py"
_SITE = "it wants the site of `make site`, on which tests/real/scenarios/{} runs it with options of its own"
_OVER_SSH = "it needs an SSH server: tests/real/lab/test_ssh_machine.py has one"
_CHANGES = " --target http://127.0.0.1:8080 --i-may-change-this-site"
NOT_RUN = {
    "plimsoll rehearse access.log --target http://10.0.0.5 --within 1h": "it takes an hour",
    "plimsoll ab access.log --baseline http://10.0.0.5 --candidate http://10.0.0.6 --within 1h": (
        "it takes an hour"
    ),
    "plimsoll same access.log --baseline https://shop.example --candidate http://10.0.0.5:8080": (
        "replay/docs_test.go runs it with two sites of its own"
    ),
    "plimsoll schedule install examples/two-servers.yml": _TIMER,
    "plimsoll schedule install examples/two-servers.yml --name nightly --at 22:00 "
    "-- --keep-raw-days 30": _TIMER,
    "plimsoll schedule remove nightly": _TIMER,
    "plimsoll schedule remove nightly --purge --dry-run": _NIGHT,
    "plimsoll schedule now nightly": _NIGHT,
    "plimsoll schedule now nightly --json": _NIGHT,
    "plimsoll schedule status nightly --json": _NIGHT,
    "plimsoll hosts exec --hosts hosts.yml -- uptime": _OVER_SSH,
    "plimsoll hosts exec --hosts hosts.yml --group db -- sh -c 'free -m | grep Mem'": _OVER_SSH,
    "plimsoll hosts exec --host root@127.0.0.1:2222 --parallel 8 --json -- du -sh /srv": _OVER_SSH,
    "plimsoll fileio /srv/nvme --file-size 64G --volume nvme-p3600": "it takes 64 GiB",
    "plimsoll fileio /srv/nvme --fsync --volume nvme-p3600": "it takes five minutes and a disk of its own",
    "plimsoll scenario download --target http://127.0.0.1:8080": _SITE.format("test_running.py"),
    "PLIMSOLL_USER=admin plimsoll scenario save-article --target http://127.0.0.1:8080 "
    "--password-file password.txt --i-may-change-this-site": _SITE.format("test_save_article.py"),
    f"plimsoll scenario save-article{_CHANGES}": _SITE.format("test_save_article.py"),
    f"plimsoll scenario upload-images{_CHANGES}": _SITE.format("test_upload_images.py"),
    f"plimsoll scenario upgrade-wordpress{_CHANGES}": _SITE.format("test_upgrade_wordpress.py"),
    f"plimsoll scenario upgrade-xenforo{_CHANGES}": _SITE.format("test_upgrade_xenforo.py"),
    "plimsoll scenario visitors --target http://127.0.0.1:8080": _SITE.format("test_visitors.py"),
    f"plimsoll scenario browser{_CHANGES}": _SITE.format("test_browser_scenario.py"),
    f"plimsoll scenario clean-up{_CHANGES}": _SITE.format("test_clean_up.py"),
    f"plimsoll scenario clean-up results/latest{_CHANGES}": _SITE.format("test_clean_up.py"),
    f"plimsoll scenario clean-up{_CHANGES} --run all --yes": _SITE.format("test_clean_up.py"),
}


def examples() -> dict[str, list[str]]:
    """Return the examples of each command, in the order of the help."""
    found: dict[str, list[str]] = {}
    for command, text in _SECTION.findall((DOCS / "commands.md").read_text(encoding="utf-8")):
        block = _EXAMPLES.search(text)
        joined = re.sub(r" *\\\n *", " ", block[2]) if block else ""
        # Two spaces or more lead to what an example is for.
        found[command] = [re.split(r" {2,}", line.strip())[0] for line in joined.splitlines()]
    return found


class Clone:
    """A folder with the examples of a fresh clone, and the results of earlier commands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {port: free_port() for port in _PORTS}
        home, programs = folder / "home", folder / "programs"
        (home / ".config" / "fish" / "completions").mkdir(parents=True)  # fish makes it
        programs.mkdir()
        (programs / "mail").write_text("#!/bin/sh\ncat >letter\n")
        (programs / "mail").chmod(0o755)
        for name in ("jq", "less"):
            if not shutil.which(name):
                (programs / name).symlink_to(need("cat"))
        path = f"{programs}:{PLIMSOLL.parent}:{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PLIMSOLL_")}
        self.environment = {**kept, "PATH": path, "HOME": str(home)}
        shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        lab = folder / "examples" / "two-servers.yml"
        lab.write_text(self.here(lab.read_text(encoding="utf-8")).replace("repeats: 4", "repeats: 1"))

    def here(self, text: str) -> str:
        """Return the text with ports of this test."""
        return re.sub(r":(\d{4})\b", lambda found: f":{self.ports.get(int(found[1]), int(found[1]))}", text)

    def run(self, example: str) -> None:
        """Run an example as it stands. It must do its work, or give its answer."""
        line = self.here(example)
        if any(f"plimsoll {asking}" in example for asking in _ASKS):
            line = f"echo y | script -qec {shlex.quote(line)} /dev/null"
        ran = subprocess.run(
            [need("bash"), "-o", "pipefail", "-c", line],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        said = f"{example}\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
        words = example.split()
        answers = {0, 1, 3} if words[1] in _ANSWERS or "--fail-over" in words else {0}
        assert ran.returncode in answers, f"{ran.returncode}: {said}"
        assert not _COMPLAINT.search(ran.stdout + ran.stderr), said

    @contextmanager
    def started(self, example: str) -> Iterator[subprocess.Popen[str]]:
        """A server of an example, once it listens. It ends with 0 when it is interrupted."""
        port = self._port(example)
        wait_for(f"port {port} is free", lambda: not listens(port))
        with self._begun(example) as process:
            wait_for(example, lambda: listens(port) or process.poll() is not None)
            assert process.poll() is None, example
            yield process
            process.send_signal(signal.SIGINT)
            assert process.wait(LONGEST_S) == 0, example

    def get(self, example: str) -> int:
        """Ask the server of an example for something; return the status of the answer."""
        where = ("127.0.0.1", self._port(example))
        asked = (
            HTTPSConnection(*where, context=ssl._create_unverified_context())  # noqa: S323 its own
            if "--tls" in example
            else HTTPConnection(*where)
        )
        with closing(asked):
            asked.request("GET", "/metrics" if "watch" in example else "/")
            return asked.getresponse().status

    def _port(self, example: str) -> int:
        named = re.search(r":(\d+)\b", self.here(example))
        return int(named[1]) if named else _DEFAULT_PORTS[example.split()[1]]

    def interrupt(self, example: str) -> None:
        """Begin what would take long, and interrupt it when it has sent requests: the exit code is 1."""
        latest = self.folder / "results" / "latest"
        before = latest.resolve()
        with self._begun(example) as process:
            wait_for(example, lambda: latest.resolve() != before)
            wait_for(example, lambda: (latest / "requests.npy").stat().st_size > 1000)
            process.send_signal(signal.SIGINT)
            assert process.wait(LONGEST_S) == 1, example

    @contextmanager
    def _begun(self, example: str) -> Iterator[subprocess.Popen[str]]:
        with (self.folder / "said").open("w") as said:
            process = subprocess.Popen(
                [need("bash"), "-c", f"exec {self.here(example)}"],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                text=True,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
        text = (self.folder / "said").read_text()
        assert not _COMPLAINT.search(text), text


def write_results(folder: Path) -> None:
    """Write what the examples of one command find that others, or other programs, have written before."""
    results = folder / "results"
    separated(results)
    for index, shard in enumerate(write_instances(folder / "shards")):
        write_instance(folder / f"host{index + 1}" / shard.name, index)
    (folder / "log").mkdir()
    for file in (FIXTURES / "grinder").glob("load-*.log"):
        shutil.copy(file, folder / "log")
    (folder / "result.json.gz").write_bytes(gzip.compress((FIXTURES / "k6" / "visitors.json").read_bytes()))
    for file in (FIXTURES / "locust").glob("load_*.csv"):
        shutil.copy(file, folder)
    (folder / "locustfile.py").write_text(_LOCUSTFILE)
    (folder / "goaccess.conf").write_text("log-format COMBINED\n")
    write_cells(results / "fileio.jsonl", cells())
    _write_timed_log(folder / "access.log")
    for name, text in {"password.txt": "secret\n", "token": "0123456789abcdef0123456789abcdef\n"}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)


_LOCUSTFILE = """\
from locust import HttpUser, task

class Reader(HttpUser):
    @task
    def read(self):
        self.client.get("/")
"""


def _write_timed_log(path: Path) -> None:
    """Write a log with durations, as nginx has them: a request each ten minutes, for two weeks."""
    lines = [
        f"192.0.2.{i % 9} - - [{1 + i // 144:02}/Nov/2026:{i // 6 % 24:02}:{i % 6}0:00 +0000] "
        f'"GET /a.jpg HTTP/1.1" 200 9 "-" "UA" {0.5 if i % 20 == 19 else 0.05:.3f}\n'
        for i in range(14 * 144)
    ]
    path.write_text("".join(lines))
