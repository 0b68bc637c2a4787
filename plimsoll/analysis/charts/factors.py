"""A figure by the level of one factor: a line a backend, with intervals, and every run as a point."""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.analysis.page.chart import (
    Chart,
    Json,
    axis,
    colour_of,
    in_lines,
    layout,
    log_ticks,
    points,
    rounded,
)
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import milliseconds

_LETTERS = 30  # that fit beside each other below a chart on a telephone
_FEWEST = 6  # of a line: `MB/s` stands below its number
_LOG_FROM = 8  # times as high as the lowest


@dataclass(frozen=True)
class LevelPoint:
    """A backend at one place: mean and interval in ms, if there are any, and its runs (hostile names)."""

    place: int
    ms: float | None
    lower_ms: float | None
    upper_ms: float | None
    runs: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class LevelLine:
    """One backend: its name (hostile), the number of its colour, and its points in order."""

    name: str
    shade: int
    points: Sequence[LevelPoint]


def levels_chart(
    key: str,
    title: str,
    caption: str,
    levels: Sequence[tuple[str, float]],
    lines: Sequence[LevelLine],
    goal_ms: float | None = None,
    axis_title: str = "",
) -> Chart:
    """Return a chart; `levels` are labels (hostile) and where each stands on the x axis."""
    data: list[Json] = []
    values = [ms for line in lines for each in line.points for _, ms in each.runs]
    values += [ms for line in lines for each in line.points for ms in (each.lower_ms, each.upper_ms) if ms]
    xs = [x for _, x in levels]
    width = (max(xs) - min(xs)) or 1.0
    for number, line in enumerate(lines):
        aside = (number - (len(lines) - 1) / 2) * width * 0.015
        group: Json = {"legendgroup": f"backend {line.shade}"}
        data += [
            _runs(line, levels, aside, width) | group,
            _means(line, levels, aside, len(lines) > 1) | group,
        ]
    scale = "log" if values and max(values) > _LOG_FROM * min(values) else "linear"
    margin = width * 0.08 if len(xs) > 2 else width * 0.35
    x_axis = axis(axis_title) | {
        "tickmode": "array",
        "tickvals": [rounded(x) for x in xs],
        "ticktext": [in_lines(label, max(_LETTERS // max(len(xs), 1), _FEWEST), 3) for label, _ in levels],
        "tickangle": 0,
        "tickfont": {"size": 11},
        "range": [rounded(min(xs) - margin), rounded(max(xs) + margin)],
        "rangemode": "normal",
        "zeroline": False,
    }
    if goal_ms is not None:
        data.append(_goal(goal_ms, min(xs) - margin, max(xs) + margin))
        values.append(goal_ms)
    return Chart(
        key=key,
        title=title,
        caption=caption,
        data=data,
        layout=layout(x_axis, axis("ms", scale) | log_ticks(values)),
        scale=scale,
    )


def _means(line: LevelLine, levels: Sequence[tuple[str, float]], aside: float, named: bool) -> Json:
    there = [(each, each.ms) for each in line.points if each.ms is not None]
    colour = colour_of(line.shade)
    return points(
        plotly_text(line.name),
        [rounded(levels[each.place][1] + aside) for each, _ in there],
        [ms for _, ms in there],
        mode="lines+markers",
        line={"color": colour, "width": 2},
        marker={"size": 11, "color": colour},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [rounded((each.upper_ms or ms) - ms) for each, ms in there],
            "arrayminus": [rounded(ms - (each.lower_ms or ms)) for each, ms in there],
            "color": colour,
            "thickness": 2,
            "width": 6,
        },
        hovertext=[
            f"{plotly_text(line.name)}, {plotly_text(levels[each.place][0])}: <b>{milliseconds(ms)}</b><br>"
            + (
                f"{milliseconds(each.lower_ms)} to {milliseconds(each.upper_ms)}"
                if each.lower_ms is not None and each.upper_ms is not None
                else "no interval"
            )
            for each, ms in there
        ],
        hoverinfo="text",
        showlegend=named,
    )


def _runs(line: LevelLine, levels: Sequence[tuple[str, float]], aside: float, width: float) -> Json:
    x: list[float] = []
    y: list[float | None] = []
    texts: list[str] = []
    for each in line.points:
        for number, (name, ms) in enumerate(each.runs):
            apart = (number - (len(each.runs) - 1) / 2) * min(width * 0.006, width * 0.05 / len(each.runs))
            x.append(rounded(levels[each.place][1] + aside + apart))
            y.append(ms)
            texts.append(f"{plotly_text(name)}: <b>{milliseconds(ms)}</b>")
    look: Json = {"size": 7, "color": colour_of(line.shade), "opacity": 0.4}
    name = plotly_text(line.name)
    return points(
        name, x, y, mode="markers", marker=look, hovertext=texts, hoverinfo="text", showlegend=False
    )


def _goal(goal_ms: float, left: float, right: float) -> Json:
    return points(
        f"goal: {milliseconds(goal_ms)}",
        [rounded(left), rounded(right)],
        [goal_ms, goal_ms],
        mode="lines",
        line={"color": "var(--bad)", "width": 1.5, "dash": "dash"},
        hoverinfo="skip",
    )
