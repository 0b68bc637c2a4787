"""ZFS in a report: hits and size of its cache (ARC) over time, and how well data compress."""

from collections.abc import Sequence

import numpy as np

from analysis.charts.cache import cache_chart
from analysis.charts.scatter import Shown, Strip
from analysis.charts.style import Chart
from analysis.report.backends import BackendRuns, ScenarioRuns
from analysis.report.cautions import Caution
from analysis.report.host_series import Floats
from analysis.report.measured_run import MeasuredRun
from analysis.report.phase_figures import ScenarioFigures
from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.severity import Severity
from plimsoll.common.units import significant
from plimsoll.rundir.hostfile import host_lines, read_host
from plimsoll.rundir.names import HOST_FILE

_HITS, _SIZE = "arcstats.hit_percent", "arcstats.size_bytes"
_GIB = float(1 << 30)
_LATEST_NS, _MOST = float(1 << 61), 1e15

Points = tuple[Floats, Floats]
_NOTHING: Points = (np.empty(0), np.empty(0))


def cache_of(figures: ScenarioFigures, of: str) -> Chart | None:
    """Return hits and size of the ARC on each backend since the saturator started; None where none has it."""
    scenario = figures.scenario
    of_run = {run.number: arc_of(run) for run in scenario.runs}
    shown = [
        Shown(
            backend.called,
            backend.shade,
            [],
            [
                Strip("ARC hits (%)", "% hits", [of_run[run.number][0] for run in backend.runs]),
                Strip("ARC size (GiB)", "GiB", [of_run[run.number][1] for run in backend.runs]),
            ],
        )
        for backend in scenario.backends
    ]
    saturators = [name.replace("-", " ") for name in scenario.saturators]
    since = f"{' or '.join(saturators)} started" if saturators else "the start of the run"
    return cache_chart(f"arc-{scenario.number}", f"What ZFS's cache had{of}", shown, since, scenario.busy_s)


def arc_of(run: MeasuredRun) -> tuple[Points, Points]:
    """Return hits in % and size in GiB, each with its instants in seconds since the saturator started."""
    path = run.directory.path / HOST_FILE
    try:
        if "arcstats." not in next(host_lines(path), ""):
            return _NOTHING, _NOTHING  # most hosts have no ZFS: their counters are not read again
        columns = read_host(path, lambda name: name in (_HITS, _SIZE))
    except RunDirectoryError:
        return _NOTHING, _NOTHING  # the report says so where it reads the disks' counters
    t_ns = columns.get("t_ns")
    if t_ns is None:
        return _NOTHING, _NOTHING
    zero_ns = run.saturation.start_ns if run.saturation else 0
    found = []
    for name, scale in ((_HITS, 1.0), (_SIZE, _GIB)):
        value = columns.get(name, np.full(len(t_ns), np.nan))
        there = (value >= 0) & (value < _MOST) & (np.abs(t_ns) < _LATEST_NS)  # neither is NaN
        found.append(((t_ns[there] - zero_ns) / 1e9, value[there] / scale))
    return found[0], found[1]


def cache_notes(scenarios: Sequence[ScenarioRuns]) -> list[Caution]:
    """Return a note on each backend that lies on ZFS and was observed, but has no figures of its cache."""
    by_name: dict[str, list[MeasuredRun]] = {}
    for scenario in scenarios:
        for backend in scenario.backends:
            if _is_zfs(backend):
                by_name.setdefault(backend.name, []).extend(backend.runs)
    return [
        Caution(
            Severity.NOTE,
            f"{name} lies on ZFS, but nothing is known of its cache (ARC): zfs-fuse has no arcstats, or they "
            "were not observed.",
        )
        for name, runs in by_name.items()
        if any((run.directory.path / HOST_FILE).exists() for run in runs)
        and not any(len(t) for run in runs for t, _ in arc_of(run))
    ]


def _is_zfs(backend: BackendRuns) -> bool:
    return any(
        run.directory.facts.storage and run.directory.facts.storage.facts.get("pools") for run in backend.runs
    )


def compress_ratios(runs: Sequence[MeasuredRun]) -> dict[str, str]:
    """Return how well each backend's data compress, by its name (hostile): `1.4`, or the span of its runs."""
    found: dict[str, list[float]] = {}
    for run in runs:
        storage = run.directory.facts.storage
        datasets = storage.facts.get("datasets") if storage and run.directory.facts.backend else None
        for dataset in datasets if isinstance(datasets, list) else ():
            ratio = dataset.get("compress_ratio") if isinstance(dataset, dict) else None
            if isinstance(ratio, int | float) and not isinstance(ratio, bool) and ratio > 0:
                found.setdefault(run.backend, []).append(float(ratio))
    return {
        name: " to ".join(dict.fromkeys(significant(edge) for edge in (min(ratios), max(ratios))))
        for name, ratios in found.items()
    }
