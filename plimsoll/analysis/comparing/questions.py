"""From measured runs and gates to questions: the values of every gate, or why they cannot be compared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.analysis.comparing.decision import ALONE, Question
from plimsoll.analysis.comparing.gates import LIMITS, Gate, Gates
from plimsoll.analysis.comparing.guard import failing, shared, stalled
from plimsoll.analysis.comparing.levels import PhaseLevels
from plimsoll.analysis.comparing.metrics.metric import CensoredError, Limit, NoFigureError, Reading
from plimsoll.analysis.comparing.runs import ComparedRun
from plimsoll.analysis.comparing.sides import UnreadableRun
from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.evidence.order import Order, RunPlace, order_of
from plimsoll.common.units import counted
from plimsoll.rundir.facts import RunFacts

_MOST_NAMED = 3
_LEAST_MS = 0.001  # what a record can tell: a time of 0 counts as this against a limit in ms


@dataclass(frozen=True)
class Side:
    """One side of a comparison: its name (hostile), its runs, those that cannot be read."""

    name: str
    runs: list[ComparedRun]
    unreadable: list[UnreadableRun]
    experiment: str | None = None

    def of(self, scenario: str) -> list[ComparedRun]:
        """Return the runs of a scenario, repeat by repeat where they say which."""
        return [run for run in self.runs if run.scenario == scenario]

    @property
    def scenarios(self) -> list[str]:
        """The scenarios that ran (hostile), each once, also of runs that cannot be read."""
        return list(dict.fromkeys(facts.scenario for facts in self._facts))

    @property
    def controls(self) -> set[str]:
        """Those of them that are the control experiment."""
        return {facts.scenario for facts in self._facts if facts.is_control}

    @property
    def _facts(self) -> list[RunFacts]:
        readable = [run.directory.facts for run in self.runs]
        return readable + [each.facts for each in self.unreadable if each.facts]


@dataclass(frozen=True)
class GateQuestion:
    """One gate's limit as a question; the unit (hostile) of its figures, empty for a share.

    `stops` are the findings after which it cannot be decided; `findings` are what was found on the way.
    """

    gate: Gate
    question: Question
    unit: str
    stops: tuple[Finding, ...] = ()
    findings: tuple[Finding, ...] = ()


def orders_of(baseline: Side, candidate: Side) -> dict[str, Order]:
    """Return how the runs of each scenario that both sides have lie in time."""
    return {
        scenario: order_of(
            [RunPlace.of(run.name, run.directory.facts) for run in baseline.of(scenario)],
            [RunPlace.of(run.name, run.directory.facts) for run in candidate.of(scenario)],
        )
        for scenario in baseline.scenarios
        if baseline.of(scenario) and candidate.of(scenario)
    }


def questions_of(
    baseline: Side, candidate: Side, gates: Gates, orders: dict[str, Order], stops: dict[str, list[Finding]]
) -> list[GateQuestion]:
    """Return a question for every limit of every gate, in their order.

    `stops` has the disqualifying findings of each scenario.
    """
    return [
        _asked(baseline, candidate, gate, limit, stops.get(gate.scenario, []), orders.get(gate.scenario))
        for gate in gates.gates
        for limit in LIMITS
        if getattr(gate, limit) is not None
    ]


def value_of(
    run: ComparedRun, gate: Gate, cut: PhaseLevels | None = None, limit: Limit | None = None
) -> float:
    """Return a gate's figure of one run, or of its phase that was cut, for one of its limits.

    A time of 0, such as an outage that there was not, keeps any limit in ms, but has no ratio. Raises
    NoFigureError.
    """
    phase = cut or run.levels.phases.get(gate.phase)
    if phase is None:
        raise NoFigureError(f"{run.name} has no phase `{gate.phase}`: nothing kept its disks busy")
    metric = gate.kind
    value = metric.value(Reading(run, phase, gate.metric, _when(gate)))
    unit = metric.unit(phase, gate.metric)
    if gate.at_most_ms is not None and unit != "ms":
        raise NoFigureError(
            f"{run.name}: {metric.subject(gate.metric)} is in {unit}, not in ms, so at_most_ms is no limit "
            "of it"
        )
    alone = limit == "at_most_ms" or (limit is None and gate.at_most_ratio is None)
    if value == 0 and gate.at_most_ms is not None and alone:
        return _LEAST_MS
    if not metric.is_share and not value > 0:
        raise NoFigureError(f"{run.name}: {gate.metric} is {value:g}, which has no ratio to anything")
    return value


def is_censored(run: ComparedRun, gate: Gate) -> bool:
    """Return whether a gate's figure of a run is a failure's: no more than its lower bound is known."""
    try:
        value_of(run, gate)
    except CensoredError:
        return True
    except NoFigureError:
        pass
    return False


def _when(gate: Gate) -> str:
    return "in the whole run" if gate.phase == "whole" else f"{gate.phase} the saturator"


def _asked(
    baseline: Side, candidate: Side, gate: Gate, limit: Limit, found_bad: list[Finding], order: Order | None
) -> GateQuestion:
    values: list[list[float]] = [[], []]
    missing: list[str] = []
    cut, notes = _alike([*baseline.of(gate.scenario), *candidate.of(gate.scenario)], gate, limit)
    for side, found in zip((baseline, candidate), values, strict=True):
        for run in side.of(gate.scenario):
            try:
                found.append(value_of(run, gate, cut.get(id(run)), limit))
            except NoFigureError as error:
                missing.append(str(error))
    stops = tuple(each for each in found_bad if each.bars(gate.metric))
    problems = [*sentences([each.sentence for each in stops]), *sentences(missing)]
    first, second = values
    pairs = order.pairs if order and not problems else None
    if pairs is not None:
        first, second = [first[at] for at, _ in pairs], [second[at] for _, at in pairs]
    unit = _unit(gate, [*baseline.of(gate.scenario), *candidate.of(gate.scenario)])
    runs = baseline.of(gate.scenario), candidate.of(gate.scenario)
    doubts = list(stalled(runs, gate, (values[0], values[1]), unit))
    failures, bars = failing((baseline.name, candidate.name), runs, gate)
    found_out = [*doubts, *([failures] if failures else [])]
    doubts += [failures] if failures and bars else []
    contention, excuses = shared((baseline.name, candidate.name), runs, gate, unit, alone=limit in ALONE)
    if contention:
        found_out.append(contention)
        doubts += [] if excuses else [contention]
    question = Question(
        limit=limit,
        at_most=getattr(gate, limit),
        baseline=first,
        candidate=second,
        in_pairs=pairs is not None,
        blocked=problems,
        notes=notes,
        doubts=[each.sentence for each in doubts],
        excuses=[contention.sentence] if contention and excuses else [],
    )
    return GateQuestion(gate, question, unit, stops, tuple(found_out))


def _alike(
    runs: Sequence[ComparedRun], gate: Gate, limit: Limit
) -> tuple[dict[int, PhaseLevels], tuple[str, ...]]:
    """Return the phases of all runs, cut alike where they are compared by a ratio, and what to say of it."""
    phases = [(run, phase) for run in runs if (phase := run.levels.phases.get(gate.phase))]
    if limit != "at_most_ratio" or not phases:
        return {}, ()
    whole = [phase for _, phase in phases]
    cut = gate.kind.alike(whole, gate.metric)
    counts = [phase.requests for phase in whole]
    note = (
        f"Compared at {min(each.requests for each in cut):,} requests of each run, of the "
        f"{min(counts):,} to {max(counts):,} that they have."
    )
    fewer = [each.requests for each in cut] != counts
    return {id(run): each for (run, _), each in zip(phases, cut, strict=True)}, (note,) if fewer else ()


def _unit(gate: Gate, runs: Sequence[ComparedRun]) -> str:
    phases = [phase for run in runs if (phase := run.levels.phases.get(gate.phase))]
    units = (gate.kind.unit(phase, gate.metric) for phase in phases)
    usual = "" if gate.kind.is_share else "ms"
    return next((unit for unit in units if unit is not None), usual)


def sentences(problems: Sequence[str]) -> Iterator[str]:
    """Yield the first of `problems`, and how many more there are."""
    for problem in problems[:_MOST_NAMED]:
        yield f"{problem.rstrip('.')}."
    if len(problems) > _MOST_NAMED:
        yield f"And {counted(len(problems) - _MOST_NAMED, 'more problem')} of this kind."
