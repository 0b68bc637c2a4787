"""Series of nights: one figure of one phase of one scenario on one backend. Pure."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from analysis.comparing.gates import ERROR_SHARE, MEASURE, MORE_ERRORS
from analysis.history.store import History, NightRow, RunRow
from analysis.units import counted

_TAILS = ("p99.9", "p99")
_SETTLED = 30  # nights that say which figure a series has


@dataclass(frozen=True, order=True)
class SeriesKey:
    """Which series (hostile)."""

    experiment: str
    scenario: str
    backend: str
    phase: str
    metric: str

    @property
    def group(self) -> tuple[str, str]:
        """What one regression moves at once: all phases and figures of a scenario on a backend."""
        return self.scenario, self.backend

    @property
    def name(self) -> str:
        """What it is called (hostile)."""
        metric = (
            f"p50 of {self.metric.removeprefix(MEASURE)}" if self.metric.startswith(MEASURE) else self.metric
        )
        return f"{self.scenario}{' on ' + self.backend if self.backend else ''}, {self.phase}: {metric}"


@dataclass(frozen=True)
class NightValue:
    """One night of a series: every fit repeat, or why there is none (hostile)."""

    night: NightRow
    repeats: tuple[float, ...]
    why: str = ""

    def value(self, shares: bool) -> float | None:
        """Return the geometric mean of the repeats, of shares the mean; None of none."""
        if not self.repeats:
            return None
        return fmean(self.repeats) if shares else math.exp(fmean(map(math.log, self.repeats)))


@dataclass(frozen=True)
class Series:
    """A series over all nights of its experiment since it began; `unit` is empty for a share."""

    key: SeriesKey
    unit: str
    nights: list[NightValue]

    @property
    def shares(self) -> bool:
        """Whether its values are shares, which may be 0 and have no ratio."""
        return self.key.metric == ERROR_SHARE

    @property
    def judged(self) -> list[NightValue]:
        """The nights that have a value."""
        return [night for night in self.nights if night.repeats]

    @property
    def values(self) -> list[float]:
        """The values of those nights."""
        return [value for night in self.judged if (value := night.value(self.shares)) is not None]

    @property
    def scaled(self) -> list[float]:
        """The values as they are looked at: logarithms; of shares, with one in a thousand added to each."""
        return [self.scale(value) for value in self.values]

    def scale(self, value: float) -> float:
        """Return one value as it is looked at."""
        return math.log(value + MORE_ERRORS) if self.shares else math.log(value)

    def back(self, scaled: float) -> float:
        """Return the value that is looked at as `scaled`."""
        return max(math.exp(scaled) - MORE_ERRORS, 0.0) if self.shares else math.exp(scaled)


def series_of(history: History, experiment: str) -> list[Series]:
    """Return all series of an experiment that are looked at: the tail, and the share of errors."""
    nights = history.nights(experiment)
    runs = history.runs(experiment)
    by_run = {run.id: run for run in runs}
    figures: dict[tuple[str, str, str], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    units: dict[str, str] = {}
    for run_id, phase, metric, value, unit in history.figures(
        experiment, [*_TAILS, "p50", *_measures(history, experiment)]
    ):
        run = by_run[run_id]
        if not run.unfit and value > 0 and phase in ("during", "whole"):
            figures[run.scenario, run.backend, phase][metric][run_id] = value
            units[metric] = unit
    found = []
    for (scenario, backend, phase), metrics in sorted(figures.items()):
        fit = [run for run in runs if (run.scenario, run.backend) == (scenario, backend) and not run.unfit]
        recent = {night.id for night in nights[-_SETTLED:]} & {run.night for run in fit} or {
            run.night for run in fit
        }
        metric = _chosen(metrics, [run for run in fit if run.night in recent], units)
        key = SeriesKey(experiment, scenario, backend, phase, metric)
        found.append(Series(key, units[metric], _nights(nights, runs, key, metrics[metric])))
    shares: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for run_id, share in history.error_shares(experiment):
        run = by_run[run_id]
        if not run.unfit:
            shares[run.scenario, run.backend][run_id] = share
    for (scenario, backend), values in sorted(shares.items()):
        key = SeriesKey(experiment, scenario, backend, "whole", ERROR_SHARE)
        found.append(Series(key, "", _nights(nights, runs, key, values)))
    return found


def _measures(history: History, experiment: str) -> list[str]:
    rows = history.connection.execute(
        "SELECT DISTINCT metric FROM figure WHERE measure > 0 AND unit = 'ms' AND run IN (SELECT run.id "
        "FROM run JOIN night ON night.id = run.night WHERE experiment = ? ORDER BY run.started_at DESC "
        "LIMIT 100)",
        (experiment,),
    )
    return [str(row["metric"]) for row in rows]


def _chosen(metrics: dict[str, dict[int, float]], runs: Sequence[RunRow], units: dict[str, str]) -> str:
    """Return the highest percentile that most runs have; else what takes longest; else the median."""
    ids = {run.id for run in runs}
    common = [name for name, values in metrics.items() if 2 * len(ids & values.keys()) > len(ids)] or list(
        metrics
    )
    for tail in _TAILS:
        if tail in common:
            return tail
    measures = [name for name in sorted(common) if name.startswith(MEASURE) and units[name] == "ms"]
    if measures:
        return max(measures, key=lambda name: fmean(map(math.log, metrics[name].values())))
    return common[0]


def _nights(
    nights: Sequence[NightRow], runs: Iterable[RunRow], key: SeriesKey, values: dict[int, float]
) -> list[NightValue]:
    mine: dict[int, list[RunRow]] = defaultdict(list)
    for run in runs:
        if (run.scenario, run.backend) == (key.scenario, key.backend):
            mine[run.night].append(run)
    found: list[NightValue] = []
    for night in nights:
        repeats = tuple(values[run.id] for run in mine[night.id] if run.id in values)
        if repeats or found:
            found.append(NightValue(night, repeats, "" if repeats else _why(mine[night.id], key)))
    return found


def _why(runs: Sequence[RunRow], key: SeriesKey) -> str:
    if not runs:
        return "did not run"
    unfit = [f"{run.path.rsplit('/', 1)[-1]} {run.unfit[0]}" for run in runs if run.unfit]
    return "; ".join(unfit[:3]) if unfit else f"{counted(len(runs), 'run')} without a {key.metric}"
