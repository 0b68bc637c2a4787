"""The comparison as one page that is complete in itself, in the look of the report."""

from collections.abc import Sequence
from pathlib import Path

from plimsoll.analysis.comparing.comparison import Comparison
from plimsoll.analysis.comparing.decision import percent
from plimsoll.analysis.comparing.effects import effects_chart
from plimsoll.analysis.comparing.phase_table import phase_table
from plimsoll.analysis.comparing.text import effect, figure, interval, interval_heading, limit, summary
from plimsoll.analysis.comparing.verdicts import GateVerdict
from plimsoll.analysis.page.chart import Chart, Repeats, RunPoint, repeats_chart
from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.page.shell import render_page
from plimsoll.analysis.report.sections.storage import TUNING_SAYS
from plimsoll.common.units import ABSENT, count, significant

TEMPLATES = Path(__file__).parent / "templates"
_MOST_PLACES = 8


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
