"""Locust's master with two workers does what one process does: the same requests, each iteration once."""

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.programs import ROOT, free_port
from tests.support.scenario import LOCUST, Ran, account, ended
from tests.support.site import Site

SCENARIO = ROOT / "scenarios" / "save_article.py"
LEAVE = "--i-may-change-this-site"
# Thinking, so that the second user comes before all is done.
SETTINGS = ("--iterations", "5", "--saves", "1", "--think-s", "0.5", "--clean-up", "always")


def locust(*args: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [str(LOCUST), "-f", str(SCENARIO), *args],
        env=account(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def headless(site: Site, out: Path, users: int, *further: str) -> "subprocess.Popen[str]":
    where = ("--host", site.url, "--out", str(out), "--users", str(users), "--spawn-rate", "1")
    return locust("--headless", "--only-summary", *where, *SETTINGS, LEAVE, *further)


def with_workers(site: Site, out: Path, users: int, *further: str) -> Ran:
    """What a master with two workers does."""
    port = str(free_port())
    where = ("--master", "--master-bind-port", port, "--expect-workers", "2")
    master = headless(site, out, users, *where, *further)
    workers = [locust("--worker", "--master-port", port) for _ in range(2)]
    try:
        return ended(master, out)
    finally:
        for worker in workers:
            with suppress(subprocess.TimeoutExpired):
                worker.wait(30)
            worker.kill()
            worker.communicate()


@pytest.mark.slow
def test_two_workers_send_the_same_requests_as_one_process(site_block: Site, tmp_path: Path) -> None:
    one = ended(headless(site_block, tmp_path / "one", 2), tmp_path / "one")
    two = with_workers(site_block, tmp_path / "two", 2)
    for run in (one, two):
        assert run.code == 0, run.said
        assert run.facts["status"] == "complete"
        assert run.errors == []
        assert run.iterations == {1, 2, 3, 4, 5}
    assert two.steps == one.steps
    assert one.steps["publish"] == 5
    measured = {name: figures["count"] for name, figures in one.summary["measures"].items()}
    assert {name: figures["count"] for name, figures in two.summary["measures"].items()} == measured


def test_a_worker_without_work_does_not_hold_the_others(site_block: Site, tmp_path: Path) -> None:
    run = with_workers(site_block, tmp_path, 2, "--iterations", "1", "--think-s", "0")
    assert run.code == 0, run.said
    assert run.iterations == {1}
    assert run.steps["publish"] == 1


def test_fewer_users_than_workers_are_refused(site_block: Site, tmp_path: Path) -> None:
    run = with_workers(site_block, tmp_path, 1)
    assert run.code == 2
    assert "use at least one user for each worker" in run.said
    assert not list(tmp_path.glob("*-save-article")), "no empty run directory is left"
