"""The guard over verdicts: what a PASS would look past, and what a FAIL would blame the candidate for."""

from collections.abc import Iterator, Sequence
from statistics import median

from plimsoll.analysis.comparing.gates import Gate
from plimsoll.analysis.comparing.levels import StepLevel
from plimsoll.analysis.comparing.metrics.response_time import ResponseTime
from plimsoll.analysis.comparing.runs import ComparedRun
from plimsoll.analysis.comparing.stalls import IN_A_ROW, far_worse
from plimsoll.analysis.evidence.failedmeasures import Tries, measure_finding
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import MUCH_TAKEN_MS, taken_ms_per_s
from plimsoll.common.units import milliseconds

_Runs = Sequence[ComparedRun]
_NO_STEP = StepLevel(None, "", measure=True)


def stalled(
    runs: tuple[_Runs, _Runs], gate: Gate, values: tuple[Sequence[float], Sequence[float]], unit: str
) -> Iterator[Finding]:
    """Yield which of the candidate's runs stalled, by the gate's own figure or by their slowest row.

    Both are compared from run to run: the figure, as far as it is a time, and of response times also the
    slowest ten requests in a row, which a percentile of a long run looks past.
    """
    if gate.kind.is_share or unit != "ms":
        return
    if all(len(side) == len(found) for side, found in zip(runs, values, strict=True)):
        yield from _found(runs, values, gate, gate.kind.label(gate.metric))
    if isinstance(gate.kind, ResponseTime):
        worst = tuple([ms for run in side if (ms := _worst_ms(run, gate)) is not None] for side in runs)
        if [len(side) for side in worst] == [len(side) for side in runs]:
            what = f"median of the slowest {IN_A_ROW} requests in a row"
            yield from _found(runs, (worst[0], worst[1]), gate, what)


def shared(
    sides: tuple[str, str], runs: tuple[_Runs, _Runs], gate: Gate, unit: str, *, alone: bool
) -> tuple[Finding | None, bool]:
    """Return that one side may be slower by the generator's doing, and whether that is the candidate.

    The generator takes processor time from a server on its machine. So where the candidate had to wait for it
    more, its FAIL may be the generator's doing, and where the baseline had to, the candidate's PASS.
    What is held to a limit `alone` is not held against the baseline.
    """
    if gate.kind.is_share or unit != "ms":
        return None, False
    taken_ms = [_median([taken_ms_per_s(run.directory) for run in each]) for each in runs]
    baseline_ms, candidate_ms = 0 if alone else taken_ms[0], taken_ms[1]
    if baseline_ms is None or candidate_ms is None or abs(candidate_ms - baseline_ms) < MUCH_TAKEN_MS:
        return None, False
    slower = candidate_ms > baseline_ms
    text = (
        f"{sides[slower]} may be slower by the load generator's doing: on the machine that they share, it "
        f"kept other programs from a processor for {max(baseline_ms, candidate_ms):,.0f} ms of each second"
        + ("." if alone else f", and for {min(baseline_ms, candidate_ms):,.0f} ms on {sides[not slower]}.")
    )
    names = tuple(run.name for run in runs[slower])
    return Finding(FindingKind.SHARED_MACHINE, text, names, gate.scenario), slower


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def failing(sides: tuple[str, str], runs: tuple[_Runs, _Runs], gate: Gate) -> tuple[Finding | None, bool]:
    """Return what is to be known of failures of the gate's measure, and whether they allow no PASS.

    They allow none where the candidate failed: its median looks past failures that are fewer than half.
    """
    tries = [_tries(side, each, gate) for side, each in zip(sides, runs, strict=True)]
    when = "in the whole run" if gate.phase == "whole" else f"{gate.phase} the saturator"
    names = tuple(run.name for each in runs for run in each if _step(run, gate).failed_ms)
    found = measure_finding(gate.scenario, gate.kind.subject(gate.metric), when, tries, names)
    return found, found is not None and tries[1].is_many


def _tries(side: str, runs: _Runs, gate: Gate) -> Tries:
    steps = [_step(run, gate) for run in runs]
    return Tries(side, sum(step.tries for step in steps), sum(len(step.failed_ms) for step in steps))


def _step(run: ComparedRun, gate: Gate) -> StepLevel:
    phase = run.levels.phases.get(gate.phase)
    step = phase.steps.get(gate.kind.subject(gate.metric)) if phase else None
    return step if step and step.measure else _NO_STEP


def _found(
    runs: tuple[_Runs, _Runs], values: tuple[Sequence[float], Sequence[float]], gate: Gate, what: str
) -> Iterator[Finding]:
    baseline_ms, candidate_ms = values
    which = far_worse(baseline_ms, candidate_ms)
    if not which:
        return
    names = tuple(runs[1][at].name for at in which)
    worst = max(which, key=lambda at: candidate_ms[at])
    yield Finding(
        FindingKind.RARE_STALLS,
        f"{len(which)} of the candidate's {len(candidate_ms)} runs stalled: in {runs[1][worst].name} the "
        f"{what} is {milliseconds(candidate_ms[worst])}, and {milliseconds(max(baseline_ms))} at most in the "
        f"baseline's runs, {gate.phase if gate.phase != 'whole' else 'over the whole run'}.",
        runs=names,
        scenario=gate.scenario,
    )


def _worst_ms(run: ComparedRun, gate: Gate) -> float | None:
    phase = run.levels.phases.get(gate.phase)
    return None if phase is None or phase.kept is None else phase.kept.worst_ms
