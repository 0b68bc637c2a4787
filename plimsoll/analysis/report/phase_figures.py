"""Before, during and after: the figures of each backend in each phase, all its repeats together."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from plimsoll.analysis.report.backends import BackendRuns, ScenarioRuns
from plimsoll.analysis.report.host_series import Series, disk_latency_of, done_of, send_of
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.statistics.figures import TimeFigures
from plimsoll.analysis.statistics.phases import PHASES, WHOLE
from plimsoll.analysis.statistics.phasewindows import PhaseWindow, PhaseWindows, line_of, make_phase_windows
from plimsoll.analysis.statistics.sample import P99, P999, PERCENTILES, Sample
from plimsoll.analysis.statistics.times import Times
from plimsoll.rundir.discovery import name_of

P50 = PERCENTILES["p50"]
SHOWN = {"p50": P50, "p99": P99, "p99.9": P999}


@dataclass(frozen=True)
class PhaseFigures:
    """One phase: its requests, how many a second, and their response times."""

    requests: int
    per_s: float | None
    response_ms: TimeFigures

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints of the phase."""
        return {**asdict(self), "response_ms": self.response_ms.as_json()}


@dataclass(frozen=True)
class RepeatFigures:
    """One run: its phases, its windows, what else was seen of it, and what was wrong with that."""

    run: MeasuredRun
    phases: dict[str, PhaseFigures]
    windows: list[PhaseWindow]
    send: Series
    disk: Series
    done: Series
    trouble: str | None


@dataclass(frozen=True)
class BackendFigures:
    """One backend: its repeats, and all of them together. `curve` is that of the phase that matters most."""

    backend: BackendRuns
    repeats: list[RepeatFigures]
    phases: dict[str, PhaseFigures]
    curve: list[tuple[float, float]]
    send_bytes_per_s: float | None
    disk_read_latency_ms: dict[str, float | None]

    @property
    def ratios(self) -> dict[str, float | None]:
        """The times during the saturator over those before it, by percentile."""
        if "before" not in self.phases:
            return dict.fromkeys(SHOWN)
        before, during = self.phases["before"].response_ms, self.phases["during"].response_ms
        return {name: d / b if (b := before[name]) and (d := during[name]) else None for name in SHOWN}

    def windows(self, phase: str) -> list[PhaseWindow]:
        """Return the windows of all repeats in a phase."""
        return [window for repeat in self.repeats for window in repeat.windows if window.phase == phase]


@dataclass(frozen=True)
class ScenarioFigures:
    """One scenario, on all backends."""

    scenario: ScenarioRuns
    backends: list[BackendFigures]
    windows: PhaseWindows

    @cached_property
    def saturated(self) -> bool:
        """True where any run had a saturator: then time is counted from its start."""
        return bool(self.scenario.saturators)

    @property
    def phases(self) -> list[str]:
        """All phases that any backend has, in order."""
        return [name for name in (*PHASES, *WHOLE) if any(name in each.phases for each in self.backends)]

    @cached_property
    def few(self) -> "ScenarioFigures":
        """The figures of the backends that one figure can show."""
        if not self.scenario.crowded:
            return self
        shades = [backend.shade for backend in self.scenario.few.backends]
        chosen = [each for each in self.backends if each.backend.shade in shades]
        return ScenarioFigures(
            self.scenario.few, sorted(chosen, key=lambda each: each.backend.shade), self.windows
        )

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints of the scenario under `phases`."""
        return {
            "scenario": self.scenario.name,
            "saturators": self.scenario.saturators,
            "windows": {"width_s": self.windows.width_s, "shown": self.windows.shown},
            "backends": [_backend_json(each) for each in self.backends],
        }


def figures_of_scenario(scenario: ScenarioRuns) -> ScenarioFigures | None:
    """Return the figures of a scenario; None where its runs' phases were not measured."""
    runs = [run for run in scenario.runs if run.statistics.phases is not None]
    slices = [run.statistics.phases for run in runs if run.statistics.phases is not None]
    if len(runs) < len(scenario.runs):
        return None
    windows = make_phase_windows(slices)
    of_run = {run.number: found for run, found in zip(runs, windows.of_runs, strict=True)}
    backends = [_backend(backend, of_run) for backend in scenario.backends]
    return ScenarioFigures(scenario, backends, windows)


def common_percentile(times: Sequence[TimeFigures]) -> str | None:
    """Return the highest percentile that all of some runs have, as a figure or as a failure's."""
    for name in reversed(SHOWN):
        if times and all(each[name] is not None or name in each.censored for each in times):
            return name
    return None


def _backend(backend: BackendRuns, windows: dict[int, list[PhaseWindow]]) -> BackendFigures:
    names = _phases_of(backend)
    repeats = [_repeat(run, windows[run.number]) for run in backend.runs]
    phases: dict[str, PhaseFigures] = {}
    curve: list[tuple[float, float]] = []
    for name in names:
        sample, lasted_s = _pooled(backend.runs, name)
        phases[name] = _figures(sample, lasted_s)
        if name in ("during", *WHOLE) and not curve:
            curve = sample.curve()
    sends = [repeat.send.value for repeat in repeats]
    every = np.concatenate(sends) if sends else np.empty(0)
    return BackendFigures(
        backend=backend,
        repeats=repeats,
        phases=phases,
        curve=curve,
        send_bytes_per_s=float(every.mean()) if len(every) else None,
        disk_read_latency_ms={name: _disk_mean(repeats, name) for name in names},
    )


def _phases_of(backend: BackendRuns) -> list[str]:
    found = {name for run in backend.runs if (each := run.statistics.phases) for name in each.names}
    return [name for name in (*PHASES, *WHOLE) if name in found]


def _pooled(runs: list[MeasuredRun], phase: str) -> tuple[Sample, float]:
    """Return the response times of one phase of all runs, and how long it lasted in all."""
    slices = [each for run in runs if (each := run.statistics.phases) and phase in each.names]
    sample = Sample.of_times(Times.joined([each.all_of(phase) for each in slices]))
    return sample, sum(each.lasted_s(phase) for each in slices)


def _figures(sample: Sample, lasted_s: float) -> PhaseFigures:
    times = sample.percentiles(SHOWN)
    return PhaseFigures(sample.n, sample.n / lasted_s if lasted_s > 0 and sample.n else None, times)


def _repeat(run: MeasuredRun, windows: list[PhaseWindow]) -> RepeatFigures:
    disk, trouble = disk_latency_of(run)
    slices = run.statistics.phases
    phases = {name: _figures(*_pooled([run], name)) for name in slices.names} if slices else {}
    return RepeatFigures(run, phases, windows, send_of(run), disk, done_of(run), trouble)


def _disk_mean(repeats: list[RepeatFigures], phase: str) -> float | None:
    """Return the mean of all seconds of a phase, of all repeats."""
    values = []
    for repeat in repeats:
        slices = repeat.run.statistics.phases
        if slices is None or phase not in slices.names:
            continue
        stop_s = (slices.stop_ns - slices.start_ns) / 1e9
        edges = {"before": (-np.inf, 0.0), "during": (0.0, stop_s), "after": (stop_s, np.inf)}
        from_s, to_s = edges.get(phase, (-np.inf, np.inf))
        values.append(repeat.disk.between(from_s, to_s))
    every = np.concatenate(values) if values else np.empty(0)
    return float(every.mean()) if len(every) else None


def _backend_json(each: BackendFigures) -> dict[str, object]:
    line = line_of(each.windows("during") or each.windows(WHOLE[0]))
    return {
        "backend": each.backend.name,
        "emulated": each.backend.emulated,
        "runs": len(each.repeats),
        "phases": {name: figures.as_json() for name, figures in each.phases.items()},
        "during_over_before": each.ratios,
        "send_bytes_per_s": each.send_bytes_per_s,
        "disk_read_latency_ms": each.disk_read_latency_ms,
        "line": None if line is None else asdict(line),
        "repeats": [
            {
                "name": repeat.run.name,
                "directory": name_of(repeat.run.directory.path),
                "repeat": repeat.run.directory.facts.repeat,
                "phases": {name: figures.as_json() for name, figures in repeat.phases.items()},
                "windows": [window.as_json() for window in repeat.windows],
            }
            for repeat in each.repeats
        ],
    }
