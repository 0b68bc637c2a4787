"""Volumes by the number of threads: throughput and the slowest in a thousand, a row a test."""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.analysis.page.chart import Chart, Json, axis, colour_of, layout, log_ticks, points
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import milliseconds, significant

TESTS = {
    "rndrd": "random reads",
    "seqrd": "sequential reads",
    "rndwr": "random writes",
    "seqwr": "sequential writes",
    "rndrw": "random mix",
}
_GAP = 0.05
_LOG_FROM = 30
_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")


@dataclass(frozen=True)
class Point:
    """One cell of sysbench's matrix; `p999_ms` is None of too few events."""

    test: str
    threads: int
    mib_per_s: float
    p999_ms: float | None


@dataclass(frozen=True)
class Volume:
    """One volume: its name (hostile), the number of its colour, which of its lines this is, its cells."""

    name: str
    shade: int
    line: int
    cells: Sequence[Point]


def fileio_chart(key: str, caption: str, volumes: Sequence[Volume]) -> Chart:
    """Return a row a test, throughput on the left and p99.9 on the right, over the number of threads."""
    every = [cell for volume in volumes for cell in volume.cells]
    tests = [name for name in TESTS if any(cell.test == name for cell in every)]
    tests += sorted({cell.test for cell in every} - set(tests))
    threads = [str(number) for number in sorted({cell.threads for cell in every})]
    scales = (_scale([c.mib_per_s for c in every]), _scale([c.p999_ms for c in every if c.p999_ms]))
    data: list[Json] = []
    axes: Json = {}
    height = (1 + _GAP) / len(tests)
    for row, test in enumerate(tests):
        top = 1 - row * height
        domain = [max(round(top - height + _GAP, 4), 0), round(top, 4)]
        for column, unit in enumerate(("MiB/s", "p99.9 (ms)")):
            number = _number(row * 2 + column)
            values = [v for c in every if c.test == test and (v := _value(c, column))]
            title = f"{plotly_text(TESTS.get(test, test), 24)}<br>{unit}" if not column else unit
            axes[f"yaxis{number}"] = (
                axis(title, scales[column])
                | (log_ticks(values) if scales[column] == "log" else {"nticks": 4})
                | {"domain": domain, "anchor": f"x{_number(column)}"}
            )
            axes[f"yaxis{number}"]["title"] = {"text": title, "standoff": 8, "font": {"size": 11}}
            for volume in volumes:
                data += _line(volume, test, column, number, legend=not row and not column)
    for column, edges in enumerate(([0, 0.43], [0.57, 1])):
        axes[f"xaxis{_number(column)}"] = axis("threads") | {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": threads,
            "domain": edges,
            "anchor": f"y{_number((len(tests) - 1) * 2 + column)}",
        }
    x_axis, y_axis = axes.pop("xaxis"), axes.pop("yaxis")
    return Chart(
        key=key,
        title="What the volumes give by threads, by sysbench",
        caption=caption,
        data=data,
        layout=layout(x_axis, y_axis, **axes),
        tall=max(len(tests) - 1, 0),
    )


def _line(volume: Volume, test: str, column: int, number: str, legend: bool) -> list[Json]:
    cells = sorted((cell for cell in volume.cells if cell.test == test), key=lambda cell: cell.threads)
    if not cells and not legend:
        return []
    name, colour = plotly_text(volume.name), colour_of(volume.shade)
    trace = points(
        name,
        [],
        [_value(cell, column) for cell in cells],
        mode="lines+markers",
        line={"color": colour, "width": 2, "dash": _DASHES[volume.line % len(_DASHES)]},
        marker={"color": colour, "size": 7, "symbol": _SYMBOLS[volume.shade % len(_SYMBOLS)]},
        xaxis=f"x{_number(column)}",
        yaxis=f"y{number}",
        hovertext=[
            f"{name}: {plotly_text(TESTS.get(test, test), 24)}, {cell.threads} threads<br>"
            f"<b>{significant(cell.mib_per_s)} MiB/s</b>, p99.9 <b>{milliseconds(cell.p999_ms)}</b>"
            for cell in cells
        ],
        hoverinfo="text",
        legendgroup=f"volume {volume.shade} {volume.line}",
        showlegend=legend,
    )
    return [trace | {"x": [str(cell.threads) for cell in cells]}]


def _value(cell: Point, column: int) -> float | None:
    return cell.p999_ms if column else cell.mib_per_s


def _number(place: int) -> str:
    return "" if not place else str(place + 1)


def _scale(values: Sequence[float]) -> str:
    positive = [value for value in values if value > 0]
    return "log" if positive and max(positive) > _LOG_FROM * min(positive) else "linear"
