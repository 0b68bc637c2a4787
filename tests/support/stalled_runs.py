"""Run directories of a host from tests/support/stalled_hosts.py, and what a report says of their stalls."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.analysis.evidence.measure import measure_in_detail
from plimsoll.analysis.report.runs import group_by_scenario, number_runs
from plimsoll.analysis.report.sections.slow_windows import SlowWindows, find_slow_windows
from plimsoll.rundir.read import RunDirectory
from tests.support.rundir import records, write_run
from tests.support.stalled_hosts import World

_PER_S = 15


def write_stalled(path: Path, world: World, backend: str | None = "rust", repeat: int = 1) -> Path:
    """Write the run of a site on this host: its requests are held up as the host has it."""
    random = world.random
    due_s = np.sort(random.random(world.seconds * _PER_S) * world.seconds)
    held = random.random(len(due_s)) < 0.4
    took_ms = 8 * random.lognormal(0, 0.5, len(due_s)) + held * world.held_ms[due_s.astype(np.int64)]
    table = records(
        len(due_s),
        due_ns=(due_s * 1e9).astype("i8"),
        total_us=took_ms * 1000,
        ttfb_us=took_ms * 900,
    )
    table["logged_bytes"] = table["bytes"]
    facts: dict[str, Any] = {"backend": backend, "repeat": repeat} if backend else {}
    run = write_run(path, table, storage=_STORAGE, **facts)
    instants_s = np.arange(world.seconds) + 0.5 + random.uniform(-0.02, 0.02, world.seconds)
    lines = [",".join(["t_ns", *world.columns])]
    for second, t_s in enumerate(instants_s.tolist()):
        values = (column[second] for column in world.columns.values())
        fields = ("" if np.isnan(value) else f"{value:.6g}" for value in values)
        lines.append(",".join([str(int(t_s * 1e9)), *fields]))
    (run / "host.csv").write_text("\n".join(lines) + "\n")
    return run


_STORAGE = {"facts": {"disks": [{"device": "nvme0n1"}], "pools": [{"pool": "tank"}]}, "clone": {}}


def stalls_of_runs(paths: Sequence[Path]) -> list[SlowWindows]:
    """What a report finds of these runs of one scenario."""
    runs = [measure_in_detail(RunDirectory.open(path), sliced=len(paths) > 1) for path in paths]
    (scenario,) = group_by_scenario(number_runs(runs))
    return find_slow_windows(scenario)
