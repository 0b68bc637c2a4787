"""Medians of what was measured beside the requests, before, during and after, and what they say."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from analysis.report.backends import BackendRuns, ScenarioRuns
from analysis.report.measured_run import MeasuredRun
from analysis.report.values import Values
from analysis.statistics.phases import PHASES
from plimsoll.common.units import milliseconds, significant

_MS = {"ms": 1.0, "s": 1000.0}
_SERVER = "server cpu: "
_MOST_NAMED = 4  # backends in one sentence
_MOST_SAID = 3  # on the terminal, of one run


@dataclass(frozen=True)
class PhaseMedian:
    """One measure in one phase of some runs: the median of their medians, and the number of values.

    `value` is in ms where the measure is a time, else in `unit` (hostile).
    """

    value: float
    n: int
    unit: str

    @property
    def shown(self) -> str:
        """The value with its unit (hostile)."""
        return milliseconds(self.value) if self.unit == "ms" else f"{_figure(self.value)} {self.unit}"


Medians = dict[str, dict[str, PhaseMedian]]


def medians_of(runs: Sequence[MeasuredRun]) -> Medians:
    """Return the medians by measure (hostile) and phase, the longest times first; none without phases."""
    values: dict[str, dict[str, list[Values]]] = {}
    for run in runs:
        for phase, found in run.phase_values.items():
            for name, one in found.values.items():
                if one.values and not name.startswith(_SERVER):
                    values.setdefault(name, {}).setdefault(phase, []).append(one)
    medians = {
        name: {phase: _median(by_phase[phase]) for phase in PHASES if phase in by_phase}
        for name, by_phase in values.items()
    }
    return dict(sorted(medians.items(), key=lambda item: _longest(item[1])))


def _median(each: Sequence[Values]) -> PhaseMedian:
    unit = each[0].unit
    values = [one.median * _MS.get(unit, 1.0) for one in each if one.unit == unit]
    n = sum(len(one.values) for one in each if one.unit == unit)
    return PhaseMedian(median(values), n, "ms" if unit in _MS else unit)


def _longest(by_phase: dict[str, PhaseMedian]) -> tuple[bool, float]:
    times = [one.value for one in by_phase.values() if one.unit == "ms"]
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
    return f"{during.shown} on {backend.called}{against}"


def said_of(run: MeasuredRun) -> list[str]:
    """Return a line for the terminal on each of the longest measures of a run (hostile)."""
    return [
        f"  {name}: " + ", ".join(f"{one.shown} {phase} ({one.n:,})" for phase, one in by_phase.items())
        for name, by_phase in list(medians_of([run]).items())[:_MOST_SAID]
    ]


def _figure(value: float) -> str:
    return significant(value) if value >= 0 else f"−{significant(-value)}"
