"""A bar a backend at each place: the median of its runs, with every run as a point upon it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from plimsoll.analysis.page.chart import Chart, Json, axis, colour_of, layout, log_ticks, points, rounded
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import at_least, counted, milliseconds

_SPREAD = 0.8  # how much of a place the backends' bars take
_WIDEST = 0.12  # of the figure's width, one bar
_MOST_LABELLED = 16  # bars with their figure written on them; of more, the highest of each backend
_HALF = 18  # letters of a long name, from each end
_TOPS = " On the log scale only the tops of the bars mean something."
_LOG_FROM = 30  # times as high as the lowest bar


@dataclass(frozen=True)
class Level:
    """One run at one place: its name (hostile), its figure, and the number of values behind it.

    `at_least`: the figure is but a lower bound, without end where even that is not known.
    """

    run: str
    value: float
    n: int
    at_least: bool = False


@dataclass(frozen=True)
class Bars:
    """One backend: its name (hostile), the number of its colour, and its runs' levels at each place."""

    name: str
    shade: int
    at: list[list[Level]]


def bars_chart(
    key: str,
    title: str,
    caption: str,
    places: Sequence[str],
    backends: Sequence[Bars],
    *,
    unit: str = "ms",
    said: Callable[[float], str] = milliseconds,
) -> Chart:
    """Return the bars of all `backends` side by side at each of `places` (hostile names).

    Values are in `unit`; `said` spells one, with its unit.
    """
    middles = [median(level.value for level in at) for each in backends for at in each.at if at]
    data = bar_traces(backends, places, said)
    positive = [value for value in middles if 0 < value < math.inf]
    scale = "log" if positive and max(positive) > _LOG_FROM * min(positive) else "linear"
    return Chart(
        key=key,
        title=title,
        caption=caption + (_TOPS if scale == "log" else ""),
        data=data,
        layout=layout(place_axis(places), axis(unit, scale) | log_ticks(positive), bargap=0),
        scale=scale,
    )


def place_axis(places: Sequence[str]) -> Json:
    """Return an axis with a name (hostile) at each whole number from 0."""
    return axis("") | {
        "tickmode": "array",
        "tickvals": list(range(len(places))),
        "ticktext": _labels(places),
        "range": [-0.5, len(places) - 0.5],
        "showgrid": False,
        "zeroline": False,
        "rangemode": "normal",
    }


def _labels(places: Sequence[str]) -> list[str]:
    """Return a short label of each place; where two would look alike, their ends tell them apart."""
    short = [_two_lines(place) for place in places]
    labels = [
        label
        if short.count(label) == 1
        else f"{plotly_text(place[:_HALF])}<br>…{plotly_text(place[-_HALF:])}"
        for place, label in zip(places, short, strict=True)
    ]
    return [
        label if labels.count(label) == 1 else f"{label} ({at})" for at, label in enumerate(labels, start=1)
    ]


def _two_lines(place: str) -> str:
    """Return `page_load: editor` on two lines: labels that are short stand upright."""
    first, colon, rest = place.partition(": ")
    return f"{plotly_text(first, 24)}:<br>{plotly_text(rest, 24)}" if colon else plotly_text(place, 24)


def bar_traces(
    backends: Sequence[Bars],
    places: Sequence[str],
    said: Callable[[float], str],
    yaxis: str = "y",
    *,
    legend: bool = True,
) -> list[Json]:
    """Return a trace of bars and one of points a backend; one place of the legend turns both off."""
    step = min(_SPREAD / max(len(backends), 1), _WIDEST * max(len(places), 1))
    labelled = sum(bool(at) for each in backends for at in each.at) <= _MOST_LABELLED
    found: list[Json] = []
    for column, backend in enumerate(backends):
        middle = (column - (len(backends) - 1) / 2) * step
        group: Json = {"legendgroup": f"backend {backend.shade}", "yaxis": yaxis}
        found.append(_bars(backend, places, said, middle, step, labelled) | group | {"showlegend": legend})
        found.append(_points(backend, places, said, middle, step) | group)
    return found


def _bars(
    backend: Bars,
    places: Sequence[str],
    said: Callable[[float], str],
    middle: float,
    step: float,
    all_labelled: bool,
) -> Json:
    name = plotly_text(backend.name)
    shown = [
        (place, at, middle_value)
        for place, at in enumerate(backend.at)
        if at and not math.isinf(middle_value := median(level.value for level in at))
    ]
    texts = [
        _said(level, any(one.at_least and one.value <= level for one in at), said) for _, at, level in shown
    ]
    highest = max((level for *_, level in shown), default=0.0)
    labels: Json = {
        "text": [
            text if all_labelled or level == highest else ""
            for text, (*_, level) in zip(texts, shown, strict=True)
        ],
        "textposition": "inside",
        "insidetextanchor": "start",
        "textangle": 0,
        "constraintext": "none",
        "insidetextfont": {"color": "var(--text)", "size": 11},
    }
    return {
        "type": "bar",
        "name": name,
        "x": [round(place + middle, 4) for place, *_ in shown],
        "y": [rounded(level) for *_, level in shown],
        "width": round(step * 0.9, 4),
        "marker": {"color": colour_of(backend.shade), "opacity": 0.55},
        "hovertext": [
            f"{name}: <b>{text}</b><br>{plotly_text(places[place])}<br>"
            f"{'median of ' if len(at) > 1 else ''}{counted(len(at), 'run')}"
            for (place, at, _), text in zip(shown, texts, strict=True)
        ],
        "hoverinfo": "text",
        **labels,
    }


def _points(
    backend: Bars, places: Sequence[str], said: Callable[[float], str], middle: float, step: float
) -> Json:
    x: list[float] = []
    y: list[float | None] = []
    texts: list[str] = []
    for place, at in enumerate(backend.at):
        for number, level in enumerate(at):
            if math.isinf(level.value):
                continue
            apart = (number - (len(at) - 1) / 2) * min(step / max(len(at), 1), step / 6) * 0.8
            x.append(round(place + middle + apart, 4))
            y.append(level.value)
            texts.append(
                f"{plotly_text(level.run)}: <b>{_said(level.value, level.at_least, said)}</b><br>"
                f"{plotly_text(places[place])}<br>n = {level.n:,}"
            )
    look = {"size": 8, "color": colour_of(backend.shade), "line": {"width": 1, "color": "var(--card)"}}
    name = plotly_text(backend.name)
    return points(
        name, x, y, mode="markers", marker=look, hovertext=texts, hoverinfo="text", showlegend=False
    )


def _said(value: float, bound: bool, said: Callable[[float], str]) -> str:
    return at_least(said(value)) if bound else said(value)
