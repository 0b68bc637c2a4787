"""The charts of the live page, empty: the page's script puts the seconds into them. Pure."""

from plimsoll.analysis.page.chart import Chart, Json, axis, layout
from plimsoll.serve.seconds import TAIL_S


def live_charts() -> list[Chart]:
    """Return the charts. Traces name by `meta` the column of a second that they show."""
    return [
        _chart(
            "tail",
            "Response times",
            f"p99.9 of the last {TAIL_S} seconds, and the slowest request of each second, by when it ended. "
            "There is no p99.9 under 1,000 requests.",
            "ms",
            [
                _trace("slowest of the second", 3, {"color": "var(--muted)", "width": 1}),
                _trace(f"p99.9 of {TAIL_S} s", 4, {"color": "var(--run-1)", "width": 2.5}),
            ],
        ),
        _chart(
            "throughput",
            "Requests per second",
            "Requests that ended in each second, and those of them that failed.",
            "requests/s",
            [
                _trace("done", 1, {"color": "var(--run-1)", "width": 2, "shape": "hvh"}),
                _trace("failed", 2, {"color": "var(--bad)", "width": 1.5, "shape": "hvh"}),
            ],
        ),
        _chart(
            "lag",
            "Lag of the generator",
            "The largest lag of each second: how late the load generator itself was, where a request did not "
            "wait for a connection.",
            "ms",
            [_trace("largest lag", 5, {"color": "var(--run-2)", "width": 1.5})],
        ),
    ]


def _trace(name: str, column: int, line: Json) -> Json:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [],
        "y": [],
        "meta": column,
        "line": line,
        "hoverinfo": "x+y+name",
    }


def _chart(key: str, title: str, caption: str, unit: str, data: list[Json]) -> Chart:
    x_axis = axis("seconds since the start of the run")
    shown = layout(x_axis, axis(unit), showlegend=len(data) > 1, uirevision="kept")
    return Chart(key, title, caption, data, shown)
