"""The figure that this is all about: the slowest request in a thousand, over time."""

from collections.abc import Sequence

from analysis.figures.style import (
    Figure,
    Json,
    Run,
    TimeUnit,
    axis,
    layout,
    log_ticks,
    points,
    span_shapes,
    time_axis,
    time_unit,
    trace_name,
)
from analysis.statistics.windows import Window
from analysis.units import counted, milliseconds, seconds

_LINE_POINTS = 60  # a straight line is a curve on a log scale


def tail_figure(runs: Sequence[Run]) -> Figure:
    """Return the scatter of each window's p99.9, and the straight average line through them."""
    unit = time_unit(runs)
    data: list[Json] = []
    for run in runs:
        if len(runs) == 1:
            data.append(_slowest(run, unit))
        data += _windows(run, runs, unit)
    shown = sorted({run.statistics.windows.shown for run in runs})
    y_axis = axis("response time (ms)", _scale(runs)) | log_ticks(
        [y for trace in data for y in trace["y"] if y]
    )
    return Figure(
        key="tail",
        title=f"{_heading(shown)} over time",
        caption=" ".join(_caption(run, runs) for run in runs),
        data=data,
        layout=layout(time_axis(unit), y_axis, **span_shapes(runs, unit)),
        scale=_scale(runs),
    )


def _heading(shown: list[str]) -> str:
    if shown == ["p99.9"]:
        return "The slowest request in a thousand (p99.9)"
    if shown == ["p99"]:
        return "The slowest request in a hundred (p99)"
    return "The slowest requests" if shown == ["max"] else f"The slow tail ({', '.join(shown)})"


def _caption(run: Run, runs: Sequence[Run]) -> str:
    windows = run.statistics.windows
    whose = "" if len(runs) == 1 else f"{run.name}: "
    what = "the slowest request" if windows.shown == "max" else f"the {windows.shown}"
    text = f"{whose}Each point is {what} of the requests due in {seconds(windows.width_s)}"
    merged = sum(window.merged for window in windows.windows)
    if merged:
        text += f"; {counted(merged, 'hollow point')} of longer, where there were fewer requests"
    text += "."
    if len(runs) == 1 and windows.shown == "p99":
        text += " A p99.9 needs at least 1,000 requests."
    line = windows.line
    if line is not None:
        end_s = run.statistics.duration_s
        text += (
            f" The straight average line goes from {milliseconds(max(line.at_ms(0), 0))} "
            f"to {milliseconds(max(line.at_ms(end_s), 0))}."
        )
    return text


def _windows(run: Run, runs: Sequence[Run], unit: TimeUnit) -> list[Json]:
    windows = run.statistics.windows
    shown = [window for window in windows.windows if windows.value_ms(window) is not None]
    name = "slowest" if windows.shown == "max" else windows.shown
    found = [
        points(
            trace_name(run, runs, name),
            [unit.of(window.middle_s) for window in shown],
            [windows.value_ms(window) for window in shown],
            mode="markers",
            hovertext=[
                _hover(run, runs, windows.shown, window, windows.value_ms(window)) for window in shown
            ],
            hoverinfo="text",
            marker={
                "size": 9 if len(shown) <= 120 else 6,
                "color": run.colour,
                "symbol": ["circle-open" if window.merged else "circle" for window in shown],
                "line": {"width": 2 if any(window.merged for window in shown) else 0, "color": run.colour},
            },
        )
    ]
    if windows.line is not None:
        end_s = windows.windows[-1].stop_s
        at_s = [end_s * step / _LINE_POINTS for step in range(_LINE_POINTS + 1)]
        values = [value if (value := windows.line.at_ms(t_s)) > 0 else None for t_s in at_s]
        found.append(
            points(
                trace_name(run, runs, "average line"),
                [unit.of(t_s) for t_s in at_s],
                values,
                mode="lines",
                hoverinfo="skip",
                line={"color": run.colour, "width": 2, "dash": "dash"},
            )
        )
    return found


def _slowest(run: Run, unit: TimeUnit) -> Json:
    timeline = run.statistics.timeline
    slots = [slot for slot in range(timeline.used) if timeline.due[slot]]
    values = [float(timeline.slowest_us[slot]) / 1000 for slot in slots]
    return points(
        f"slowest of each {seconds(timeline.width_s)}",
        [unit.of((slot + 0.5) * timeline.width_s) for slot in slots],
        list(values),
        mode="markers",
        hovertext=[
            f"the slowest: {milliseconds(value)}<br>at {seconds(slot * timeline.width_s)}"
            for slot, value in zip(slots, values, strict=True)
        ],
        hoverinfo="text",
        marker={"size": 4, "color": "var(--faint)"},
    )


def _hover(run: Run, runs: Sequence[Run], shown: str, window: Window, value_ms: float | None) -> str:
    whose = "" if len(runs) == 1 else f"{run.label}<br>"
    merged = " (merged)" if window.merged else ""
    return (
        f"{whose}{shown} <b>{milliseconds(value_ms)}</b><br>"
        f"p50 {milliseconds(window.p50_ms)}, slowest {milliseconds(window.max_ms)}<br>"
        f"{counted(window.n, 'request')}, {seconds(window.start_s)} to {seconds(window.stop_s)}{merged}"
    )


def _scale(runs: Sequence[Run]) -> str:
    """Return log where a linear scale would press the ordinary windows into the axis."""
    values = [
        value
        for run in runs
        for window in run.statistics.windows.windows
        if (value := run.statistics.windows.value_ms(window))
    ]
    values.sort()
    return "log" if values and values[-1] > 8 * values[len(values) // 2] else "linear"
