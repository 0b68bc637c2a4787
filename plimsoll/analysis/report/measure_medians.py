"""Medians of what was measured beside the requests, before, during and after, and what they say."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from plimsoll.analysis.report.backends import BackendRuns, ScenarioRuns
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.report.values import Values
from plimsoll.analysis.statistics.phases import PHASES
from plimsoll.common.units import ABSENT, at_least, milliseconds, significant

_MS = {"ms": 1.0, "s": 1000.0}
_SERVER = "server cpu: "
_MOST_NAMED = 4  # backends in one sentence
_MOST_SAID = 3  # on the terminal, of one run


@dataclass(frozen=True)
class PhaseMedian:
    """One measure in one phase of some runs: the median of their medians, and the number of values.

    `value` is in ms where the measure is a time, else in `unit` (hostile); endless where nobody knows how
    long the failures would have taken that most tries were. `is_bound`: it is at least that. `failed` tries
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
        text = milliseconds(self.value) if self.unit == "ms" else f"{_figure(self.value)} {self.unit}"
        return at_least(text) if self.is_bound else text

    @property
    def counts(self) -> str:
        """The number of values, and of tries that failed: `12, 5 failed`."""
        return f"{self.n:,}, {self.failed:,} failed" if self.failed else f"{self.n:,}"


Medians = dict[str, dict[str, PhaseMedian]]


def medians_of(runs: Sequence[MeasuredRun]) -> Medians:
    """Return the medians by measure (hostile) and phase, the longest times first; none without phases."""
    values: dict[str, dict[str, list[Values]]] = {}
    for run in runs:
        for phase, found in run.phase_values.items():
            for name, one in found.values.items():
                if (one.values or one.failed) and not name.startswith(_SERVER):
                    values.setdefault(name, {}).setdefault(phase, []).append(one)
    medians = {
        name: {phase: _median(by_phase[phase]) for phase in PHASES if phase in by_phase}
        for name, by_phase in values.items()
    }
    return dict(sorted(medians.items(), key=lambda item: _longest(item[1])))


def _median(each: Sequence[Values]) -> PhaseMedian:
    unit = each[0].unit
    alike = [one for one in each if one.unit == unit]
    middles = [one.middle for one in alike]
    values = [
        value * _MS.get(unit, 1.0) if value is not None else math.inf if least is None else least * _MS[unit]
        for value, least in middles
    ]
    return PhaseMedian(
        median(values),
        sum(len(one.values) for one in alike),
        "ms" if unit in _MS else unit,
        sum(len(one.failed) for one in alike),
        any(value is None for value, _ in middles),
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
            while_ = " and ".join(each.replace("-", " ") for each in scenario.saturators)
            return f"“{name}” typically took, while {while_} ran, {took}."
    return ""


def _took(during: PhaseMedian, before: PhaseMedian | None, backend: BackendRuns) -> str:
    against = f" ({before.shown} before)" if before else ""
    failed = f", and {during.failed:,} of {during.n + during.failed:,} failed" if during.failed else ""
    return f"{during.shown} on {backend.called}{against}{failed}"


def said_of(run: MeasuredRun) -> list[str]:
    """Return a line for the terminal on each of the longest measures of a run (hostile)."""
    return [
        f"  {name}: " + ", ".join(f"{one.shown} {phase} ({one.counts})" for phase, one in by_phase.items())
        for name, by_phase in list(medians_of([run]).items())[:_MOST_SAID]
    ]


def _figure(value: float) -> str:
    return significant(value) if value >= 0 else f"−{significant(-value)}"
