"""Writes run directories as docs/run-format.md says, knowing nothing of what reads them."""

import hashlib
import json
import os
import struct
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = {
    "due_ns": "<i8",
    "lag_us": "<u4",
    "dns_us": "<u4",
    "connect_us": "<u4",
    "tls_us": "<u4",
    "ttfb_us": "<u4",
    "total_us": "<u4",
    "bytes": "<i8",
    "logged_bytes": "<i8",
    "line": "<u8",
    "client": "<u4",
    "route": "<u2",
    "status": "<u2",
    "logged_status": "<u2",
    "error": "|u1",
    "flags": "|u1",
    "late_us": "<u4",
    "served": "|u1",
    "page": "<u4",
    "paused_us": "<u4",
}
COLUMNS_V1 = dict(list(COLUMNS.items())[:16])
RECORD_BYTES = 81
ERRORS = ["none", "connect_refused", "connect_failed", "tls_failed", "timeout", "reset", "closed_early"]


def header(columns: dict[str, str] = COLUMNS, shape: int = 0) -> bytes:
    facts = {"descr": list(columns.items()), "fortran_order": False, "shape": (shape,)}
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 502) + repr(facts).encode().ljust(501) + b"\n"


def records(count: int, **columns: Any) -> np.ndarray:
    """`count` records of successful requests, 1 ms apart, 1 ms each, but for the columns given."""
    table = np.zeros(count, dtype=list(COLUMNS.items()))
    table["due_ns"] = np.arange(count) * 1_000_000
    table["total_us"] = 1000
    table["ttfb_us"] = 800
    table["status"] = table["logged_status"] = 200
    table["bytes"] = table["logged_bytes"] = 1024
    table["line"] = np.arange(1, count + 1)
    for name, values in columns.items():
        table[name] = values
    if "late_us" not in columns:
        table["late_us"] = np.where(table["flags"] & 16, 0, table["lag_us"])
    return table


def load_records(directory: Path) -> np.ndarray:
    """The records of a run that has ended, read by numpy itself."""
    found: np.ndarray = np.load(directory / "requests.npy")
    return found


def run_facts(**keys: Any) -> dict[str, Any]:
    program = "replay" if keys.get("scenario", "replay").endswith("replay") else "scenario"
    return {
        "format": 2,
        "scenario": "replay",
        "backend": None,
        "repeat": None,
        "status": "complete",
        "generator_limited": False,
        "generator_limited_reason": None,
        "reason": None,
        "started_at": "2026-11-20T23:08:00.123456Z",
        "ended_at": "2026-11-20T23:09:01.000001Z",
        "target": {"url": "http://127.0.0.1:8080", "connect_to": None, "addresses": ["127.0.0.1:8080"]},
        "command": ["bin/replay", "run", "access.log"],
        "seed": 1,
        "loop": "open",
        "speed": "1",
        "warmup_s": 0.0,
        "logs": [
            {
                "path": "logs/access.log",
                "format": "COMBINED",
                "lines": 6000,
                "valid": 5990,
                "failed": 2,
                "ignored": 8,
                "first": "2026-11-20T10:00:00Z",
                "last": "2026-11-20T10:01:00Z",
            }
        ],
        "log_start": "2026-11-20T10:00:00Z",
        "program": {"name": program, "version": "0.1.0", "go": "go1.26.0"},
        "host": {
            "hostname": "generator",
            "kernel": "6.1.0",
            "cpu": "A processor",
            "cpus": 2,
            "memory_bytes": 24 << 30,
        },
        **keys,
    }


def write_run(
    path: Path,
    table: np.ndarray,
    *,
    routes: list[str] | None = None,
    errors: list[str] | None = None,
    events: list[dict[str, Any]] | None = None,
    summary: dict[str, Any] | None = None,
    **facts: Any,
) -> Path:
    """Write a run directory. Without `summary` it has no summary.json, as when a run was killed."""
    path.mkdir(parents=True, exist_ok=True)
    if facts and not table["client"].any():
        table = table.copy()  # no two real runs have the same records
        table["client"] = zlib.crc32(f"{path.name} {facts}".encode())
    (path / "run.json").write_text(json.dumps(run_facts(**facts)))
    (path / "routes.json").write_text(json.dumps(["page", "image", "css-js"] if routes is None else routes))
    (path / "errors.json").write_text(json.dumps(ERRORS if errors is None else errors))
    (path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events or []))
    (path / "requests.npy").write_bytes(header(shape=len(table)) + table.tobytes())
    if summary is not None:
        (path / "summary.json").write_text(json.dumps({"format": 2, **summary}))
    if "load" in facts:
        _keep_sum(path)
    return path


def _keep_sum(path: Path) -> None:
    """Let summary.json have the sum of the records: what writes `load` into run.json writes it too."""
    if (path / "summary.json").exists():
        data = (path / "requests.npy").read_bytes()[len(header()) :]
        change_summary(path, records_sha256=hashlib.sha256(data).hexdigest())


def change_summary(path: Path, **keys: Any) -> None:
    """Change keys of summary.json; those that are None go."""
    summary = json.loads((path / "summary.json").read_text()) | keys
    kept = {key: value for key, value in summary.items() if value is not None}
    (path / "summary.json").write_text(json.dumps(kept))


def change(path: Path, **keys: Any) -> None:
    """Change keys of run.json."""
    facts = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(facts | keys))
    if "load" in keys:
        _keep_sum(path)


def change_records(path: Path, part: slice | np.ndarray = slice(None), **columns: Any) -> None:
    """Change columns of a run's records, of all or of a part of them."""
    data = bytearray((path / "requests.npy").read_bytes())
    table = np.frombuffer(data, list(COLUMNS.items()), offset=len(header()))
    for name, values in columns.items():
        table[name][part] = values
    (path / "requests.npy").write_bytes(data)
    if "load" in json.loads((path / "run.json").read_text()):
        _keep_sum(path)


def traffic(
    seconds: int = 600, rate: float = 60.0, seed: int = 1, stall_s: tuple[float, float] = (0, 0)
) -> np.ndarray:
    """Traffic as of a site: a wave of visitors, log-normal times, and a stall from `stall_s[0]` to `[1]`."""
    random = np.random.default_rng(seed)
    per_s = rate * (1 + 0.6 * np.sin(np.arange(seconds) / seconds * 2 * np.pi - 1))
    second = np.repeat(np.arange(seconds), random.poisson(per_s))
    due_s = np.sort(second + random.random(len(second)))
    count = len(due_s)
    route = random.choice(4, count, p=[0.25, 0.45, 0.2, 0.1]).astype("u2")
    median_us = np.array([45_000, 2_500, 1_800, 90_000])[route]
    service_us = median_us * random.lognormal(0, 0.55, count)
    slow = random.random(count) < 0.002
    service_us[slow] *= random.uniform(4, 15, slow.sum())
    start_s, stop_s = stall_s
    stalled = (due_s >= start_s) & (due_s < stop_s)
    slowed = stalled & (random.random(count) < 0.15)
    service_us[slowed] += random.uniform(0, 1.2e6, slowed.sum())
    wait_us = np.where(stalled & (random.random(count) < 0.1), random.exponential(150_000, count), 0)
    table = records(
        count,
        due_ns=(due_s * 1e9).astype("i8"),
        lag_us=random.exponential(70, count) + wait_us,
        total_us=service_us,
        ttfb_us=service_us * 0.85,
        route=route,
        bytes=random.integers(300, 60_000, count),
        flags=np.where(wait_us > 0, 16 + 1, 1),
    )
    table["logged_bytes"] = table["bytes"]
    failed = random.random(count) < 0.0006
    table["error"][failed] = random.choice([4, 5], failed.sum())
    table["status"][failed] = 0
    table["ttfb_us"][failed] = 0
    missing = random.random(count) < 0.01
    table["status"][missing] = table["logged_status"][missing] = 404
    other = random.random(count) < 0.003
    table["status"][other & ~failed] = 500
    done_ns = table["due_ns"] + (table["lag_us"].astype("i8") + table["total_us"]) * 1000
    return table[np.argsort(done_ns, kind="stable")]


# Instances of one replay.

INSTANCES = 4
SEQUENCE = ["0", "1/4", "1/2", "3/4", "1"]
INSTANCES_START = "2026-11-22T10:00:00.000000Z"
LONG_AGO = 1_700_000_000


def shard_facts(index: int, **keys: Any) -> dict[str, Any]:
    return {
        "index": index,
        "of": INSTANCES,
        "segment": f"{SEQUENCE[index]}:{SEQUENCE[index + 1]}",
        "sequence": SEQUENCE,
        "planned": [100] * INSTANCES,
        "start_at": INSTANCES_START,
        "clock": {"synchronised": True, "max_error_ms": 1.0},
        **keys,
    }


def write_instance(
    path: Path,
    index: int,
    table: np.ndarray | int = 100,
    *,
    shard: dict[str, Any] | None = None,
    skipped: dict[str, int] | None = None,
    unsent: int = 0,
    sent: int | None = None,
    still: bool = True,
    members: dict[str, int] | None = None,
    **facts: Any,
) -> Path:
    """Write an instance; `shard` changes keys of its `shard`. One that says `running` has no summary, as if
    killed.

    `still`: nothing was written to it for long, so that one that says `running` counts as killed.
    """
    table = records(table) if isinstance(table, int) else table
    sent, skipped = len(table) if sent is None else sent, skipped or {}
    total = sent + unsent + sum(skipped.values())
    requests = {"total": total, "sent": sent, "unsent": unsent, "skipped": skipped, "retried": 1}
    summary: dict[str, Any] | None = {"requests": requests} | ({"members": members} if members else {})
    if facts.get("status") == "running":
        summary = None
    keys = {"started_at": INSTANCES_START, "shard": shard_facts(index, **(shard or {})), **facts}
    write_run(path, table, summary=summary, **keys)
    if summary is None:
        (path / "summary.json").unlink(missing_ok=True)  # of one that was written here before
    if still:
        os.utime(path / "requests.npy", (LONG_AGO, LONG_AGO))
    return path


def write_instances(folder: Path, **keys: Any) -> list[Path]:
    return [write_instance(folder / str(index), index, **keys) for index in range(INSTANCES)]


# Imported access logs, small ones: requests evenly over all hours, images twenty times as fast as pages.

MONDAY = datetime(2026, 10, 5, tzinfo=UTC)
DAY_NS, PER_DAY = 86_400_000_000_000, 4800
PAGE, IMAGE = 0, 1


def even_requests(
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


def write_imported(
    path: Path, began: datetime, requests: np.ndarray, log_format: str = "F", **facts: Any
) -> Path:
    """Write requests as `plimsoll import accesslog` does; return the folder of the run."""
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
