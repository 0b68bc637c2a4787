from pathlib import Path

import pytest
from hypothesis import settings

from tests.analysis.rundir import records, traffic, write_run

settings.register_profile("plimsoll", deadline=None)  # no test judges by the clock
settings.load_profile("plimsoll")


@pytest.fixture
def small_run(tmp_path: Path) -> Path:
    """A thousand requests, a millisecond each."""
    return write_run(tmp_path / "run", records(1000))


@pytest.fixture(scope="session")
def busy_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten minutes of a site with a stall in them."""
    table = traffic(600, 60, stall_s=(200, 280))
    events = [
        {"t_ns": 0, "event": "run", "phase": "start"},
        {"t_ns": 200_000_000_000, "event": "zfs-send", "phase": "start"},
        {"t_ns": 280_000_000_000, "event": "zfs-send", "phase": "stop"},
    ]
    requests = {
        "total": len(table) + 32,
        "sent": len(table),
        "skipped": {"method_not_allowed": 32},
        "unsent": 0,
    }
    return write_run(
        tmp_path_factory.mktemp("busy") / "run",
        table,
        routes=["page", "image", "css-js", "admin-ajax"],
        events=events,
        summary={"requests": requests, "duration_s": 600.0},
    )
