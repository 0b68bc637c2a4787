"""Fixtures of scenarios on k6 and in Chromium."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.scenarios.browser import chromium_program
from plimsoll.scenarios.k6.build import k6_program
from tests.support.programs import need


@pytest.fixture(scope="session")
def k6() -> Path:
    """The pinned k6, built where it was not."""
    if not os.environ.get("PLIMSOLL_K6"):
        need("go")
    return k6_program(print)[0]


@pytest.fixture(scope="session")
def browser_programs(k6: Path) -> None:
    """What authors in a browser need."""
    need("chromium")
    assert chromium_program(None)


@pytest.fixture
def elsewhere() -> Iterator[socket.socket]:
    """Another host, which nobody may reach: whoever connects stays in its backlog."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        listening.setblocking(False)
        yield listening
