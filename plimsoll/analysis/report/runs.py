"""The runs of a report by scenario and backend: colours, which are drawn, series, figures by phase."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import median

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.evidence.host_rows import LATENCY
from plimsoll.analysis.evidence.run import DetailedRun, RunFigures
from plimsoll.analysis.page.chart import RUN_COLOURS
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.statistics.percentiles import P99, P999, PERCENTILES, Sample, TimeFigures, Times
from plimsoll.analysis.statistics.windows import (
    PHASES,
    WHOLE_RUN,
    PhaseWindow,
    PhaseWindows,
    line_of,
    make_phase_windows,
)
from plimsoll.common.units import counted, share
from plimsoll.rundir.facts import REPLAY, Storage
from plimsoll.rundir.find import relative_name

# What is beyond was written by no observer of ours.
_MOST_MS, _LATEST_NS = 1e9, float(1 << 61)
MANY, FEW = 8, 5  # beyond the first, figures show so many at once
P50 = PERCENTILES["p50"]
SHOWN = {"p50": P50, "p99": P99, "p99.9": P999}
FAILURES_COUNT = (
    "A failure counts at its time-out, so a figure that lands on one is a lower bound (≥), a wrong answer, "
    "or a dash where the time-out is not known."
)
AMONG = {
    "p99.9": "the slowest request in a thousand",
    "p99": "the slowest request in a hundred",
    "p50": "half of the requests",
}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """Values at instants, in seconds since the saturator started; both have shape (n,), no value is NaN."""

    t_s: Floats
    value: Floats

    def between(self, from_s: float, to_s: float) -> Floats:
        """Return the values from one instant to before another."""
        return self.value[(self.t_s >= from_s) & (self.t_s < to_s)]


_NOTHING = Series(np.empty(0), np.empty(0))


def send_of(run: ReportRun) -> Series:
    """Return the saturator's throughput in bytes a second, each at the middle of its second."""
    busy = run.saturation
    if busy is None or not busy.bytes_per_s:
        return _NOTHING
    t_ns, value = (np.array(column, dtype=np.float64) for column in zip(*busy.bytes_per_s, strict=True))
    return Series((t_ns - busy.start_ns) / 1e9 - 0.5, value)


def disk_latency_of(run: ReportRun) -> tuple[Series, str | None]:
    """Return the mean time of a read in ms, over the storage's disks, and what is wrong with host.csv.

    Where run.json does not say which disks those are, or none of them was observed, over all disks.
    """
    own, host = run.own_disks, run.host
    columns = host.samples.columns
    disks = {name: found[1] for name in columns if (found := LATENCY.fullmatch(name))}
    chosen = [name for name, disk in disks.items() if disk in own] or list(disks)
    t_ns = columns.get("t_ns")
    if t_ns is None or not chosen:
        return _NOTHING, host.trouble
    table = np.array([columns[name] for name in chosen], dtype=np.float64)
    known = np.abs(table) < _MOST_MS  # neither is NaN
    count = known.sum(axis=0)
    there = (count > 0) & (np.abs(t_ns) < _LATEST_NS)
    mean: Floats = np.where(known, table, 0.0).sum(axis=0)[there] / count[there]
    return Series((t_ns[there] - run.zero_ns) / 1e9, mean), None


def done_of(run: ReportRun) -> Series:
    """Return the requests done a second, in each slice of the run's whole seconds."""
    timeline = run.statistics.timeline
    slots = np.arange(timeline.used, dtype=np.float64)
    t_s: Floats = (slots + 0.5) * timeline.width_s - run.zero_ns / 1e9
    per_s: Floats = timeline.done[: timeline.used] / timeline.width_s
    zero_s = run.zero_ns / 1e9
    whole = (t_s >= np.ceil(-zero_s)) & (t_s < np.floor(timeline.used * timeline.width_s - zero_s))
    return Series(t_s[whole], per_s[whole])


def order_for_figures(runs: Mapping[str, Sequence[ReportRun]]) -> list[str]:
    """Return the keys of `runs`, by backend: as they came; of many, those first that figures are to show.

    Those are the base, the two fastest and the two slowest. So each of them has a colour of its own. The base
    has the first level of each factor, or came first.
    """
    keys = list(runs)
    if len(keys) <= MANY:
        return keys
    levels = {key: _level(each, ranked_by(runs)) for key, each in runs.items()}
    base = next((key for key in keys if _has_first_levels(runs[key][0])), keys[0])
    others = sorted((key for key in keys if key != base), key=lambda key: levels[key])
    shown = [base, *others[:2], *others[-2:]]
    return [*shown, *(key for key in keys if key not in shown)]


def ranked_by(runs: Mapping[str, Sequence[ReportRun]]) -> str:
    """Return the highest percentile that all runs have, of all the time that they took."""
    every = [run.statistics.samples["response"].figures() for each in runs.values() for run in each]
    for name in ("p99.9", "p99", "p50"):
        if all(figures[name] is not None or name in figures.censored for figures in every):
            return name
    return "max"


def _has_first_levels(run: ReportRun) -> bool:
    facts = run.directory.facts
    levels = facts.experiment.levels if facts.experiment else None
    if not levels or not facts.factors:
        return False
    return all(each and facts.factors.get(factor) == each[0] for factor, each in levels.items())


def _level(runs: Sequence[ReportRun], name: str) -> float:
    least = [run.statistics.samples["response"].figures().least_ms(name) for run in runs]
    return median(math.inf if one is None else one for one in least)


@dataclass(frozen=True)
class Backend:
    """A backend: its name (hostile), which is that of its only run where none `is_named`.

    `shade` is its colour on all the page, `emulated` the storage that it imitated (hostile), if it did.
    """

    name: str
    shade: int
    is_named: bool
    emulated: str | None

    @property
    def colour(self) -> int:
        """The number of its colour, from 1."""
        return self.shade % RUN_COLOURS + 1

    @property
    def called(self) -> str:
        """Its name (hostile), which says when it is emulated."""
        return f"{self.name} (emulated)" if self.emulated else self.name


@dataclass(frozen=True)
class BackendRuns(Backend):
    """All runs of one scenario on one backend."""

    runs: list[ReportRun]


@dataclass(frozen=True)
class Scenario:
    """A scenario: its name is hostile; `title_end` names it in a title, where there are several."""

    number: int
    name: str
    title_end: str


@dataclass(frozen=True)
class ScenarioRuns(Scenario):
    """All runs of one scenario, by backend in the order in which they came."""

    backends: list[BackendRuns]

    @property
    def runs(self) -> list[ReportRun]:
        """All runs."""
        return [run for backend in self.backends for run in backend.runs]

    @property
    def named(self) -> list[BackendRuns]:
        """The backends that runs name; a run without one is its own."""
        return [backend for backend in self.backends if backend.is_named]

    @property
    def requests(self) -> int:
        """The requests of all runs."""
        return sum(run.statistics.requests for run in self.runs)

    @property
    def is_scripted(self) -> bool:
        """Whether the requests are steps of a script, and not those of a log."""
        facts = [run.directory.facts for run in self.runs]
        return not any(each.logs or each.own_scenario == REPLAY for each in facts)

    @property
    def is_weeks(self) -> bool:
        """True where two sides are imported access logs, which are held against each other by the hour."""
        return len(self.backends) == 2 and all(run.directory.facts.from_log for run in self.runs)

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
        return replace(self, backends=sorted(chosen, key=lambda one: one.shade) or self.backends[:FEW])

    @property
    def saturators(self) -> list[str]:
        """The kinds of saturator that ran, each once."""
        return list(dict.fromkeys(run.saturation.name for run in self.runs if run.saturation))

    @property
    def saturators_label(self) -> str:
        """The saturators as people say them: `zfs send and scrub`; empty without any."""
        return " and ".join(name.replace("-", " ") for name in self.saturators)

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


def number_runs(measured: Sequence[DetailedRun]) -> list[ReportRun]:
    """Return the runs of a report, numbered, with the colours of their backends."""
    runs = [ReportRun.of(run, number) for number, run in enumerate(measured)]
    by_backend: dict[str, list[ReportRun]] = {}
    for run in runs:
        by_backend.setdefault(_key(run), []).append(run)
    shades = {key: shade for shade, key in enumerate(order_for_figures(by_backend))}
    several = len({run.scenario for run in runs}) > 1
    return [replace(run, shade=shades[_key(run)], among_scenarios=several) for run in runs]


def group_by_scenario(runs: Sequence[ReportRun]) -> list[ScenarioRuns]:
    """Group runs by scenario and, within, by backend."""
    found: dict[str, dict[str, list[ReportRun]]] = {}
    for run in runs:
        found.setdefault(run.scenario, {}).setdefault(_key(run), []).append(run)
    return [
        ScenarioRuns(
            number,
            name,
            f": {name}" if len(found) > 1 else "",
            [
                BackendRuns(
                    each[0].backend,
                    each[0].shade,
                    bool(each[0].directory.facts.backend),
                    next((run.emulated for run in each if run.emulated), None),
                    each,
                )
                for each in backends.values()
            ],
        )
        for number, (name, backends) in enumerate(found.items())
    ]


def storages_by_backend(runs: Sequence[ReportRun]) -> dict[str, list[Storage]]:
    """Return what the lab read of the storage in each run, by the backend's name (hostile)."""
    found: dict[str, list[Storage]] = {}
    for run in runs:
        if run.directory.facts.backend and (storage := run.directory.facts.storage):
            found.setdefault(run.backend, []).append(storage)
    return found


def _key(run: ReportRun) -> str:
    """Runs that name no backend have nothing in common."""
    backend = run.directory.facts.backend
    return f"backend {backend}" if backend else f"run {run.number}"


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

    run: ReportRun
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
        return [name for name in (*PHASES, WHOLE_RUN) if any(name in each.phases for each in self.backends)]

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


def scenario_figures(scenario: ScenarioRuns) -> ScenarioFigures | None:
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
    sliced = {name for run in backend.runs if (each := run.statistics.phases) for name in each.names}
    names = [name for name in (*PHASES, WHOLE_RUN) if name in sliced]
    repeats = [_repeat(run, windows[run.number]) for run in backend.runs]
    phases: dict[str, PhaseFigures] = {}
    curve: list[tuple[float, float]] = []
    for name in names:
        sample, lasted_s = _pooled(backend.runs, name)
        phases[name] = _figures(sample, lasted_s)
        if name in ("during", WHOLE_RUN) and not curve:
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


def _pooled(runs: list[ReportRun], phase: str) -> tuple[Sample, float]:
    """Return the response times of one phase of all runs, and how long it lasted in all."""
    slices = [each for run in runs if (each := run.statistics.phases) and phase in each.names]
    sample = Sample.of_times(Times.joined([each.all_of(phase) for each in slices]))
    return sample, sum(each.lasted_s(phase) for each in slices)


def _figures(sample: Sample, lasted_s: float) -> PhaseFigures:
    times = sample.percentiles(SHOWN)
    return PhaseFigures(sample.n, sample.n / lasted_s if lasted_s > 0 and sample.n else None, times)


def _repeat(run: ReportRun, windows: list[PhaseWindow]) -> RepeatFigures:
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
    line = line_of(each.windows("during") or each.windows(WHOLE_RUN))
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
                "name": repeat.run.label,
                "directory": relative_name(repeat.run.directory.path),
                "repeat": repeat.run.directory.facts.repeat,
                "phases": {name: figures.as_json() for name, figures in repeat.phases.items()},
                "windows": [window.as_json() for window in repeat.windows],
            }
            for repeat in each.repeats
        ],
    }


def failures_note(runs: Iterable[RunFigures]) -> str:
    """Return how many requests of `runs` failed, and where they stand; empty where none did."""
    failing = [run for run in runs if run.failures]
    if not failing:
        return ""
    failures, requests = sum(run.failures for run in failing), sum(run.requests for run in failing)
    of = "" if len(failing) == 1 else f" in {len(failing)} runs"
    what, verb = (
        ("request", "failed") if any(run.total.errors for run in failing) else ("wrong answer", "came")
    )
    text = f" {counted(failures, what)} ({share(failures, requests)}) {verb}{of}"
    unknown = sum(run.failures for run in failing if run.timeout_ms is None)
    if not unknown:
        return f"{text}: each stands at its time-out."
    if unknown == failures:
        return f"{text}: slower than every answer, and not drawn, since their time-out is not known."
    return (
        f"{text}: each stands at its time-out, except {unknown:,} whose time-out is not known: those "
        "are slower than every answer, and not drawn."
    )
