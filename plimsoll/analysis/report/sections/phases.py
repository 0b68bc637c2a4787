"""Before, during and after: requests and measures of each backend, as rows of ready text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from plimsoll.analysis.page.section import Row, Section, Sentence, Table
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.runs import (
    AMONG,
    FAILURES_COUNT,
    FEW,
    SHOWN,
    Backend,
    BackendFigures,
    PhaseFigures,
    ScenarioFigures,
    ScenarioRuns,
)
from plimsoll.analysis.statistics.measures import StepFigures
from plimsoll.analysis.statistics.percentiles import TimeFigures
from plimsoll.analysis.statistics.windows import PHASES
from plimsoll.common.units import ABSENT, at_least, count, counted, milliseconds, significant

_COLUMNS = ("requests", "requests/s", "p50", "p99", "p99.9", "against before", "throughput", "disk reads")
_MOST_NAMED = 4  # backends in one sentence
_MS = {"ms": 1.0, "s": 1000.0}
_SERVER = "server cpu: "
_MOST_SAID = 3  # on the terminal, of one run
_FEW = 5  # values, below which a median says little
_MOST_ROWS = 16  # measures in the table


@dataclass(frozen=True)
class BackendBlock:
    """The rows of one backend. Its name and what it imitates are hostile; `colour` counts from 1."""

    name: str
    colour: int
    emulated: str | None
    runs: str
    rows: list[tuple[str, list[str]]]  # a phase and its cells


@dataclass(frozen=True)
class PhaseTable(Section):
    """The table of one scenario, whose name is hostile. Of many backends, `further` are folded away."""

    columns: Sequence[str] = _COLUMNS
    blocks: Sequence[BackendBlock] = ()
    further: Sequence[BackendBlock] = ()
    layout: str = "phases"


def phase_sections(compared: Sequence[ScenarioFigures]) -> list[Section]:
    """Return the tables of phases, where they say more than the list of runs; the first has the caption."""
    tables = [_phase_table(each) for each in compared if each.saturated or each.scenario.repeated]
    return [each if at == 0 else replace(each, caption="") for at, each in enumerate(tables)]


def _phase_table(figures: ScenarioFigures) -> PhaseTable:
    saturators = figures.scenario.saturators_label
    title = "Before, during and after" if saturators else "The backends"
    caption = "Response times of all repeats together, exact order statistics; the warm-up is left out."
    if saturators:
        caption += (
            f" During is while {saturators} ran. A request counts in the phase in which it was due. "
            "“Against before” is how many times as long a request took as before, by p99.9 (* by p99, ** by "
            "p50, where there were too few). Throughput is that of the saturator; disk reads are the mean "
            "time of one."
        )
    if any(phase.response_ms.censored for each in figures.backends for phase in each.phases.values()):
        caption += f" {FAILURES_COUNT} Where that is what a percentile lands on, there is no ratio."
    if company := _company(figures.scenario.runs):
        caption += f" {company}"
    caption += " How far single runs lie apart is in the figure of the repeats."
    few = figures.few
    sentences = (_few_sentence(figures), phase_sentence(few), measure_sentence(few.scenario))
    sentence = " ".join(filter(None, sentences))
    return PhaseTable(
        title=title + figures.scenario.title_end,
        sentences=[Sentence(sentence)] if sentence else [],
        caption=caption,
        blocks=[_block(each) for each in few.backends],
        further=[_block(each) for each in figures.backends if each.backend not in few.scenario.backends],
    )


def _few_sentence(figures: ScenarioFigures) -> str:
    """Return which backends of many are shown (hostile); empty where all are."""
    if not figures.scenario.crowded:
        return ""
    names = [backend.called for backend in figures.scenario.few.backends]
    which = f"{names[0]} (the base)"
    if len(names) == FEW:
        which += f", {names[1]} and {names[2]} (the fastest by their whole runs), "
        which += f"{names[4]} and {names[3]} (the slowest)"
    else:
        which = ", ".join(names)
    return (
        f"Of {len(figures.backends)} variants, figures show {len(names)}: {which}. The others can be chosen "
        "below the scatter and the curves, stand in the figures of the factors if they vary any, and in all "
        "tables, where they are folded away."
    )


def phase_sentence(figures: ScenarioFigures) -> str:
    """Return what the table says, in one sentence (hostile); empty where there is too little to say it."""
    if not figures.saturated:
        return ""
    for name, among in AMONG.items():
        if name == "p50" and measure_sentence(figures.scenario):
            return ""  # a median over unlike steps moves with their mixture; the measure has its sentence
        found = [
            (each, times)
            for each in figures.backends
            if "during" in each.phases
            and ((times := each.phases["during"].response_ms)[name] is not None or name in times.censored)
        ]
        if 0 < len(found) == len(figures.backends) <= _MOST_NAMED:
            return f"While {figures.scenario.saturators_label} ran, {among} {_outcomes(found, name)}."
    return ""


def _outcomes(found: Sequence[tuple[BackendFigures, TimeFigures]], name: str) -> str:
    """Return where it failed, and how long it took where it did not, the slowest first."""
    failed = [
        f"on {each.backend.called}"
        + ("" if (ms := times.censored[name]) is None else f" (at least {milliseconds(ms)})")
        for each, times in found
        if name in times.censored
    ]
    took = [(value, each) for each, times in found if (value := times[name]) is not None]
    parts = [
        f"{milliseconds(value)} on {each.backend.called}"
        + ("" if (r := each.ratios[name]) is None else f" ({significant(r, 2)} times as long as before)")
        for value, each in sorted(took, key=lambda pair: -pair[0])
    ]
    said = [f"failed {', and '.join(failed)}"] if failed else []
    return ", and ".join([*said, f"took {', and '.join(parts)}"] if parts else said)


def _block(each: BackendFigures) -> BackendBlock:
    return BackendBlock(
        name=each.backend.name,
        colour=each.backend.colour,
        emulated=each.backend.emulated,
        runs=counted(len(each.repeats), "run"),
        rows=[(name, _cells(each, name, figures)) for name, figures in each.phases.items()],
    )


def _cells(each: BackendFigures, phase: str, figures: PhaseFigures) -> list[str]:
    send = each.send_bytes_per_s if phase == "during" else None
    return [
        count(figures.requests),
        ABSENT if figures.per_s is None else significant(figures.per_s),
        *(figures.response_ms.shown(name) for name in SHOWN),
        _ratio(each, phase),
        ABSENT if send is None else f"{significant(send / 1e6)} MB/s",
        milliseconds(each.disk_read_latency_ms[phase]),
    ]


def _ratio(each: BackendFigures, phase: str) -> str:
    """Return how many times as long, by the highest percentile that both phases have."""
    if phase not in ("during", "after") or "before" not in each.phases:
        return ABSENT
    before, now = each.phases["before"].response_ms, each.phases[phase].response_ms
    for name, star in (("p99.9", ""), ("p99", " *"), ("p50", " **")):
        if name in before.censored or name in now.censored:
            return ABSENT  # a lower percentile would hide the failures that this one is of
        if (b := before[name]) and (n := now[name]) is not None:
            return f"{significant(n / b, 2)} ×{star}"
    return ABSENT


@dataclass(frozen=True)
class PhaseMedian:
    """One measure in one phase of some runs: the median of their medians, and the number of values.

    `value` is in ms where the measure is a time, else in `unit` (hostile); endless if it is unknown how
    long most tries, which failed, would have taken. `is_bound`: it is at least that. `failed` tries
    gave no value.
    """

    value: float
    n: int
    unit: str
    failed: int = 0
    is_bound: bool = False

    @property
    def shown(self) -> str:
        """The value with its unit (hostile)."""
        if not math.isfinite(self.value):
            return ABSENT
        figure = f"{'−' if self.value < 0 else ''}{significant(abs(self.value))} {self.unit}"
        text = milliseconds(self.value) if self.unit == "ms" else figure
        return at_least(text) if self.is_bound else text

    @property
    def counts(self) -> str:
        """The number of values, and of tries that failed: `12, 5 failed`."""
        return f"{self.n:,}, {self.failed:,} failed" if self.failed else f"{self.n:,}"


Medians = dict[str, dict[str, PhaseMedian]]


def medians_of(runs: Sequence[ReportRun]) -> Medians:
    """Return the medians by measure (hostile) and phase, the longest times first; none without phases."""
    values: dict[str, dict[str, list[StepFigures]]] = {}
    for run in runs:
        for phase, found in run.phase_values.items():
            for name, one in found.items():
                if one.tries and not name.startswith(_SERVER):
                    values.setdefault(name, {}).setdefault(phase, []).append(one)
    medians = {
        name: {phase: _median(by_phase[phase]) for phase in PHASES if phase in by_phase}
        for name, by_phase in values.items()
    }
    return dict(sorted(medians.items(), key=lambda item: _longest(item[1])))


def _median(each: Sequence[StepFigures]) -> PhaseMedian:
    unit = each[0].unit
    alike = [one for one in each if one.unit == unit]
    values = [one.least * _MS.get(unit, 1.0) for one in alike]
    return PhaseMedian(
        median(values),
        sum(len(one.values) for one in alike),
        "ms" if unit in _MS else unit,
        sum(len(one.failed_ms) for one in alike),
        any(one.median is None for one in alike),
    )


def _longest(by_phase: dict[str, PhaseMedian]) -> tuple[bool, float]:
    times = [one.value for one in by_phase.values() if one.unit == "ms" and math.isfinite(one.value)]
    return not times, -max(times, default=0.0)


def measure_sentence(scenario: ScenarioRuns) -> str:
    """Return what became of the longest measure while the saturator ran (hostile); empty without one."""
    of_backend = [(backend, medians_of(backend.runs)) for backend in scenario.backends]
    for name in medians_of(scenario.runs):
        found = [
            (medians[name]["during"], medians[name].get("before"), backend)
            for backend, medians in of_backend
            if "during" in medians.get(name, {}) and medians[name]["during"].unit == "ms"
        ]
        if any(before for _, before, _ in found):
            found.sort(key=lambda each: -each[0].value)
            took = ", ".join(_took(*each) for each in found[:_MOST_NAMED])
            return f"“{name}” typically took, while {scenario.saturators_label} ran, {took}."
    return ""


def _took(during: PhaseMedian, before: PhaseMedian | None, backend: Backend) -> str:
    against = f" ({before.shown} before)" if before else ""
    failed = f", and {during.failed:,} of {during.n + during.failed:,} failed" if during.failed else ""
    return f"{during.shown} on {backend.called}{against}{failed}"


def measure_lines(run: ReportRun) -> list[str]:
    """Return a line for the terminal on each of the longest measures of a run (hostile)."""
    return [
        f"  {name}: " + ", ".join(f"{one.shown} {phase} ({one.counts})" for phase, one in by_phase.items())
        for name, by_phase in list(medians_of([run]).items())[:_MOST_SAID]
    ]


def measure_section(scenarios: Sequence[ScenarioRuns]) -> Section:
    """Return every measure of each backend in each phase, a table a scenario where any was."""
    return Section(tables=[table for each in scenarios if (table := _measures(each))])


def _measures(scenario: ScenarioRuns) -> Table | None:
    of_backend = [(backend, medians_of(backend.runs)) for backend in scenario.backends]
    names = list(medians_of(scenario.runs))
    rows = [
        Row(
            f"{name}, {backend.called}",
            [
                *(
                    f"{one.shown} ({one.counts})" if (one := medians[name].get(phase)) else ABSENT
                    for phase in PHASES
                ),
                _times(medians[name]),
            ],
        )
        for name in names[:_MOST_ROWS]
        for backend, medians in of_backend
        if name in medians
    ]
    if not rows:
        return None
    caption = (
        "Medians: of a run's values, then of a backend's runs; in brackets the number of values, and of "
        "tries that failed, which count as at least their time-out. During is "
        f"while {scenario.saturators_label} ran. What took time belongs to the phase in which it began. The "
        "slowest first."
    )
    if len(names) > _MOST_ROWS:
        caption += f" {counted(len(names) - _MOST_ROWS, 'further measure')} stand in the tables of the runs."
    return Table(
        f"Measured before, during and after{scenario.title_end}",
        caption + _thin(of_backend),
        ["", *PHASES, "during ÷ before"],
        rows,
    )


def _times(by_phase: dict[str, PhaseMedian]) -> str:
    """Return how many times as much it was during as before."""
    before, during = by_phase.get("before"), by_phase.get("during")
    if before is None or during is None or before.unit != during.unit or before.value <= 0:
        return ABSENT
    if before.is_bound or during.is_bound:
        return ABSENT
    return f"{significant(during.value / before.value, 2)} ×" if during.value >= 0 else ABSENT


def _thin(of_backend: Sequence[tuple[Backend, Medians]]) -> str:
    """Return which backends have too few values for their medians to say much; empty where none has."""
    found = []
    for backend, medians in of_backend:
        most = max((one.n for by_phase in medians.values() for one in by_phase.values()), default=0)
        if most < _FEW:
            found.append(f"{backend.called} has {most}")
    return f" Medians of fewer than {_FEW} values say little: {', '.join(found)}." if found else ""


def _company(runs: Sequence[ReportRun]) -> str:
    """Return what else loaded the clone, in a sentence (hostile); empty where nothing did."""
    known = [together for run in runs if (together := run.directory.facts.together) and together.others]
    others = dict.fromkeys(together.company for together in known)
    if not others:
        return ""
    begins = dict.fromkeys(f"at {each.begins_s:g} s" for each in known if each.begins_s is not None)
    when = f" It was to begin {' or '.join(begins)} of the run." if begins else ""
    return f"At the same time on the same clone: {'; or '.join(others)}.{when}"
