"""What the observers saw of a host, one row a quantity, over the time axis of the scatter."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.page.chart import Chart, Json, axis, colour_of, layout, unit_for
from plimsoll.common.hostile import plotly_text

_GAP_PX, _ROW_PX = 26, 96  # of a figure, as high as the style sheet makes it
_DIGITS = 4
_VISIBLE = 0.01  # of the highest value: a narrower ground is not seen
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HostLine:
    """One backend in one row: its name (hostile) and colour, and a value for each bin, NaN in gaps.

    `low` and `high` are the extremes within each bin; `beside` is drawn dotted, and may be all NaN.
    """

    name: str
    shade: int
    mean: Floats
    low: Floats
    high: Floats
    beside: Floats


@dataclass(frozen=True)
class HostStrip:
    """One row: its axis with the unit, the unit for the hover, and a line a backend.

    `whole` draws a share on all of 0 to 100 %. `heading` (hostile) stands above the row, where its figure
    does not say of what it is.
    """

    title: str
    unit: str
    lines: Sequence[HostLine]
    whole: bool = True
    heading: str = ""


@dataclass(frozen=True)
class HostAxis:
    """The time axis: the middles of the bins and their width in seconds, from where to where, since what.

    The saturator ran from 0 to `busy_s`, None where there was none; `saturator` is its name.
    """

    middles_s: Sequence[float]
    width_s: float
    edges_s: tuple[float, float]
    since: str
    busy_s: float | None
    saturator: str


def host_chart(key: str, title: str, caption: str, time: HostAxis, strips: Sequence[HostStrip]) -> Chart:
    """Return the figure of at least one strip."""
    unit = unit_for(max(time.edges_s[1], -time.edges_s[0]))
    x = [unit.of(t_s) for t_s in time.middles_s]
    half = unit.of(time.width_s / 2)
    data: list[Json] = []
    named: set[int] = set()
    for place, strip in enumerate(strips, 1):
        yaxis = "y" if place == 1 else f"y{place}"
        top = max((float(np.nanmax(line.high)) for line in strip.lines), default=0.0)
        for line in strip.lines:
            group: Json = {"yaxis": yaxis, "legendgroup": f"backend {line.shade}"}
            hover = f"{plotly_text(line.name)}: %{{y}} {strip.unit}<br>%{{x}} {unit.name}<extra></extra>"
            if np.nanmax(line.high - line.low) > _VISIBLE * top:
                data.append(_ground(line, x, half) | group)
            data.append(
                _line(line, x) | group | {"hovertemplate": hover, "showlegend": line.shade not in named}
            )
            named.add(line.shade)
            if not np.isnan(line.beside).all():
                data.append(_beside(line, x) | group)
    axes = _axes(strips)
    span_s = time.edges_s[1] - time.edges_s[0]
    x_axis = axis(f"{unit.name} since {time.since}") | {
        "range": [unit.of(time.edges_s[0] - span_s / 100), unit.of(time.edges_s[1] + span_s / 100)],
        "anchor": f"y{len(strips)}" if len(strips) > 1 else "y",
        "rangemode": "normal",
        "zeroline": time.busy_s is not None,
    }
    notes = _headings(strips, axes)
    if time.busy_s is not None:
        axes |= _band(unit.of(time.busy_s))
        notes.append(_saturator(unit.of(time.busy_s), time.saturator))
    if notes:
        axes["annotations"] = notes
    return Chart(key, title, caption, data, layout(x_axis, axes.pop("yaxis"), **axes), tall=len(strips) - 1)


def _line(line: HostLine, x: list[float]) -> Json:
    known = ~np.isnan(line.mean)
    lone = known & ~np.append(known[1:], False) & ~np.insert(known[:-1], 0, False)
    trace: Json = {
        "type": "scatter",
        "name": plotly_text(line.name),
        "x": x,
        "y": [_short(value) for value in line.mean],
        "mode": "lines",
        "connectgaps": False,
        "line": {"color": colour_of(line.shade), "width": 1.8},
    }
    if lone.any():  # a line of one point is none
        sizes = [4 if each else 0 for each in lone.tolist()]
        look: Json = {"color": colour_of(line.shade), "size": sizes}
        trace |= {"mode": "lines+markers", "marker": look}
    return trace


def _ground(line: HostLine, x: list[float], half: float) -> Json:
    """Return the area from the lowest to the highest value of each bin, a piece between every two gaps."""
    known = np.isfinite(line.low) & np.isfinite(line.high)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
    xs: list[float | None] = []
    ys: list[float | None] = []
    for start, stop in edges.reshape(-1, 2).tolist():
        places = list(range(start, stop))
        at = [x[place] for place in places] if stop - start > 1 else [x[start] - half, x[start] + half]
        if stop - start == 1:
            places = [start, start]
        xs += [*at, *reversed(at), None]
        ys += [*(_short(line.high[place]) for place in places)]
        ys += [*(_short(line.low[place]) for place in reversed(places)), None]
    return {
        "type": "scatter",
        "name": plotly_text(line.name),
        "x": xs,
        "y": ys,
        "mode": "lines",
        "line": {"width": 0, "color": colour_of(line.shade)},
        "fill": "toself",
        "fillcolor": colour_of(line.shade),
        "opacity": 0.22,
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _beside(line: HostLine, x: list[float]) -> Json:
    return {
        "type": "scatter",
        "name": plotly_text(line.name),
        "x": x,
        "y": [_short(value) for value in line.beside],
        "mode": "lines",
        "connectgaps": False,
        "line": {"color": colour_of(line.shade), "width": 1.5, "dash": "dot"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _short(value: float) -> float | None:
    """Return a value to four digits, as much as a row shows; None for a gap."""
    return None if np.isnan(value) else float(f"{value:.{_DIGITS}g}")


def _axes(strips: Sequence[HostStrip]) -> Json:
    whole = len(strips) * _ROW_PX + (len(strips) - 1) * _GAP_PX
    axes: Json = {}
    for place, strip in enumerate(strips):
        top = 1 - place * (_ROW_PX + _GAP_PX) / whole
        axes[f"yaxis{place + 1 if place else ''}"] = axis("") | {
            "domain": [max(round(top - _ROW_PX / whole, 4), 0.0), round(top, 4)],
            "nticks": 4,
            "title": {"text": strip.title, "standoff": 8, "font": {"size": 12}},
            **({"range": [0, 102]} if strip.unit == "%" and strip.whole else {}),
        }
    return axes


def _headings(strips: Sequence[HostStrip], axes: Json) -> list[Json]:
    found: list[Json] = []
    for place, strip in enumerate(strips):
        if strip.heading:
            top = axes[f"yaxis{place + 1 if place else ''}"]["domain"][1]
            at: Json = {
                "xref": "paper",
                "yref": "paper",
                "x": 0,
                "y": top,
                "xanchor": "left",
                "yanchor": "bottom",
            }
            found.append(at | {"showarrow": False, "text": plotly_text(strip.heading), "font": {"size": 12}})
    return found


def _band(busy: float) -> Json:
    band: Json = {"type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    look: Json = {"x0": 0, "x1": busy, "line": {"width": 0}, "fillcolor": "var(--muted)", "opacity": 0.1}
    return {"shapes": [band | look]}


def _saturator(busy: float, saturator: str) -> Json:
    label: Json = {"x": busy / 2, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False}
    return label | {"text": plotly_text(saturator), "font": {"size": 11, "color": "var(--muted)"}}
