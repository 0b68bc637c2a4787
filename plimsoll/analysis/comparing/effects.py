"""The figure of effects: where the candidate stands against every limit, and how sure that is."""

import math
from collections.abc import Sequence

from plimsoll.analysis.comparing.text import effect, interval
from plimsoll.analysis.comparing.verdicts import GateVerdict
from plimsoll.analysis.page.chart import Chart, Json, axis, layout, rounded, spaced_ticks, wrap_label
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import significant

_COLOURS = {"PASS": "var(--good)", "FAIL": "var(--bad)", "INCONCLUSIVE": "var(--warn)"}
_SYMBOLS = {"PASS": "circle", "FAIL": "x", "INCONCLUSIVE": "diamond-open"}
_BARE = 5.0  # as much as is drawn of an interval that has no end
# ticks, the most wanted first
_DECADES = [each * 10.0**power for each in (1, 2, 5) for power in range(-4, 5)]
_ROUND = (1, 2, 0.5, 5, 0.2, 0.1, 3, 0.3, 1.5, 0.7, 1.2, 0.8, 1.1, 0.9, 1.05, 0.95)
_ROWS = 6  # of a chart as high as others
_LOOSE = 8  # rows that have room for two lines each


def effects_chart(judged: Sequence[GateVerdict], confidence: float) -> Chart | None:
    """Return candidate ÷ baseline, with its interval, of every ratio gate that has one; None of none."""
    shown = [
        each
        for each in judged
        if each.question.limit == "at_most_ratio" and each.verdict.estimate is not None
    ]
    if not shown:
        return None
    rows = len(shown)
    data: list[Json] = [_limits(shown)]
    for outcome, colour in _COLOURS.items():
        at = [(rows - 1 - row, each) for row, each in enumerate(shown) if each.verdict.outcome == outcome]
        if at:
            data += _traces(outcome, colour, at)
    ends = [end for each in shown for end in (*_ends(each), each.question.at_most, 1.0)]
    low, high = min(ends) / 1.05, max(ends) * 1.05
    ticks = spaced_ticks(_ROUND if high / low < 9 else _DECADES, low, high)
    x_axis = axis("candidate ÷ baseline", "log") | {
        "range": [math.log10(low), math.log10(high)],
        "rangemode": "normal",
        "tickmode": "array",
        "tickvals": [rounded(tick) for tick in ticks],
        "ticktext": [significant(tick) for tick in ticks],
        "tickangle": 0,
    }
    letters, lines = (26, 2) if rows <= _LOOSE else (42, 1)
    y_axis = axis("") | {
        "tickmode": "array",
        "tickvals": [str(row) for row in range(rows)],
        "ticktext": [wrap_label(each.gate.name, letters, lines) for each in reversed(shown)],
        "tickfont": {"size": 12 if rows <= _LOOSE else 10},
        "type": "category",
        "categoryorder": "array",
        "categoryarray": [str(row) for row in range(rows)],
        "range": [-0.6, rows - 0.4],
        "showgrid": False,
        "zeroline": False,
        "rangemode": "normal",
    }
    line: Json = {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    line["line"] = {"color": "var(--muted)", "width": 1, "dash": "dot"}
    return Chart(
        key="effects",
        title="Candidate against baseline",
        caption=(
            "How many times as long it takes, and the limits between which that lies (each of them at "
            f"{100 * confidence:g} %, each gate by itself). Right of 1 is slower. An interval left of the "
            "tick keeps the limit, one right of it breaks it."
        ),
        data=data,
        layout=layout(
            x_axis, y_axis, shapes=[line | {"line": {"color": "var(--muted)", "width": 1, "dash": "dot"}}]
        ),
        tall=min((rows - 1) // _ROWS, 4),
    )


def _traces(outcome: str, colour: str, at: Sequence[tuple[int, GateVerdict]]) -> list[Json]:
    x: list[float] = []
    y: list[str | None] = []
    for row, each in at:
        low, high = _ends(each)
        x += [low, high, high]
        y += [str(row), str(row), None]
    group: Json = {"legendgroup": outcome}
    bars = _trace(outcome, x, y) | group
    bars |= {"mode": "lines", "line": {"color": colour, "width": 4}, "hoverinfo": "skip", "showlegend": False}
    look: Json = {"size": 13, "color": colour, "symbol": _SYMBOLS[outcome]}
    look["line"] = {"width": 2, "color": colour}
    dots = _trace(
        outcome, [each.verdict.estimate or 1.0 for _, each in at], [str(row) for row, _ in at], mode="markers"
    )
    dots |= {"marker": look, "hovertext": [_hover(each) for _, each in at], "hoverinfo": "text"} | group
    return [bars, dots]


def _limits(shown: Sequence[GateVerdict]) -> Json:
    x = [each.question.at_most for each in reversed(shown)]
    tick: Json = {"size": 24, "symbol": "line-ns-open", "color": "var(--text)", "line": {"width": 3}}
    trace = _trace("limit", x, [str(row) for row in range(len(shown))], mode="markers")
    return trace | {"marker": tick, "hoverinfo": "skip"}


def _trace(name: str, x: list[float], y: list[str] | list[str | None], mode: str = "lines") -> Json:
    return {"type": "scatter", "name": name, "x": [rounded(at) for at in x], "y": y, "mode": mode}


def _ends(each: GateVerdict) -> tuple[float, float]:
    middle = each.verdict.estimate or 1.0
    return each.verdict.lower or middle / _BARE, each.verdict.upper or middle * _BARE


def _hover(each: GateVerdict) -> str:
    name = plotly_text(each.gate.name)
    return (
        f"{name}: <b>{effect(each, each.verdict.estimate)}</b><br>{interval(each)}<br>{each.verdict.outcome}"
    )
