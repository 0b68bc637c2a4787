"""The nights of an experiment as the history holds them. Pure."""

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from statistics import fmean
from typing import Literal, NamedTuple

from plimsoll.analysis.compare.gates import ERROR_SHARE, MEASURE, MORE_ERRORS
from plimsoll.analysis.evidence.checks import RunGroup, merge_alike
from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.common.errors import Severity
from plimsoll.common.units import counted
from plimsoll.rundir.facts import RunFacts

_TAILS = ("p99.9", "p99")
PERCENTILES = (*_TAILS, "p50")  # of which one becomes a series; beside them measures that are times
ROUTE = "route "  # metric of a series: `route NAME` is the median of that kind of requests
_MOST_NAMED = 3
_SETTLED = 30  # nights that say which figure a series has
Group = tuple[str, str]


@dataclass(frozen=True)
class NightKey:
    """One night of one experiment: the name in its lab.yml (empty where there was none), and its own."""

    experiment: str
    name: str


@dataclass(frozen=True)
class NightFacts:
    """A night: runs that were started together, `planned` of them (None: unknown). Texts are hostile."""

    key: NightKey
    started_at: str
    planned: int | None
    path: str


@dataclass(frozen=True)
class StoredFinding:
    """What the gatekeeper found on runs of a night, by their numbers. `text` and `remedy` are hostile.

    `worse` says that it shows the site to be worse than in the nights before.
    """

    name: str
    level: Severity
    text: str
    remedy: str
    worse: bool
    runs: tuple[int, ...]

    @property
    def disqualifies(self) -> bool:
        """True if its runs are not evidence."""
        return self.level is Severity.BAD


@dataclass(frozen=True)
class NightRow:
    """A night with its number in the history, and whether the baseline begins or ends with it.

    `findings` is None where the gatekeeper has not looked at it yet.
    """

    id: int
    facts: NightFacts
    baseline: bool
    findings: tuple[StoredFinding, ...] | None = ()

    @property
    def name(self) -> str:
        """Its own name within its experiment (hostile)."""
        return self.facts.key.name


@dataclass(frozen=True)
class RunRow:
    """A run without its figures. Names are hostile.

    `censored` has the (phase, metric) of figures that are failures', of which no more than a lower bound is
    known.
    `unfit` says why nothing can be decided by it, and `refused` why not beside the nights before.
    `routes` are the kinds of requests that it has enough of for a series of their own.
    """

    id: int
    night: int
    scenario: str
    backend: str
    repeat: str | None
    unfit: tuple[str, ...]
    path: str
    root: str
    identity: str
    started_at: str
    size_bytes: int
    readable: bool
    pruned: bool
    censored: frozenset[tuple[str, str]] = frozenset()
    refused: tuple[str, ...] = ()
    routes: frozenset[str] = frozenset()

    @property
    def is_fit(self) -> bool:
        """True where it enters its series."""
        return not self.unfit and not self.refused

    @property
    def group(self) -> tuple[str, str]:
        """Its scenario and backend."""
        return self.scenario, self.backend

    @property
    def name(self) -> str:
        """The name of its directory (hostile)."""
        return self.path.rsplit("/", 1)[-1]


class FigureRow(NamedTuple):
    """One figure of one phase of a run. Names are hostile.

    `prompt` is the figure without the time by which the generator was late; None where it was in time.
    """

    run: int
    phase: str
    metric: str
    value: float
    unit: str
    prompt: float | None = None


@dataclass(frozen=True)
class ChangeRow:
    """A change that was reported: whose it is, its first night, the night that found it, both levels.

    `kind`: `worse` and `better` are changes of a series, `baseline` is a gate that failed. `recovered` is the
    first night on which it had recovered, `recovery_found` the one that found that; None while it is not.
    """

    kind: Literal["worse", "better", "baseline"]
    scenario: str
    backend: str
    phase: str
    metric: str
    night: int
    found: int
    before: float
    after: float
    p: float
    accepted: bool = False
    recovered: int | None = None
    recovery_found: int | None = None

    @property
    def group(self) -> tuple[str, str]:
        """The scenario and backend that one regression moves at once."""
        return self.scenario, self.backend


@dataclass(frozen=True)
class Decision:
    """What somebody decided, and why: `accept` changes, set a `baseline`, `drop` what no longer runs.

    `name` is what is accepted or dropped, or the baseline's night; `night` was the last one then (None:
    unknown). Texts are hostile.
    """

    kind: Literal["accept", "baseline", "drop"]
    name: str
    night: int | None
    at: str
    by: str
    note: str


@dataclass(frozen=True)
class ExperimentHistory:
    """All that the history knows of one experiment, the oldest first; `changes` were reported before.

    `daily`: its nights are days of access logs.
    """

    experiment: str
    nights: Sequence[NightRow]
    runs: Sequence[RunRow]
    figures: Sequence[FigureRow]
    error_shares: Sequence[tuple[int, float]]
    changes: Sequence[ChangeRow]
    decisions: Sequence[Decision] = ()
    daily: bool = False

    def with_runs(self, runs: Sequence[RunRow]) -> "ExperimentHistory":
        """Return it with these runs and their figures alone."""
        ids = {run.id for run in runs}
        return replace(
            self,
            runs=runs,
            figures=[row for row in self.figures if row.run in ids],
            error_shares=[row for row in self.error_shares if row[0] in ids],
        )


@dataclass(frozen=True)
class RunDigest:
    """One run, as it is kept: without its raw data. `run` is None where it cannot be read.

    `unfit`: why nothing can be decided by it; none where it is fit. `stamp` tells whether the directory
    changed. Names are hostile.
    """

    night: NightFacts
    facts: RunFacts
    status: str
    run: MeasuredRun | None
    unfit: tuple[str, ...]
    path: str
    root: str
    stamp: str
    size_bytes: int

    @property
    def identity(self) -> str:
        """The same for every copy of a run, wherever it lies, and for no other run."""
        return run_identity(self.facts)

    @property
    def backend(self) -> str:
        """Its backend's name, empty where it has none."""
        return self.facts.backend or ""


def run_identity(facts: RunFacts) -> str:
    """Return what tells a run from all others: what never changes in its run.json."""
    part = facts.experiment
    known = [
        [part.name, part.run] if part else None,
        [facts.scenario, facts.backend, facts.repeat, facts.seed],
        [instant(facts.started_at) if facts.started_at else None, facts.host.hostname],
    ]
    return hashlib.sha256(json.dumps(known, ensure_ascii=True).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class HourDigest:
    """One hour: how many requests, failures and refusals (a status from 400 on), and all times, packed."""

    hour: int
    requests: int
    failed: int
    refused: int
    times: bytes


@dataclass(frozen=True)
class LogDigest:
    """An imported access log, as it is kept. `unfit`: why nothing can be decided by it. Texts are hostile."""

    experiment: str
    facts: RunFacts
    unfit: tuple[str, ...]
    path: str
    root: str
    stamp: str
    size_bytes: int
    first_us: int = 0
    last_us: int = 0
    hours: list[HourDigest] = field(default_factory=list)

    @property
    def identity(self) -> str:
        """The same for every copy of an import, and for no import of other requests."""
        return log_identity(self.facts)


def log_identity(facts: RunFacts) -> str:
    """Return what tells an imported log from all others: imports may begin with the same request."""
    load = facts.load.digest if facts.load else ""
    return hashlib.sha256(json.dumps([run_identity(facts), load]).encode()).hexdigest()[:32]


def instant(at: datetime) -> str:
    """Return an instant as the history writes it: UTC, so that texts sort as instants do."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def group_name(group: Group) -> str:
    """Return what a scenario on a backend is called (hostile)."""
    return " on ".join(filter(None, group))


@dataclass(frozen=True, order=True)
class SeriesKey:
    """The key of a series (hostile)."""

    experiment: str
    scenario: str
    backend: str
    phase: str
    metric: str

    @property
    def group(self) -> tuple[str, str]:
        """The scenario and backend: one regression moves all of their phases and figures at once."""
        return self.scenario, self.backend

    @property
    def name(self) -> str:
        """Its name (hostile)."""
        metric = re.sub(f"^({ROUTE}|{MEASURE})", "p50 of ", self.metric)
        return f"{self.scenario}{' on ' + self.backend if self.backend else ''}, {self.phase}: {metric}"


@dataclass(frozen=True)
class NightValue:
    """One night of a series: every fit repeat, or why there is none (hostile).

    `prompt` has the repeats without the time by which the generator was late: the other end of what they may
    be. It is empty where the generator was in time.
    """

    night: NightRow
    repeats: tuple[float, ...]
    why: str = ""
    prompt: tuple[float, ...] = ()

    @property
    def in_time(self) -> "NightValue":
        """The night as if the generator had sent every request when it was due."""
        return replace(self, repeats=self.prompt, prompt=()) if self.prompt else self

    def value(self, shares: bool) -> float | None:
        """Return the geometric mean of the repeats, of shares the mean; None of none."""
        if not self.repeats:
            return None
        return fmean(self.repeats) if shares else math.exp(fmean(map(math.log, self.repeats)))


@dataclass(frozen=True)
class NightSeries:
    """A series over all nights of its experiment since it began; `unit` is empty for a share.

    `daily`: its nights are days of access logs, of which each percentile is a series of its own. Else there
    is one series of times a phase, which may have been of another percentile before.
    """

    key: SeriesKey
    unit: str
    nights: list[NightValue]
    daily: bool = False

    @property
    def shares(self) -> bool:
        """True where its values are shares, which may be 0 and have no ratio."""
        return self.key.metric == ERROR_SHARE

    @property
    def is_route(self) -> bool:
        """True where it is of one kind of requests."""
        return self.key.metric.startswith(ROUTE)

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

    @property
    def is_late(self) -> bool:
        """True where the generator was late in some night."""
        return any(night.prompt for night in self.judged)

    def from_end(self, at: int, *, kind: bool) -> "NightSeries":
        """Return it at one end of all lateness, the other before the `at`-th value and from there on.

        The end that is `kind` to the last nights takes all lateness off them, and none off those before.
        """
        first = self.judged[at].night.id if at < len(self.judged) else None
        since = next((n for n, each in enumerate(self.nights) if each.night.id == first), len(self.nights))
        ends = [each.in_time if (n >= since) == kind else each for n, each in enumerate(self.nights)]
        return replace(self, nights=ends)

    @property
    def weekdays(self) -> list[int]:
        """The days of the week of those nights (0: Monday): an evening counts as its night's next day."""
        began = (datetime.fromisoformat(night.night.facts.started_at) for night in self.judged)
        return [(each + timedelta(hours=12)).weekday() for each in began]

    def scale(self, value: float) -> float:
        """Return one value as it is looked at."""
        return math.log(value + MORE_ERRORS) if self.shares else math.log(value)

    def to_display(self, scaled: float) -> float:
        """Return the value that is looked at as `scaled`."""
        return max(math.exp(scaled) - MORE_ERRORS, 0.0) if self.shares else math.exp(scaled)


def build_series(past: ExperimentHistory) -> list[NightSeries]:
    """Return all series that are looked at: the tail, the share of errors, and each kind of requests."""
    return [*_build_tails(past), *_build_error_shares(past), *_build_routes(past)]


def _build_tails(past: ExperimentHistory) -> Iterator[NightSeries]:
    by_run = {run.id: run for run in past.runs}
    figures: dict[tuple[str, str, str], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    prompt: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    units: dict[str, str] = {}
    for row in past.figures:
        run = by_run[row.run]
        if run.is_fit and row.value > 0 and row.phase in ("during", "whole"):
            figures[run.scenario, run.backend, row.phase][row.metric][row.run] = row.value
            units[row.metric] = row.unit
            if row.prompt and row.prompt < row.value:
                prompt[row.phase, row.metric][row.run] = row.prompt
    for (scenario, backend, phase), metrics in sorted(figures.items()):
        fit = [run for run in past.runs if run.group == (scenario, backend) and run.is_fit]
        there = {run.night for run in fit}
        recent = {night.id for night in past.nights[-_SETTLED:]} & there or there
        settled = [run for run in fit if run.night in recent]
        chosen = [each for each in PERCENTILES if each in _common_metrics(metrics, settled, phase)]
        if not past.daily:
            chosen = [_choose_metric(metrics, settled, units, phase)]
        for metric in chosen:
            key = SeriesKey(past.experiment, scenario, backend, phase, metric)
            nights = _night_values(past, key, metrics[metric], prompt[phase, metric])
            yield NightSeries(key, units[metric], nights, past.daily)


def _build_error_shares(past: ExperimentHistory) -> Iterator[NightSeries]:
    by_run = {run.id: run for run in past.runs}
    shares: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for run_id, share in past.error_shares:
        run = by_run[run_id]
        if run.is_fit:
            shares[run.scenario, run.backend][run_id] = share
    for (scenario, backend), values in sorted(shares.items()):
        key = SeriesKey(past.experiment, scenario, backend, "whole", ERROR_SHARE)
        yield NightSeries(key, "", _night_values(past, key, values, {}), past.daily)


def _build_routes(past: ExperimentHistory) -> Iterator[NightSeries]:
    """Yield the median of each kind of requests over the whole run, of the runs with enough of them."""
    by_run = {run.id: run for run in past.runs}
    medians: dict[tuple[str, str, str], list[FigureRow]] = defaultdict(list)
    for row in past.figures:
        run, name = by_run[row.run], row.metric.removeprefix(MEASURE)
        if run.is_fit and row.phase == "whole" and row.value > 0 and name in run.routes:
            medians[run.scenario, run.backend, name].append(row)
    for (scenario, backend, name), rows in sorted(medians.items()):
        values = {row.run: row.value for row in rows}
        prompt = {row.run: row.prompt for row in rows if row.prompt and row.prompt < row.value}
        key = SeriesKey(past.experiment, scenario, backend, "whole", MEASURE + name)
        nights = _night_values(past, key, values, prompt)
        yield NightSeries(replace(key, metric=ROUTE + name), "ms", nights)


def _choose_metric(
    metrics: dict[str, dict[int, float]], runs: Sequence[RunRow], units: dict[str, str], phase: str
) -> str:
    """Return the highest percentile that most runs have; else what takes longest; else the median."""
    common = _common_metrics(metrics, runs, phase)
    for tail in _TAILS:
        if tail in common:
            return tail
    measures = [name for name in sorted(common) if name.startswith(MEASURE) and units[name] == "ms"]
    if measures:
        return max(measures, key=lambda name: fmean(map(math.log, metrics[name].values())))
    return common[0]


def _common_metrics(metrics: dict[str, dict[int, float]], runs: Sequence[RunRow], phase: str) -> list[str]:
    """Return the figures that most runs have; all where there is none of them.

    A run has one that is censored too: a night of failures does not make another figure the one to watch.
    """
    ids = {run.id for run in runs}
    censored = {name: {run.id for run in runs if (phase, name) in run.censored} for name in metrics}
    return [
        name for name, values in metrics.items() if 2 * len(ids & (values.keys() | censored[name])) > len(ids)
    ] or list(metrics)


def _night_values(
    past: ExperimentHistory, key: SeriesKey, values: dict[int, float], prompt: dict[int, float]
) -> list[NightValue]:
    mine: dict[int, list[RunRow]] = defaultdict(list)
    for run in past.runs:
        if (run.scenario, run.backend) == (key.scenario, key.backend):
            mine[run.night].append(run)
    found: list[NightValue] = []
    for night in past.nights:
        runs = [run.id for run in mine[night.id] if run.id in values]
        if _select_censored(mine[night.id], key):
            runs = []  # the others alone would make a night faster for having failed
        repeats = tuple(values[run] for run in runs)
        late = tuple(prompt.get(run, values[run]) for run in runs if not prompt.keys().isdisjoint(runs))
        if repeats or found:
            why = "" if repeats else _explain_gap(mine[night.id], key)
            found.append(NightValue(night, repeats, why, late))
    return found


def _select_censored(runs: Sequence[RunRow], key: SeriesKey) -> list[RunRow]:
    return [run for run in runs if not run.unfit and (key.phase, key.metric) in run.censored]


def _explain_gap(runs: Sequence[RunRow], key: SeriesKey) -> str:
    if not runs:
        return "did not run"
    if failing := _select_censored(runs, key):
        names = ", ".join(run.name for run in failing[:3])
        return f"{names} failed so often that the {key.metric} is a failure's"
    return explain_unfit(runs) or f"{counted(len(runs), 'run')} without a {key.metric}"


def explain_unfit(runs: Sequence[RunRow]) -> str:
    """Return why none of `runs` is fit (hostile); empty where that is not why there is no figure."""
    unfit = describe_unfit([(run.name, run.unfit[0]) for run in runs if run.unfit], len(runs))
    return "; ".join([*unfit, *dict.fromkeys(run.refused[0] for run in runs if run.refused)][:_MOST_NAMED])


def describe_unfit(found: Sequence[tuple[str, str]], of: int) -> list[str]:
    """Return why runs are unfit, by name, each reason once; there are `of` runs (hostile)."""
    findings = [Finding(Severity.NOTE, f"{name} {why}", (name,)) for name, why in found]
    names = [name for name, _ in found]
    group = RunGroup("", [*names, *([""] * (of - len(set(names))))])
    return [each.text for each in merge_alike(findings, [group])]
