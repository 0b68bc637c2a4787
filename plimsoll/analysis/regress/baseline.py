"""Tonight and the nights before it against the baseline's, gate by gate, as `plimsoll compare` decides.

The night is the unit: runs of one night share it, and are more alike than those of two. So each night gives
one value, and as many nights of either side are compared as it takes.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from plimsoll.analysis.comparing.decision import Question, Verdict, decide
from plimsoll.analysis.comparing.default_gates import default_gates
from plimsoll.analysis.comparing.gates import LIMITS, Gate, Gates
from plimsoll.analysis.comparing.metrics.metric import Limit, NoFigureError
from plimsoll.analysis.comparing.questions import Side, value_of
from plimsoll.analysis.comparing.runs import ComparedRun
from plimsoll.analysis.regress.judgement import GateResult
from plimsoll.analysis.regress.rows import NightRow, Past, RunRow
from plimsoll.analysis.regress.rules import finite
from plimsoll.common.differences import differing
from plimsoll.common.units import counted

BASELINE_NIGHTS = 14
LAST_NIGHTS = 7
LOOKS = 100  # nights over which all looks together are to be wrong no more often than one look may be
RunsByNight = dict[int, list[ComparedRun]]


def baseline_nights(nights: Sequence[NightRow]) -> list[NightRow]:
    """Return the baseline's nights: those that were set, and while they are few, the next ones."""
    marked = [at for at, night in enumerate(nights) if night.baseline]
    if not marked:
        return []
    first, last = marked[0], max(marked[-1], marked[0] + BASELINE_NIGHTS - 1)
    return list(nights[first : last + 1])


def chosen_nights(nights: Sequence[NightRow], name: str, changed: int) -> list[int] | None:
    """Return the ids of the nights that make night `name` (or `latest`) the baseline; None if there is none.

    They are it and those before it, but not from before place `changed`, where the level last changed.
    """
    at = next((at for at, night in enumerate(nights) if name in ("latest", night.name)), None)
    if at is None:
        return None
    at = len(nights) - 1 if name == "latest" else at
    first = max(at - BASELINE_NIGHTS + 1, changed if changed <= at else 0, 0)
    return [night.id for night in nights[first : at + 1]]


def compared_nights(nights: Sequence[NightRow]) -> tuple[list[NightRow], list[NightRow]]:
    """Return the baseline's nights, and the last ones after it; none without a baseline."""
    base = baseline_nights(nights)
    after = nights[nights.index(base[-1]) + 1 :] if base else []
    return base, list(after[-LAST_NIGHTS:])


def compared_runs(nights: Sequence[NightRow], runs: Sequence[RunRow]) -> list[RunRow]:
    """Return the runs of those nights by which gates are judged."""
    wanted = {night.id for side in compared_nights(nights) for night in side}
    return [run for run in runs if run.night in wanted and run.is_fit and run.readable]


def gate_results(past: Past, compared: Mapping[int, ComparedRun], gates: Gates | None) -> list[GateResult]:
    """Return a verdict on every gate of every backend; none without a baseline.

    `compared` are the runs of `compared_runs`, by their id.
    """
    found: list[tuple[str, Gate, Limit, Question, tuple[int, int]]] = []
    by_backend: dict[str, list[RunRow]] = {}
    for run in compared_runs(past.nights, past.runs):
        by_backend.setdefault(run.backend, []).append(run)
    for backend, mine in sorted(by_backend.items()):
        sides = [_by_night(mine, compared, nights) for nights in compared_nights(past.nights)]
        limits = gates or default_gates(*(_side(backend, side) for side in sides))
        for gate in limits.gates:
            for limit in LIMITS:
                if getattr(gate, limit) is not None:
                    question, counts = _question(gate, limit, sides, limits.least_runs)
                    found.append((backend, gate, limit, question, counts))
    if not found:
        return []
    verdicts = decide_nightly([each[3] for each in found], gates.confidence if gates else 0.95)
    return [
        GateResult(backend, gate, limit, question.at_most, verdict, counts)
        for (backend, gate, limit, question, counts), verdict in zip(found, verdicts, strict=True)
    ]


def decide_nightly(questions: Sequence[Question], confidence: float) -> list[Verdict]:
    """Decide as `plimsoll compare` does; but a FAIL has to stand a test that is made every night."""
    plain = decide(questions, confidence)
    if all(verdict.outcome != "FAIL" for verdict in plain):
        strict = plain
    else:
        strict = decide(questions, 1 - (1 - confidence) / LOOKS)
    return [_patient(*both) for both in zip(questions, plain, strict, strict=True)]


def _patient(question: Question, one: Verdict, other: Verdict) -> Verdict:
    if one.outcome == "FAIL" and other.outcome != "FAIL":
        says = "It looks worse than the limit, but a test that is made every night asks for more: wait."
        return replace(one, outcome="INCONCLUSIVE", says=says)
    # What is counted here is nights.
    return one if question.blocked else replace(one, says=re.sub(r"\brun(s?)\b", r"night\1", one.says))


def _by_night(
    runs: Sequence[RunRow], compared: Mapping[int, ComparedRun], nights: Sequence[NightRow]
) -> RunsByNight:
    wanted = {night.id for night in nights}
    found: RunsByNight = {}
    for run in runs:
        if run.night in wanted:
            found.setdefault(run.night, []).append(compared[run.id])
    return found


def _side(name: str, runs: RunsByNight) -> Side:
    return Side(name, [run for night in runs.values() for run in night], [])


def _question(
    gate: Gate, limit: Limit, sides: Sequence[RunsByNight], least: int
) -> tuple[Question, tuple[int, int]]:
    """Ask one limit of one value a night."""
    problems: list[str] = []
    values: list[list[float]] = [[], []]
    for runs, found in zip(sides, values, strict=True):
        for night in runs.values():
            try:
                mine = [value_of(run, gate) for run in night if run.scenario == gate.scenario]
            except NoFigureError as error:
                problems.append(f"{str(error).rstrip('.')}.")
                continue
            if mine:
                found.append(fmean(mine) if gate.kind.is_share else math.exp(fmean(map(math.log, mine))))
    counts = len(values[0]), len(values[1])
    problems = problems[:3]
    for name, count in zip(("The baseline has", "Since then there are"), counts, strict=True):
        if count < least:
            problems.append(
                f"{name} {counted(count, 'night')} of {gate.scenario}, and a verdict takes {least}: "
                f"{least - count} more."
            )
    done = [
        run.done_as
        for runs in sides
        for night in runs.values()
        for run in night
        if run.scenario == gate.scenario
    ]
    if different := differing(done):
        names = ", ".join(key for key, _ in different[:3])
        problems.append(
            f"The runs of {gate.scenario} are not of the same kind ({names}): set a new baseline."
        )
    question = Question(
        limit=limit, at_most=getattr(gate, limit), baseline=values[0], candidate=values[1], blocked=problems
    )
    return question, counts


def as_json(result: GateResult) -> dict[str, object]:
    """Return what `--json` prints of a gate."""
    verdict = result.verdict
    return {
        "scenario": result.gate.scenario,
        "backend": result.backend,
        "phase": result.gate.phase,
        "metric": result.gate.metric,
        "limit": {result.limit: result.at_most},
        "verdict": verdict.outcome,
        "says": verdict.says,
        "estimate": None if verdict.estimate is None else finite(verdict.estimate),
        "lower": None if verdict.lower is None else finite(verdict.lower),
        "upper": None if verdict.upper is None else finite(verdict.upper),
        "nights": {"baseline": result.nights[0], "candidate": result.nights[1]},
        "more_nights": verdict.more_runs,
    }
