"""Requests a second: what was due by the log, and what was done."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from plimsoll.analysis.charts.style import Run, span_shapes, time_unit, trace_name
from plimsoll.analysis.page.chart import Chart, Json, TimeUnit, axis, layout, points, time_axis
from plimsoll.common.units import seconds, significant

_BY_THE_SECOND_S = 20


def throughput_chart(runs: Sequence[Run]) -> Chart:
    """Return requests done a second, over those that were due; in a closed loop nothing is due."""
    unit = time_unit(runs)
    data: list[Json] = []
    for run in runs:
        timeline = run.statistics.timeline
        if run.paced_by:
            look: Json = {
                "line": {"color": "var(--muted)", "width": 0, "shape": "hvh"},
                "fill": "tozeroy",
                "fillcolor": "var(--faint)",
            }
            if len(runs) > 1:
                look = {"line": {"color": run.colour, "width": 1, "dash": "dot", "shape": "hvh"}}
            data.append(_rates(run, runs, unit, f"due by {run.paced_by}", timeline.due, look))
        done = {"line": {"color": run.colour, "width": 2, "shape": "hvh"}}
        data.append(_rates(run, runs, unit, "done", timeline.done, done))
        if int(timeline.failed.sum()):
            failed = {"line": {"color": "var(--bad)", "width": 1.5, "shape": "hvh"}}
            data.append(_rates(run, runs, unit, "failed", timeline.failed, failed))
    open_loop = any(run.paced_by for run in runs)
    width = seconds(_join(runs[0]) * runs[0].statistics.timeline.width_s)
    return Chart(
        key="throughput",
        title="Requests per second",
        caption=(
            "Where the line leaves the grey ground, the server fell behind what was due, or caught up."
            if open_loop and len(runs) == 1
            else "Dotted: what was due."
            if open_loop
            else "A closed loop: the next request is sent when the one before is done, at the server's pace."
        )
        + (f" Averages over {width}." if len(runs) == 1 else ""),
        data=data,
        layout=layout(time_axis(unit), axis("requests/s"), **span_shapes(runs, unit)),
    )


def _rates(run: Run, runs: Sequence[Run], unit: TimeUnit, name: str, counts: Any, look: Json) -> Json:
    timeline = run.statistics.timeline
    join = _join(run)
    width_s = join * timeline.width_s
    # the last slice is seldom a whole one: what it holds is no rate
    used = max(timeline.used // join * join, min(join, timeline.used))
    sums = np.add.reduceat(counts[:used], np.arange(0, used, join))
    per_s = [int(number) / width_s for number in sums]
    whose = "" if len(runs) == 1 else f"{run.label} "
    return points(
        trace_name(run, runs, name),
        [unit.of((slot + 0.5) * width_s) for slot in range(len(per_s))],
        list(per_s),
        mode="lines",
        hovertext=[
            f"{whose}{name}: {significant(rate)}/s at {seconds(slot * width_s)}"
            for slot, rate in enumerate(per_s)
        ],
        hoverinfo="text",
        **look,
    )


def _join(run: Run) -> int:
    """Return how many slices make a second, if the run is long enough to be drawn by the second."""
    timeline = run.statistics.timeline
    whole = timeline.used * timeline.width_s >= _BY_THE_SECOND_S
    return max(round(1 / timeline.width_s), 1) if whole else 1
