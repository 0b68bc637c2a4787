"""Every response time of a run: the darker, the more requests took that long then."""

from collections.abc import Sequence

import numpy as np

from analysis.figures.style import (
    Figure,
    Json,
    Run,
    axis,
    layout,
    log_ticks,
    rounded,
    span_shapes,
    time_axis,
    time_unit,
)
from analysis.statistics.timeline import heat_edge_ms

MOST_COLUMNS = 250


def heat_figure(run: Run, alone: Sequence[Run]) -> Figure:
    """Return the heat map of `run`; `alone` is what shares its time axis."""
    unit = time_unit(alone)
    timeline = run.statistics.timeline
    join = -(-timeline.used // MOST_COLUMNS)
    heat = timeline.heat[: timeline.used]
    counts = np.add.reduceat(heat, np.arange(0, len(heat), join), axis=0)
    rows = np.flatnonzero(counts.sum(axis=0))
    first, last = int(rows[0]), int(rows[-1]) + 1
    counts = counts[:, first:last].T
    width_s = join * timeline.width_s
    # Counts differ by powers of ten; a linear scale of colours would show the median and nothing else.
    shades = [[rounded(float(np.log10(n))) if n else None for n in row] for row in counts.tolist()]
    top = int(counts.max())
    ticks = [10**power for power in range(len(str(top)))]
    trace: Json = {
        "type": "heatmap",
        "x": [unit.of(column * width_s) for column in range(counts.shape[1] + 1)],
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
    y_axis = axis("response time (ms)", "log") | log_ticks(trace["y"])
    return Figure(
        key=f"heat-{run.number}",
        title="All response times" + ("" if len(alone) == 1 else f" of {run.name}"),
        caption="The stronger the colour, the more requests took that long at that time.",
        data=[trace],
        layout=layout(time_axis(unit), y_axis, **span_shapes([run], unit)),
        scale="log",
    )
