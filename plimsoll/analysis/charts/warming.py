"""How a site warms up: its slow tail, and how often its cache hits, by minute after a start."""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.analysis.page.chart import Chart, Json, axis, colour_of, layout, log_ticks, points
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import counted, milliseconds, significant

_LOG_FROM = 8  # times as much between the least and the most
_GAP = 0.1


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
    scale = "log" if max(values) > _LOG_FROM * min(values) > 0 else "linear"
    x_axis = axis("minutes after the start") | {"dtick": 1, "rangemode": "normal"}
    if max(minute for each in backends for minute in each.tail_ms) > 20:
        del x_axis["dtick"]
    y_axis = axis(f"{shown} (ms)", scale) | (log_ticks(values) if scale == "log" else {})
    more: Json = {}
    if hits:
        y_axis |= {"domain": [0.5 + _GAP / 2, 1]}
        x_axis |= {"anchor": "y2"}
        more["yaxis2"] = axis("cache hits (%)") | {"domain": [0, 0.5 - _GAP / 2], "range": [0, 102]}
    return Chart(
        key=key,
        title=f"Warming up: {shown} by minute after a start{of}",
        caption=caption,
        data=data,
        layout=layout(x_axis, y_axis, **more, **_busy(busy)),
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


def _busy(busy: tuple[float, float] | None) -> Json:
    if busy is None:
        return {}
    box = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "opacity": 0.12}
    edges = {"x0": busy[0], "x1": busy[1], "fillcolor": "var(--muted)", "line": {"width": 0}}
    return {"shapes": [box | edges]}
