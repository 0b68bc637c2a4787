"""Fixtures of the end-to-end tests, which `make test-lab` runs."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.disks import left_of_tests, remove_all
from tests.support.programs import REPLAY, Replay, need, open_to_all
from tests.support.servers import Nginx, Sshd
from tests.support.site import Filled, Site, end_site, filled_site, need_docker, running_site, start_site


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves them to `make test-lab`."""
    if os.environ.get("PLIMSOLL_LAB") == "1":
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="part of make test-lab (PLIMSOLL_LAB=1)"))


@pytest.fixture
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    root = tmp_path_factory.mktemp("nginx")
    open_to_all(root.parent)
    server = Nginx(root)
    yield server
    server.stop()


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    server = Sshd(tmp_path)
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
    remains = left_of_tests(folder)
    if remains:
        remove_all(folder)
    assert remains == []


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """A filled site, to be copied; tests change nothing of it."""
    need_docker()
    root = tmp_path_factory.getbasetemp()
    shared = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    with filled_site(shared / "filled") as found:
        yield found


def _site(request: pytest.FixtureRequest, folder: Path, editor: str) -> Iterator[Site]:
    """A site of its own for the session; or the running one that the environment names, to write tests."""
    need_docker()
    if running := os.environ.get(f"PLIMSOLL_SITE_{editor.upper()}"):
        yield running_site(running)
        return
    data: Filled = request.getfixturevalue("filled")
    data.copy_to(folder / "data")
    site = start_site(folder / "data", f"plimsoll-{editor}", editor)
    yield site
    end_site(site)


@pytest.fixture(scope="session")
def site_block(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site under test with the block editor (or the one at PLIMSOLL_SITE_BLOCK=URL:BACKEND_DIR)."""
    yield from _site(request, tmp_path_factory.mktemp("block"), "block")


@pytest.fixture(scope="session")
def site_classic(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site under test with the forms of old (or the one at PLIMSOLL_SITE_CLASSIC=URL:BACKEND_DIR)."""
    yield from _site(request, tmp_path_factory.mktemp("classic"), "classic")
