"""Run directories as scripted scenarios leave them: steps, phases, page vitals, on two backends."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.analysis.evidence.summary import summarise
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.records import RECORD
from plimsoll.rundir.write import RunWriter
from tests.support.experiment import rewrite

PHASES = (
    "start",
    "download",
    "unpack",
    "verify",
    "maintenance-on",
    "copy",
    "maintenance-off",
    "database",
    "finish",
)
_PHASE_MS = (120, 900, 6000, 40, 15, 9000, 700, 4000, 10)
PAGES = ("front page", "post", "login", "dashboard", "editor", "media")
_VITAL_MS = {"ttfb": 300.0, "fcp": 700.0, "lcp": 1100.0, "inp": 90.0}
STEPS = {
    "upgrade-wordpress": {"update page": 300.0, "upgrade": 21000.0, "verify: database": 200.0},
    "save-article": {"open editor": 420.0, "publish": 510.0, "save": 380.0, "read back": 150.0, "view": 60.0},
    "browser": {"front page": 300.0, "editor": 900.0},
    "download": {"download": 800.0},
    "upload-images": {"upload": 2600.0, "check sizes": 90.0, "size file": 12.0},
}

Measures = Iterable[tuple[str, float, str]]


def measures_of(scenario: str, random: np.random.Generator, slower: float) -> Measures:
    """What one iteration measures."""
    if scenario == "upgrade-wordpress":
        times = [ms * slower * random.lognormal(0, 0.1) for ms in _PHASE_MS]
        yield from ((f"phase: {name}", ms, "ms") for name, ms in zip(PHASES, times, strict=True))
        yield "upgrade", sum(times), "ms"
    elif scenario == "browser":
        for page in PAGES:
            vitals = {name: ms * slower * random.lognormal(0, 0.2) for name, ms in _VITAL_MS.items()}
            yield from ((f"{name}: {page}", ms, "ms") for name, ms in vitals.items())
            yield f"cls: {page}", 0.04 * random.lognormal(0, 0.3), "score"
            yield f"page_load: {page}", vitals["lcp"] * 1.2, "ms"
    elif scenario == "save-article":
        yield "article saved", 640 * slower * random.lognormal(0, 0.2), "ms"
    elif scenario == "upload-images":
        yield "image ready", 3100 * slower * random.lognormal(0, 0.2), "ms"
    elif scenario == "download":
        yield "throughput", 620 * random.lognormal(0, 0.01), "MB/s"


def write_scripted(
    path: Path,
    scenario: str,
    backend: str,
    repeat: int,
    slower: float = 1.0,
    iterations: int = 8,
    **facts: Any,
) -> Path:
    """Write one complete run of `scenario`."""
    random = np.random.default_rng([repeat, *backend.encode(), *scenario.encode()])
    model = RunFacts.model_validate(
        {"scenario": scenario, "backend": backend, "repeat": repeat, "loop": "closed", **facts}
    )
    count = 1 if scenario.startswith("upgrade") else iterations
    with RunWriter(path, model, summarise, at_once=False) as run:
        at_ns = 0
        for iteration in range(1, count + 1):
            table = np.zeros(len(STEPS[scenario]), dtype=RECORD)
            for row, (step, ms) in enumerate(STEPS[scenario].items()):
                took_us = ms * 1000 * slower * float(random.lognormal(0, 0.2))
                table[row]["route"] = run.route_number(step)
                table[row]["due_ns"], table[row]["total_us"] = at_ns, took_us
                table[row]["ttfb_us"], table[row]["status"], table[row]["line"] = (
                    took_us * 0.9,
                    200,
                    iteration,
                )
                at_ns += int(took_us * 1000)
            run.records(table)
            for name, value, unit in measures_of(scenario, random, slower):
                run.measure(name, value, unit, iteration=iteration, t_ns=at_ns)
        run.finish("complete")
    hour = 2 * repeat + len(backend) % 2
    day = f"2026-11-{hour // 24 + 1:02d}T{hour % 24:02d}"
    rewrite(path, started_at=f"{day}:00:00Z", ended_at=f"{day}:59:00Z")
    return path


def write_scripted_experiment(folder: Path, scenarios: Iterable[str], repeats: int = 4) -> list[Path]:
    """Write `repeats` runs of each scenario on a fast and a slow backend."""
    return [
        write_scripted(folder / f"{scenario}-{backend}-{repeat}", scenario, backend, repeat, slower)
        for scenario in scenarios
        for repeat in range(1, repeats + 1)
        for backend, slower in (("nvme-mirror", 1.0), ("rotating", 3.2))
    ]


def add_events(path: Path, *events: dict[str, Any]) -> None:
    """Add lines to events.jsonl; NaN is written as Python does, which is no JSON."""
    lines = "".join(json.dumps(event) + "\n" for event in events)
    with (path / "events.jsonl").open("a") as file:
        file.write(lines)
