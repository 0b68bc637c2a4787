"""A comparison as a document of verdicts and as a page: its gates, figures, charts and tables. Pure."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from statistics import median
from typing import NamedTuple

from plimsoll.analysis.compare.comparison import Comparison, GateVerdict
from plimsoll.analysis.compare.questions import sentences
from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.evidence.run import MeasuredRun, RunPhase
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
from plimsoll.analysis.page.verdict import (
    CaseTable,
    JUnitCase,
    VerdictCase,
    VerdictDocument,
    VerdictNote,
    VerdictPart,
    align,
    finding_case,
    wrap,
)
from plimsoll.analysis.report.sections.storage import TUNING_SAYS
from plimsoll.analysis.statistics.windows import PHASES
from plimsoll.common.errors import Severity
from plimsoll.common.hostile import plotly_text, printable
from plimsoll.common.units import ABSENT, at_least, count, milliseconds, percent, significant

TEMPLATES = Path(__file__).parent / "templates"
_MOST_PLACES = 8
_COLOURS = {"PASS": "var(--good)", "FAIL": "var(--bad)", "INCONCLUSIVE": "var(--warn)"}
_SYMBOLS = {"PASS": "circle", "FAIL": "x", "INCONCLUSIVE": "diamond-open"}
_BARE = 5.0  # as much as is drawn of an interval that has no end
# ticks, the most wanted first
_DECADES = [each * 10.0**power for each in (1, 2, 5) for power in range(-4, 5)]
_ROUND = (1, 2, 0.5, 5, 0.2, 0.1, 3, 0.3, 1.5, 0.7, 1.2, 0.8, 1.1, 0.9, 1.05, 0.95)
_TAILS = ("p99.9", "p99", "p50")
_MOST_MEASURES = 8  # measures of a scenario
_SERVER = "server cpu: "
_MS = {"ms": 1.0, "s": 1000.0}
_ROWS = 6  # of a chart as high as others
_MOST_DIFFERENCES, _LONGEST_CELL = 12, 40  # on a terminal
_LOOSE = 8  # rows that have room for two lines each


def comparison_page(comparison: Comparison) -> str:
    """Return the HTML."""
    return render_page(
        "compare.html",
        comparison_charts(comparison),
        TEMPLATES,
        styles=["verdict.css"],
        title=f"{comparison.candidate.name} against {comparison.baseline.name}",
        verdict=comparison.verdict,
        summary=comparison.sentence,
        comparison=comparison,
        gates=gate_table(comparison),
        phases=phase_table(comparison),
        differences=differences_table(comparison),
        runs=runs_table(comparison),
    )


def comparison_document(comparison: Comparison, command: str) -> VerdictDocument:
    """Return what `plimsoll COMMAND` says of a comparison."""
    part = VerdictPart(
        word=comparison.verdict,
        heading=comparison.sentence,
        tables=[gate_table(comparison)],
        notes=list(_notes(comparison)),
        suite=comparison.sentence,
        suite_class=command,
    )
    return VerdictDocument(command, comparison.verdict, [part])


def gate_table(comparison: Comparison) -> CaseTable:
    """Return every limit with its figures and its verdict."""
    names = [comparison.baseline.name, comparison.candidate.name]
    heading = f"{significant(100 * (2 * comparison.confidence - 1))} % interval"
    return CaseTable(
        title="The gates",
        caption=(
            "Each figure is the geometric mean of what every run of a side has (of error shares, the mean). "
            "A limit is kept or broken only where that is sure to "
            f"{significant(100 * comparison.confidence, 4)} %. A PASS of one row has its level for itself: "
            "the verdict on all gates errs no more often, but rows that are picked for their verdicts do."
        ),
        columns=["verdict", "gate", *names, "effect", heading, "limit", "runs"],
        cases=[_case(each) for each in comparison.judged],
        below=list(_lines_below(comparison)),
        is_hostile=True,
        longest_name=48,
    )


def _case(judged: GateVerdict) -> VerdictCase:
    verdict = judged.verdict
    baseline, candidate = (figure(judged, value) for value in judged.levels)
    shown = effect(judged, verdict.estimate)
    interval = _interval_text(judged)
    runs = f"{len(judged.question.baseline)} v {len(judged.question.candidate)}"
    says = verdict.reason
    figures = f"{shown} ({baseline} before, {candidate} after)"
    name = f"{judged.gate.name} {limit(judged)}"
    if verdict.outcome == "PASS":
        test = JUnitCase(name, "passed", " ".join(filter(None, (f"{figures}.", says))))
    elif verdict.outcome == "FAIL":
        test = JUnitCase(name, "failure", f"{figures}: {says}", "gate")
    else:
        test = JUnitCase(name, "error", says, "inconclusive")
    return VerdictCase(
        word=verdict.outcome,
        name=judged.gate.name,
        cells=[baseline, candidate, shown, interval, limit(judged), runs],
        says=" ".join(filter(None, (verdict.says, verdict.claim, verdict.power))),
        test=test,
        look="" if verdict.outcome == "PASS" else "amiss",
    )


def _lines_below(comparison: Comparison) -> Iterator[str]:
    """Yield what a terminal shows below the gates: the phases, the reasons, what is not claimed, warnings."""
    if phases := phase_table(comparison):
        yield ""
        rows = [["", *phases.columns[1:]], *([row.name, *row.cells] for row in phases.rows)]
        yield from (printable(line) for line in align(rows, left=[0]))
    grouped: dict[str, dict[str, list[str]]] = {}
    for each in comparison.judged:
        if each.verdict.outcome != "PASS" and each.verdict.says:
            powers = grouped.setdefault(each.verdict.says, {})
            powers.setdefault(each.verdict.power, []).append(f"{each.gate.name} {limit(each)}")
    for says, powers in grouped.items():
        yield ""
        if len(powers) == 1:
            ((power, gates),) = powers.items()
            yield from wrap(f"{', '.join(gates)}: {says} {power}".rstrip())
        else:
            yield from wrap(f"{', '.join(chain.from_iterable(powers.values()))}: {says}")
            yield from chain.from_iterable(
                wrap(f"{', '.join(gates)}: {power}") for power, gates in powers.items() if power
            )
    for claim in dict.fromkeys(each.verdict.claim for each in comparison.judged if each.verdict.claim):
        yield ""
        yield from wrap(claim)
    for sentence in _told(comparison):
        yield ""
        yield from wrap(sentence)
    if differences := differences_table(comparison):
        yield from ("", f"{differences.title}:")
        cells = [[row.name, *row.cells] for row in differences.rows[:_MOST_DIFFERENCES]]
        rows = [["", *differences.columns[1:]], *cells]
        yield from align([[printable(cell, _LONGEST_CELL) for cell in row] for row in rows], left=range(3))
        if more := len(differences.rows) - len(cells):
            yield f"And {more} more: see --html or --json."
    by_kind: dict[tuple[str, str | None, str], list[str]] = {}
    for finding in comparison.findings:
        if not finding.disqualifies:
            kind = finding.label, finding.scenario, _word(finding)
            by_kind.setdefault(kind, []).append(finding.sentence)
    if by_kind:
        yield ""
    for (*_, word), said in by_kind.items():
        for sentence in sentences(said):
            yield from wrap(sentence, f"{word}: ")


def _word(finding: Finding) -> str:
    """Return what a finding is called beside a verdict."""
    if finding.disqualifies:
        return "evidence"
    return "note" if finding.level is Severity.NOTE else "warning"


def _told(comparison: Comparison) -> list[str]:
    """Return the plan, when the gates were written, and which earlier looks are known, if there are any."""
    looks = comparison.looks_sentence if comparison.looks.earlier else ""
    plan = comparison.plan.sentence if comparison.plan else ""
    return [sentence for sentence in (plan, comparison.gates_sentence, looks) if sentence]


def _notes(comparison: Comparison) -> Iterator[VerdictNote]:
    for sentence in _told(comparison):
        yield VerdictNote("", sentence, on_terminal=False)
    for each in comparison.judged:
        if each.verdict.outcome != "PASS" and each.verdict.says:
            yield VerdictNote("", f"{each.gate.name}: {each.verdict.reason}", on_terminal=False)
    for claim in dict.fromkeys(each.verdict.claim for each in comparison.judged if each.verdict.claim):
        yield VerdictNote("", claim, on_terminal=False)
    for finding in comparison.findings:
        blocks = finding.disqualifies
        yield VerdictNote(
            _word(finding),
            finding.sentence,
            finding_case(finding.label, finding.sentence, blocks, finding.worse),
            on_terminal=False,
        )


def figure(judged: GateVerdict, value: float | None) -> str:
    """Return one side's figure: a time, a share, or a measure without its unit."""
    if value is None:
        return ABSENT
    if judged.gate.metric_type.is_share:
        return percent(value)
    return (
        milliseconds(value) if judged.in_ms else f"{significant(value)} {printable(judged.unit, 12)}".strip()
    )


def effect(judged: GateVerdict, value: float | None) -> str:
    """Return an effect or an end of its interval, in the terms of its limit."""
    if value is None:
        return ABSENT
    if judged.question.limit == "at_most_ratio":
        return f"× {value:.2f}" if value < 100 else f"× {significant(value)}"
    if judged.question.limit == "at_most_more":
        return ("+" if value > 0 else "−" if value < 0 else "±") + percent(abs(value))
    return figure(judged, value)


def _interval_text(judged: GateVerdict) -> str:
    """Return both confidence limits; a dash where so few runs have none."""
    verdict = judged.verdict
    if verdict.lower is None or verdict.upper is None:
        return ABSENT
    return f"{effect(judged, verdict.lower)} … {effect(judged, verdict.upper)}"


def limit(judged: GateVerdict) -> str:
    """Return the limit."""
    return f"≤ {effect(judged, judged.question.at_most)}"


def comparison_charts(comparison: Comparison) -> list[Chart]:
    """Return the figures: effects with their intervals, and every run."""
    effects = _effects_chart(comparison.judged, comparison.confidence)
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
    """Return what differs between the sides in what their runs record; None where nothing does."""
    if not comparison.differences:
        return None
    rows = [Row(key, [_fact_text(value) for value in values]) for key, values in comparison.differences]
    caption = (
        "What the runs record of load, target, programs, machines and storage. Ideally only what you compare "
        "stands here."
    )
    if any(row.name.startswith("tuning.") for row in rows):
        caption += f" {TUNING_SAYS}"
    names = [comparison.baseline.name, comparison.candidate.name]
    return Table("What differs between the two", caption, ["", *names], rows)


def _fact_text(value: object) -> str:
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
            whole = run.phases["whole"]
            times = [whole.response_ms.shown(name) for name in ("p50", "p99", "p99.9")]
            cells = [
                side.name,
                run.scenario,
                run.directory.status,
                count(whole.requests),
                count(whole.failures),
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


def _effects_chart(judged: Sequence[GateVerdict], confidence: float) -> Chart | None:
    """Return candidate ÷ baseline, with its interval, of every ratio gate that has one; None of none."""
    shown = [
        each
        for each in judged
        if each.question.limit == "at_most_ratio" and each.verdict.estimate is not None
    ]
    if not shown:
        return None
    rows = len(shown)
    tick: Json = {"size": 24, "symbol": "line-ns-open", "color": "var(--text)", "line": {"width": 3}}
    limits = [each.question.at_most for each in reversed(shown)]
    data: list[Json] = [
        _trace("limit", limits, [str(row) for row in range(rows)], mode="markers")
        | {"marker": tick, "hoverinfo": "skip"}
    ]
    for outcome, colour in _COLOURS.items():
        at = [(rows - 1 - row, each) for row, each in enumerate(shown) if each.verdict.outcome == outcome]
        if at:
            data += _traces(outcome, colour, at)
    ends = [end for each in shown for end in (*_interval_ends(each), each.question.at_most, 1.0)]
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
            f"{significant(100 * confidence, 4)} %, each gate by itself). Right of 1 is slower. An interval "
            "left of the tick keeps the limit, one right of it breaks it."
        ),
        data=data,
        layout=layout(x_axis, y_axis, shapes=[line]),
        tall=min((rows - 1) // _ROWS, 4),
    )


def _traces(outcome: str, colour: str, at: Sequence[tuple[int, GateVerdict]]) -> list[Json]:
    x: list[float] = []
    y: list[str | None] = []
    for row, each in at:
        low, high = _interval_ends(each)
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
    dots |= {"marker": look, "hovertext": [_hover_text(each) for _, each in at], "hoverinfo": "text"} | group
    return [bars, dots]


def _trace(name: str, x: list[float], y: list[str] | list[str | None], mode: str = "lines") -> Json:
    return {"type": "scatter", "name": name, "x": [rounded(at) for at in x], "y": y, "mode": mode}


def _interval_ends(each: GateVerdict) -> tuple[float, float]:
    middle = each.verdict.estimate or 1.0
    return each.verdict.lower or middle / _BARE, each.verdict.upper or middle * _BARE


def _hover_text(each: GateVerdict) -> str:
    name, shift = plotly_text(each.gate.name), effect(each, each.verdict.estimate)
    return f"{name}: <b>{shift}</b><br>{_interval_text(each)}<br>{each.verdict.outcome}"


class Level(NamedTuple):
    """A figure in ms or the measure's unit, whether it is but a lower bound, and how many tries failed."""

    value: float
    is_bound: bool
    failed: int = 0
    tries: int = 0


Read = Callable[[RunPhase], Level | None]


def phase_table(found: Comparison) -> Table | None:
    """Return the tail and every measure of both sides by phase; None where nothing kept the disks busy."""
    rows = [row for scenario in found.baseline.scenarios for row in _phase_rows(found, scenario)]
    if not rows:
        return None
    caption = (
        "Medians of a side's runs, phase by phase: of each run its percentile, or the median of what it "
        "measured. What took time belongs to the phase in which it began. Gates say which of them are judged."
    )
    return Table("Before, during and after", caption, ["", *PHASES, "during ÷ before"], rows)


def _phase_rows(found: Comparison, scenario: str) -> Iterator[Row]:
    sides = [
        (side, [run for run in side.of(scenario) if "during" in run.phases])
        for side in (found.baseline, found.candidate)
    ]
    if not all(runs for _, runs in sides):
        return
    every = [run for _, runs in sides for run in runs]
    for name, unit, read in [*_find_tail(every), *_find_measures(every)]:
        for side, runs in sides:
            levels = {phase: _read_level(runs, phase, read) for phase in PHASES}
            cells = [_level_text(levels[phase], unit) for phase in PHASES]
            yield Row(f"{scenario}: {name}, {side.name}", [*cells, _increase(levels)])


def _find_tail(runs: Sequence[MeasuredRun]) -> Iterator[tuple[str, str, Read]]:
    """Yield the highest percentile that most runs have enough requests for during the saturator."""
    for name in _TAILS:
        having = sum(run.phases["during"].response_ms.least_ms(name) is not None for run in runs)
        if having * 2 > len(runs):

            def read(phase: RunPhase, name: str = name) -> Level | None:
                least = phase.response_ms.least_ms(name)
                return None if least is None else Level(least, name in phase.response_ms.censored)

            yield name, "ms", read
            return


def _find_measures(runs: Sequence[MeasuredRun]) -> Iterator[tuple[str, str, Read]]:
    """Yield every measure that has a value during the saturator, the longest first."""
    longest: dict[tuple[str, str], float] = {}
    for run in runs:
        for name, step in run.phases["during"].steps.items():
            if step.measure and math.isfinite(step.least) and not name.startswith(_SERVER):
                key = name, "ms" if step.unit in _MS else step.unit
                longest[key] = max(longest.get(key, 0.0), step.least * _MS.get(step.unit, 0.0))
    for name, unit in sorted(longest, key=lambda key: -longest[key])[:_MOST_MEASURES]:

        def read(phase: RunPhase, name: str = name) -> Level | None:
            step = phase.steps.get(name)
            if step is None or not step.measure:
                return None
            value = step.least * _MS.get(step.unit, 1.0)
            return Level(value, step.median is None, len(step.failed_ms), step.tries)

        yield name, unit, read


def _read_level(runs: Sequence[MeasuredRun], phase: str, read: Read) -> Level | None:
    values = [level for run in runs if (at := run.phases.get(phase)) and (level := read(at))]
    if not values:
        return None
    return Level(
        median(each.value for each in values),
        any(each.is_bound for each in values),
        sum(each.failed for each in values),
        sum(each.tries for each in values),
    )


def _level_text(level: Level | None, unit: str) -> str:
    if level is None:
        return ABSENT
    failed = f" ({level.failed:,} of {level.tries:,} failed)" if level.failed else ""
    if not math.isfinite(level.value):
        return f"{ABSENT}{failed}"
    text = milliseconds(level.value) if unit == "ms" else f"{significant(max(level.value, 0.0))} {unit}"
    return (at_least(text) if level.is_bound else text) + failed


def _increase(levels: dict[str, Level | None]) -> str:
    before, during = levels["before"], levels["during"]
    if before is None or during is None or before.is_bound or during.is_bound:
        return ABSENT
    if before.value <= 0 or during.value < 0:
        return ABSENT
    return f"{significant(during.value / before.value, 2)} ×"
