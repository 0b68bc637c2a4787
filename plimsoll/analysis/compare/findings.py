"""All findings on a comparison: those of the gatekeeper, and what two sides and their gates make of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from plimsoll.analysis.compare.decision import level_of
from plimsoll.analysis.compare.gates import Gates
from plimsoll.analysis.compare.questions import Side, is_censored
from plimsoll.analysis.compare.sides import OpenedSide
from plimsoll.analysis.evidence.checks import ANSWERS, findings_of_sides
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.order import Order, identity_findings
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.common.errors import gravest_first
from plimsoll.common.units import counted, milliseconds, percent

_CONTROL_DIFFERS = 1.05
_LOADS_DIFFER = 1.05


def comparison_findings(
    opened: tuple[OpenedSide, OpenedSide], sides: tuple[Side, Side], gates: Gates, orders: dict[str, Order]
) -> list[Finding]:
    """Return all findings, each once, the gravest first."""
    judged = list(dict.fromkeys(gate.scenario for gate in gates.gates))
    found: list[Finding] = []
    for scenario in judged:
        found += _of_scenario(sides, gates, orders.get(scenario), scenario)
    found += identity_findings([run for side in sides for run in side.runs])
    found += _control(*sides)
    found += _without_gate(sides, judged)
    found += _generators(sides)
    found += _unfinished(opened)
    found += _emulated(sides)
    return gravest_first(dict.fromkeys(found))


def _of_scenario(
    sides: tuple[Side, Side], gates: Gates, order: Order | None, scenario: str
) -> Iterator[Finding]:
    baseline, candidate = (side.of(scenario) for side in sides)
    for each in dict.fromkeys([*sides[0].unreadable, *sides[1].unreadable]):
        if each.scenario in (None, scenario):
            text = f"A run cannot be read, and leaving it out could favour one side: {each.why.rstrip('.')}."
            yield Finding(FindingKind.UNREADABLE, text, (), scenario)
    names = (sides[0].name, sides[1].name)
    gated = {gate.metric for gate in gates.gates if gate.scenario == scenario}
    for finding in findings_of_sides(baseline, candidate, names):
        idle = (finding.kind in ANSWERS and not gates.answers) or gated <= finding.spares
        yield replace(finding, demoted=True) if idle else finding
    yield from _censored(sides, gates, scenario)
    yield from _counts(sides, gates, scenario)
    yield from _requests(scenario, [*baseline, *candidate])
    if order is not None:
        for kind, text in order.findings:
            yield Finding(kind, text, (), scenario)
        if gates.interleaved and not order.interleaved:
            text = "The sides' runs do not alternate in time, which the gates ask for."
            yield Finding(FindingKind.NOT_INTERLEAVED, text, (), scenario)


def _censored(sides: tuple[Side, Side], gates: Gates, scenario: str) -> Iterator[Finding]:
    """Yield which gates have runs in which so many requests failed that the figure is a failure's."""
    for gate in (gate for gate in gates.gates if gate.scenario == scenario):
        failing = [[run.name for run in side.of(scenario) if is_censored(run, gate)] for side in sides]
        if any(failing):
            baseline, candidate = failing
            where = sides[1 if candidate else 0].name
            text = (
                f"{gate.name}: so many requests failed on {where} that the figure is a failure's: it is at "
                "least the time-out, and has no ratio."
            )
            runs, worse = tuple(candidate or baseline), bool(candidate) and not baseline
            yield Finding(FindingKind.CENSORED, text, runs, scenario, worse=worse)


def _counts(sides: tuple[Side, Side], gates: Gates, scenario: str) -> Iterator[Finding]:
    counts = [len(side.of(scenario)) for side in sides]
    for side, runs in zip(sides, counts, strict=True):
        if not runs:
            has = ", ".join(side.scenarios) or "nothing"
            text = f"{scenario} did not run on {side.name} (it ran {has})."
            yield Finding(FindingKind.NOT_RUN, text, (), scenario)
        elif runs < gates.least_runs:
            has, least = counted(runs, "run"), gates.least_runs
            text = f"{side.name} has {has} of {scenario}, and a verdict takes {least}: {least - runs} more."
            yield Finding(FindingKind.FEW_RUNS, text, (), scenario)
    baseline, candidate = sides
    if counts[0] != counts[1] and baseline.experiment and baseline.experiment == candidate.experiment:
        text = (
            f"The experiment has {counts[0]} runs of {scenario} on {baseline.name} and {counts[1]} on "
            f"{candidate.name}; what is missing may be what went wrong."
        )
        yield Finding(FindingKind.UNEQUAL_RUNS, text, (), scenario)


def _requests(scenario: str, runs: Sequence[MeasuredRun]) -> Iterator[Finding]:
    if not runs or any(run.directory.facts.loop != "open" for run in runs):
        return
    counts = [run.phases["whole"].requests for run in runs]
    if max(counts) > _LOADS_DIFFER * min(counts):
        text = f"{scenario}: the runs have between {min(counts):,} and {max(counts):,} requests."
        yield Finding(FindingKind.UNEQUAL_REQUESTS, text, (), scenario)


def _control(baseline: Side, candidate: Side) -> Iterator[Finding]:
    for scenario in sorted(baseline.controls | candidate.controls):
        yield from _control_of(scenario, baseline, candidate)


def _control_of(scenario: str, baseline: Side, candidate: Side) -> Iterator[Finding]:
    levels = [
        level_of([ms for run in side.of(scenario) if (ms := run.service_p50_ms)], logs=True)
        for side in (baseline, candidate)
    ]
    first, second = levels
    if not first or not second or max(first, second) <= _CONTROL_DIFFERS * min(first, second):
        return
    slower = percent(max(first, second) / min(first, second) - 1, 2)
    text = (
        f"The control experiment differs: the {scenario} takes {milliseconds(first)} on {baseline.name} and "
        f"{milliseconds(second)} on {candidate.name}, {slower} apart. It should not depend on the storage: "
        "network or processors differ too, or the file is read from the disks."
    )
    yield Finding(FindingKind.CONTROL_DIFFERS, text, (), scenario)


def _without_gate(sides: tuple[Side, Side], judged: Sequence[str]) -> Iterator[Finding]:
    ran = dict.fromkeys(name for side in sides for name in side.scenarios)
    controls = {name for side in sides for name in side.controls}
    left = [name for name in ran if name not in judged and name not in controls]
    if left:
        yield Finding(FindingKind.NO_GATE, f"No gate looks at {', '.join(left)}.")


def _generators(sides: tuple[Side, Side]) -> Iterator[Finding]:
    runs = [run for side in sides for run in side.runs]
    hosts = {(run.directory.facts.host.hostname, run.directory.facts.host.cpu) for run in runs}
    if len(hosts) > 1:
        text = "The load came from different machines, and a part of every response time is theirs."
        yield Finding(FindingKind.OTHER_GENERATOR, text)


def _unfinished(opened: tuple[OpenedSide, OpenedSide]) -> Iterator[Finding]:
    for side in opened:
        if side.planned is not None and side.there < side.planned:
            text = (
                f"{side.path}: the experiment has {side.there} of its {side.planned} runs. To look early, "
                "and to stop when it pleases, makes false verdicts likelier."
            )
            yield Finding(FindingKind.UNFINISHED, text)


def _emulated(sides: tuple[Side, Side]) -> Iterator[Finding]:
    for side in sides:
        what = next((run.emulated for run in side.runs if run.emulated), None)
        if what:
            text = f"{side.name} is emulated ({what}): verdicts are on that, not on what it imitates."
            yield Finding(FindingKind.EMULATED, text)
