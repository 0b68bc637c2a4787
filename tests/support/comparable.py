"""Small run directories for comparisons: times that are known, in an order that is."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.analysis.compare.comparison import Comparison, compare
from tests.support.rundir import records, write_run

START = datetime(2026, 11, 21, 4, 0, tzinfo=UTC)
REQUESTS = 1500
STEADY = (1.00, 1.02, 0.99, 1.01, 0.98)


def instant(minutes: float) -> str:
    return f"{START + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%S.%fZ}"


def write_comparable(
    path: Path,
    backend: str,
    repeat: int,
    place: int,
    tail_ms: float,
    *,
    scenario: str = "replay",
    count: int = REQUESTS,
    saturator: str | None = "zfs-send",
    errors: int = 0,
    timeout_s: float | None = None,
    measures: Sequence[tuple[str, float]] = (),
    **facts: Any,
) -> Path:
    """Write a run: 1 ms each, but for the slowest of a hundred, which take `tail_ms`; it is saturated from
    0.2 s on, while its last 1,300 requests are due. `errors` requests at its start fail at once."""
    table = records(count)
    table["total_us"][::100] = round(tail_ms * 1000)
    table["error"][:errors] = 5
    events: list[dict[str, Any]] = []
    at_ns = 300_000_000
    for name, value in measures:  # one after another
        at_ns += int(value * 1e6) + 1
        events.append({"t_ns": at_ns, "event": "measure", "name": name, "value": value, "unit": "ms"})
    if saturator:
        events.append({"t_ns": 200_000_000, "event": saturator, "phase": "start"})
    summary = {"requests": {"total": count, "sent": count}, "duration_s": 1.5}
    times: dict[str, Any] = {"started_at": instant(2 * place), "ended_at": instant(2 * place + 1)}
    if timeout_s is not None:
        facts = {"load": {"digest": "d", "settings": {"timeout_s": timeout_s}}} | facts
    named: dict[str, Any] = {"scenario": scenario, "backend": backend, "repeat": repeat}
    return write_run(path, table, events=events, summary=summary, **(named | times | facts))


def write_both(
    folder: Path,
    ratio: float = 1.0,
    repeats: int = 4,
    *,
    names: tuple[str, str] = ("sata", "nvme"),
    spread: Callable[[int, int], float] = lambda side, repeat: STEADY[(repeat + 2 * side) % len(STEADY)],
    first: int = 0,
    **more: Any,
) -> Path:
    """Write an experiment of two backends in the order ABBA; the second takes `ratio` times as long."""
    for repeat in range(1, repeats + 1):
        for place, side in enumerate((0, 1) if repeat % 2 else (1, 0)):
            at = first + 2 * (repeat - 1) + place
            tail_ms = 50 * spread(side, repeat) * (ratio if side else 1.0)
            name = f"{at + 1:04d}-{more.get('scenario', 'replay')}--{names[side]}--{repeat}"
            write_comparable(folder / "runs" / name, names[side], repeat, at, tail_ms, **more)
    return folder


def runs_of(folder: Path, backend: str = "nvme") -> list[Path]:
    return sorted((folder / "runs").glob(f"*--{backend}--*"))


def change(path: Path, **keys: Any) -> None:
    """Change keys of run.json."""
    facts = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(facts | keys))


def separated(folder: Path, ratio: float = 1.0, repeats: int = 4) -> tuple[Path, Path]:
    """Two folders, one side each, the candidate's runs after all of the baseline's."""
    random = np.random.default_rng(1)
    for side, name in enumerate(("before", "after")):
        for repeat in range(repeats):
            tail_ms = 50 * (ratio if side else 1) * float(random.uniform(0.98, 1.02))
            path = folder / name / f"{repeat}"
            write_comparable(path, "nvme", repeat + 1, side * repeats + repeat, tail_ms)
    return folder / "before", folder / "after"


def judged(folder: Path, gates: str = "") -> Comparison:
    path = None
    if gates:
        path = folder / "gates.yml"
        path.write_text(gates)
    return compare([folder], "sata", "nvme", path)


def reasons(found: Comparison) -> str:
    return " ".join(each.verdict.says for each in found.judged)
