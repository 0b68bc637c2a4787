"""`upgrade-xenforo` against the stand-in on a real MariaDB, behind a real nginx, and over a real sshd."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenarios.xenforo.pagesfile import STAND_IN
from tests.lab.forum import COMPLETE, FORUM, PASSWORD, Forum, MariaDB, listens, wait_for
from tests.lab.programs import free_port, need
from tests.lab.sshd import Sshd

POSTS = 6000


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDB]:
    server = MariaDB(tmp_path_factory.mktemp("db"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def site(database: MariaDB) -> Iterator[Forum]:
    site = Forum(database, FORUM_PAGE_ROWS="1000", FORUM_BATCH_ROWS="500")
    site.must("seed.php", "--rows", str(POSTS))
    yield site
    site.kill()


@pytest.fixture
def forum(site: Forum) -> Iterator[Forum]:
    yield site
    site.reset()


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()


class Scenario:
    """`plimsoll scenario upgrade-xenforo` in a folder of its own."""

    def __init__(
        self, folder: Path, url: str, *options: str, password: str = PASSWORD, texts: str = ""
    ) -> None:
        installer = folder / "installer.yml"
        text = STAND_IN.read_text().replace("/forum/install/", "/install/")
        installer.write_text(texts or text)
        self.results = folder / "results"
        self.command = [
            sys.executable, "-m", "analysis", "scenario", "upgrade-xenforo", "--target", url,
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


def test_a_whole_upgrade_is_recorded_page_by_page(forum: Forum, tmp_path: Path) -> None:
    scenario = Scenario(tmp_path, forum.url)
    done = scenario.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert forum.version() == "2.0"
    run, summary, routes = (scenario.file(f"{name}.json") for name in ("run", "summary", "routes"))
    assert (run["status"], run["scenario"], run["loop"]) == ("complete", "upgrade-xenforo", "closed")
    assert run["scenario_settings"]["installer"]["login"]["user_field"] == "account"
    assert routes[:3] == ["open installer", "log in", "start"]
    assert {"continue: Converting posts", "continue: Rebuilding the search index"} <= set(routes)
    pages = int(summary["measures"]["pages"]["sum"])
    journal = forum.database.sql("SELECT SUM(pages), COUNT(*) FROM upgrade_step")
    assert journal == [[str(pages), "17"]]
    records = scenario.records()
    assert len(records) == pages + 4
    assert not records["error"].any()
    total_s = summary["measures"]["upgrade_total"]["sum"]
    phases_s = sum(m["sum"] for name, m in summary["measures"].items() if name.startswith("phase: "))
    assert 0 < phases_s <= total_s
    assert PASSWORD not in scenario.everything()
    reported(scenario)


def reported(scenario: Scenario) -> None:
    """`plimsoll report` reads it."""
    report = subprocess.run(
        [sys.executable, "-m", "analysis", "report", str(scenario.results / "latest")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.returncode == 0, report.stderr


def test_a_second_upgrade_says_that_there_is_nothing_to_do(forum: Forum, tmp_path: Path) -> None:
    forum.must("cmd.php", "upgrade")
    failed(Scenario(tmp_path, forum.url), "log in", "wrong_version", "already up to date")


def test_a_site_that_nobody_called_a_clone_is_left_alone(forum: Forum, tmp_path: Path) -> None:
    scenario = Scenario(tmp_path, forum.url)
    scenario.command.remove("--i-may-change-this-site")
    done = scenario.run()
    assert (done.returncode, scenario.results.exists()) == (2, False)
    assert "--i-may-change-this-site" in done.stderr


def failed(scenario: Scenario, step: str, kind: str, said: str) -> None:
    """Runs it: it fails at `step`, and `run.json`, the record and the event say why."""
    done = scenario.run()
    assert done.returncode == 1, done.stdout + done.stderr
    run = scenario.file("run.json")
    assert (run["status"], said in run["reason"]) == ("failed", True), run["reason"]
    error = scenario.events("error")[-1]
    assert (error["step"], error["kind"]) == (step, kind)
    assert said in error["detail"]
    assert PASSWORD not in scenario.everything() + done.stdout + done.stderr


def test_a_wrong_password(forum: Forum, tmp_path: Path) -> None:
    scenario = Scenario(tmp_path, forum.url, password="no-such-word")  # noqa: S106
    failed(scenario, "log in", "login_failed", "password is wrong")
    assert "no-such-word" not in scenario.everything()


@pytest.mark.parametrize(
    ("fault", "step", "kind", "said"),
    [
        ("fatal", "post-index", "php_fatal", "Allowed memory size"),
        ("error", "post-index", "upgrade_failed", "A fault was ordered"),
        ("refused", "post-index", "upgrade_failed", "A fault was ordered".lower()),
        ("stuck", "post-index", "upgrade_failed", "does not advance"),
        ("silent", "search-index", "upgrade_failed", "does not say"),
    ],
)
def test_failures_whose_status_may_be_200(
    forum: Forum, tmp_path: Path, fault: str, step: str, kind: str, said: str
) -> None:
    forum.must("fault.php", fault, step)
    title = {"post-index": "Indexing posts", "search-index": "Rebuilding the search index"}[step]
    failed(Scenario(tmp_path, forum.url), f"continue: {title}", kind, said)


def test_the_next_run_goes_on_where_a_fault_stopped_one(forum: Forum, tmp_path: Path) -> None:
    forum.must("fault.php", "error", "member-counters")
    scenario = Scenario(tmp_path, forum.url)
    failed(scenario, "continue: Rebuilding counters of members", "upgrade_failed", "A fault was ordered")
    forum.must("fault.php", "off")
    done = scenario.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "continue: Altering posts" not in scenario.file("routes.json"), "it is not done twice"
    assert forum.version() == "2.0"


STANDS = "SELECT 1 FROM post WHERE post_id = 1200 FOR UPDATE"


@contextlib.contextmanager
def standing(forum: Forum, scenario: Scenario) -> Iterator["subprocess.Popen[str]"]:
    """The scenario in the middle of a page, in the batch that wants post 1200."""
    forum.upgrade_until("post-reactions")
    with forum.database.blocking(STANDS), scenario.started() as process:
        wait_for("it stands at post 1200", lambda: forum.database.busy_with("UPDATE post p"))
        yield process


def test_interrupted_between_two_pages_and_gone_on_with(forum: Forum, tmp_path: Path) -> None:
    scenario = Scenario(tmp_path, forum.url)
    forum.upgrade_until("post-reactions")
    with scenario.started() as process:
        with forum.database.blocking(STANDS):
            wait_for("it stands at post 1200", lambda: forum.database.busy_with("UPDATE post p"))
            process.send_signal(signal.SIGINT)
            assert process.stdout
            assert "Interrupted" in process.stdout.readline()
        process.communicate(timeout=120)
    assert process.returncode == 1
    assert scenario.file("run.json")["status"] == "interrupted"
    assert not scenario.events("error"), "the page that was in flight came to its end"
    assert forum.version() == "1.9"
    done = scenario.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert forum.version() == "2.0"


def test_killed_and_gone_on_with_when_the_lock_is_free(forum: Forum, tmp_path: Path) -> None:
    scenario, database = Scenario(tmp_path, forum.url), forum.database
    with contextlib.ExitStack() as block:
        block.enter_context(database.blocking("SELECT 1 FROM post LIMIT 1"))
        with scenario.started():
            wait_for("it stands at an ALTER", lambda: database.busy_with("ALTER TABLE `post`"))
        with scenario.started() as again:
            sessions = "SELECT COUNT(*) FROM session WHERE member_id = 1"
            wait_for("the next one is there", lambda: database.value(sessions) == "2")
            block.close()
            output, _ = again.communicate(timeout=120)
    assert again.returncode == 0, output
    assert scenario.file("run.json")["status"] == "complete"
    assert forum.version() == "2.0"


def test_a_lock_that_stays_is_told(database: MariaDB, forum: Forum, tmp_path: Path) -> None:
    database.sql("REPLACE INTO upgrade_lease VALUES (1, 'somebody', UNIX_TIMESTAMP() + 600)")
    text = STAND_IN.read_text().replace("/forum/install/", "/install/").replace("s: 60", "s: 1.5")
    scenario = Scenario(tmp_path, forum.url, texts=text)
    failed(scenario, "start", "upgrade_locked", "somebody else is running it")


def test_mariadbd_killed_in_a_page(forum: Forum, tmp_path: Path) -> None:
    scenario = Scenario(tmp_path, forum.url)
    with standing(forum, scenario) as process:
        forum.database.kill()
        process.communicate(timeout=120)
    assert process.returncode == 1
    error = scenario.events("error")[-1]
    assert (error["kind"], error["step"]) == ("upgrade_failed", "continue: Rebuilding reactions of posts")
    forum.database.start()
    done = scenario.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert forum.version() == "2.0"


PROXY = """
daemon off; pid {root}/nginx.pid; error_log {root}/error.log; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {root}/t1; proxy_temp_path {root}/t2; fastcgi_temp_path {root}/t3;
  uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {url}; }} }}
}}
"""


def test_a_dead_backend_behind_a_proxy(forum: Forum, tmp_path: Path) -> None:
    nginx, port = need("nginx"), free_port()
    config = tmp_path / "nginx.conf"
    config.write_text(PROXY.format(root=tmp_path, port=port, url=forum.url))
    proxy = subprocess.Popen([nginx, "-c", str(config), "-e", str(tmp_path / "error.log")])
    try:
        wait_for("nginx listens", lambda: listens(port))
        scenario = Scenario(tmp_path, f"http://127.0.0.1:{port}")
        with standing(forum, scenario) as process:
            forum.kill()
            process.communicate(timeout=120)
        assert process.returncode == 1
        error = scenario.events("error")[-1]
        assert (error["kind"], error["step"]) == ("backend_dead", "continue: Rebuilding reactions of posts")
    finally:
        proxy.terminate()
        proxy.wait()
        if forum.process.poll() is not None:
            forum.start()


def by_ssh(forum: Forum, sshd: Sshd, folder: Path, command: str = "", **replaced: Path) -> Scenario:
    settings = {name: value for name, value in forum.environment.items() if name.startswith("FORUM_")}
    assigned = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())
    options = {"--ssh-key": sshd.key, "--ssh-known-hosts": sshd.known_hosts}
    options |= {f"--ssh-{name.replace('_', '-')}": value for name, value in replaced.items()}
    return Scenario(
        folder,
        forum.url,
        "--ssh",
        sshd.remote,
        "--ssh-command",
        command or f"cd {shlex.quote(str(FORUM))} && exec env {assigned} php cmd.php upgrade",
        *(word for name, value in options.items() for word in (name, str(value))),
    )


def test_an_upgrade_by_command_over_ssh(forum: Forum, sshd: Sshd, tmp_path: Path) -> None:
    scenario = by_ssh(forum, sshd, tmp_path)
    del scenario.environment["PLIMSOLL_USER"], scenario.environment["PLIMSOLL_PASSWORD"]
    done = scenario.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert forum.version() == "2.0"
    output = [event["line"] for event in scenario.events("output")]
    assert output[-1] == COMPLETE
    instants = [event["t_ns"] for event in scenario.events("output")]
    assert instants == sorted(instants)
    assert len(set(instants)) > 5, "the lines were timed as they came, not all at the end"
    routes, measures = scenario.file("routes.json"), scenario.file("summary.json")["measures"]
    assert routes[:2] == ["connect", "command: begin"]
    assert "command: Converting posts" in routes
    assert measures["lines"]["sum"] == len(output)
    phases_s = sum(m["sum"] for name, m in measures.items() if name.startswith("phase: "))
    assert phases_s == pytest.approx(measures["upgrade_total"]["sum"])
    reported(scenario)


SSH_FAILURES = [
    (
        "a host that is not known",
        "",
        {"known_hosts": Path("/dev/null")},
        "connect",
        "connect_failed",
        "known-hosts",
    ),
    (
        "a key that is not accepted",
        "",
        {"key": "other_key"},
        "connect",
        "login_failed",
        "no key was accepted",
    ),
    ("a key with a passphrase", "", {"key": "locked_key"}, "connect", "login_failed", "ssh-agent"),
    (
        "a command that fails",
        "echo wrong >&2; exit 3",
        {},
        "command: begin",
        "upgrade_failed",
        "exited with 3: wrong",
    ),
    ("a command that says nothing", "true", {}, "command: begin", "upgrade_failed", "did not say"),
    ("a command that is killed", "kill -9 $$", {}, "command: begin", "upgrade_failed", "signal KILL"),
]


@pytest.mark.parametrize(
    ("why", "command", "replaced", "step", "kind", "said"),
    SSH_FAILURES,
    ids=[case[0] for case in SSH_FAILURES],
)
def test_failures_over_ssh(
    forum: Forum,
    sshd: Sshd,
    tmp_path: Path,
    why: str,
    command: str,
    replaced: dict[str, str | Path],
    step: str,
    kind: str,
    said: str,
) -> None:
    paths = {name: getattr(sshd, p) if isinstance(p, str) else p for name, p in replaced.items()}
    failed(by_ssh(forum, sshd, tmp_path, command, **paths), step, kind, said)
    assert forum.version() == "1.9", why


def test_an_upgrade_over_ssh_that_was_done_before(forum: Forum, sshd: Sshd, tmp_path: Path) -> None:
    forum.must("cmd.php", "upgrade")
    failed(by_ssh(forum, sshd, tmp_path), "command: begin", "wrong_version", "already up to date")


def test_a_command_interrupted_over_ssh_is_gone_on_with(forum: Forum, sshd: Sshd, tmp_path: Path) -> None:
    scenario = by_ssh(forum, sshd, tmp_path)
    with standing(forum, scenario) as process:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 1
    assert scenario.file("run.json")["status"] == "interrupted"
    wait_for("nobody is at it", lambda: not forum.database.busy_with("UPDATE post p"))
    forum.database.sql("DELETE FROM upgrade_lease")
    done = scenario.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert forum.version() == "2.0"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--ssh", "me@host"], "--ssh-command: is missing"),
        (["--ssh-command", "true"], "--ssh: is missing"),
        (["--ssh", "me:secret@host", "--ssh-command", "true"], "never by password"),
        (["--users", "2"], "--users"),
        (["--installer", "none.yml"], "No such file"),
    ],
)
def test_wrong_usage(tmp_path: Path, options: list[str], said: str) -> None:
    done = Scenario(tmp_path, "http://127.0.0.1:9", *options).run()
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "results").exists()
