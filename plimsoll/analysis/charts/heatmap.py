"""Every response time of a run: the darker, the more requests took that long then."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.charts.failures import failures_note
from plimsoll.analysis.charts.style import Run, span_shapes, time_unit
from plimsoll.analysis.page.chart import Chart, Json, axis, layout, log_ticks, rounded, time_axis, unit_for
from plimsoll.analysis.statistics.timeline import heat_edge_ms

MOST_COLUMNS = 250
_MOST_MAPS = 4


def heat_chart(run: Run, alone: Sequence[Run]) -> Chart:
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
        title="All response times" + ("" if len(alone) == 1 else f" of {run.name}"),
        caption="The stronger the colour, the more requests took that long at that time."
        + failures_note([run]),
        data=[trace],
        layout=layout(time_axis(unit), y_axis, **span_shapes([run], unit)),
        scale="log",
    )


def heat_charts(runs: Sequence[Run]) -> list[Chart]:
    """Return a heat map of each of the first runs."""
    return [heat_chart(run, runs) for run in runs[:_MOST_MAPS] if run.statistics.timeline.heat.any()]


@dataclass(frozen=True)
class Slices:
    """Of one run: counts (slices, rows of the heat map), the slices' width, and when time 0 is in the run."""

    heat: NDArray[np.int64]
    width_s: float
    zero_s: float


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
