"""The percentile curve: how slow is the slowest request in so many."""

from collections.abc import Sequence

from plimsoll.analysis.charts.failures import failures_note
from plimsoll.analysis.charts.style import Run, trace_name
from plimsoll.analysis.page.chart import Chart, Json, axis, colour_of, layout, log_ticks, points, rounded
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import milliseconds, significant

_TICKS = {
    2: "50 %",
    10: "90 %",
    100: "99 %",
    1_000: "99.9 %",
    10_000: "99.99 %",
    100_000: "99.999 %",
    1_000_000: "99.9999 %",
    10_000_000: "99.99999 %",
}


def percentile_chart(runs: Sequence[Run]) -> Chart:
    """Return response and service time at every percentile; x is 1/(1−q) on a log scale."""
    data: list[Json] = []
    for run in runs:
        service = {"color": run.colour if len(runs) > 1 else "var(--run-2)", "width": 1.5, "dash": "dot"}
        data.append(_curve(run, runs, "service", service))
        data.append(_curve(run, runs, "response", {"color": run.colour, "width": 2.5}))
    x_axis = _x_axis(max(run.statistics.samples["response"].n for run in runs))
    values = [value for trace in data for value in trace["y"] if value]
    scale = "log" if values and max(values) > 50 * min(values) else "linear"
    return Chart(
        key="percentiles",
        title="How slow, for how many",
        caption=(
            "At 99.9 % stands the time that all but one in a thousand requests took at most. Response time "
            "counts from the instant a request was due, service time from when it was sent; where they "
            "part, requests waited before they were sent."
        )
        + failures_note(runs),
        data=data,
        layout=layout(
            x_axis,
            axis("ms", scale) | log_ticks(values),
            hovermode="x unified" if len(runs) == 1 else "closest",
        ),
        scale=scale,
    )


def pooled_chart(
    key: str, title: str, curves: Sequence[tuple[str, int, list[tuple[float, float]]]], failures: str = ""
) -> Chart:
    """Return the response time of each backend at every percentile, of all its repeats together.

    `curves` are names (hostile), colours and points (1/(1−q), ms); `failures` ends the caption.
    """
    data = [
        points(
            plotly_text(name),
            [rounded(one_in) for one_in, _ in curve],
            [value_ms for _, value_ms in curve],
            mode="lines",
            line={"color": colour_of(shade), "width": 2.5, "shape": "vh"},
            hovertext=[
                f"{plotly_text(name)}: one in {significant(one_in)} took {milliseconds(value_ms)} or more"
                for one_in, value_ms in curve
            ],
            hoverinfo="text",
            legendgroup=f"backend {shade}",
        )
        for name, shade, curve in curves
    ]
    values = [value for trace in data for value in trace["y"] if value]
    scale = "log" if values and max(values) > 50 * min(values) else "linear"
    return Chart(
        key=key,
        title=title,
        caption=(
            "At 99.9 % stands the time that all but one in a thousand requests took at most, from the "
            "instant at which they were due. All repeats of a backend together."
            f"{failures}"
        ),
        data=data,
        layout=layout(
            _x_axis(max(one_in for _, _, curve in curves for one_in, _ in curve)),
            axis("ms", scale) | log_ticks(values),
        ),
        scale=scale,
    )


def _x_axis(most: float) -> Json:
    """Return the axis of percentiles for at most so many requests."""
    ticks = {at: text for at, text in _TICKS.items() if at <= most}
    ticking = {"tickmode": "array", "tickvals": list(ticks), "ticktext": list(ticks.values()), "tickangle": 0}
    return axis("of the requests were at least as fast", "log") | ticking


def _curve(run: Run, runs: Sequence[Run], sample: str, line: Json) -> Json:
    curve = run.statistics.samples[sample].curve()
    whose = "" if len(runs) == 1 else f"{run.label} "
    return points(
        trace_name(run, runs, sample),
        [rounded(one_in) for one_in, _ in curve],
        [value_ms for _, value_ms in curve],
        mode="lines",
        line=line | {"shape": "vh"},
        hovertext=[
            f"{whose}{sample}: one in {significant(one_in)} took {milliseconds(value_ms)} or more"
            for one_in, value_ms in curve
        ],
        hoverinfo="text",
    )
