"""Warnings: reasons for doubt that forbid no verdict, each with what to do. Texts are hostile."""

from collections.abc import Iterator, Sequence
from itertools import chain

from analysis.comparing.decision import level_of, percent
from analysis.comparing.default_gates import CONTROL
from analysis.comparing.gates import Gates
from analysis.comparing.order import Order
from analysis.comparing.questions import Side
from analysis.comparing.runs import ComparedRun
from analysis.comparing.sides import OpenedSide
from plimsoll.common.units import milliseconds

_CONTROL_DIFFERS = 1.05
_ANSWERS_DIFFER = 0.01
_LOADS_DIFFER = 1.05


def warnings_of(
    opened: tuple[OpenedSide, OpenedSide], sides: tuple[Side, Side], gates: Gates, orders: dict[str, Order]
) -> list[str]:
    """Return all warnings, each once."""
    judged = list(dict.fromkeys(gate.scenario for gate in gates.gates))
    found = chain(
        _control(*sides),
        *(orders[scenario].warnings for scenario in judged if scenario in orders),
        *(_unlike(scenario, *(side.of(scenario) for side in sides)) for scenario in judged),
        _without_gate(sides, judged),
        _generators(sides),
        _unfinished(opened),
        _emulated(sides),
    )
    return list(dict.fromkeys(found))


def _control(baseline: Side, candidate: Side) -> Iterator[str]:
    levels = [
        level_of([ms for run in side.of(CONTROL) if (ms := run.levels.service_p50_ms)], logs=True)
        for side in (baseline, candidate)
    ]
    first, second = levels
    if not first or not second or max(first, second) <= _CONTROL_DIFFERS * min(first, second):
        return
    slower = percent(max(first, second) / min(first, second) - 1)
    yield (
        f"The control experiment differs: the download takes {milliseconds(first)} on {baseline.name} and "
        f"{milliseconds(second)} on {candidate.name}, {slower} apart. It should not depend on the storage: "
        "network or processors differ too, or the file is read from the disks. Find out which first."
    )


def _unlike(scenario: str, first: Sequence[ComparedRun], second: Sequence[ComparedRun]) -> Iterator[str]:
    if not first or not second:
        return
    shares = [
        sum(run.levels.mismatches for run in runs) / max(sum(run.levels.judged for run in runs), 1)
        for runs in (first, second)
    ]
    if abs(shares[0] - shares[1]) > _ANSWERS_DIFFER:
        yield (
            f"{scenario}: {percent(shares[0])} of the baseline's responses have another status than the log, "
            f"and {percent(shares[1])} of the candidate's: the two sites do not answer alike."
        )
    runs = [*first, *second]
    if all(run.directory.facts.loop == "open" for run in runs):
        counts = [run.levels.phases["whole"].requests for run in runs]
        if max(counts) > _LOADS_DIFFER * min(counts):
            yield (
                f"{scenario}: the runs have between {min(counts):,} and {max(counts):,} requests, so the "
                "load was not the same."
            )


def _without_gate(sides: tuple[Side, Side], judged: Sequence[str]) -> Iterator[str]:
    ran = dict.fromkeys(name for side in sides for name in side.scenarios)
    left = [name for name in ran if name not in judged and name != CONTROL]
    if left:
        yield f"No gate looks at {', '.join(left)}."


def _generators(sides: tuple[Side, Side]) -> Iterator[str]:
    runs = [run for side in sides for run in side.runs]
    hosts = {(run.directory.facts.host.hostname, run.directory.facts.host.cpu) for run in runs}
    if len(hosts) > 1:
        yield "The load came from different machines, and a part of every response time is theirs."
    versions = {(run.directory.facts.program.name, run.directory.facts.program.version) for run in runs}
    names = {name for name, _ in versions}
    changed = sorted(name for name in names if len({v for n, v in versions if n == name}) > 1)
    if changed:
        yield f"The load came from different versions of {', '.join(changed)}."


def _unfinished(opened: tuple[OpenedSide, OpenedSide]) -> Iterator[str]:
    for side in opened:
        if side.planned is not None and side.there < side.planned:
            yield (
                f"{side.path}: the experiment has {side.there} of its {side.planned} runs. To look early, "
                "and to stop when it pleases, makes false verdicts likelier: plimsoll run --resume ends it."
            )


def _emulated(sides: tuple[Side, Side]) -> Iterator[str]:
    for side in sides:
        what = next((run.emulated for run in side.runs if run.emulated), None)
        if what:
            yield f"{side.name} is emulated ({what}): verdicts are on that, not on what it imitates."
