"""Imported access logs, small ones: requests evenly over all hours, images twenty times as fast as pages."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.rundir import records, write_run

MONDAY = datetime(2026, 10, 5, tzinfo=UTC)
DAY_NS, PER_DAY = 86_400_000_000_000, 4800
PAGE, IMAGE = 0, 1


def table(
    days: int, images: float, factor: float, seed: int, failures: float = 0.0, per_day: int = PER_DAY
) -> np.ndarray:
    """Requests evenly over all hours: images take a twentieth of what pages take."""
    random = np.random.default_rng(seed)
    count = days * per_day
    is_image = random.random(count) < images
    took = random.lognormal(11, 0.8, count) * np.where(is_image, 0.05, 1) * factor
    return records(
        count,
        due_ns=np.arange(count) * (DAY_NS // per_day),
        total_us=took.astype("u4"),
        route=np.where(is_image, IMAGE, PAGE),
        status=np.where(random.random(count) < failures, 503, 200),
        logged_status=0,
        logged_bytes=-1,
    )


def imported(path: Path, began: datetime, requests: np.ndarray, log_format: str = "F", **facts: Any) -> Path:
    """Write them as `plimsoll import accesslog` does; return the folder of the run."""
    settings = {"timeout_s": 60.0, "log_format": log_format, "log_times_are": "finished"}
    return write_run(
        path / "run",
        requests,
        summary={"requests": {"sent": len(requests)}},
        **{
            "scenario": "accesslog",
            "backend": path.name,
            "program": {"name": "accesslog", "version": "0.1.0"},
            "started_at": f"{began:%Y-%m-%dT%H:%M:%S.%fZ}",
            "load": {"digest": f"{began:%Y%m%d}{len(requests):056d}", "settings": settings},
            **facts,
        },
    ).parent


def day(number: int) -> datetime:
    """Day `number` since a Monday."""
    return MONDAY + timedelta(days=number)
