"""Fixtures of the end-to-end tests, and which of them `make test` runs as well."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.disks import left, remove_all
from tests.lab.programs import REPLAY, Nginx, Replay, need
from tests.lab.sitestack import Site, end_site, need_docker, running_site, start_site

# Quick, and with programs that many machines have; the others need sites, databases and browsers.
_QUICK = {"test_interrupt", "test_kill", "test_nginx", "test_scenario_end"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves all but the quick ones to `make test-lab`."""
    if os.environ.get("PLIMSOLL_LAB") == "1":
        return
    for item in items:
        if Path(__file__).parent in item.path.parents and item.path.stem not in _QUICK:
            item.add_marker(pytest.mark.skip(reason="part of make test-lab (PLIMSOLL_LAB=1)"))


@pytest.fixture
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    root = tmp_path_factory.mktemp("nginx")
    for parent in (root.parent, root.parent.parent):
        parent.chmod(0o755)  # nginx's workers are another user
    server = Nginx(root)
    yield server
    server.stop()


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    """Runs ``bin/replay run`` with its results in ``tmp_path/results``."""
    program = need(REPLAY)

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [program, "run", "--quiet", "--out", str(tmp_path / "results"), *args]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    return run


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Path]:
    """The lab's own folder; nothing of a disk is there at the end."""
    folder = tmp_path / "work"
    yield folder
    remains = left(folder)
    if remains:
        remove_all(folder)
    assert remains == []


def _site(tmp_path_factory: pytest.TempPathFactory, editor: str) -> Iterator[Site]:
    """A site of its own for the session; or the running one that the environment names, to write tests."""
    running = os.environ.get(f"PLIMSOLL_SITE_{editor.upper()}")
    need_docker()
    if running:
        yield running_site(running)
        return
    site = start_site(tmp_path_factory.mktemp(f"site-{editor}") / "data", f"plimsoll-{editor}", editor)
    yield site
    end_site(site)


@pytest.fixture(scope="session")
def site_block(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site under test with the block editor (or the one at PLIMSOLL_SITE_BLOCK=URL:BACKEND_DIR)."""
    yield from _site(tmp_path_factory, "block")


@pytest.fixture(scope="session")
def site_classic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site under test with the forms of old (or the one at PLIMSOLL_SITE_CLASSIC=URL:BACKEND_DIR)."""
    yield from _site(tmp_path_factory, "classic")
