"""`upgrade-xenforo` against the stand-in on a real MariaDB, and behind a real nginx."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from plimsoll.scenarios.settings import STAND_IN
from tests.support.forum import (
    PASSWORD,
    POSTS,
    STANDS,
    Forum,
    UpgradeCommand,
    failed,
    reported,
    serving,
    standing,
)
from tests.support.programs import LONGEST_S, free_port, listens, need, wait_for
from tests.support.scenario import Poll


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    yield from serving(tmp_path_factory.mktemp("db"), POSTS, FORUM_PAGE_ROWS="1000", FORUM_BATCH_ROWS="500")


@pytest.fixture
def forum(site: Forum) -> Iterator[Forum]:
    yield site
    site.reset()


def test_a_whole_upgrade_is_recorded_page_by_page(forum: Forum, tmp_path: Path) -> None:
    scenario = UpgradeCommand(tmp_path, forum.url)
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


def test_guests_find_the_board_closed_as_long_as_an_independent_poll_does(
    forum: Forum, tmp_path: Path
) -> None:
    scenario = UpgradeCommand(tmp_path, forum.url, "--probe-ms", "50")
    with Poll(f"{forum.url}/index.php") as poll, scenario.started() as process:
        with forum.database.blocking("SELECT 1 FROM post LIMIT 1"):
            wait_for("it stands at an ALTER", lambda: forum.database.busy_with("ALTER TABLE `post`"))
            closed = requests.get(f"{forum.url}/index.php?threads/1", timeout=LONGEST_S)
            time.sleep(1)
        output, _ = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, output
    assert (closed.status_code, closed.headers["Cache-Control"]) == (503, "no-store")
    assert "being upgraded" in closed.text
    measures = scenario.file("summary.json")["measures"]
    outage_ms = measures["outage: visitors"]["sum"]
    assert outage_ms == pytest.approx(poll.outage_ms, abs=poll.differs_ms(scenario.results / "latest"))
    assert outage_ms >= 900, "it stood for a second"
    assert measures["first good page: visitors"]["sum"] >= outage_ms
    assert not {"outage: members", "maintenance: visitors"} & measures.keys()
    told = next(event for event in scenario.events("probes") if event["phase"] == "told")
    index, board, thread = (page.removeprefix(forum.url) for page in told["pages"])
    assert (index, board) == ("/", "/index.php?forums/1")
    assert thread.startswith("/index.php?threads/")
    assert "visit" not in scenario.file("routes.json")


def test_a_board_that_is_closed_from_the_beginning_is_out_since_then(forum: Forum, tmp_path: Path) -> None:
    scenario = UpgradeCommand(tmp_path, forum.url)
    forum.upgrade_until("post-reactions")
    forum.database.sql("REPLACE INTO upgrade_lease VALUES (1, 'somebody', 1)")
    assert requests.get(f"{forum.url}/index.php", timeout=LONGEST_S).status_code == 503, (
        "it was begun, and stopped"
    )
    done = scenario.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert scenario.file("summary.json")["measures"]["outage: visitors"]["sum"] > 0
    assert requests.get(f"{forum.url}/index.php", timeout=LONGEST_S).status_code == 200


def test_a_second_upgrade_says_that_there_is_nothing_to_do(forum: Forum, tmp_path: Path) -> None:
    forum.must("cmd.php", "upgrade")
    failed(UpgradeCommand(tmp_path, forum.url), "log in", "wrong_version", "already up to date")


def test_a_site_that_nobody_called_a_clone_is_left_alone(forum: Forum, tmp_path: Path) -> None:
    scenario = UpgradeCommand(tmp_path, forum.url)
    scenario.command.remove("--i-may-change-this-site")
    done = scenario.run()
    assert (done.returncode, scenario.results.exists()) == (2, False)
    assert "--i-may-change-this-site" in done.stderr


def test_a_wrong_password(forum: Forum, tmp_path: Path) -> None:
    scenario = UpgradeCommand(tmp_path, forum.url, password="no-such-word")  # noqa: S106
    failed(scenario, "log in", "login_failed", "password is wrong")
    assert "no-such-word" not in scenario.everything()


@pytest.mark.parametrize(
    ("fault", "step", "kind", "said"),
    [
        ("fatal", "post-index", "php_fatal", "Allowed memory size"),
        pytest.param(
            "error", "post-index", "upgrade_failed", "A fault was requested", marks=pytest.mark.slow
        ),
        ("refused", "post-index", "upgrade_failed", "A fault was requested".lower()),
        pytest.param("stuck", "post-index", "upgrade_failed", "does not advance", marks=pytest.mark.slow),
        ("silent", "search-index", "upgrade_failed", "does not say"),
    ],
)
def test_failures_whose_status_may_be_200(
    forum: Forum, tmp_path: Path, fault: str, step: str, kind: str, said: str
) -> None:
    forum.must("fault.php", fault, step)
    title = {"post-index": "Indexing posts", "search-index": "Rebuilding the search index"}[step]
    failed(UpgradeCommand(tmp_path, forum.url), f"continue: {title}", kind, said)


@pytest.mark.slow
def test_the_next_run_goes_on_where_a_fault_stopped_one(forum: Forum, tmp_path: Path) -> None:
    forum.must("fault.php", "error", "member-counters")
    scenario = UpgradeCommand(tmp_path, forum.url)
    failed(scenario, "continue: Rebuilding counters of members", "upgrade_failed", "A fault was requested")
    forum.must("fault.php", "off")
    done = scenario.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "continue: Altering posts" not in scenario.file("routes.json"), "it is not done twice"
    assert forum.version() == "2.0"


@pytest.mark.slow
def test_interrupted_between_two_pages_and_gone_on_with(forum: Forum, tmp_path: Path) -> None:
    scenario = UpgradeCommand(tmp_path, forum.url)
    forum.upgrade_until("post-reactions")
    with scenario.started() as process:
        with forum.database.blocking(STANDS):
            wait_for("it stands at post 1200", lambda: forum.database.busy_with("UPDATE post p"))
            process.send_signal(signal.SIGINT)
            assert process.stdout
            assert "Interrupted" in process.stdout.readline()
        process.communicate(timeout=LONGEST_S)
    assert process.returncode == 1
    assert scenario.file("run.json")["status"] == "interrupted"
    assert not scenario.events("error"), "the page that was in flight came to its end"
    assert forum.version() == "1.9"
    done = scenario.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert forum.version() == "2.0"


@pytest.mark.slow
def test_killed_and_gone_on_with_when_the_lock_is_free(forum: Forum, tmp_path: Path) -> None:
    scenario, database = UpgradeCommand(tmp_path, forum.url), forum.database
    with contextlib.ExitStack() as block:
        block.enter_context(database.blocking("SELECT 1 FROM post LIMIT 1"))
        with scenario.started():
            wait_for("it stands at an ALTER", lambda: database.busy_with("ALTER TABLE `post`"))
        with scenario.started() as again:
            sessions = "SELECT COUNT(*) FROM session WHERE member_id = 1"
            wait_for("the next one is there", lambda: database.value(sessions) == "2")
            block.close()
            output, _ = again.communicate(timeout=LONGEST_S)
    assert again.returncode == 0, output
    assert scenario.file("run.json")["status"] == "complete"
    assert forum.version() == "2.0"


def test_a_lock_that_stays_is_told(forum: Forum, tmp_path: Path) -> None:
    forum.database.sql("REPLACE INTO upgrade_lease VALUES (1, 'somebody', UNIX_TIMESTAMP() + 600)")
    text = STAND_IN.read_text().replace("/forum/install/", "/install/").replace("s: 60", "s: 1.5")
    scenario = UpgradeCommand(tmp_path, forum.url, texts=text)
    failed(scenario, "start", "upgrade_locked", "somebody else is running it")


@pytest.mark.slow
def test_mariadbd_killed_in_a_page(forum: Forum, tmp_path: Path) -> None:
    scenario = UpgradeCommand(tmp_path, forum.url)
    with standing(forum, scenario) as process:
        forum.database.kill()
        process.communicate(timeout=LONGEST_S)
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
        scenario = UpgradeCommand(tmp_path, f"http://127.0.0.1:{port}")
        with standing(forum, scenario) as process:
            forum.kill()
            process.communicate(timeout=LONGEST_S)
        assert process.returncode == 1
        error = scenario.events("error")[-1]
        assert (error["kind"], error["step"]) == ("backend_dead", "continue: Rebuilding reactions of posts")
    finally:
        proxy.terminate()
        proxy.wait()
        if forum.process.poll() is not None:
            forum.start()


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
    done = UpgradeCommand(tmp_path, "http://127.0.0.1:9", *options).run()
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "results").exists()
