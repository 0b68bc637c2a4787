"""Runs by scenario and backend: what the comparing parts of a report are made of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from plimsoll.analysis.evidence.run import Observation
from plimsoll.analysis.page.chart import RUN_COLOURS
from plimsoll.analysis.report.few import FEW, MANY, in_order
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.statistics.run import RunFigures
from plimsoll.rundir.directory import RunDirectory


@dataclass(frozen=True)
class BackendRuns:
    """All runs of one scenario on one backend. Its name is hostile; `shade` is its colour on all the page."""

    name: str
    shade: int
    runs: list[MeasuredRun]

    @property
    def colour(self) -> int:
        """The number of its colour, from 1."""
        return self.shade % RUN_COLOURS + 1

    @property
    def emulated(self) -> str | None:
        """The storage that this one imitated (hostile), where any of the runs says so."""
        return next((run.emulated for run in self.runs if run.emulated), None)

    @property
    def called(self) -> str:
        """Its name (hostile), which says when it is emulated."""
        return f"{self.name} (emulated)" if self.emulated else self.name


@dataclass(frozen=True)
class ScenarioRuns:
    """All runs of one scenario, whose name is hostile, by backend in the order in which they came."""

    number: int
    name: str
    backends: list[BackendRuns]

    @property
    def runs(self) -> list[MeasuredRun]:
        """All runs."""
        return [run for backend in self.backends for run in backend.runs]

    @property
    def crowded(self) -> bool:
        """True where there are more backends than a figure can show."""
        return len(self.backends) > MANY

    @cached_property
    def few(self) -> "ScenarioRuns":
        """The scenario with the backends that figures show: all, or those that `few` chose of many."""
        if not self.crowded:
            return self
        chosen = [backend for backend in self.backends if backend.shade < FEW]
        return ScenarioRuns(
            self.number, self.name, sorted(chosen, key=lambda one: one.shade) or self.backends[:FEW]
        )

    @property
    def saturators(self) -> list[str]:
        """The kinds of saturator that ran, each once."""
        return list(dict.fromkeys(run.saturation.name for run in self.runs if run.saturation))

    @cached_property
    def busy_s(self) -> float | None:
        """Seconds that the saturator ran: the median of the runs; None where there was none."""
        lasted = sorted(
            ((run.elapsed_s * 1e9 if busy.stop_ns is None else busy.stop_ns) - busy.start_ns) / 1e9
            for run in self.runs
            if (busy := run.saturation)
        )
        return lasted[len(lasted) // 2] if lasted else None

    @property
    def repeated(self) -> bool:
        """True where any backend has more runs than one."""
        return any(len(backend.runs) > 1 for backend in self.backends)


def numbered(measured: Sequence[tuple[RunDirectory, RunFigures, Observation]]) -> list[MeasuredRun]:
    """Return the runs of a report, numbered, with the colours of their backends."""
    runs = [
        MeasuredRun(directory, statistics, number, observation=seen)
        for number, (directory, statistics, seen) in enumerate(measured)
    ]
    by_backend: dict[str, list[MeasuredRun]] = {}
    for run in runs:
        by_backend.setdefault(_key(run), []).append(run)
    shades = {key: shade for shade, key in enumerate(in_order(by_backend))}
    several = len({run.directory.facts.scenario for run in runs}) > 1
    return [replace(run, shade=shades[_key(run)], among_scenarios=several) for run in runs]


def by_scenario(runs: Sequence[MeasuredRun]) -> list[ScenarioRuns]:
    """Group runs by scenario and, within, by backend."""
    found: dict[str, dict[str, BackendRuns]] = {}
    for run in runs:
        backends = found.setdefault(run.directory.facts.scenario, {})
        shade = run.number if run.shade is None else run.shade
        backends.setdefault(_key(run), BackendRuns(run.backend, shade, [])).runs.append(run)
    return [
        ScenarioRuns(number, name, list(backends.values()))
        for number, (name, backends) in enumerate(found.items())
    ]


def _key(run: MeasuredRun) -> str:
    """Runs that name no backend have nothing in common."""
    backend = run.directory.facts.backend
    return f"backend {backend}" if backend else f"run {run.number}"
