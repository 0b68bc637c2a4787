"""The plan of a comparison: where it was stated, which runs it takes, what it costs, and what it has spent.

A plan spends its error once. So the plan (or none) of the first look at runs stays theirs; and after its end
only further runs can be decided on again.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from plimsoll.analysis.compare.looks import DecisionLook, Plan, run_identity
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.sides import OpenedSide, Order, Side
from plimsoll.analysis.statistics.sequential import first_deciding_block, spent
from plimsoll.common.errors import SettingsError
from plimsoll.common.units import counted, significant
from plimsoll.rundir.facts import RunFacts

LEAST_RUNS = 4  # a side, as a verdict takes
_LATE = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class StatedPlan:
    """The plan that two sides are judged by, None where there is none; what is to be said of that.

    `beyond`: the runs a side that the plan does not take in, since they came after its end.
    """

    plan: Plan | None = None
    findings: tuple[Finding, ...] = ()
    beyond: int = 0


NO_PLAN = StatedPlan()


@dataclass(frozen=True)
class PlanProgress:
    """How far a plan is: `done` runs a side, by which `error` it may err in all."""

    plan: Plan
    done: int
    error: float
    beyond: int = 0

    @property
    def is_due(self) -> bool:
        """Return whether the plan has a look at so many runs."""
        return self.plan.looks == "blocks" or self.done >= self.plan.runs

    @property
    def spent(self) -> float:
        """How much of the error the looks so far may have spent."""
        if self.plan.looks == "end":
            return self.error if self.is_due else 0.0
        return spent(self.error, self.done / self.plan.runs)

    @property
    def decides_from(self) -> int | None:
        """From how many runs a side on a look can decide; None if no look of it can."""
        if self.plan.looks == "end":
            return self.plan.runs
        block = first_deciding_block(self.plan.runs // 2, self.error)
        return None if block is None else 2 * block

    @property
    def cost(self) -> str:
        """What its looks cost."""
        if self.plan.looks == "end":
            return "It has the power of a fixed test, and decides nothing earlier."
        since = "" if self.decides_from is None else f", from {self.decides_from} runs a side on"
        return f"It may end early{since}, and takes more runs at the end than one look would."

    @property
    def sentence(self) -> str:
        """The plan, what it costs, and how far it is."""
        part, whole = (significant(100 * each, 2) for each in (self.spent, self.error))
        beyond = (
            f" {counted(self.beyond, 'run')} a side came after its end and do not count."
            if self.beyond
            else ""
        )
        return (
            f"The plan as it was first stated: {self.plan}. {self.cost} {self.done} of {self.plan.runs} runs "
            f"a side are there, and {part} of the {whole} % by which it may err are spent.{beyond}"
        )

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        return {
            "planned": self.plan.runs,
            "looks": self.plan.looks,
            "done": self.done,
            "spent": self.spent,
            "decides_from": self.decides_from,
            "cost": self.cost,
        }


def find_stated(opened: tuple[OpenedSide, OpenedSide], asked: Plan | None) -> Plan | None:
    """Return the plan that is `asked`, else that of the experiment. Raises SettingsError.

    Runs of older experiments have none.
    """
    theirs = _plan_of_experiment(opened)
    if asked is None or asked == theirs:
        return theirs
    if theirs is not None:
        raise SettingsError(
            f"--planned: the experiment states its plan itself, {theirs}; leave --planned out, or change "
            "`repeats` and `looks` in lab.yml before you look"
        )
    if asked.runs < LEAST_RUNS:
        raise SettingsError(f"--planned {asked.runs}: a verdict takes {LEAST_RUNS} runs a side or more")
    if asked.looks == "end":
        return asked
    if asked.runs % 2:
        raise SettingsError(
            f"--planned {asked.runs}: a block has two runs a side, so --looks blocks takes an even number: "
            f"{asked.runs + 1}"
        )
    for run in (run for side in opened for run in side.runs):
        if run.facts.experiment is None or run.facts.experiment.block is None:
            raise SettingsError(
                f"--looks blocks: {run.path.name} did not come in a block whose order was drawn (`order: "
                "blocks` in lab.yml); take --looks end"
            )
    return asked


def keep_to_plan(
    stated: Plan | None, known: Sequence[DecisionLook], sides: tuple[Side, Side]
) -> tuple[StatedPlan, tuple[Side, Side]]:
    """Return the plan in force, and the runs of both sides that it takes in.

    `known` are the looks before this one, in the order of time.
    """
    findings: list[Finding] = []
    while True:
        before = [look for look in known if _shares_runs(look, sides)]
        if not before:
            plan = stated
            break
        plan = before[0].plan
        if stated is None or stated == plan:
            break
        ended = next((each for each in before if plan and each.plan == plan and each.done >= plan.runs), None)
        if plan is None or ended is None or stated.runs <= plan.runs:
            findings.append(_other_plan(stated, before[0]))
            break
        newer = _without(sides, ended)
        waiting = len(sides[1].runs) - len(newer[1].runs)
        text = (
            f"The plan of {plan} has ended and spent its error, so it cannot be extended to {stated.runs}: "
            f"{counted(waiting, 'run')} of {sides[1].name}, and those of {sides[0].name} that they were held "
            "against, wait out, and only runs made since count."
        )
        findings.append(Finding(FindingKind.PLAN_EXTENDED, text))
        if not all(side.runs for side in newer):
            break
        sides, stated = newer, Plan(stated.runs - plan.runs, stated.looks)
    if plan is None:
        return StatedPlan(None, tuple(findings)), sides
    first, second = (_first_runs(side, plan.runs) for side in sides)
    most = max(len(side.of(scenario)) for side in sides for scenario in side.scenarios)
    return StatedPlan(plan, tuple(findings), max(most - plan.runs, 0)), (first, second)


def count_done(plan: Plan, sides: tuple[Side, Side], orders: dict[str, Order], judged: Sequence[str]) -> int:
    """Return how many runs a side are there of each of the scenarios that are `judged`."""
    if plan.looks == "end":
        return min((len(side.of(scenario)) for side in sides for scenario in judged), default=0)
    blocks = (orders[scenario].blocks if scenario in orders else None for scenario in judged)
    return min((len(each[0]) if each else 0 for each in blocks), default=0)


def _plan_of_experiment(opened: tuple[OpenedSide, OpenedSide]) -> Plan | None:
    """Return the plan of the experiment that all runs are of; None where they are not, or it states none."""
    experiments = [run.facts.experiment for side in opened for run in side.runs]
    first = experiments[0]
    if first is None or first.looks is None:
        return None
    if any(each is None or (each.name, each.looks) != (first.name, first.looks) for each in experiments):
        return None
    beside = [facts for side in opened for facts in side.beside.values()]
    runs = _runs_of_each_backend([each for each in beside if each.experiment], first.name)
    if not runs:
        return None
    return Plan(runs if first.looks == "end" else runs // 2 * 2, first.looks)


def _runs_of_each_backend(facts: Sequence[RunFacts], experiment: str) -> int | None:
    """Return how many runs the experiment has of each backend and scenario.

    What runs together has one number. Where runs of some backends lie elsewhere, the numbers of the runs of a
    block show how many there are.
    """
    runs = {
        (part.run, part.block, each.backend): part.of
        for each in facts
        if (part := each.experiment) and part.name == experiment and part.run and part.of and part.block
    }
    if not runs:
        return None
    of_backend = Counter((block, backend) for _, block, backend in runs)
    scenarios = math.ceil(max(of_backend.values()) / 2)
    of_a_block = max(number / block for number, block, _ in runs)
    backends = max(len({backend for _, _, backend in runs}), math.ceil(of_a_block / (2 * scenarios)))
    return max(runs.values()) // (backends * scenarios)


def _other_plan(stated: Plan, first: DecisionLook) -> Finding:
    when = f" at {first.at:%Y-%m-%d %H:%M:%S} UTC" if first.at else ""
    by = f"by the plan of {first.plan}" if first.plan else "without a plan"
    counts = "that plan counts" if first.plan else "they are judged as runs that grow in number"
    text = f"These runs were decided on{when} {by}, so the plan of {stated} is not taken: {counts}."
    return Finding(FindingKind.OTHER_PLAN, text)


def _shares_runs(look: DecisionLook, sides: tuple[Side, Side]) -> bool:
    baseline, candidate = ({run_identity(run) for run in side.runs} for side in sides)
    return bool(look.baseline & baseline) and bool(look.candidate & candidate)


def _without(sides: tuple[Side, Side], look: DecisionLook) -> tuple[Side, Side]:
    """Return both sides without the runs of a look."""
    spent_on = look.baseline | look.candidate
    baseline, candidate = (
        replace(side, runs=[run for run in side.runs if run_identity(run) not in spent_on]) for side in sides
    )
    return baseline, candidate


def _first_runs(side: Side, runs: int) -> Side:
    """Return a side with the first so many runs of each scenario."""
    taken = {
        id(run)
        for scenario in side.scenarios
        for run in sorted(side.of(scenario), key=lambda each: each.directory.facts.started_at or _LATE)[:runs]
    }
    return replace(side, runs=[run for run in side.runs if id(run) in taken])
