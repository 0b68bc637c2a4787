"""The chart of the mission: each backend's slowest requests over the time of the saturator, by windows.

Below it, on the same axis, what tells cause from effect: requests done, throughput of the send, latency of
the disks. Backends that have no point in a figure, since they had too few requests, are named there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.page.chart import (
    Chart,
    Choice,
    Json,
    Missing,
    TimeUnit,
    axis,
    choose_scale,
    colour_of,
    layout,
    log_ticks,
    missing_caption,
    missing_notes,
    points,
    rounded,
    unit_for,
    upper_median,
)
from plimsoll.analysis.report.runs import BackendFigures, ScenarioFigures, failures_note
from plimsoll.analysis.statistics.percentiles import PERCENTILES, fewest
from plimsoll.analysis.statistics.windows import PhaseWindow, line_of
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import WRONG_ANSWER, at_least, counted, milliseconds, seconds, significant

_LINE_POINTS = 40  # a straight line is a curve on a log scale
_MOST_BINS = 240
_ASIDE = 0.3  # of a window's width
# So that backends can be told apart without colours; each has an open form for widened windows.
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")
_FAILED = "arrow-up"  # a lower bound: the failure that it is stands at its time-out
# The place of each row of the chart, from the bottom, by how many rows there are below the first.
_GAP, _LOWER = 0.055, 0.15
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StripRow:
    """A quantity below the scatter: its axis, and for each run of a backend instants (s) and values."""

    title: str
    unit: str
    runs: list[tuple[Floats, Floats]]


@dataclass(frozen=True)
class ScatterBackend:
    """A backend as the chart knows it: name (hostile), colour, the windows of each repeat by its name."""

    name: str
    shade: int
    repeats: list[tuple[str, list[PhaseWindow]]]
    rows: list[StripRow]

    @property
    def windows(self) -> list[PhaseWindow]:
        """The windows of all repeats."""
        return [window for _, windows in self.repeats for window in windows]


@dataclass(frozen=True)
class Scatter:
    """The parts of the chart. `saturators` is empty where time counts from the start of the run.

    `failures` ends the caption. `missing` names the backends that have no point in a phase.
    """

    key: str
    of: str
    backends: Sequence[ScatterBackend]
    shown: str
    width_s: float
    left_out: int
    saturators: list[str]
    busy_s: float | None
    failures: str = ""
    missing: Sequence[Missing] = ()


def scatter_of(figures: ScenarioFigures) -> Chart:
    """Return the scatter of all windows: the slow tail of each backend over time."""
    saturators = [name.replace("-", " ") for name in figures.scenario.saturators]
    drawn = scatter_chart(
        Scatter(
            key=f"scatter-{figures.scenario.number}",
            of=figures.scenario.title_end,
            backends=[_scatter_backend(each, saturators) for each in figures.backends],
            shown=figures.windows.shown,
            width_s=figures.windows.width_s,
            left_out=figures.windows.left_out,
            failures=failures_note(run.statistics for run in figures.scenario.runs),
            saturators=saturators,
            busy_s=figures.scenario.busy_s,
            missing=too_few_for_windows(figures.few),
        )
    )
    return replace(drawn, choices=choices_of(figures))


def choices_of(figures: ScenarioFigures) -> list[Choice]:
    """Return which backends the reader can choose; none where all of them are shown."""
    if not figures.scenario.crowded:
        return []
    shown = {backend.shade for backend in figures.scenario.few.backends}
    each = sorted((each.backend for each in figures.backends), key=lambda one: one.shade)
    return [Choice(one.called, one.shade, one.shade in shown) for one in each]


def _scatter_backend(each: BackendFigures, saturators: Sequence[str]) -> ScatterBackend:
    saturator = saturators[0] if len(saturators) == 1 else "saturator"
    return ScatterBackend(
        name=each.backend.called,
        shade=each.backend.shade,
        repeats=[(repeat.run.label, repeat.windows) for repeat in each.repeats],
        rows=[
            StripRow("requests/s", "requests/s", [(r.done.t_s, r.done.value) for r in each.repeats]),
            StripRow(f"{saturator} (MB/s)", "MB/s", [(r.send.t_s, r.send.value / 1e6) for r in each.repeats]),
            StripRow("disk read (ms)", "ms a read", [(r.disk.t_s, r.disk.value) for r in each.repeats]),
        ],
    )


def scatter_chart(scatter: Scatter) -> Chart:
    """Return the scatter of all windows, an average line a backend, and what else was seen below."""
    every = [window for backend in scatter.backends for window in backend.windows]
    first_s = min((window.start_s for window in every), default=0.0)
    last_s = max((window.stop_s for window in every), default=1.0)
    unit = unit_for(max(last_s, -first_s))
    titles = [row.title for row in scatter.backends[0].rows]
    rows = [n for n in range(len(titles)) if any(len(t) for b in scatter.backends for t, _ in b.rows[n].runs)]
    data: list[Json] = []
    for column, backend in enumerate(scatter.backends):
        # A little apart, so that the points of one instant do not hide one another.
        aside_s = (
            (column - (len(scatter.backends) - 1) / 2) * scatter.width_s * _ASIDE / len(scatter.backends)
        )
        data += _points(backend, scatter, unit, aside_s)
        data += _line(backend, scatter, unit)
        for place, row in enumerate(rows, 2):
            data += row_traces(backend, backend.rows[row], place, (first_s, last_s), unit)
    values = [value for window in every if (value := window.drawn_ms)]
    scale = choose_scale(values, 8, upper_median)
    during = f" while {' and '.join(scatter.saturators)} runs" if scatter.saturators else " over time"
    return Chart(
        key=scatter.key,
        title=f"{_heading(scatter.shown)}{during}{scatter.of}",
        caption=_caption(scatter, every),
        data=data,
        layout=_layout(scatter, [titles[row] for row in rows], (first_s, last_s), unit, scale, values),
        scale=scale,
        tall=len(rows),
    )


def _points(backend: ScatterBackend, scatter: Scatter, unit: TimeUnit, aside_s: float) -> list[Json]:
    found: list[Json] = []
    symbol = _SYMBOLS[backend.shade % len(_SYMBOLS)]
    size = 9 if len(backend.windows) <= 150 else 6 if len(backend.windows) <= 600 else 4
    drawn = [(name, w) for name, windows in backend.repeats for w in windows if w.drawn_ms is not None]
    for widened in (False, True):
        some = [(name, w) for name, w in drawn if w.widened is widened]
        if not some:
            continue
        form = "-open" if widened else ""
        forms = [(symbol if w.value_ms is not None else _FAILED) + form for _, w in some]
        look = {
            "size": size,
            "color": colour_of(backend.shade),
            "symbol": symbol + form if set(forms) <= {symbol + form} else forms,
        }
        found.append(
            points(
                plotly_text(backend.name),
                [unit.of(window.middle_s + aside_s) for _, window in some],
                [window.drawn_ms or None for _, window in some],
                mode="markers",
                marker=look | {"line": {"width": 1.5 if widened else 0}, "opacity": 0.8},
                hovertext=[_hover(name, window, scatter) for name, window in some],
                hoverinfo="text",
                legendgroup=f"backend {backend.shade}",
                showlegend=not any(trace["showlegend"] for trace in found),
            )
        )
    return found or [_absent(backend, {"size": size, "color": colour_of(backend.shade), "symbol": symbol})]


def _absent(backend: ScatterBackend, look: Json) -> Json:
    """Return a trace of nothing: its backend stands in the legend all the same."""
    group = {"legendgroup": f"backend {backend.shade}", "hoverinfo": "skip"}
    nowhere: Json = {"x": [None], "y": [None]}
    return points(plotly_text(backend.name), [], [], mode="markers", marker=look, **group) | nowhere


def _line(backend: ScatterBackend, scatter: Scatter, unit: TimeUnit) -> list[Json]:
    """Return the average line of the time that matters: while the saturator ran, or of the whole run."""
    some = [window for window in backend.windows if window.phase in ("during", "whole run")]
    line = line_of(some)
    if line is None:
        return []
    from_s, to_s = min(w.start_s for w in some), max(w.stop_s for w in some)
    at_s = [from_s + (to_s - from_s) * step / _LINE_POINTS for step in range(_LINE_POINTS + 1)]
    text = (
        f"{plotly_text(backend.name)}: the average line goes from "
        f"{milliseconds(max(line.at_ms(from_s), 0))} to {milliseconds(max(line.at_ms(to_s), 0))}"
    )
    return [
        points(
            plotly_text(backend.name),
            [unit.of(t_s) for t_s in at_s],
            [value if (value := line.at_ms(t_s)) > 0 else None for t_s in at_s],
            mode="lines",
            hovertext=[text] * len(at_s),
            hoverinfo="text",
            line={"color": colour_of(backend.shade), "width": 3},
            legendgroup=f"backend {backend.shade}",
            showlegend=False,
        )
    ]


def row_traces(
    backend: ScatterBackend, row: StripRow, place: int, edges_s: tuple[float, float], unit: TimeUnit
) -> list[Json]:
    """Return the mean of all repeats in each bin of time: a line; absent where no repeat has a value."""
    from_s, to_s = edges_s
    width_s = max(1.0, float(np.ceil((to_s - from_s) / _MOST_BINS)))
    low = int(np.floor(from_s / width_s))
    bins = max(int(np.ceil(to_s / width_s)) - low, 1)
    t_s = np.concatenate([t for t, _ in row.runs]) if row.runs else np.empty(0)
    value = np.concatenate([v for _, v in row.runs]) if row.runs else np.empty(0)
    slot = np.floor(t_s / width_s).astype(np.int64) - low
    there = (slot >= 0) & (slot < bins)
    count = np.bincount(slot[there], minlength=bins)
    total = np.bincount(slot[there], weights=value[there], minlength=bins)
    means = [float(s / n) if n else None for s, n in zip(total.tolist(), count.tolist(), strict=True)]
    if not any(count):
        return []
    x_s = [(low + bin_ + 0.5) * width_s for bin_ in range(bins)]
    name = plotly_text(backend.name)
    return [
        points(
            name,
            [unit.of(t) for t in x_s],
            list(means),
            mode="lines",
            yaxis=f"y{place}",
            line={"color": colour_of(backend.shade), "width": 1.8, "shape": "hvh"},
            hovertext=[
                "" if mean is None else f"{name}: {significant(mean)} {row.unit} at {seconds_of(t)}"
                for t, mean in zip(x_s, means, strict=True)
            ],
            hoverinfo="text",
            legendgroup=f"backend {backend.shade}",
            showlegend=False,
        )
    ]


def seconds_of(t_s: float) -> str:
    """Return an instant beside the saturator's start, which may be before it: `−12 s`."""
    return f"{'−' if t_s < 0 else ''}{seconds(abs(t_s))}"


def _hover(name: str, window: PhaseWindow, scatter: Scatter) -> str:
    failure = "a failure, at its time-out<br>" if window.value_ms is None else ""
    shown = "slowest" if scatter.shown == "max" else scatter.shown
    took = milliseconds(window.drawn_ms)
    if window.value_ms is None:
        took = WRONG_ANSWER if window.wrong else at_least(took)
    return (
        f"{plotly_text(name)}, {window.phase}<br>{shown} <b>{took}</b><br>{failure}"
        f"n = {counted(window.n, 'request')}<br>{seconds_of(window.start_s)} to {seconds_of(window.stop_s)}"
        f"{' (widened)' if window.widened else ''}"
    )


def _heading(shown: str) -> str:
    return {
        "p99.9": "The slowest request in a thousand (p99.9)",
        "p99": "The slowest request in a hundred (p99)",
    }.get(shown, "The slowest requests")


def _caption(scatter: Scatter, every: Sequence[PhaseWindow]) -> str:
    what = "the slowest" if scatter.shown == "max" else f"the {scatter.shown}"
    text = f"Each point is {what} of the requests of one run that were due in {seconds(scatter.width_s)}"
    if any(window.widened for window in every):
        text += " (hollow: in a longer time, where there were fewer)"
    text += "; the lines are straight averages"
    text += f" while {' and '.join(scatter.saturators)} ran" if scatter.saturators else ""
    text += ". Below, means of all repeats. Click a backend in the legend to hide or show it."
    if scatter.shown != "p99.9":
        text += " A p99.9 needs at least 1,000 requests, and most runs have fewer."
    text += missing_caption(scatter.missing)
    if scatter.left_out:
        text += f" {counted(scatter.left_out, 'phase')} of runs had too few requests for a point."
    if any(window.value_ms is None and window.drawn_ms is not None for window in every):
        text += " An arrow is a failure, at its time-out: a lower bound."
    return text + scatter.failures


def _layout(
    scatter: Scatter,
    titles: list[str],
    edges_s: tuple[float, float],
    unit: TimeUnit,
    scale: str,
    values: list[float],
) -> Json:
    since = f"{scatter.saturators[0]} started" if scatter.saturators else "the start of the run"
    if len(scatter.saturators) > 1:
        since = "the saturator started"
    span_s = edges_s[1] - edges_s[0]
    x_axis = axis(f"{unit.name} since {since}") | {
        "range": [unit.of(edges_s[0] - span_s / 100), unit.of(edges_s[1] + span_s / 100)],
        "anchor": f"y{len(titles) + 1}" if titles else "y",
        "rangemode": "normal",
        "zeroline": bool(scatter.saturators),
    }
    bottom = len(titles) * (_LOWER + _GAP)
    more: Json = {
        f"yaxis{place}": axis(title)
        | {
            "domain": [top - _LOWER, top],
            "nticks": 4,
            "title": {"text": plotly_text(title), "standoff": 10, "font": {"size": 12}},
        }
        for place, title in enumerate(titles, 2)
        for top in [(len(titles) + 2 - place) * (_LOWER + _GAP) - _GAP]
    }
    y_axis = axis("response time (ms)", scale) | log_ticks(values) | {"domain": [rounded(bottom), 1]}
    more["annotations"] = missing_notes(
        [each for each in scatter.missing if _is_drawn(each.phase, edges_s, scatter.busy_s)],
        lambda phase: unit.of(_middle_s(phase, edges_s, scatter.busy_s)),
    )
    if scatter.busy_s is not None:
        band = {"type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
        edges = {"x0": 0, "x1": unit.of(scatter.busy_s), "line": {"width": 0}}
        more["shapes"] = [band | edges | {"fillcolor": "var(--muted)", "opacity": 0.1}]
        more["annotations"] += [
            {
                "x": unit.of(scatter.busy_s / 2),
                "y": 1,
                "yref": "paper",
                "yanchor": "top",
                "text": " and ".join(map(plotly_text, scatter.saturators)),
                "showarrow": False,
                "font": {"size": 12, "color": "var(--muted)"},
            }
        ]
    return layout(x_axis, y_axis, **more)


def _is_drawn(phase: str, edges_s: tuple[float, float], busy_s: float | None) -> bool:
    """Return whether the axis reaches into a phase; the caption names what is missing elsewhere."""
    from_s, to_s = edges_s
    return {"before": from_s < 0, "after": to_s > (busy_s or 0)}.get(phase, True)


def _middle_s(phase: str, edges_s: tuple[float, float], busy_s: float | None) -> float:
    """Return the middle of a phase as far as it is drawn."""
    from_s, to_s = edges_s
    middles = {"before": from_s / 2, "during": (busy_s or 0) / 2, "after": ((busy_s or 0) + to_s) / 2}
    return min(max(middles.get(phase, (from_s + to_s) / 2), from_s), to_s)


def too_few_for_windows(figures: ScenarioFigures) -> list[Missing]:
    """Return which backends have no window in a phase of the scatter, and what would be enough."""
    there = {phase: [each for each in figures.backends if each.windows(phase)] for phase in figures.phases}
    return [
        each
        for phase, drawn in there.items()
        for each in _missing(figures, phase, figures.windows.shown, drawn)
    ]


def too_few_for_runs(figures: ScenarioFigures, shown: str) -> list[Missing]:
    """Return which backends have no run with a figure `shown` in a phase."""
    found: list[Missing] = []
    for phase in figures.phases:
        drawn = [
            each
            for each in figures.backends
            if any(
                repeat.phases[phase].requests >= _enough(shown)
                for repeat in each.repeats
                if phase in repeat.phases
            )
        ]
        found += _missing(figures, phase, shown, drawn)
    return found


def _missing(
    figures: ScenarioFigures, phase: str, shown: str, drawn: Sequence[BackendFigures]
) -> Iterator[Missing]:
    for each in figures.backends:
        counts = [repeat.phases[phase].requests for repeat in each.repeats if phase in repeat.phases]
        if each in drawn or not counts or not (drawn or any(counts)):
            continue
        yield Missing(phase, each.backend.called, each.backend.shade, _text(counts, shown))


def _text(counts: Sequence[int], shown: str) -> str:
    if not any(counts):
        return "no request was due"
    low, high = min(counts), max(counts)
    have = counted(high, "request") if low == high else f"{low:,} to {high:,} requests"
    each = " a run" if len(counts) > 1 else ""
    return f"{have}{each}: too few, {'one is' if shown == 'max' else f'a {shown} takes {_enough(shown):,}'}"


def _enough(shown: str) -> int:
    return 1 if shown == "max" else fewest(PERCENTILES[shown])
