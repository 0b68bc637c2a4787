"""A forum stand-in of a test's own, all of it to be killed, and `upgrade-xenforo` on it as a user runs it.

The forum has a real MariaDB and a real PHP, both on loopback.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import requests

from plimsoll.scenarios.settings import STAND_IN
from tests.support.programs import LONGEST_S, ROOT, free_port, listens, need, wait_for

FORUM = ROOT / "site" / "forum"
PASSWORD = "plimsoll-clone"  # noqa: S105 of a clone on loopback
COMPLETE = "The upgrade is complete. The forum runs version 2.0."
POSTS = 2500
STANDS = "SELECT 1 FROM post WHERE post_id = 1200 FOR UPDATE"


class MariaDB:
    """A server in a folder of its own. Killed, it can be started again on the same tables."""

    def __init__(self, root: Path, *options: str) -> None:
        self._options = options
        self.client, self._server = need("mariadb"), need("mariadbd")
        self.port = free_port()
        self.socket, self._data, self._log = root / "s", root / "data", root / "mariadbd.log"
        self._user = ["--user=root"] if os.getuid() == 0 else []
        install = [need("mariadb-install-db"), "--no-defaults", *self._user, f"--datadir={self._data}"]
        # A mariadbd that begins removes the temporary tables of others that share its folder for them.
        self._own = {**os.environ, "TMPDIR": str(root)}
        subprocess.run(
            [*install, "--auth-root-authentication-method=normal", "--skip-test-db"],
            env=self._own,
            check=True,
            capture_output=True,
        )
        self.start()
        self.sql(
            "CREATE DATABASE forum; CREATE USER forum@localhost IDENTIFIED BY 'forum';"
            "CREATE USER forum@'127.0.0.1' IDENTIFIED BY 'forum';"
            "GRANT ALL ON forum.* TO forum@localhost, forum@'127.0.0.1'",
            database="",
        )

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    self._server,
                    "--no-defaults",
                    *self._user,
                    f"--datadir={self._data}",
                    f"--socket={self.socket}",
                    f"--pid-file={self.socket}.pid",
                    f"--port={self.port}",
                    "--bind-address=127.0.0.1",
                    "--innodb-buffer-pool-size=64M",
                    "--innodb-log-file-size=64M",
                    *self._options,
                ],
                env=self._own,
                stdout=log,
                stderr=log,
            )
        wait_for("mariadbd listens", lambda: listens(self.port))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()

    def sql(self, statements: str, database: str = "forum") -> list[list[str]]:
        """The rows that the statements answer, as text."""
        command = [self.client, "--no-defaults", "-uroot", f"--socket={self.socket}", "-N", "-B", database]
        done = subprocess.run(command, input=statements, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    def value(self, query: str) -> str:
        return self.sql(query)[0][0]

    def busy_with(self, statement: str) -> bool:
        """Whether a connection is at a statement that begins so."""
        rows = self.sql("SELECT TRIM(INFO) FROM information_schema.PROCESSLIST WHERE INFO IS NOT NULL")
        return any(row[0].startswith(statement) for row in rows)

    @contextlib.contextmanager
    def blocking(self, query: str) -> Iterator[None]:
        """Holds the locks of `query` in a transaction of its own, so that what needs them stands still."""
        command = [self.client, "--no-defaults", "-uroot", f"--socket={self.socket}", "-N", "-n", "forum"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdin and other.stdout
            other.stdin.write(f"BEGIN; {query};\n")
            other.stdin.flush()
            assert other.stdout.readline(), "the query found no row to lock"
            try:
                yield
            finally:
                other.kill()


class Forum:
    """The stand-in on PHP's own server."""

    def __init__(self, database: MariaDB, **settings: str) -> None:
        self.database, self._php = database, need("php")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            **os.environ,
            "PHP_CLI_SERVER_WORKERS": "4",
            "FORUM_DB_HOST": "127.0.0.1",
            "FORUM_DB_PORT": str(database.port),
            "FORUM_LEASE_SECONDS": "1",
            "FORUM_LOCK_WAIT_SECONDS": "0",
            **settings,
        }
        self.start()

    def start(self) -> None:
        """Starts the server in a process group of its own, since it forks."""
        self.process = subprocess.Popen(
            [self._php, "-S", f"127.0.0.1:{self.port}", "-t", str(FORUM / "public")],
            env=self.environment,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for("php answers", self._answers)

    def _answers(self) -> bool:
        with contextlib.suppress(requests.RequestException):
            return requests.get(self.url + "/style.css", timeout=LONGEST_S).status_code == 200
        return False

    def kill(self) -> None:
        """Kills the server and its workers at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def php(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs one of the stand-in's commands."""
        return subprocess.run(
            [self._php, *command],
            cwd=FORUM,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def must(self, *command: str) -> str:
        """Runs a command that succeeds; returns what it printed."""
        done = self.php(*command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def reset(self) -> None:
        """The old version again, and nobody's upgrade under way."""
        self.must("fault.php", "off")
        wait_for("the upgrade can be taken back", self._taken_back)
        self.database.sql("DELETE FROM session")

    def _taken_back(self) -> bool:
        self.database.sql("DELETE FROM upgrade_lease")
        return self.php("reset.php").returncode == 0

    def upgrade_until(self, step: str) -> None:
        """Does the steps before `step`, so that it comes next."""
        self.must("fault.php", "error", step)
        assert self.php("cmd.php", "upgrade").returncode == 1
        self.must("fault.php", "off")
        self.database.sql("DELETE FROM upgrade_lease")

    def version(self) -> str:
        return self.database.value("SELECT value FROM setting WHERE name = 'version'")

    def tables(self) -> list[str]:
        """What the forum's tables look like and hold."""
        names = ("board", "member", "thread", "post", "post_like", "search_index")
        query = "; ".join(f"SHOW CREATE TABLE {name}; CHECKSUM TABLE {name}" for name in names)
        return [" ".join(row) for row in self.database.sql(query)]


def serving(root: Path, posts: int, **settings: str) -> Iterator[Forum]:
    """Yields a forum of so many posts, and ends it with its database."""
    database = MariaDB(root)
    site = Forum(database, **settings)
    site.must("seed.php", "--rows", str(posts))
    yield site
    site.kill()
    database.stop()


class UpgradeCommand:
    """`plimsoll scenario upgrade-xenforo` in a folder of its own."""

    def __init__(
        self, folder: Path, url: str, *options: str, password: str = PASSWORD, texts: str = ""
    ) -> None:
        installer = folder / "installer.yml"
        text = STAND_IN.read_text().replace("/forum/install/", "/install/")
        installer.write_text(texts or text)
        self.results = folder / "results"
        self.command = [
            sys.executable, "-m", "plimsoll", "scenario", "upgrade-xenforo", "--target", url,
            "--installer", str(installer), "--out", str(self.results), "--i-may-change-this-site", *options,
        ]  # fmt: skip
        self.environment = {
            **os.environ,
            "PLIMSOLL_USER": "admin",
            "PLIMSOLL_PASSWORD": password,
            "HOME": str(folder),
            "SSH_AUTH_SOCK": "",
        }

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command, env=self.environment, capture_output=True, text=True, timeout=300, check=False
        )

    @contextlib.contextmanager
    def started(self) -> Iterator["subprocess.Popen[str]"]:
        with subprocess.Popen(
            self.command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def file(self, name: str) -> Any:
        return json.loads((self.results / "latest" / name).read_text())

    def events(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.results / "latest" / "events.jsonl").read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def records(self) -> Any:
        return np.load(self.results / "latest" / "requests.npy")

    def everything(self) -> str:
        return "".join(
            p.read_text(errors="replace") for p in (self.results / "latest").iterdir() if p.is_file()
        )


def reported(scenario: UpgradeCommand) -> None:
    """`plimsoll report` reads it."""
    report = subprocess.run(
        [sys.executable, "-m", "plimsoll", "report", str(scenario.results / "latest")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.returncode == 0, report.stderr


def failed(scenario: UpgradeCommand, step: str, kind: str, said: str) -> None:
    """Runs it: it fails at `step`, and `run.json`, the record and the event say why."""
    done = scenario.run()
    assert done.returncode == 1, done.stdout + done.stderr
    run = scenario.file("run.json")
    assert (run["status"], said in run["reason"]) == ("failed", True), run["reason"]
    error = scenario.events("error")[-1]
    assert (error["step"], error["kind"]) == (step, kind)
    assert said in error["detail"]
    assert PASSWORD not in scenario.everything() + done.stdout + done.stderr


@contextlib.contextmanager
def standing(forum: Forum, scenario: UpgradeCommand) -> Iterator["subprocess.Popen[str]"]:
    """The scenario in the middle of a page, in the batch that wants post 1200."""
    forum.upgrade_until("post-reactions")
    with forum.database.blocking(STANDS), scenario.started() as process:
        wait_for("it stands at post 1200", lambda: forum.database.busy_with("UPDATE post p"))
        yield process
