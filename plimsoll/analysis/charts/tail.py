"""The chart that this is all about: the slowest request in a thousand, over time."""

from collections.abc import Sequence

from plimsoll.analysis.charts.failures import failures_note
from plimsoll.analysis.charts.style import Run, span_shapes, time_unit, trace_name
from plimsoll.analysis.page.chart import Chart, Json, TimeUnit, axis, layout, log_ticks, points, time_axis
from plimsoll.analysis.statistics.timeline import Timeline
from plimsoll.analysis.statistics.times import NEVER_US
from plimsoll.analysis.statistics.windows import Window
from plimsoll.common.units import WRONG_ANSWER, at_least, counted, milliseconds, seconds

_LINE_POINTS = 60  # a straight line is a curve on a log scale


def tail_chart(runs: Sequence[Run]) -> Chart:
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
    return Chart(
        key="tail",
        title=f"{_heading(shown)} over time",
        caption=_caption(runs),
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


def _caption(runs: Sequence[Run]) -> str:
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
    text += failures_note(runs)
    lines = [_average(run, runs) for run in runs if run.statistics.windows.line is not None]
    return text + (f" The straight average line goes from {'; '.join(lines)}." if lines else "")


def _average(run: Run, runs: Sequence[Run]) -> str:
    line = run.statistics.windows.line
    if line is None:
        return ""
    whose = "" if len(runs) == 1 else f" ({run.name})"
    first_ms, last_ms = line.at_ms(0), line.at_ms(run.statistics.windows.windows[-1].stop_s)
    return f"{milliseconds(max(first_ms, 0))} to {milliseconds(max(last_ms, 0))}{whose}"


def _windows(run: Run, runs: Sequence[Run], unit: TimeUnit) -> list[Json]:
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
            "color": run.colour,
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


def _line(run: Run, runs: Sequence[Run], unit: TimeUnit) -> list[Json]:
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
            line={"color": run.colour, "width": 2, "dash": "dash"},
            showlegend=len(runs) == 1,
        )
    ]


def _slowest(run: Run, unit: TimeUnit) -> Json:
    timeline = run.statistics.timeline
    slots = [slot for slot in range(timeline.used) if timeline.due[slot] and not _unknown(timeline, slot)]
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


def _unknown(timeline: Timeline, slot: int) -> bool:
    """Return whether nobody knows how long the slowest of a slice took, since it failed."""
    return bool(timeline.failed[slot]) and int(timeline.slowest_us[slot]) >= NEVER_US


def _slowest_of(value_ms: float, timeline: Timeline, slot: int) -> str:
    failed, wrong = int(timeline.failed[slot]), int(timeline.wrong[slot])
    if failed and failed == wrong:
        return WRONG_ANSWER
    return at_least(milliseconds(value_ms)) if failed else milliseconds(value_ms)


def _hover(run: Run, runs: Sequence[Run], window: Window) -> str:
    windows = run.statistics.windows
    whose = "" if len(runs) == 1 else f"{run.label}<br>"
    merged = " (wider)" if window.merged else ""
    times = window.figures
    return (
        f"{whose}{windows.shown} <b>{times.shown(windows.shown)}</b><br>"
        f"p50 {times.shown('p50')}, slowest {times.shown('max')}<br>"
        f"{counted(window.n, 'request')}, {seconds(window.start_s)} to {seconds(window.stop_s)}{merged}"
    )


def _scale(runs: Sequence[Run]) -> str:
    """Return log where a linear scale would press the ordinary windows into the axis."""
    values = [
        value
        for run in runs
        for window in run.statistics.windows.windows
        if (value := run.statistics.windows.drawn_ms(window))
    ]
    values.sort()
    return "log" if values and values[-1] > 8 * values[len(values) // 2] else "linear"
