"""ZFS's cache over time: its hits and its size."""

from collections.abc import Sequence

from analysis.charts.scatter import Shown, row_traces
from analysis.charts.style import Chart, Json, axis, layout, unit_for

_GAP = 0.08


def cache_chart(
    key: str, title: str, backends: Sequence[Shown], since: str, busy_s: float | None
) -> Chart | None:
    """Return the rows of `backends`, one below another, over time since `since`; None where all are empty.

    Each backend has the same rows; the saturator's time, from 0 to `busy_s`, is shaded.
    """
    titles = [row.title for row in backends[0].rows] if backends else []
    rows = [n for n in range(len(titles)) if any(len(t) for b in backends for t, _ in b.rows[n].runs)]
    instants = [
        float(edge)
        for backend in backends
        for row in backend.rows
        for t_s, _ in row.runs
        if len(t_s)
        for edge in (t_s.min(), t_s.max())
    ]
    if not rows:
        return None
    first_s, last_s = min(instants), max(instants) + 1
    unit = unit_for(max(last_s, -first_s))
    data: list[Json] = []
    for backend in backends:
        named = False
        for place, row in enumerate(rows):
            for trace in row_traces(backend, backend.rows[row], place + 1, (first_s, last_s), unit):
                data.append(trace | {"yaxis": f"y{place + 1}" if place else "y", "showlegend": not named})
                named = True
    height = (1 + _GAP) / len(rows)
    axes: Json = {
        f"yaxis{place + 1 if place else ''}": axis(titles[row])
        | {
            "domain": [max(round(1 - (place + 1) * height + _GAP, 4), 0), round(1 - place * height, 4)],
            "nticks": 5,
        }
        for place, row in enumerate(rows)
    }
    if busy_s is not None:
        band = {"type": "rect", "xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
        edges = {
            "x0": 0,
            "x1": unit.of(busy_s),
            "line": {"width": 0},
            "fillcolor": "var(--muted)",
            "opacity": 0.1,
        }
        axes["shapes"] = [band | edges]
    x_axis = axis(f"{unit.name} since {since}") | {
        "range": [unit.of(first_s), unit.of(last_s)],
        "anchor": f"y{len(rows)}" if len(rows) > 1 else "y",
        "rangemode": "normal",
        "zeroline": busy_s is not None,
    }
    y_axis = axes.pop("yaxis")
    caption = (
        "ARC is ZFS's cache in memory. Hits: what share of the reads that reached it, it had; the "
        "others went to the disks. Means of all repeats."
    )
    return Chart(key, title, caption, data, layout(x_axis, y_axis, **axes))
