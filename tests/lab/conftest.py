"""Fixtures of the end-to-end tests."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.programs import REPLAY, Nginx, Replay, need


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
