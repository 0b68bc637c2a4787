"""ZFS in a report: whether anything is known of its cache (ARC), and how well data compress."""

from collections.abc import Sequence

from plimsoll.analysis.report.backends import BackendRuns, ScenarioRuns
from plimsoll.analysis.report.cautions import Caution
from plimsoll.analysis.report.host_counters import ARC_HITS
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.common.errors import Severity
from plimsoll.common.units import listed, significant
from plimsoll.rundir.names import HOST_FILE


def has_arc(run: MeasuredRun) -> bool:
    """Return whether the observers know anything of the run's ARC."""
    hits = run.host.samples.columns.get(ARC_HITS)
    return hits is not None and bool((hits >= 0).any())


def cache_notes(scenarios: Sequence[ScenarioRuns]) -> list[Caution]:
    """Return a note on the backends that lie on ZFS and were observed, but have no figures of their cache."""
    by_name: dict[str, list[MeasuredRun]] = {}
    for scenario in scenarios:
        for backend in scenario.backends:
            if _is_zfs(backend):
                by_name.setdefault(backend.name, []).extend(backend.runs)
    names = [
        name
        for name, runs in by_name.items()
        if any((run.directory.path / HOST_FILE).exists() for run in runs)
        and not any(has_arc(run) for run in runs)
    ]
    if not names:
        return []
    lie, their = ("lies", "its cache") if len(names) == 1 else ("lie", "their caches")
    text = (
        f"{listed(names)} {lie} on ZFS, but nothing is known of {their} (ARC): zfs-fuse has no arcstats, or "
        "they were not observed."
    )
    return [Caution(Severity.NOTE, text)]


def _is_zfs(backend: BackendRuns) -> bool:
    return any(
        run.directory.facts.storage and run.directory.facts.storage.facts.get("pools") for run in backend.runs
    )


def compress_ratios(runs: Sequence[MeasuredRun]) -> dict[str, str]:
    """Return how well each backend's data compress, by its name (hostile).

    `1.4`, or the span of its runs and datasets.
    """
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
