"""Every repeat as a point: how far runs of one backend lie apart, beside how far the backends do."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from plimsoll.analysis.charts.missing import Missing, missing_caption, missing_notes
from plimsoll.analysis.charts.style import Chart, Json, axis, colour_of, in_lines, layout, log_ticks, points
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import WRONG_ANSWER, at_least, counted, milliseconds

_LETTERS = 80  # that fit beside each other below a chart, on paper
_SPREAD = 0.7  # how much of a place the backends' columns take


class RunPoint(NamedTuple):
    """One run's figure, by the run's name (hostile); without end where nobody knows how long failures took.

    `at_least`: the figure is but a lower bound; `wrong`: since a wrong answer came in time.
    """

    run: str
    ms: float
    at_least: bool = False
    wrong: bool = False


@dataclass(frozen=True)
class Repeats:
    """One backend's figures at each place; its name is hostile."""

    name: str
    shade: int
    at: list[list[RunPoint]]


def repeats_chart(
    key: str,
    title: str,
    caption: str,
    places: list[str],
    backends: Sequence[Repeats],
    missing: Sequence[Missing] = (),
) -> Chart:
    """Return a column of points a backend at each of `places` (hostile names), with a bar at the median.

    `missing` names those that have no point at a place.
    """
    values = [each.ms for backend in backends for at in backend.at for each in at if 0 < each.ms < math.inf]
    step = _SPREAD / len(backends)
    data: list[Json] = []
    for column, backend in enumerate(backends):
        middle = (column - (len(backends) - 1) / 2) * step
        group: Json = {"legendgroup": f"backend {backend.shade}"}
        data += [_column(backend, places, middle, step, group), _medians(backend, middle, step, group)]
    scale = "log" if values and max(values) > 8 * min(values) else "linear"
    return Chart(
        key=key,
        title=title,
        caption=caption + _failed(backends) + missing_caption(missing),
        data=data,
        layout=layout(
            _places_axis(places),
            axis("ms", scale) | log_ticks(values),
            annotations=missing_notes(missing, lambda phase: places.index(phase), top=1.0),
        ),
        scale=scale,
    )


def _column(backend: Repeats, places: list[str], middle: float, step: float, group: Json) -> Json:
    """Return a backend's points, around its `middle` of each place."""
    x, y, texts, symbols = [], [], [], []
    for place, at in enumerate(backend.at):
        for number, each in enumerate(at):
            if math.isinf(each.ms):
                continue
            apart = (number - (len(at) - 1) / 2) * min(step / max(len(at), 1), step / 6) * 0.8
            x.append(round(place + middle + apart, 4))
            y.append(each.ms or None)
            shown = at_least(milliseconds(each.ms)) if each.at_least else milliseconds(each.ms)
            shown = WRONG_ANSWER if each.wrong else shown
            texts.append(f"{plotly_text(each.run)}: <b>{shown}</b><br>{plotly_text(places[place])}")
            symbols.append("triangle-up" if each.at_least else "circle")
    look: Json = {"size": 10, "color": colour_of(backend.shade), "opacity": 0.75}
    if "triangle-up" in symbols:
        look["symbol"] = symbols
    name = plotly_text(backend.name)
    return points(name, x, y, mode="markers", marker=look, hovertext=texts, hoverinfo="text", **group)


def _places_axis(places: list[str]) -> Json:
    return axis("") | {
        "tickmode": "array",
        "tickvals": list(range(len(places))),
        "ticktext": [in_lines(place, max(_LETTERS // max(len(places), 1), 10), 4) for place in places],
        "tickangle": 0,
        "tickfont": {"size": 10},
        "range": [-0.5, len(places) - 0.5],
        "showgrid": False,
        "zeroline": False,
        "rangemode": "normal",
    }


def _failed(backends: Sequence[Repeats]) -> str:
    """Return what the caption says of figures that are failures'; empty where there is none."""
    points = [each for backend in backends for at in backend.at for each in at]
    said = ""
    if any(each.at_least and not math.isinf(each.ms) for each in points):
        said += " A triangle is a failure, at its time-out: a lower bound."
    if unknown := sum(math.isinf(each.ms) for each in points):
        are = "is a failure" if unknown == 1 else "are failures"
        said += f" {counted(unknown, 'figure')} {are} of unknown time-out: above all others, and not drawn."
    return said


def _medians(backend: Repeats, middle: float, step: float, group: Json) -> Json:
    x: list[float] = []
    y: list[float | None] = []
    for place, at in enumerate(backend.at):
        if not at:
            continue
        level = median(each.ms for each in at)
        if math.isinf(level):
            continue
        x += [round(place + middle - step * 0.42, 4), round(place + middle + step * 0.42, 4), place + middle]
        y += [level or None, level or None, None]
    return points(
        plotly_text(backend.name),
        x,
        y,
        mode="lines",
        hoverinfo="skip",
        line={"color": colour_of(backend.shade), "width": 3},
        showlegend=False,
        **group,
    )
