"""How response times are spread: percentile curves, heat maps, every repeat as a point."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.page.chart import (
    Chart,
    Json,
    Repeats,
    RunPoint,
    axis,
    choose_scale,
    colour_of,
    layout,
    log_ticks,
    points,
    repeats_chart,
    rounded,
    time_axis,
    unit_for,
)
from plimsoll.analysis.report.charts.over_time import span_shapes, time_unit, trace_name
from plimsoll.analysis.report.charts.scatter import (
    choices_of,
    too_few_for_runs,
)
from plimsoll.analysis.report.charts.scripted import steps_chart
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.runs import (
    RepeatFigures,
    ScenarioFigures,
    failures_note,
)
from plimsoll.analysis.statistics.percentiles import PERCENTILES, fewest
from plimsoll.analysis.statistics.windows import heat_edge_ms
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import milliseconds, significant

_MOST_HEAT_MAPS = 4
_FEWEST_OF_HEAT = 1000  # requests
_RUN_LEVEL = ("p99.9", "p99")
_TICKS = {
    2: "50 %",
    10: "90 %",
    100: "99 %",
    1_000: "99.9 %",
    10_000: "99.99 %",
    100_000: "99.999 %",
    1_000_000: "99.9999 %",
    10_000_000: "99.99999 %",
}
MOST_COLUMNS = 250
_MOST_MAPS = 4


@dataclass(frozen=True)
class Slices:
    """Of one run: counts (slices, rows of the heat map), the slices' width, and when time 0 is in the run."""

    heat: NDArray[np.int64]
    width_s: float
    zero_s: float


def curves_of(figures: ScenarioFigures) -> Chart | None:
    """Return the percentile curve of each backend, in the phase that matters most."""
    when = "while the saturator ran" if figures.saturated else "of the whole run"
    failures = failures_note(run.statistics for run in figures.scenario.runs)
    curves = [
        (each.backend.called, each.backend.shade, each.curve) for each in figures.backends if each.curve
    ]
    if not curves:
        return None
    drawn = pooled_chart(
        f"curves-{figures.scenario.number}",
        f"How slow, for how many, {when}{figures.scenario.title_end}",
        curves,
        failures,
    )
    return replace(drawn, choices=choices_of(figures))


def heat_of(figures: ScenarioFigures) -> list[Chart]:
    """Return a heat map of each of the first backends, all their repeats together."""
    if not figures.scenario.repeated or figures.scenario.requests < _FEWEST_OF_HEAT:
        return []
    saturators = [name.replace("-", " ") for name in figures.scenario.saturators]
    since = f"{' or '.join(saturators)} started" if saturators else "the start of the run"
    return [
        pooled_heat_chart(
            f"heat-{figures.scenario.number}-{place}",
            f"All response times on {each.backend.called}{figures.scenario.title_end}",
            since,
            figures.scenario.busy_s,
            [_slices(run) for run in each.backend.runs],
            failures_note(run.statistics for run in each.backend.runs),
        )
        for place, each in enumerate(figures.few.backends[:_MOST_HEAT_MAPS])
        if any(run.statistics.timeline.heat.any() for run in each.backend.runs)
    ]


def repeats_of(figures: ScenarioFigures) -> Chart | None:
    """Return every run's p99.9 in each phase; p99 where that is too much to ask; else the steps' medians.

    None where a scripted scenario is too small for either: its steps have a chart already.
    """
    for shown in _RUN_LEVEL:
        enough = fewest(PERCENTILES[shown])
        counts = [
            phase.requests for each in figures.backends for r in each.repeats for phase in r.phases.values()
        ]
        if sum(count >= enough for count in counts) * 2 > len(counts):
            return _run_level(figures.few, f"repeats-{figures.scenario.number}", shown)
    return None if figures.scenario.is_scripted else steps_chart(figures.scenario)


def _slices(run: ReportRun) -> Slices:
    timeline = run.statistics.timeline
    return Slices(timeline.heat[: timeline.used], timeline.width_s, run.zero_ns / 1e9)


def _run_level(figures: ScenarioFigures, key: str, shown: str) -> Chart:
    backends = [
        Repeats(
            each.backend.called,
            each.backend.shade,
            [
                [
                    point
                    for repeat in each.repeats
                    if phase in repeat.phases and (point := _point(repeat, phase, shown))
                ]
                for phase in figures.phases
            ],
        )
        for each in figures.backends
    ]
    caption = (
        f"Each point is the {shown} of one run in that phase, each bar the median of a backend's runs. Where "
        "the points of two backends overlap, the runs do not tell the backends apart."
    )
    missing = too_few_for_runs(figures, shown)
    return repeats_chart(
        key, f"Every repeat, {shown}{figures.scenario.title_end}", caption, figures.phases, backends, missing
    )


def _point(repeat: RepeatFigures, phase: str, shown: str) -> RunPoint | None:
    times = repeat.phases[phase].response_ms
    if times[shown] is None and shown not in times.censored:
        return None
    least_ms = times.least_ms(shown)
    ms = math.inf if least_ms is None else least_ms
    return RunPoint(repeat.run.label, ms, shown in times.censored, shown in times.wrong)


def percentile_chart(runs: Sequence[ReportRun]) -> Chart:
    """Return response and service time at every percentile; x is 1/(1−q) on a log scale."""
    data: list[Json] = []
    for run in runs:
        service = {
            "color": run.chart_colour if len(runs) > 1 else "var(--run-2)",
            "width": 1.5,
            "dash": "dot",
        }
        data.append(_curve(run, runs, "service", service))
        data.append(_curve(run, runs, "response", {"color": run.chart_colour, "width": 2.5}))
    x_axis = _x_axis(max(run.statistics.samples["response"].n for run in runs))
    values = [value for trace in data for value in trace["y"] if value]
    scale = choose_scale(values, 50)
    return Chart(
        key="percentiles",
        title="How slow, for how many",
        caption=(
            "At 99.9 % stands the time that all but one in a thousand requests took at most. Response time "
            "counts from the instant a request was due, service time from when it was sent; where they "
            "part, requests waited before they were sent."
        )
        + failures_note(run.statistics for run in runs),
        data=data,
        layout=layout(
            x_axis,
            axis("ms", scale) | log_ticks(values),
            hovermode="x unified" if len(runs) == 1 else "closest",
        ),
        scale=scale,
    )


def pooled_chart(
    key: str, title: str, curves: Sequence[tuple[str, int, list[tuple[float, float]]]], failures: str = ""
) -> Chart:
    """Return the response time of each backend at every percentile, of all its repeats together.

    `curves` are names (hostile), colours and points (1/(1−q), ms); `failures` ends the caption.
    """
    data = [
        points(
            plotly_text(name),
            [rounded(one_in) for one_in, _ in curve],
            [value_ms for _, value_ms in curve],
            mode="lines",
            line={"color": colour_of(shade), "width": 2.5, "shape": "vh"},
            hovertext=[
                f"{plotly_text(name)}: one in {significant(one_in)} took {milliseconds(value_ms)} or more"
                for one_in, value_ms in curve
            ],
            hoverinfo="text",
            legendgroup=f"backend {shade}",
        )
        for name, shade, curve in curves
    ]
    values = [value for trace in data for value in trace["y"] if value]
    scale = choose_scale(values, 50)
    return Chart(
        key=key,
        title=title,
        caption=(
            "At 99.9 % stands the time that all but one in a thousand requests took at most, from the "
            "instant at which they were due. All repeats of a backend together."
            f"{failures}"
        ),
        data=data,
        layout=layout(
            _x_axis(max(one_in for _, _, curve in curves for one_in, _ in curve)),
            axis("ms", scale) | log_ticks(values),
        ),
        scale=scale,
    )


def _x_axis(most: float) -> Json:
    """Return the axis of percentiles for at most so many requests."""
    ticks = {at: text for at, text in _TICKS.items() if at <= most}
    ticking = {"tickmode": "array", "tickvals": list(ticks), "ticktext": list(ticks.values()), "tickangle": 0}
    return axis("of the requests were at least as fast", "log") | ticking


def _curve(run: ReportRun, runs: Sequence[ReportRun], sample: str, line: Json) -> Json:
    curve = run.statistics.samples[sample].curve()
    whose = "" if len(runs) == 1 else f"{plotly_text(run.label)} "
    return points(
        trace_name(run, runs, sample),
        [rounded(one_in) for one_in, _ in curve],
        [value_ms for _, value_ms in curve],
        mode="lines",
        line=line | {"shape": "vh"},
        hovertext=[
            f"{whose}{sample}: one in {significant(one_in)} took {milliseconds(value_ms)} or more"
            for one_in, value_ms in curve
        ],
        hoverinfo="text",
    )


def _heat_chart(run: ReportRun, alone: Sequence[ReportRun]) -> Chart:
    """Return the heat map of `run`; `alone` is what shares its time axis."""
    unit = time_unit(alone)
    timeline = run.statistics.timeline
    join = -(-timeline.used // MOST_COLUMNS)
    heat = timeline.heat[: timeline.used]
    counts = np.add.reduceat(heat, np.arange(0, len(heat), join), axis=0)
    trace = _trace(counts, [unit.of(column * join * timeline.width_s) for column in range(len(counts) + 1)])
    y_axis = axis("response time (ms)", "log") | log_ticks(trace["y"])
    return Chart(
        key=f"heat-{run.number}",
        title="All response times" + ("" if len(alone) == 1 else f" of {run.label}"),
        caption="The stronger the colour, the more requests took that long at that time."
        + failures_note([run.statistics]),
        data=[trace],
        layout=layout(time_axis(unit), y_axis, **span_shapes([run], unit)),
        scale="log",
    )


def heat_charts(runs: Sequence[ReportRun]) -> list[Chart]:
    """Return a heat map of each of the first runs."""
    return [_heat_chart(run, runs) for run in runs[:_MOST_MAPS] if run.statistics.timeline.heat.any()]


def pooled_heat_chart(
    key: str, title: str, since: str, busy_s: float | None, runs: Sequence[Slices], failures: str = ""
) -> Chart:
    """Return one heat map of all `runs` together, over the time since `since`.

    A slice counts in the column in which its middle lies; columns are no narrower than the widest slice.
    `failures` ends the caption.
    """
    first_s = min(-run.zero_s for run in runs)
    last_s = max(len(run.heat) * run.width_s - run.zero_s for run in runs)
    width_s = max((last_s - first_s) / MOST_COLUMNS, *(run.width_s for run in runs))
    columns = max(math.ceil((last_s - first_s) / width_s), 1)
    counts = np.zeros((columns, runs[0].heat.shape[1]), dtype=np.int64)
    for run in runs:
        middle_s = (np.arange(len(run.heat)) + 0.5) * run.width_s - run.zero_s - first_s
        column = np.minimum((middle_s / width_s).astype(np.int64), columns - 1)
        np.add.at(counts, column, run.heat)
    unit = unit_for(max(last_s, -first_s))
    trace = _trace(counts, [unit.of(first_s + column * width_s) for column in range(columns + 1)])
    x_axis = axis(f"{unit.name} since {since}") | {
        "range": [unit.of(first_s), unit.of(last_s)],
        "rangemode": "normal",
    }
    more: Json = {}
    if busy_s is not None:
        line: Json = {"type": "line", "yref": "paper", "y0": 0, "y1": 1}
        look: Json = {"line": {"color": "var(--muted)", "width": 1.5, "dash": "dash"}}
        more["shapes"] = [line | look | {"x0": at, "x1": at} for at in (0, unit.of(busy_s))]
    return Chart(
        key=key,
        title=title,
        caption="The stronger the colour, the more requests of all repeats together took that long then."
        + (" Between the dashed lines the saturator ran." if busy_s is not None else "")
        + failures,
        data=[trace],
        layout=layout(x_axis, axis("response time (ms)", "log") | log_ticks(trace["y"]), **more),
        scale="log",
    )


def _trace(counts: NDArray[np.int64], x: list[float]) -> Json:
    """Return the map of `counts` (columns, rows), whose columns have the edges `x`."""
    rows = np.flatnonzero(counts.sum(axis=0))
    first, last = int(rows[0]), int(rows[-1]) + 1
    counts = counts[:, first:last].T
    # Counts differ by powers of ten; a linear scale of colours would show the median and nothing else.
    shades = [[round(float(np.log10(n)), 2) if n else None for n in row] for row in counts.tolist()]
    top = int(counts.max())
    ticks = [10**power for power in range(len(str(top)))]
    return {
        "type": "heatmap",
        "x": x,
        "y": [rounded(heat_edge_ms(row)) for row in range(first, last + 1)],
        "z": shades,
        "customdata": counts.tolist(),
        "hovertemplate": "%{customdata:,} requests took about %{y:.3~g} ms<extra></extra>",
        "colorscale": [[0, "var(--heat-0)"], [0.5, "var(--heat-1)"], [1, "var(--heat-2)"]],
        "zmin": 0,
        "zmax": max(rounded(float(np.log10(top))), 1e-3),
        "colorbar": {
            "orientation": "h",
            "x": 1,
            "xanchor": "right",
            "y": 1.02,
            "yanchor": "bottom",
            "len": 0.3,
            "xpad": 0,
            "ypad": 4,
            "thickness": 8,
            "outlinewidth": 0,
            "tickvals": [len(str(n)) - 1 for n in ticks],
            "ticktext": ["1 request", *(f"{n:,}" for n in ticks[1:])],
            "tickfont": {"size": 11},
        },
    }
