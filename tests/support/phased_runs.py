"""Runs of an author who saves articles before, during and after a send, on disks one of which is slow."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from plimsoll.analysis.evidence.summary import summarise
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.records import RECORD
from plimsoll.rundir.write import RunWriter
from tests.support.experiment import rewrite

BEFORE_S, DURING_S, AFTER_S = 30, 60, 30
ARTICLE = "article saved"
_STEPS_MS = {"open editor": 60.0, "publish": 90.0, "read back": 40.0}
# The last has too few requests while the send runs for any percentile of the tail.
DISKS = (("nvme-mirror", 1.3), ("sata-mirror", 4.0), ("worst <b>disk</b>", 40.0))


def write_articles(path: Path, backend: str, slower: float, repeat: int = 1, number: int = 1) -> Path:
    """Write one run; while the send lasts, each request takes `slower` times as long."""
    random = np.random.default_rng([repeat, *backend.encode()])
    facts = RunFacts.model_validate(
        {"scenario": "save-article", "backend": backend, "repeat": repeat, "loop": "closed"}
    )
    stop_s = BEFORE_S + DURING_S
    with RunWriter(path, facts, summarise, at_once=False) as run:
        run.event("zfs-send", phase="start", t_ns=BEFORE_S * 10**9)
        for second in range(BEFORE_S + 1, stop_s + 1):
            run.event("zfs-send bytes", t_ns=second * 10**9, bytes_per_s=round(1e8 * random.normal(1, 0.05)))
        at_s, iteration = 0.0, 0
        while at_s < stop_s + AFTER_S:
            iteration += 1
            factor = slower if BEFORE_S <= at_s < stop_s else 1.0
            began_s, rows = at_s, np.zeros(len(_STEPS_MS), dtype=RECORD)
            for row, (step, ms) in zip(rows, _STEPS_MS.items(), strict=True):
                took_s = ms * factor * float(random.lognormal(0, 0.3)) / 1000
                row["route"], row["status"], row["line"] = run.route_number(step), 200, iteration
                row["due_ns"], row["total_us"], row["ttfb_us"] = at_s * 1e9, took_s * 1e6, took_s * 9e5
                at_s += took_s
            run.records(rows)
            run.measure(ARTICLE, (at_s - began_s) * 1000, "ms", iteration=iteration, t_ns=int(at_s * 1e9))
            at_s += float(random.exponential(0.3))
        run.event("zfs-send", phase="stop", t_ns=stop_s * 10**9)
        run.finish("complete")
    rewrite(
        path,
        experiment={"name": "articles", "run": number, "of": 12},
        started_at=f"2026-11-20T{number:02d}:00:00Z",
        ended_at=f"2026-11-20T{number:02d}:03:00Z",
    )
    return path


def write_article_runs(
    folder: Path, repeats: int = 2, disks: Sequence[tuple[str, float]] = DISKS
) -> list[Path]:
    """Write `repeats` runs on each of `disks`."""
    places = [(repeat, disk) for repeat in range(1, repeats + 1) for disk in disks]
    return [
        write_articles(folder / f"{number:02d}", *disk, repeat, number)
        for number, (repeat, disk) in enumerate(places, 1)
    ]
