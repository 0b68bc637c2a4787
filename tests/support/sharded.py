"""Run directories of instances of one replay, as docs/run-format.md says they are."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.rundir import records, write_run

OF = 4
SEQUENCE = ["0", "1/4", "1/2", "3/4", "1"]
START = "2026-11-22T10:00:00.000000Z"
LONG_AGO = 1_700_000_000
ENGINE = ("cap_reached", "unsendable_h2")


def shard_facts(index: int, **keys: Any) -> dict[str, Any]:
    return {
        "index": index,
        "of": OF,
        "segment": f"{SEQUENCE[index]}:{SEQUENCE[index + 1]}",
        "sequence": SEQUENCE,
        "planned": [100] * OF,
        "start_at": START,
        "clock": {"synchronised": True, "max_error_ms": 1.0},
        **keys,
    }


def instance(
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
    """Write one; `shard` changes keys of its `shard`. One that says `running` has no summary, as if killed.

    `still`: nothing was written to it for long, so that one that says `running` counts as killed.
    """
    table = records(table) if isinstance(table, int) else table
    sent, skipped = len(table) if sent is None else sent, skipped or {}
    total = sent + unsent + sum(skipped.values())
    requests = {"total": total, "sent": sent, "unsent": unsent, "skipped": skipped, "retried": 1}
    summary: dict[str, Any] | None = {"requests": requests} | ({"members": members} if members else {})
    if facts.get("status") == "running":
        summary = None
    keys = {"started_at": START, "shard": shard_facts(index, **(shard or {})), **facts}
    write_run(path, table, summary=summary, **keys)
    if summary is None:
        (path / "summary.json").unlink(missing_ok=True)  # of one that was written here before
    if still:
        os.utime(path / "requests.npy", (LONG_AGO, LONG_AGO))
    return path


def all_of_them(folder: Path, **keys: Any) -> list[Path]:
    return [instance(folder / str(index), index, **keys) for index in range(OF)]
