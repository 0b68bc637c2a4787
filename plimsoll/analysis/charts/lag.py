"""The generator's own lateness, over time."""

from collections.abc import Sequence

from plimsoll.analysis.charts.style import Run, span_shapes, time_unit, trace_name
from plimsoll.analysis.page.chart import Chart, Json, axis, layout, log_ticks, points, time_axis
from plimsoll.common.units import milliseconds, seconds


def lag_chart(runs: Sequence[Run]) -> Chart | None:
    """Return the largest lag of each slice of time, over the requests that were not queued.

    None where all runs are closed loops, in which nothing is due.
    """
    if not any(run.paced_by for run in runs):
        return None
    unit = time_unit(runs)
    data: list[Json] = []
    for run in runs:
        timeline = run.statistics.timeline
        slots = [slot for slot in range(timeline.used) if timeline.due[slot]]
        values = [float(timeline.latest_us[slot]) / 1000 for slot in slots]
        data.append(
            points(
                trace_name(run, runs, "largest lag"),
                [unit.of((slot + 0.5) * timeline.width_s) for slot in slots],
                [value or None for value in values],
                mode="markers",
                hovertext=[
                    f"{milliseconds(value)} late at {seconds(slot * timeline.width_s)}"
                    for slot, value in zip(slots, values, strict=True)
                ],
                hoverinfo="text",
                marker={"size": 4, "color": run.colour},
                showlegend=len(runs) > 1,
            )
        )
    p999 = [run.statistics.samples["lag"].figures_ms()["p99.9"] for run in runs]
    known = [value for value in p999 if value is not None]
    caption = (
        "How late the load generator itself was at worst: requests that waited for a connection do not count."
    )
    if known:
        caption += f" All but one in a thousand were sent within {milliseconds(max(known))}."
    y_axis = axis("lag (ms)", "log") | log_ticks([y for trace in data for y in trace["y"] if y])
    return Chart(
        key="lag",
        title="Lag of the generator",
        caption=caption,
        data=data,
        layout=layout(time_axis(unit), y_axis, **span_shapes(runs, unit)),
        scale="log",
    )
