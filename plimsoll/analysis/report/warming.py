"""The warm-up of a scenario's runs, minute by minute after the lab started the clone, as a chart."""

from collections.abc import Iterable
from statistics import median

import numpy as np

from plimsoll.analysis.charts.failures import note_of
from plimsoll.analysis.charts.warming import Warming, warming_chart
from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.report.backends import BackendRuns
from plimsoll.analysis.report.host_counters import ARC_HITS
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.report.phase_figures import ScenarioFigures
from plimsoll.common.units import listed

_SHOWN = ("p99.9", "p99")
_FEWEST = 2  # minutes that make a curve
_MINUTE_NS = 60_000_000_000
_MOST_MINUTES = 24 * 60


def warming_of(figures: ScenarioFigures, of: str) -> Chart | None:
    """Return the curves by minute; None where the lab started no clone, or no run is long enough for two."""
    scenario = figures.scenario.few
    if not any(_started(run) for run in scenario.runs):
        return None
    for shown in _SHOWN:
        backends = [_warming(backend, shown) for backend in scenario.backends]
        longest = max((len(each.tail_ms) for each in backends), default=0)
        minutes = max((len(run.statistics.minutes) for run in scenario.runs), default=0)
        if longest >= _FEWEST and longest * 2 > minutes:
            break
    else:
        return None
    caption = (
        f"The {shown} of the requests due in each minute, the median of a backend's runs; those of the "
        f"warm-up are left out.{_states(scenario.runs)}"
    )
    if any(each.hit_percent for each in backends):
        caption += " Below, how much of what was asked of ZFS was in its cache (ARC)."
    busy = _busy(scenario.runs)
    caption += " The saturator's time is shaded." if busy else ""
    caption += note_of(run.statistics for run in scenario.runs)
    drawn = [each for each in backends if each.tail_ms]
    return warming_chart(f"warming-{scenario.number}", of, drawn, shown, busy, caption)


def _started(run: MeasuredRun) -> bool:
    """Return whether the lab started the clone for this run."""
    storage = run.directory.facts.storage
    return storage is not None and storage.cache is not None


def _warming(backend: BackendRuns, shown: str) -> Warming:
    runs = [run for run in backend.runs if _started(run)]
    tails = [
        {
            place: ms
            for place, minute in enumerate(run.statistics.minutes, 1)
            if (ms := minute.figures.least_ms(shown)) is not None
        }
        for run in runs
    ]
    hits = [hits_by_minute(run) for run in runs]
    return Warming(
        backend.called,
        backend.shade,
        {at: (median(each), len(each)) for at, each in _by_minute(tails)},
        {at: median(each) for at, each in _by_minute(hits)},
    )


def hits_by_minute(run: MeasuredRun) -> dict[int, float]:
    """Return the mean share of hits in the ARC, in percent, by minute of the run; none where nobody knows."""
    columns = run.host.samples.columns
    t_ns, percent = columns.get("t_ns"), columns.get(ARC_HITS)
    if t_ns is None or percent is None:
        return {}
    known = (percent >= 0) & (percent <= 100) & (t_ns >= 0) & (t_ns < _MOST_MINUTES * _MINUTE_NS)
    minutes = t_ns[known] // _MINUTE_NS
    return {int(at) + 1: float(percent[known][minutes == at].mean()) for at in np.unique(minutes)}


def _by_minute(runs: Iterable[dict[int, float]]) -> list[tuple[int, list[float]]]:
    every = list(runs)
    minutes = sorted({at for each in every for at in each})
    return [(at, [each[at] for each in every if at in each]) for at in minutes]


def _states(runs: Iterable[MeasuredRun]) -> str:
    storages = (run.directory.facts.storage for run in runs)
    states = list(dict.fromkeys(one.cache.state for one in storages if one and one.cache))
    return f" Caches at the start: {listed(states)}." if states else ""


def _busy(runs: Iterable[MeasuredRun]) -> tuple[float, float] | None:
    """Return from when to when the saturator ran, in minutes after the start: medians of the runs.

    Half a minute is added, since a minute's point stands in its middle.
    """
    spans = [
        (busy.start_ns, run.elapsed_s * 1e9 if busy.stop_ns is None else busy.stop_ns)
        for run in runs
        if (busy := run.saturation)
    ]
    if not spans:
        return None
    starts, stops = zip(*spans, strict=True)
    return median(starts) / _MINUTE_NS + 0.5, median(stops) / _MINUTE_NS + 0.5
