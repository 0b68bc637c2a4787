"""Runs over their time: the slow tail, throughput, the generator's lateness, and how a site warms up."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from plimsoll.analysis.evidence.host_rows import ARC_HITS
from plimsoll.analysis.page.chart import (
    NARROW_PX,
    Chart,
    Json,
    TimeUnit,
    axis,
    choose_scale,
    colour_of,
    layout,
    log_ticks,
    points,
    time_axis,
    unit_for,
    upper_median,
)
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.runs import BackendRuns, ScenarioFigures, failures_note
from plimsoll.analysis.statistics.percentiles import NEVER_US
from plimsoll.analysis.statistics.windows import Timeline, Window
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import WRONG_ANSWER, at_least, counted, listed, milliseconds, seconds, significant
from plimsoll.rundir.events import Span

_LINE_POINTS = 60  # a straight line is a curve on a log scale
_BY_THE_SECOND_S = 20
_LABEL_LENGTH, _LABEL_PX, _LABEL_LINE_PX, _LABEL_LINES = 40, 6.5, 14, 3  # of spans
_MOST_SPANS = 40
_SHOWN = ("p99.9", "p99")
_FEWEST = 2  # minutes that make a curve
_MINUTE_NS = 60_000_000_000
_MOST_MINUTES = 24 * 60
_GAP = 0.1


def tail_chart(runs: Sequence[ReportRun]) -> Chart:
    """Return the scatter of each window's p99.9, and the straight average line through them."""
    unit = time_unit(runs)
    data: list[Json] = []
    for run in runs:
        if len(runs) == 1:
            data.append(_slowest(run, unit))
        data += _windows(run, runs, unit)
    shown = sorted({run.statistics.windows.shown for run in runs})
    every = [run.statistics.windows for run in runs]
    drawn = [each.drawn_ms(window) or 0.0 for each in every for window in each.windows]
    scale = choose_scale(drawn, 8, upper_median)  # linear would press the ordinary windows into the axis
    ticks = log_ticks([y for trace in data for y in trace["y"] if y])
    return Chart(
        key="tail",
        title=f"{_heading(shown)} over time",
        caption=_caption(runs),
        data=data,
        layout=layout(time_axis(unit), axis("response time (ms)", scale) | ticks, **span_shapes(runs, unit)),
        scale=scale,
    )


def _heading(shown: list[str]) -> str:
    if shown == ["p99.9"]:
        return "The slowest request in a thousand (p99.9)"
    if shown == ["p99"]:
        return "The slowest request in a hundred (p99)"
    return "The slowest requests" if shown == ["max"] else f"The slow tail ({', '.join(shown)})"


def _caption(runs: Sequence[ReportRun]) -> str:
    all_windows = [run.statistics.windows for run in runs]
    shown = {windows.shown for windows in all_windows}
    widths = " or ".join(seconds(width_s) for width_s in sorted({windows.width_s for windows in all_windows}))
    what = "the slowest" if shown == {"max"} else f"the {shown.pop()}" if len(shown) == 1 else "the tail"
    text = f"Each point is {what} of the requests due in {widths}"
    if any(window.merged for windows in all_windows for window in windows.windows):
        text += " (hollow: in a longer time, where there were fewer)"
    text += "."
    if any(windows.shown != "p99.9" for windows in all_windows):
        text += " A p99.9 needs at least 1,000 requests."
    if any(windows.is_censored(window) for windows in all_windows for window in windows.windows):
        text += " A triangle is a failure, at its time-out: a lower bound."
    text += failures_note(run.statistics for run in runs)
    lines = [_average(run, runs) for run in runs if run.statistics.windows.line is not None]
    return text + (f" The straight average line goes from {'; '.join(lines)}." if lines else "")


def _average(run: ReportRun, runs: Sequence[ReportRun]) -> str:
    line = run.statistics.windows.line
    if line is None:
        return ""
    whose = "" if len(runs) == 1 else f" ({run.label})"
    first_ms, last_ms = line.at_ms(0), line.at_ms(run.statistics.windows.windows[-1].stop_s)
    return f"{milliseconds(max(first_ms, 0))} to {milliseconds(max(last_ms, 0))}{whose}"


def _windows(run: ReportRun, runs: Sequence[ReportRun], unit: TimeUnit) -> list[Json]:
    windows = run.statistics.windows
    shown = [window for window in windows.windows if windows.drawn_ms(window) is not None]
    name = "slowest" if windows.shown == "max" else windows.shown
    size = 9 if len(shown) <= 120 else 6
    found = []
    for merged, label, symbol in ((False, name, "circle"), (True, f"{name}, wider window", "circle-open")):
        some = [window for window in shown if window.merged is merged]
        if not some:
            continue
        symbols = [
            symbol.replace("circle", "triangle-up") if windows.is_censored(w) else symbol for w in some
        ]
        marker = {
            "size": size,
            "color": run.chart_colour,
            "symbol": symbol if set(symbols) == {symbol} else symbols,
            "line": {"width": 2 if merged else 0},
        }
        trace = points(
            trace_name(run, runs, label),
            [unit.of(window.middle_s) for window in some],
            [windows.drawn_ms(window) for window in some],
            mode="markers",
            hovertext=[_hover(run, runs, window) for window in some],
            hoverinfo="text",
            marker=marker,
            showlegend=len(runs) == 1 or not merged,
        )
        found.append(trace)
    return [*found, *_line(run, runs, unit)]


def _line(run: ReportRun, runs: Sequence[ReportRun], unit: TimeUnit) -> list[Json]:
    windows = run.statistics.windows
    if windows.line is None:
        return []
    end_s = windows.windows[-1].stop_s
    at_s = [end_s * step / _LINE_POINTS for step in range(_LINE_POINTS + 1)]
    return [
        points(
            trace_name(run, runs, "average line"),
            [unit.of(t_s) for t_s in at_s],
            [value if (value := windows.line.at_ms(t_s)) > 0 else None for t_s in at_s],
            mode="lines",
            hoverinfo="skip",
            line={"color": run.chart_colour, "width": 2, "dash": "dash"},
            showlegend=len(runs) == 1,
        )
    ]


def _slowest(run: ReportRun, unit: TimeUnit) -> Json:
    timeline = run.statistics.timeline
    slots = [
        slot
        for slot in range(timeline.used)
        # how long one that failed would have taken may be unknown
        if timeline.due[slot] and not (timeline.failed[slot] and timeline.slowest_us[slot] >= NEVER_US)
    ]
    values = [float(timeline.slowest_us[slot]) / 1000 for slot in slots]
    return points(
        f"slowest of each {seconds(timeline.width_s)}",
        [unit.of((slot + 0.5) * timeline.width_s) for slot in slots],
        list(values),
        mode="markers",
        hovertext=[
            f"the slowest: {_slowest_of(value, timeline, slot)}<br>at {seconds(slot * timeline.width_s)}"
            for slot, value in zip(slots, values, strict=True)
        ],
        hoverinfo="text",
        marker={"size": 4, "color": "var(--faint)"},
    )


def _slowest_of(value_ms: float, timeline: Timeline, slot: int) -> str:
    failed, wrong = int(timeline.failed[slot]), int(timeline.wrong[slot])
    if failed and failed == wrong:
        return WRONG_ANSWER
    return at_least(milliseconds(value_ms)) if failed else milliseconds(value_ms)


def _hover(run: ReportRun, runs: Sequence[ReportRun], window: Window) -> str:
    windows = run.statistics.windows
    whose = "" if len(runs) == 1 else f"{plotly_text(run.label)}<br>"
    merged = " (wider)" if window.merged else ""
    times = window.figures
    return (
        f"{whose}{windows.shown} <b>{times.shown(windows.shown)}</b><br>"
        f"p50 {times.shown('p50')}, slowest {times.shown('max')}<br>"
        f"{counted(window.n, 'request')}, {seconds(window.start_s)} to {seconds(window.stop_s)}{merged}"
    )


def throughput_chart(runs: Sequence[ReportRun]) -> Chart:
    """Return requests done a second, over those that were due; in a closed loop nothing is due."""
    unit = time_unit(runs)
    data: list[Json] = []
    for run in runs:
        timeline = run.statistics.timeline
        if run.paced_by:
            look: Json = {
                "line": {"color": "var(--muted)", "width": 0, "shape": "hvh"},
                "fill": "tozeroy",
                "fillcolor": "var(--faint)",
            }
            if len(runs) > 1:
                look = {"line": {"color": run.chart_colour, "width": 1, "dash": "dot", "shape": "hvh"}}
            data.append(_rates(run, runs, unit, f"due by {run.paced_by}", timeline.due, look))
        done = {"line": {"color": run.chart_colour, "width": 2, "shape": "hvh"}}
        data.append(_rates(run, runs, unit, "done", timeline.done, done))
        if int(timeline.failed.sum()):
            failed = {"line": {"color": "var(--bad)", "width": 1.5, "shape": "hvh"}}
            data.append(_rates(run, runs, unit, "failed", timeline.failed, failed))
    open_loop = any(run.paced_by for run in runs)
    width = seconds(_join(runs[0]) * runs[0].statistics.timeline.width_s)
    return Chart(
        key="throughput",
        title="Requests per second",
        caption=(
            "Where the line leaves the grey ground, the server fell behind what was due, or caught up."
            if open_loop and len(runs) == 1
            else "Dotted: what was due."
            if open_loop
            else "A closed loop: the next request is sent when the one before is done, at the server's pace."
        )
        + (f" Averages over {width}." if len(runs) == 1 else ""),
        data=data,
        layout=layout(time_axis(unit), axis("requests/s"), **span_shapes(runs, unit)),
    )


def _rates(
    run: ReportRun, runs: Sequence[ReportRun], unit: TimeUnit, name: str, counts: Any, look: Json
) -> Json:
    timeline = run.statistics.timeline
    join = _join(run)
    width_s = join * timeline.width_s
    # the last slice is seldom whole, so its count is not a rate
    used = max(timeline.used // join * join, min(join, timeline.used))
    sums = np.add.reduceat(counts[:used], np.arange(0, used, join))
    per_s = [int(number) / width_s for number in sums]
    whose = "" if len(runs) == 1 else f"{plotly_text(run.label)} "
    return points(
        trace_name(run, runs, name),
        [unit.of((slot + 0.5) * width_s) for slot in range(len(per_s))],
        list(per_s),
        mode="lines",
        hovertext=[
            f"{whose}{name}: {significant(rate)}/s at {seconds(slot * width_s)}"
            for slot, rate in enumerate(per_s)
        ],
        hoverinfo="text",
        **look,
    )


def _join(run: ReportRun) -> int:
    """Return how many slices make a second, if the run is long enough to be drawn by the second."""
    timeline = run.statistics.timeline
    whole = timeline.used * timeline.width_s >= _BY_THE_SECOND_S
    return max(round(1 / timeline.width_s), 1) if whole else 1


def lag_chart(runs: Sequence[ReportRun]) -> Chart | None:
    """Return the largest lag of each slice of time, over the requests that were not queued.

    None where all runs are closed loops, in which nothing is due.
    """
    if not any(run.paced_by for run in runs):
        return None
    unit = time_unit(runs)
    data: list[Json] = []
    for run in runs:
        timeline = run.statistics.timeline
        slots = [slot for slot in range(timeline.used) if timeline.due[slot]]
        values = [float(timeline.latest_us[slot]) / 1000 for slot in slots]
        data.append(
            points(
                trace_name(run, runs, "largest lag"),
                [unit.of((slot + 0.5) * timeline.width_s) for slot in slots],
                [value or None for value in values],
                mode="markers",
                hovertext=[
                    f"{milliseconds(value)} late at {seconds(slot * timeline.width_s)}"
                    for slot, value in zip(slots, values, strict=True)
                ],
                hoverinfo="text",
                marker={"size": 4, "color": run.chart_colour},
                showlegend=len(runs) > 1,
            )
        )
    p999 = [run.statistics.samples["lag"].figures_ms()["p99.9"] for run in runs]
    known = [value for value in p999 if value is not None]
    caption = (
        "How late the load generator itself was at worst: requests that waited for a connection do not count."
    )
    if known:
        caption += f" All but one in a thousand were sent within {milliseconds(max(known))}."
    y_axis = axis("lag (ms)", "log") | log_ticks([y for trace in data for y in trace["y"] if y])
    return Chart(
        key="lag",
        title="Lag of the generator",
        caption=caption,
        data=data,
        layout=layout(time_axis(unit), y_axis, **span_shapes(runs, unit)),
        scale="log",
    )


def time_unit(runs: Sequence[ReportRun]) -> TimeUnit:
    """Return the unit that suits the longest of `runs`."""
    return unit_for(max(run.statistics.duration_s for run in runs))


def span_shapes(runs: Sequence[ReportRun], unit: TimeUnit) -> Json:
    """Return shaded bands and their labels for what happened during the runs (saturators, interrupts)."""
    shapes: list[Json] = []
    spans: list[Span] = []
    for run in runs:
        colour = "var(--muted)" if len(runs) == 1 else run.chart_colour
        for span in run.spans[: _MOST_SPANS // len(runs) + 1]:
            edges = {"x0": unit.of(span.start_s), "x1": unit.of(span.stop_s)}
            box = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "opacity": 0.12}
            shapes.append(box | edges | {"fillcolor": colour, "line": {"width": 1, "color": colour}})
            spans.append(span)
    whole_s = max((run.statistics.duration_s for run in runs), default=1.0)
    return {"shapes": shapes, "annotations": _span_labels(spans, whole_s, unit)}


def _span_labels(spans: Sequence[Span], whole_s: float, unit: TimeUnit) -> list[Json]:
    """Return the labels of `spans`, none over another: below it, or none where there is no room.

    Spans of one name that begin about together, as of several runs, have one.
    """
    labels: list[Json] = []
    free_from_s: list[float] = []  # each line
    same_until_s: dict[str, float] = {}
    for span in sorted(spans, key=lambda span: span.start_s):
        text = plotly_text(span.name, _LABEL_LENGTH)
        wide_s = (min(len(span.name), _LABEL_LENGTH) + 1) * _LABEL_PX / NARROW_PX * whole_s
        start_s = max(min(span.start_s, whole_s - wide_s), 0.0)
        if start_s < same_until_s.get(text, -1.0):
            continue
        line = next((at for at, free_s in enumerate(free_from_s) if free_s <= start_s), len(free_from_s))
        if line == _LABEL_LINES:
            continue
        free_from_s[line : line + 1] = [start_s + wide_s]
        same_until_s[text] = start_s + wide_s
        place = {"x": unit.of(start_s), "y": 1, "yref": "paper", "xanchor": "left", "yanchor": "top"}
        look = {"showarrow": False, "font": {"size": 11}, "yshift": -_LABEL_LINE_PX * line}
        labels.append(place | look | {"text": text})
    return labels


def trace_name(run: ReportRun, runs: Sequence[ReportRun], name: str) -> str:
    """Return a legend entry: with one run what is shown, with several whose it is too."""
    return name if len(runs) == 1 else f"{plotly_text(run.label)} {name}".strip()


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


def warming_of(figures: ScenarioFigures) -> Chart | None:
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
        f"warm-up are left out."
    )
    storages = (run.directory.facts.storage for run in scenario.runs)
    if states := dict.fromkeys(one.cache.state for one in storages if one and one.cache):
        caption += f" Caches at the start: {listed(list(states))}."
    if any(each.hit_percent for each in backends):
        caption += " Below, how much of what was asked of ZFS was in its cache (ARC)."
    busy = _busy_minutes(scenario.runs)
    caption += " The saturator's time is shaded." if busy else ""
    caption += failures_note(run.statistics for run in scenario.runs)
    drawn = [each for each in backends if each.tail_ms]
    return warming_chart(f"warming-{scenario.number}", scenario.title_end, drawn, shown, busy, caption)


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
    scale = choose_scale(values, 8)
    x_axis = axis("minutes after the start") | {"dtick": 1, "rangemode": "normal"}
    if max(minute for each in backends for minute in each.tail_ms) > 20:
        del x_axis["dtick"]
    y_axis = axis(f"{shown} (ms)", scale) | (log_ticks(values) if scale == "log" else {})
    more: Json = {}
    if hits:
        y_axis |= {"domain": [0.5 + _GAP / 2, 1]}
        x_axis |= {"anchor": "y2"}
        more["yaxis2"] = axis("cache hits (%)") | {"domain": [0, 0.5 - _GAP / 2], "range": [0, 102]}
    if busy:
        box = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "opacity": 0.12}
        edges = {"x0": busy[0], "x1": busy[1], "fillcolor": "var(--muted)", "line": {"width": 0}}
        more["shapes"] = [box | edges]
    return Chart(
        key=key,
        title=f"Warming up: {shown} by minute after a start{of}",
        caption=caption,
        data=data,
        layout=layout(x_axis, y_axis, **more),
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
