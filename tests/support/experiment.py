"""Run directories as an experiment leaves them: replayed, with factors, of scripted scenarios."""

import itertools
import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from plimsoll.analysis.evidence.summary import summarise
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.records import RECORD, WARMUP, Records
from plimsoll.rundir.write import RunWriter
from tests.support.rundir import change

BEFORE_S, DURING_S, AFTER_S = 20.0, 40.0, 20.0
DISK = "like a rotating disk: 120 operations/s, 150 MB/s"
FAST: dict[str, Any] = {"stall_ms": 40.0, "share": 0.003, "send_mb_s": 820.0, "disk_ms": 0.6}
SLOW: dict[str, Any] = {
    "stall_ms": 700.0,
    "share": 0.03,
    "send_mb_s": 96.0,
    "disk_ms": 14.0,
    "emulated": DISK,
}


def requests(seed: int, per_s: float, share: float, stall_ms: float, warmup_s: float = 2.0) -> Records:
    """Traffic of an open loop; during the send a share of the requests stalls."""
    random = np.random.default_rng(seed)
    total_s = BEFORE_S + DURING_S + AFTER_S
    due_s = np.sort(random.random(random.poisson(per_s * total_s)) * total_s)
    count = len(due_s)
    table = np.zeros(count, dtype=RECORD)
    took_us = 9000 * random.lognormal(0, 0.5, count)
    busy = (due_s >= BEFORE_S) & (due_s < BEFORE_S + DURING_S)
    stalled = busy & (random.random(count) < share)
    took_us[stalled] += random.exponential(stall_ms * 1000, stalled.sum())
    table["due_ns"] = (due_s * 1e9).astype("i8")
    table["lag_us"] = random.exponential(60, count)
    table["total_us"] = took_us
    table["ttfb_us"] = took_us * 0.9
    table["status"] = table["logged_status"] = 200
    table["bytes"] = table["logged_bytes"] = 5000
    table["flags"] = np.where(due_s < warmup_s, WARMUP | 1, 1)
    return table[np.argsort(table["due_ns"] + table["total_us"].astype("i8") * 1000, kind="stable")]


def facts_of_host(rotational: bool, dataset: str = "tank/site") -> dict[str, Any]:
    return {
        "kernel": "6.1.0-18",
        "cpu": "A processor",
        "memory_bytes": 16 << 30,
        "disks": [
            {
                "device": "loop7" if rotational else "nvme0n1",
                "rotational": rotational,
                "scheduler": "mq-deadline" if rotational else "none",
            }
        ],
        "datasets": [{"dataset": dataset, "properties": {"recordsize": "128K"}, "compress_ratio": 1.4}],
    }


def write_one(path: Path, backend: str, repeat: int, **kind: Any) -> Path:
    """Write one run, as a writer and then the lab do. What one wrote before is written again as it was."""
    path.mkdir(parents=True)
    for name, content in _files_of_one(backend, repeat, **kind).items():
        (path / name).write_bytes(content)
    return path


@cache
def _files_of_one(backend: str, repeat: int, **kind: Any) -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        run = _write_one(Path(folder) / "run", backend, repeat, **kind)
        return {file.name: file.read_bytes() for file in run.iterdir()}


def _write_one(
    path: Path,
    backend: str,
    repeat: int,
    *,
    scenario: str = "replay",
    per_s: float = 150.0,
    stall_ms: float,
    share: float,
    send_mb_s: float,
    disk_ms: float,
    emulated: str | None = None,
    saturator: str | None = "zfs-send",
    number: tuple[int, int] = (1, 8),
    experiment: str = "one-machine",
) -> Path:
    random = np.random.default_rng(repeat + sum(map(ord, backend)))
    facts = RunFacts.model_validate(
        {"scenario": scenario, "backend": backend, "repeat": repeat, "speed": "rate 150/s", "warmup_s": 2.0}
    )
    with RunWriter(path, facts, summarise, at_once=False) as run:
        run.route_number("page")
        run.records(requests(repeat + sum(map(ord, backend)), per_s, share, stall_ms))
        start_ns, stop_ns = int(BEFORE_S * 1e9), int((BEFORE_S + DURING_S) * 1e9)
        if saturator:
            run.event(saturator, phase="start", t_ns=start_ns)
            for second in range(1, int(DURING_S) + 1):
                rate = send_mb_s * 1e6 * float(random.normal(1, 0.06))
                run.event(f"{saturator} bytes", t_ns=start_ns + second * 10**9, bytes_per_s=round(rate))
            run.event(saturator, phase="stop", t_ns=stop_ns, bytes=1 << 33)
        run.finish("complete")
    read = facts_of_host(bool(emulated), f"tank/{backend}")
    storage = {"emulated": emulated, "clone": {"driver": "compose"}, "facts": read}
    change(
        path,
        experiment={"name": experiment, "run": number[0], "of": number[1]},
        storage=storage,
        started_at=_instant(2 * number[0]),
        ended_at=_instant(2 * number[0], BEFORE_S + DURING_S + AFTER_S + 5),
        phases={"before_s": BEFORE_S, "during_s": DURING_S, "after_s": AFTER_S},
    )
    device = "loop7" if emulated else "nvme0n1"
    lines = [f"t_ns,cpu.idle_percent,diskstats.{device}_read_latency_ms,diskstats.other_read_latency_ms"]
    for second in range(int(BEFORE_S + DURING_S + AFTER_S)):
        busy = saturator and BEFORE_S <= second < BEFORE_S + DURING_S
        latency = disk_ms * float(random.lognormal(0, 0.15)) * (1 if busy else 0.2)
        lines.append(f"{second * 10**9 + 5 * 10**8},90,{'' if second % 11 == 0 else round(latency, 3)},500")
    (path / "host.csv").write_text("\n".join(lines) + "\n")
    return path


def _instant(minutes: float, seconds: float = 0.0) -> str:
    return f"{datetime(2026, 11, 20) + timedelta(minutes=minutes, seconds=seconds):%Y-%m-%dT%H:%M:%S.%fZ}"


def write_experiment(
    folder: Path, repeats: int = 4, backends: Sequence[tuple[str, dict[str, Any]]] | None = None, **more: Any
) -> list[Path]:
    """Write an experiment of two backends, interleaved, and a link to its last run."""
    backends = backends or [("nvme-mirror", FAST), ("slow-disk", SLOW)]
    paths: list[Path] = []
    for repeat in range(1, repeats + 1):
        for backend, kind in backends if repeat % 2 else list(backends)[::-1]:
            number = len(paths) + 1
            path = folder / f"{number:02d}-{more.get('scenario', 'replay')}"
            paths.append(
                write_one(path, backend, repeat, number=(number, repeats * len(backends)), **(kind | more))
            )
    (folder / "latest").symlink_to(paths[-1].name)
    return paths


# With factors: each repeat in an order of its own.

Ms = Callable[[Mapping[str, str]], float]


def write_factorial(
    folder: Path,
    levels: Mapping[str, Sequence[str]],
    stall_ms: Ms,
    *,
    repeats: int = 4,
    goal_ms: float | None = None,
    send_mb_s: Ms = lambda _: 90.0,
    noise: float = 0.05,
    scenario: str = "replay",
    per_s: float = 60.0,
) -> list[Path]:
    """Write a run a combination and repeat; `stall_ms` is how long slow requests take at its levels."""
    draw = random.Random(5)
    every = [dict(zip(levels, each, strict=True)) for each in itertools.product(*levels.values())]
    found: list[Path] = []
    for repeat in range(1, repeats + 1):
        for point in draw.sample(every, len(every)):
            number = len(found) + 1
            backend = "-".join(point.values()).lower().replace(" ", "-").replace("/", "-")
            kind = FAST | {
                "stall_ms": stall_ms(point) * math.exp(draw.gauss(0, noise)),
                "share": 0.02,
                "send_mb_s": send_mb_s(point),
                "per_s": per_s,
            }
            path = write_one(
                folder / f"{number:04d}-{scenario}--{backend}--{repeat}",
                backend,
                repeat,
                number=(number, repeats * len(every)),
                experiment="sweep",
                scenario=scenario,
                **kind,
            )
            goal = {} if goal_ms is None else {"goal_ms": goal_ms}
            experiment = {"name": "sweep", "run": number, "of": repeats * len(every), "levels": levels} | goal
            change(path, factors=point, experiment=experiment)
            found.append(path)
    return found


# Of scripted scenarios: steps, phases, page vitals, on two backends.

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
PAGES = ("front page", "article", "login", "dashboard", "editor", "media")
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
    change(path, started_at=f"{day}:00:00Z", ended_at=f"{day}:59:00Z")
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


def measure_event(name: str, value: Any, t_ns: int, unit: str = "ms", **more: Any) -> dict[str, Any]:
    return {"t_ns": t_ns, "event": "measure", "name": name, "value": value, "unit": unit, **more}


def add_arc(run: Path, hits: float, during: float, empty: bool = False) -> None:
    """Add arcstats to host.csv; the first second of what is counted is empty, as of an observer."""
    lines = (run / "host.csv").read_text().splitlines()
    found = [f"{lines[0]},arcstats.hit_percent,arcstats.size_bytes"]
    for second, line in enumerate(lines[1:]):
        busy = BEFORE_S <= second < BEFORE_S + DURING_S
        hit = "" if empty or not second else f"{during if busy else hits}"
        found.append(f"{line},{hit},{'' if empty else 3 << 30}")
    (run / "host.csv").write_text("\n".join(found) + "\n")


def write_many(folder: Path, repeats: int) -> list[Path]:
    """Write two scenarios on two backends each, where those of one failed; return a folder a scenario."""
    write_experiment(folder / "a", repeats, per_s=20.0)
    for path in write_scripted_experiment(folder / "b", ["save-article"], repeats):
        change(path, status="failed", reason="no disk")
    return [folder / "a", folder / "b"]


FILEIO_THREADS = (1, 8, 12, 16, 20, 24, 32)
FILEIO_TESTS = ("rndrd", "seqrd", "rndwr", "seqwr", "rndrw")


def cell(volume: str, test: str, threads: int, **more: Any) -> dict[str, Any]:
    fast = 20 if volume == "nvme-mirror" else 1
    found = {
        "volume": volume,
        "threads": threads,
        "file_size_bytes": 64 << 30,
        "block_bytes": 16384,
        "test": test,
        "time_s": 30,
        "direct": True,
        "reads": 1000,
        "writes": 0,
        "fsyncs": 0,
        "throughput_mib_per_s": 40.0 * fast * threads**0.5 * (3 if "seq" in test else 1),
        "iops": 1000.0,
        "execution_s": 30.0,
        "events": 1000,
        "p999_ms": 20 / fast * threads**0.4,
        "p999_low_ms": 1.0,
        "p999_high_ms": 2.0,
    }
    return found | more


def cells(volumes: Sequence[str] = ("nvme-mirror", "slow-disk")) -> list[dict[str, Any]]:
    return [cell(v, test, threads) for v in volumes for test in FILEIO_TESTS for threads in FILEIO_THREADS]


def write_cells(path: Path, lines: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"\n{json.dumps(line)}\n" for line in lines))
    return path
