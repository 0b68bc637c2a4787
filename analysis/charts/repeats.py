"""Every repeat as a point: how far runs of one backend lie apart, beside how far the backends do."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from analysis.charts.style import Chart, Json, axis, colour_of, in_lines, layout, log_ticks, points
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import milliseconds

_LETTERS = 80  # that fit beside each other below a chart, on paper
_SPREAD = 0.7  # how much of a place the backends' columns take


@dataclass(frozen=True)
class Repeats:
    """One backend's figures at each place: (name of the run, ms); names are hostile."""

    name: str
    shade: int
    at: list[list[tuple[str, float]]]


def repeats_chart(
    key: str, title: str, caption: str, places: list[str], backends: Sequence[Repeats]
) -> Chart:
    """Return a column of points a backend at each of `places` (hostile names), with a bar at the median."""
    data: list[Json] = []
    values = [value for backend in backends for at in backend.at for _, value in at if value > 0]
    step = _SPREAD / len(backends)
    for column, backend in enumerate(backends):
        middle = (column - (len(backends) - 1) / 2) * step
        x, y, texts = [], [], []
        for place, at in enumerate(backend.at):
            for number, (name, value) in enumerate(at):
                apart = (number - (len(at) - 1) / 2) * min(step / max(len(at), 1), step / 6) * 0.8
                x.append(round(place + middle + apart, 4))
                y.append(value or None)
                texts.append(
                    f"{plotly_text(name)}: <b>{milliseconds(value)}</b><br>{plotly_text(places[place])}"
                )
        group: Json = {"legendgroup": f"backend {backend.shade}"}
        look = {"size": 10, "color": colour_of(backend.shade), "opacity": 0.75}
        data.append(
            points(
                plotly_text(backend.name),
                x,
                y,
                mode="markers",
                marker=look,
                hovertext=texts,
                hoverinfo="text",
                **group,
            )
        )
        data.append(_medians(backend, middle, step, group))
    scale = "log" if values and max(values) > 8 * min(values) else "linear"
    x_axis = axis("") | {
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
    return Chart(
        key=key,
        title=title,
        caption=caption,
        data=data,
        layout=layout(x_axis, axis("ms", scale) | log_ticks(values)),
        scale=scale,
    )


def _medians(backend: Repeats, middle: float, step: float, group: Json) -> Json:
    x: list[float] = []
    y: list[float | None] = []
    for place, at in enumerate(backend.at):
        if not at:
            continue
        level = median(value for _, value in at)
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
