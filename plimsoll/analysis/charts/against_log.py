"""Quantile against quantile: the log's durations and the replay's service times."""

from collections.abc import Sequence

from plimsoll.analysis.page.chart import Chart, Json, axis, colour_of, layout, log_ticks, points, rounded
from plimsoll.analysis.statistics.against_log import Held, HeldRun
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import milliseconds, significant

_MOST_ROUTES = 5


def against_log_chart(runs: Sequence[HeldRun]) -> Chart | None:
    """Return a curve for each run, and of one run alone for its largest routes; None without any point."""
    curves = [(each.run if len(runs) > 1 else "all requests", each.total) for each in runs]
    if len(runs) == 1:
        curves += [(route.name, route) for route in runs[0].routes[:_MOST_ROUTES]]
    data = [_curve(name, held, shade) for shade, (name, held) in enumerate(curves) if _shown(held)]
    values = [value for trace in data for key in ("x", "y") for value in trace[key]]
    if not values:
        return None
    ends = [rounded(min(values)), rounded(max(values))]
    same = points(
        "as logged",
        ends,
        list(ends),
        mode="lines",
        line={"color": "var(--muted)", "width": 1, "dash": "dash"},
    )
    ticks = log_ticks(values)
    return Chart(
        key="against-log",
        title="Under replay as in production?",
        caption=(
            "Each point is one quantile, from the median to the slowest: across, how long production took "
            "for the requests of the replay, by its log; upwards, their service time under replay. On the "
            "dashed line both are equal; above it the replay was slower. Logged durations leave out the "
            "network, and have slow visitors in them. Quantiles that are failures' are left out."
        ),
        data=[same, *data],
        layout=layout(
            axis("ms in the log", "log") | ticks, axis("ms under replay", "log") | ticks, hovermode="closest"
        ),
    )


def _shown(held: Held) -> list[tuple[float, float, float]]:
    """Return the points from the median on that a log scale has a place for."""
    return [(one_in, x, y) for one_in, x, y in held.curve if one_in >= 2 and x > 0 and y > 0]


def _curve(name: str, held: Held, shade: int) -> Json:
    curve = _shown(held)
    return points(
        plotly_text(name),
        [rounded(x) for _, x, _ in curve],
        [y for _, _, y in curve],
        mode="lines+markers",
        marker={"size": 4},
        line={"color": colour_of(shade), "width": 2},
        hovertext=[
            f"{plotly_text(name)}: one in {significant(one_in)} took {milliseconds(x)} or more in the log, "
            f"{milliseconds(y)} under replay"
            for one_in, x, y in curve
        ],
        hoverinfo="text",
    )
