"""The page of a comparison: its gates, charts and tables."""

import math
from collections.abc import Sequence
from pathlib import Path

from plimsoll.analysis.compare.comparison import Comparison
from plimsoll.analysis.compare.decision import percent
from plimsoll.analysis.compare.documents import effect, figure, interval, interval_heading, limit, summary
from plimsoll.analysis.compare.phase_table import phase_table
from plimsoll.analysis.compare.verdicts import GateVerdict
from plimsoll.analysis.page.chart import (
    Chart,
    Json,
    Repeats,
    RunPoint,
    axis,
    layout,
    repeats_chart,
    rounded,
    spaced_ticks,
    wrap_label,
)
from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.page.shell import render_page
from plimsoll.analysis.report.sections.storage import TUNING_SAYS
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import ABSENT, count, significant

TEMPLATES = Path(__file__).parent / "templates"
_MOST_PLACES = 8
_COLOURS = {"PASS": "var(--good)", "FAIL": "var(--bad)", "INCONCLUSIVE": "var(--warn)"}
_SYMBOLS = {"PASS": "circle", "FAIL": "x", "INCONCLUSIVE": "diamond-open"}
_BARE = 5.0  # as much as is drawn of an interval that has no end
# ticks, the most wanted first
_DECADES = [each * 10.0**power for each in (1, 2, 5) for power in range(-4, 5)]
_ROUND = (1, 2, 0.5, 5, 0.2, 0.1, 3, 0.3, 1.5, 0.7, 1.2, 0.8, 1.1, 0.9, 1.05, 0.95)
_ROWS = 6  # of a chart as high as others
_LOOSE = 8  # rows that have room for two lines each


def comparison_page(comparison: Comparison) -> str:
    """Return the HTML."""
    return render_page(
        "compare.html",
        comparison_charts(comparison),
        TEMPLATES,
        styles=["compare.css"],
        title=f"{comparison.candidate.name} against {comparison.baseline.name}",
        verdict=comparison.verdict,
        summary=summary(comparison),
        comparison=comparison,
        columns=gate_columns(comparison),
        gates=[(each, gate_cells(each)) for each in comparison.judged],
        confidence=percent(comparison.gates.confidence),
        phases=phase_table(comparison),
        differences=differences_table(comparison),
        runs=runs_table(comparison),
    )


def gate_columns(comparison: Comparison) -> list[str]:
    """Return the headings of the table of gates; names are hostile."""
    names = [comparison.baseline.name, comparison.candidate.name]
    return ["gate", "verdict", *names, "effect", interval_heading(comparison), "limit", "runs"]


def gate_cells(each: GateVerdict) -> list[str]:
    """Return what stands in it on one limit, beside the gate's name and verdict."""
    baseline, candidate = (figure(each, value) for value in each.levels)
    runs = f"{len(each.question.baseline)} v {len(each.question.candidate)}"
    return [baseline, candidate, effect(each, each.verdict.estimate), interval(each), limit(each), runs]


def comparison_charts(comparison: Comparison) -> list[Chart]:
    """Return the figures: effects with their intervals, and every run."""
    effects = effects_chart(comparison.judged, comparison.gates.confidence)
    timed = {each.gate.name: each for each in comparison.judged if each.in_ms and each.question.candidate}
    shown = list(timed.values())[:_MOST_PLACES]
    found = [effects] if effects else []
    return [*found, _repeats(comparison, shown)] if shown else found


def _repeats(comparison: Comparison, shown: Sequence[GateVerdict]) -> Chart:
    sides = [
        Repeats(
            side.name,
            shade,
            [
                [RunPoint(f"{side.name}, run {n}", value) for n, value in enumerate(values, 1)]
                for each in shown
                for values in [(each.question.baseline, each.question.candidate)[shade]]
            ],
        )
        for shade, side in enumerate((comparison.baseline, comparison.candidate))
    ]
    caption = (
        "Each point is one run, each bar the median of a side's runs. The run is what is counted: where the "
        "points of both sides mingle, the runs do not tell them apart."
    )
    return repeats_chart("repeats", "Every run", caption, [each.gate.name for each in shown], sides)


def differences_table(comparison: Comparison) -> Table | None:
    """Return what differs between both storages and their hosts, where that is known."""
    if not comparison.differences:
        return None
    rows = [Row(key, [_fact(value) for value in values]) for key, values in comparison.differences]
    caption = "What the lab read of both storages and their hosts. Ideally only what you compare stands here."
    if any(row.name.startswith("tuning.") for row in rows):
        caption += f" {TUNING_SAYS}"
    names = [comparison.baseline.name, comparison.candidate.name]
    return Table("What differs between the two", caption, ["", *names], rows)


def _fact(value: object) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    return significant(value, 6) if isinstance(value, float) and 0 <= value < 1e300 else str(value)


def runs_table(comparison: Comparison) -> Table:
    """Return every run with its figures."""
    rows = []
    for side in (comparison.baseline, comparison.candidate):
        for run in side.runs:
            whole = run.levels.phases["whole"]
            times = [whole.times.shown(name) for name in ("p50", "p99", "p99.9")]
            cells = [
                side.name,
                run.scenario,
                run.directory.status,
                count(whole.requests),
                count(whole.errors),
            ]
            rows.append(Row(run.name, [*cells, *times]))
        rows += [Row("cannot be read", [side.name, each.why], "amiss") for each in side.unreadable]
    columns = ["run", "side", "scenario", "", "requests", "failed", "p50", "p99", "p99.9"]
    return Table(
        "The runs",
        "Response times of each whole run; a failure counts at its time-out, so ≥ is a lower bound.",
        columns,
        rows,
    )


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
