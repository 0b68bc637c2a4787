"""host.csv of all runs of a scenario, by backend: joined over devices, cut into bins of time and phases."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from plimsoll.analysis.report.backends import BackendRuns, ScenarioRuns
from plimsoll.analysis.report.host_rows import HostRow, Subject
from plimsoll.analysis.report.host_series import Floats, own_disks, own_pools, zero_ns
from plimsoll.analysis.report.host_subjects import SUBJECTS
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.statistics.measurephases import edges_ns
from plimsoll.analysis.statistics.phases import PHASES, WHOLE

_LARGEST, _LATEST_NS = 1e18, float(1 << 61)
_ONE_MISSED_S = 1.9  # so far apart are neighbours at most; beyond, a sample is missing


@dataclass(frozen=True)
class TimeBins:
    """Bins of one width from `first_s` on, in seconds since the saturator started."""

    first_s: float
    width_s: float
    count: int

    @property
    def middles_s(self) -> list[float]:
        """Where the values of each are drawn."""
        return [self.first_s + (bin_ + 0.5) * self.width_s for bin_ in range(self.count)]


class Binned:
    """Samples by bin: their mean, lowest and highest; NaN where there are none. Arrays of shape (bins,)."""

    def __init__(self, bins: TimeBins) -> None:
        self.bins = bins
        self._count = np.zeros(bins.count)
        self._total = np.zeros(bins.count)
        self._low = np.full(bins.count, np.inf)
        self._high = np.full(bins.count, -np.inf)

    def add(self, t_s: Floats, value: Floats) -> None:
        """Add samples of one run, none of them NaN; a bin between two neighbours has what they have."""
        slot = np.floor((t_s - self.bins.first_s) / self.bins.width_s).astype(np.int64)
        # sampled once a second, with a jitter: of two bins one may have both samples
        over = np.flatnonzero((np.diff(slot) == 2) & (np.diff(t_s) < _ONE_MISSED_S))
        slot = np.concatenate([slot, slot[over] + 1])
        value = np.concatenate([value, (value[over] + value[over + 1]) / 2])
        there = (slot >= 0) & (slot < self.bins.count)
        slot, value = slot[there], value[there]
        np.add.at(self._count, slot, 1)
        np.add.at(self._total, slot, value)
        np.minimum.at(self._low, slot, value)
        np.maximum.at(self._high, slot, value)

    @property
    def any(self) -> bool:
        """True where any bin has a sample."""
        return bool(self._count.any())

    @property
    def low(self) -> Floats:
        """The lowest of each bin."""
        return np.where(self._count > 0, self._low, np.nan)

    @property
    def high(self) -> Floats:
        """The highest of each bin."""
        return np.where(self._count > 0, self._high, np.nan)

    @property
    def mean(self) -> Floats:
        """The mean of each bin."""
        with np.errstate(invalid="ignore"):
            return self._total / np.where(self._count > 0, self._count, np.nan)


@dataclass
class PhaseMean:
    """The mean of all samples in a phase, and the highest of them."""

    total: float = 0.0
    count: int = 0
    high: float = 0.0

    @property
    def mean(self) -> float | None:
        """None without samples."""
        return self.total / self.count if self.count else None


@dataclass
class RowFigures:
    """One row of one backend: what is drawn, what beside it, and its means by phase."""

    line: Binned
    beside: Binned
    phases: dict[str, PhaseMean] = field(default_factory=dict)

    def mean(self, phase: str) -> float | None:
        """Return the mean in a phase; None without samples."""
        return self.phases[phase].mean if phase in self.phases else None


@dataclass(frozen=True)
class BackendHost:
    """All rows of a backend that any of its runs has."""

    backend: BackendRuns
    rows: Mapping[HostRow, RowFigures]

    @property
    def cpus(self) -> int | None:
        """How many processors the host has, where the lab read it."""
        found = (
            storage.facts.get("cpus") for run in self.backend.runs if (storage := run.directory.facts.storage)
        )
        return next((one for one in found if isinstance(one, int) and one > 0), None)


def hosts_of(scenario: ScenarioRuns, bins: TimeBins) -> list[BackendHost]:
    """Return what the host of every backend did; damaged files are left out."""
    return [_host_of(backend, bins) for backend in scenario.backends]


def _host_of(backend: BackendRuns, bins: TimeBins) -> BackendHost:
    found: dict[HostRow, RowFigures] = {}
    for run in backend.runs:
        for row, t_s, value, beside in rows_of(run):
            figures = found.setdefault(row, RowFigures(Binned(bins), Binned(bins)))
            for series, binned in ((value, figures.line), (beside, figures.beside)):
                known = ~np.isnan(series)
                binned.add(t_s[known], series[known])
            _add_phases(figures, run, t_s, value)
    return BackendHost(backend, {row: figures for row, figures in found.items() if figures.line.any})


def _add_phases(figures: RowFigures, run: MeasuredRun, t_s: Floats, value: Floats) -> None:
    zero_s = zero_ns(run) / 1e9
    for phase in PHASES if run.saturation else WHOLE:
        from_ns, to_ns = edges_ns(phase, run.saturation)
        within = value[(t_s >= from_ns / 1e9 - zero_s) & (t_s < to_ns / 1e9 - zero_s) & ~np.isnan(value)]
        each = figures.phases.setdefault(phase, PhaseMean())
        if len(within):
            each.total += float(within.sum())
            each.count += len(within)
            each.high = max(each.high, float(within.max()))


def rows_of(run: MeasuredRun) -> Iterator[tuple[HostRow, Floats, Floats, Floats]]:
    """Yield each row that the run's host.csv has: its instants, its values, and those beside it.

    Instants are in order, in seconds since the saturator started; values are NaN where they are not known.
    """
    columns = run.host.samples.columns
    names = list(columns)[1:]
    chosen = {
        row: (_columns(subject, run, row.column, names), _columns(subject, run, row.beside, names))
        for subject in SUBJECTS
        for row in subject.rows
    }
    if not any(own or beside for own, beside in chosen.values()):
        return
    t_ns = columns["t_ns"]
    there = np.abs(t_ns) < _LATEST_NS  # not NaN either
    order = np.argsort(t_ns[there], kind="stable")
    t_s = (t_ns[there][order] - zero_ns(run)) / 1e9
    for row, (own, beside) in chosen.items():
        value, other = (
            _joined([columns[name][there][order] for name in each], row, len(t_s)) for each in (own, beside)
        )
        if not np.isnan(value).all():
            yield row, t_s, value, other


def _columns(subject: Subject, run: MeasuredRun, pattern: str, names: list[str]) -> list[str]:
    """Return the columns of a row: of the storage's own devices, where any of those was observed."""
    if not pattern:
        return []
    found = {name: match for name in names if (match := re.fullmatch(pattern, name, re.DOTALL))}
    own = own_disks(run) if subject.devices == "disks" else own_pools(run) if subject.devices else set()
    return [name for name, match in found.items() if own and match[1] in own] or list(found)


def _joined(columns: list[Floats], row: HostRow, count: int) -> Floats:
    """Return one value an instant. A sum lacks no part: where one is missing it is NaN, as everywhere."""
    known = [np.where((each >= 0) & (each < _LARGEST), each, np.nan) for each in columns]
    known = [each for each in known if not np.isnan(each).all()]
    if not known:
        return np.full(count, np.nan)
    table = np.array(known) / row.scale
    if row.join == "sum":
        return np.asarray(table.sum(axis=0))
    some = ~np.isnan(table)
    if row.join == "max":
        return np.asarray(np.where(some.any(axis=0), np.where(some, table, -np.inf).max(axis=0), np.nan))
    n = some.sum(axis=0)
    return np.asarray(np.where(some, table, 0.0).sum(axis=0) / np.where(n > 0, n, np.nan))
