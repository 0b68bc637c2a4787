"""Shards of one run, written by several processes or machines, become one run directory."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from analysis.errors import NoRequestsError, RunDirectoryError
from analysis.models import RunFacts
from analysis.recording.errorkinds import error_number
from analysis.recording.writer import RunWriter, Status
from analysis.records import RunDirectory, read_facts
from analysis.requestfile import Records

_SAME = ("scenario", "backend", "repeat", "loop")


def merge(shards: Sequence[Path], directory: Path) -> RunWriter:
    """Write one run directory of all `shards`, and return its writer, finished.

    Instants are moved by what the shards' `started_at` differ: as good as the machines' clocks agree. The run
    is complete only if every shard is. Raises RunDirectoryError for a shard that cannot be read, and where
    the shards are not of one run.
    """
    facts = [read_facts(path) for path in shards]
    _check(shards, facts)
    first = min(facts, key=lambda one: _seconds(one.started_at))
    run = RunWriter(directory, first.model_copy(update={"ended_at": None, "reason": None}), at_once=False)
    parts = []
    for path, one in zip(shards, facts, strict=True):
        offset_ns = round((_seconds(one.started_at) - _seconds(first.started_at)) * 1e9)
        parts.append(_records(path, run, offset_ns))
        _copy_events(path / "events.jsonl", run, offset_ns)
    records = np.concatenate(parts)
    run.records(records[np.argsort(_done_ns(records), kind="stable")])
    run.update(ended_at=max((one.ended_at for one in facts if one.ended_at), default=None))
    run.finish(*_outcome(shards, facts))
    return run


def _check(shards: Sequence[Path], facts: Sequence[RunFacts]) -> None:
    if not shards:
        raise RunDirectoryError("there is no shard to merge")
    for path, one in zip(shards, facts, strict=True):
        for key in _SAME:
            if getattr(one, key) != getattr(facts[0], key):
                raise RunDirectoryError(
                    f"{path}: its {key} is {getattr(one, key)}, but {getattr(facts[0], key)} in {shards[0]}: "
                    "these are no shards of one run"
                )
        if len(shards) > 1 and one.started_at is None:
            raise RunDirectoryError(f"{path}: it never started, so it cannot be placed; leave it out")


def _seconds(instant: datetime | None) -> float:
    return instant.timestamp() if instant else 0.0


def _records(path: Path, run: RunWriter, offset_ns: int) -> Records:
    """Return the shard's records with the routes and error kinds of `run`, moved by `offset_ns`."""
    try:
        shard = RunDirectory.open(path)
    except NoRequestsError:
        return np.empty(0, dtype=run.record_type)
    records: Records = np.array(shard.requests.mapped())
    routes = np.arange(1 << 16, dtype=np.uint16)
    for number in np.unique(records["route"]):
        routes[number] = run.route_number(shard.route_name(int(number)))
    errors = np.array([error_number(shard.error_name(number)) for number in range(256)], dtype=np.uint8)
    records["route"] = routes[records["route"]]
    records["error"] = errors[records["error"]]
    records["due_ns"] += offset_ns
    return records


def _done_ns(records: Records) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    done: np.ndarray[tuple[int], np.dtype[np.int64]] = (
        records["due_ns"] + (records["lag_us"].astype(np.int64) + records["total_us"]) * 1000
    )
    return done


def _copy_events(path: Path, run: RunWriter, offset_ns: int) -> None:
    """Append the shard's events but for its own start and stop; measures count again."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            event = json.loads(line)
            t_ns, name = int(event.pop("t_ns")) + offset_ns, str(event.pop("event"))
            if name == "measure":
                run.measure(
                    event["name"], event["value"], event["unit"], iteration=event.get("iteration"), t_ns=t_ns
                )
            elif name != "run":
                run.event(name, t_ns=t_ns, **event)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # the line that a kill cut off


def _outcome(shards: Sequence[Path], facts: Sequence[RunFacts]) -> tuple[Status, str | None]:
    """Return the worst status of the shards, and why."""
    for status in ("failed", "interrupted"):
        for path, one in zip(shards, facts, strict=True):
            if one.status == status:
                return status, f"shard {path.name}: {one.reason or status}"
    for path, one in zip(shards, facts, strict=True):
        if one.status == "running":
            return "interrupted", f"shard {path.name} was killed"
    return "complete", None
