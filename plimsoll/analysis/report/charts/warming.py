"""How a site warms up: its slow tail and the hits of its cache, by minute after the lab started the clone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from plimsoll.analysis.evidence.host_rows import ARC_HITS
from plimsoll.analysis.page.chart import Chart, Json, axis, colour_of, layout, log_ticks, points
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.runs import BackendRuns, ScenarioFigures, note_of
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import counted, listed, milliseconds, significant

_SHOWN = ("p99.9", "p99")
_FEWEST = 2  # minutes that make a curve
_MINUTE_NS = 60_000_000_000
_MOST_MINUTES = 24 * 60
_LOG_FROM = 8  # times as much between the least and the most
_GAP = 0.1


@dataclass(frozen=True)
class Warming:
    """One backend (hostile name), its colour, and by minute, from 1 on, the medians of its runs.

    `tail_ms` has the runs that it is of, too; a minute without enough requests, or without figures of a
    cache, is not there.
    """

    name: str
    shade: int
    tail_ms: dict[int, tuple[float, int]]
    hit_percent: dict[int, float]


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
    busy = _busy_minutes(scenario.runs)
    caption += " The saturator's time is shaded." if busy else ""
    caption += note_of(run.statistics for run in scenario.runs)
    drawn = [each for each in backends if each.tail_ms]
    return warming_chart(f"warming-{scenario.number}", of, drawn, shown, busy, caption)


def _started(run: ReportRun) -> bool:
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


def hits_by_minute(run: ReportRun) -> dict[int, float]:
    """Return the mean share of hits in the ARC, in percent, by minute of the run; none if unknown."""
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


def _states(runs: Iterable[ReportRun]) -> str:
    storages = (run.directory.facts.storage for run in runs)
    states = list(dict.fromkeys(one.cache.state for one in storages if one and one.cache))
    return f" Caches at the start: {listed(states)}." if states else ""


def _busy_minutes(runs: Iterable[ReportRun]) -> tuple[float, float] | None:
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


def warming_chart(
    key: str, of: str, backends: Sequence[Warming], shown: str, busy: tuple[float, float] | None, caption: str
) -> Chart:
    """Return the curves of `backends`, of which one at least has a minute; `of` ends the title (hostile).

    `shown` is the statistic; `busy` says from when to when the saturator ran, in minutes after the start.
    """
    hits = any(each.hit_percent for each in backends)
    data: list[Json] = []
    for each in backends:
        data.append(_tail(each, shown))
        if hits:
            data.append(_hits(each))
    values = [value for each in backends for value, _ in each.tail_ms.values()]
    scale = "log" if max(values) > _LOG_FROM * min(values) > 0 else "linear"
    x_axis = axis("minutes after the start") | {"dtick": 1, "rangemode": "normal"}
    if max(minute for each in backends for minute in each.tail_ms) > 20:
        del x_axis["dtick"]
    y_axis = axis(f"{shown} (ms)", scale) | (log_ticks(values) if scale == "log" else {})
    more: Json = {}
    if hits:
        y_axis |= {"domain": [0.5 + _GAP / 2, 1]}
        x_axis |= {"anchor": "y2"}
        more["yaxis2"] = axis("cache hits (%)") | {"domain": [0, 0.5 - _GAP / 2], "range": [0, 102]}
    return Chart(
        key=key,
        title=f"Warming up: {shown} by minute after a start{of}",
        caption=caption,
        data=data,
        layout=layout(x_axis, y_axis, **more, **_busy(busy)),
        scale=scale,
        tall=int(hits),
    )


def _tail(each: Warming, shown: str) -> Json:
    name = plotly_text(each.name)
    return _curve(each) | points(
        name,
        [float(minute) for minute in each.tail_ms],
        [value for value, _ in each.tail_ms.values()],
        hovertext=[
            f"{name}<br>minute {minute}: {shown} <b>{milliseconds(value)}</b>, the median of "
            f"{counted(runs, 'run')}"
            for minute, (value, runs) in each.tail_ms.items()
        ],
    )


def _hits(each: Warming) -> Json:
    name = plotly_text(each.name)
    return _curve(each) | points(
        name,
        [float(minute) for minute in each.hit_percent],
        list(each.hit_percent.values()),
        hovertext=[
            f"{name}<br>minute {minute}: <b>{significant(value)} %</b> of what was asked for was in the cache"
            for minute, value in each.hit_percent.items()
        ],
        yaxis="y2",
        showlegend=False,
    )


def _curve(each: Warming) -> Json:
    colour = colour_of(each.shade)
    return {
        "mode": "lines+markers",
        "line": {"color": colour, "width": 2},
        "marker": {"color": colour, "size": 7},
        "hoverinfo": "text",
        "legendgroup": f"backend {each.shade}",
    }


def _busy(busy: tuple[float, float] | None) -> Json:
    if busy is None:
        return {}
    box = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "opacity": 0.12}
    edges = {"x0": busy[0], "x1": busy[1], "fillcolor": "var(--muted)", "line": {"width": 0}}
    return {"shapes": [box | edges]}
