"""`upgrade-xenforo` by command over a real sshd."""

import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.forum import (
    COMPLETE,
    FORUM,
    POSTS,
    Forum,
    UpgradeCommand,
    failed,
    reported,
    serving,
    standing,
)
from tests.support.programs import LONGEST_S, wait_for
from tests.support.servers import Sshd


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    yield from serving(tmp_path_factory.mktemp("db"), POSTS, FORUM_PAGE_ROWS="1000", FORUM_BATCH_ROWS="500")


@pytest.fixture
def forum(site: Forum) -> Iterator[Forum]:
    yield site
    site.reset()


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    yield server
    server.stop()


def by_ssh(forum: Forum, sshd: Sshd, folder: Path, command: str = "", **replaced: Path) -> UpgradeCommand:
    settings = {name: value for name, value in forum.environment.items() if name.startswith("FORUM_")}
    assigned = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())
    options = {"--ssh-key": sshd.key, "--ssh-known-hosts": sshd.known_hosts}
    options |= {f"--ssh-{name.replace('_', '-')}": value for name, value in replaced.items()}
    return UpgradeCommand(
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
        "accepted no key",
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


def _nobody_upgrades(forum: Forum) -> bool:
    """Takes the lease away, and says whether nobody took it again: who still upgrades does so each second."""
    forum.database.sql("DELETE FROM upgrade_lease")
    time.sleep(2)
    return forum.database.value("SELECT COUNT(*) FROM upgrade_lease") == "0"


@pytest.mark.slow
def test_a_command_interrupted_over_ssh_is_gone_on_with(forum: Forum, sshd: Sshd, tmp_path: Path) -> None:
    scenario = by_ssh(forum, sshd, tmp_path)
    with standing(forum, scenario) as process:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LONGEST_S)
    assert process.returncode == 1
    assert scenario.file("run.json")["status"] == "interrupted"
    wait_for("nobody is at it", lambda: _nobody_upgrades(forum))
    done = scenario.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert forum.version() == "2.0"
