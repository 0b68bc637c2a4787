"""Where the backends of a scenario stand: a figure a run, the best first, and how far off the others lie."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from plimsoll.analysis.evidence.order import RunPlace, order_of
from plimsoll.analysis.report.backends import BackendRuns
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.report.own_figures import main_measure
from plimsoll.analysis.report.phase_figures import ScenarioFigures, common_percentile
from plimsoll.analysis.report.values import MeasuredValues, Values
from plimsoll.analysis.statistics.distance import Distance, distance
from plimsoll.analysis.statistics.failedmeasures import MS_OF
from plimsoll.analysis.statistics.phases import WHOLE
from plimsoll.analysis.statistics.sample import PERCENTILES

_P50 = PERCENTILES["p50"]
_OfRun = dict[int, tuple[float, bool]]  # by the run's number: its figure, and whether it is but a lower bound


@dataclass(frozen=True)
class Subject:
    """What the backends are held against one another by, in one phase; `name` is hostile.

    A time in ms where `unit` is that, else a rate in `unit` (hostile), of which more is better.
    """

    name: str
    phase: str
    unit: str
    is_percentile: bool

    @property
    def is_time(self) -> bool:
        """Whether less is better."""
        return self.unit == "ms"


@dataclass(frozen=True)
class Standing:
    """One backend: its runs' figures by number, above 0; `unknown` runs have none that is known.

    `bounds` of the figures are lower bounds, as more than that failed.
    """

    backend: BackendRuns
    values: dict[int, float]
    bounds: int
    unknown: int

    @property
    def failed(self) -> int:
        """Runs whose figure is a failure's."""
        return self.bounds + self.unknown

    @property
    def level(self) -> float | None:
        """The geometric mean of its runs' figures; None without one."""
        return math.exp(fmean(map(math.log, self.values.values()))) if self.values else None


@dataclass(frozen=True)
class Lead:
    """The best backend's lead over another: how many times as long that takes, or at least.

    `interleaved`: their runs alternated in time, so that what drifts meanwhile favours neither.
    """

    other: Standing
    distance: Distance
    is_bound: bool
    interleaved: bool

    @property
    def outcome(self) -> str:
        """`clear`, `not clear`, `too few runs` to be either, or `not alternating`, and so not to be told."""
        outcome = self.distance.outcome
        return "not alternating" if outcome == "clear" and not self.interleaved else outcome


@dataclass(frozen=True)
class Standings:
    """The backends of a scenario, the best first; `leads` are over each of those that have a figure."""

    figures: ScenarioFigures
    subject: Subject
    standings: list[Standing]
    leads: list[Lead]


def stand(figures: ScenarioFigures) -> Standings | None:
    """Return where the backends stand.

    None of one backend, of more than a figure shows, where fewer than two have a figure, and in an experiment
    with factors, of which the report tells what each did.
    """
    if len(figures.backends) < 2 or figures.scenario.crowded:
        return None
    if any(run.directory.facts.factors for run in figures.scenario.runs):
        return None
    found = _own_measure(figures) or _percentile(figures)
    if found is None:
        return None
    subject, of_run = found
    standings = [_standing(each.backend, of_run) for each in figures.backends]
    if sum(bool(each.values) for each in standings) < 2:
        return None
    sign = 1 if subject.is_time else -1
    # A failure is no figure: whoever has one comes after those who have none.
    standings.sort(key=lambda one: (one.failed > 0, sign * (one.level or math.inf)))
    best, others = standings[0], [each for each in standings[1:] if each.values]
    leads = [] if best.failed else [_lead(best, each, sign, len(standings)) for each in others]
    return Standings(figures, subject, standings, leads)


def _standing(backend: BackendRuns, of_run: _OfRun) -> Standing:
    found = {run.number: of_run[run.number] for run in backend.runs if run.number in of_run}
    values = {number: value for number, (value, _) in found.items() if math.isfinite(value)}
    bounds = sum(is_bound for number, (_, is_bound) in found.items() if number in values)
    return Standing(backend, values, bounds, len(found) - len(values))


def _lead(best: Standing, other: Standing, sign: int, sides: int) -> Lead:
    runs = [[run for run in one.backend.runs if run.number in one.values] for one in (best, other)]
    logs = [
        [sign * math.log(one.values[run.number]) for run in each]
        for one, each in zip((best, other), runs, strict=True)
    ]
    places = [[RunPlace.of(run.name, run.directory.facts) for run in each] for each in runs]
    order = order_of(places[0], places[1])
    if order.pairs is not None:
        logs = [[side[pair[at]] for pair in order.pairs] for at, side in enumerate(logs)]
    found = distance(logs[0], logs[1], order.pairs is not None, sides)
    if other.failed:
        found = replace(found, upper=None)
    return Lead(other, found, is_bound=other.failed > 0, interleaved=order.interleaved)


def _percentile(figures: ScenarioFigures) -> tuple[Subject, _OfRun] | None:
    phase = "during" if figures.saturated else WHOLE[0]
    times = {
        repeat.run.number: repeat.phases[phase].response_ms
        for each in figures.backends
        for repeat in each.repeats
        if phase in repeat.phases and repeat.phases[phase].requests
    }
    name = common_percentile(list(times.values()))
    if name is None:
        return None
    found = {}
    for number, each in times.items():
        least = each.least_ms(name)
        if least != 0:
            found[number] = (math.inf if least is None else least, name in each.censored)
    return Subject(name, phase, "ms", is_percentile=True), found


def _own_measure(figures: ScenarioFigures) -> tuple[Subject, _OfRun] | None:
    """Return the median of what a scripted scenario is about, of each run; None of other scenarios."""
    runs = figures.scenario.runs
    name = main_measure(runs)
    if name is None:
        return None
    for phase in (*(("during",) if figures.saturated else ()), WHOLE[0]):
        all_of = [run.phase_values.get(phase) if phase == "during" else run.values for run in runs]
        values = [_values_of(each, name) for each in all_of]
        if None not in values:
            break
    there = [each for each in values if each is not None]
    units = {"ms" if each.unit in MS_OF else each.unit for each in there}
    if len(there) < len(runs) or len(units) != 1:
        return None
    return Subject(name, phase, units.pop(), is_percentile=False), _medians(runs, there)


def _values_of(found: MeasuredValues | None, name: str) -> Values | None:
    values = found.values.get(name) if found else None
    return values if values and (values.values or values.failed) else None


def _medians(runs: Sequence[MeasuredRun], values: Sequence[Values]) -> _OfRun:
    found = {}
    for run, each in zip(runs, values, strict=True):
        value, least = each.at(_P50)
        known = least if value is None else value
        if known is None or known > 0:
            scale = MS_OF.get(each.unit, 1.0)
            found[run.number] = (math.inf if known is None else known * scale, value is None)
    return found
