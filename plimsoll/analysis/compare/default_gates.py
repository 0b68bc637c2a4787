"""The gates where no file is given: the tail during the saturator and of the whole run, and errors."""

import math
from collections.abc import Sequence
from statistics import fmean

from plimsoll.analysis.compare.gates import RATIO, Gate, Gates, Phase
from plimsoll.analysis.compare.metrics import ERROR_SHARE, MEASURE, MORE_ERRORS
from plimsoll.analysis.compare.questions import Side
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.statistics.percentiles import PERCENTILES, fewest
from plimsoll.rundir.events import FELT

_TAILS = ("p99.9", "p99")


def default_gates(baseline: Side, candidate: Side) -> Gates:
    """Return gates for every scenario of either side, but for the control experiment."""
    scenarios = list(dict.fromkeys([*baseline.scenarios, *candidate.scenarios]))
    controls = baseline.controls | candidate.controls
    judged = [name for name in scenarios if name not in controls] or scenarios
    return Gates(gates=[gate for name in judged for gate in _of(baseline, candidate, name)])


def _of(baseline: Side, candidate: Side, scenario: str) -> list[Gate]:
    runs = [*baseline.of(scenario), *candidate.of(scenario)]
    phases: list[Phase] = ["during", "whole"] if any(run.saturation for run in runs) else ["whole"]
    gates = [
        Gate(scenario=scenario, phase=phase, metric=metric, at_most_ratio=RATIO)
        for phase in phases
        if (metric := _metric(runs, phase)) is not None
    ]
    return [*gates, Gate(scenario=scenario, metric=ERROR_SHARE, at_most_more=MORE_ERRORS)]


def _metric(runs: Sequence[MeasuredRun], phase: Phase) -> str | None:
    """Return the highest percentile that all runs have requests for; else the median of the longest step."""
    levels = [run.phases[phase] for run in runs if phase in run.phases]
    if len(levels) < len(runs):
        return _TAILS[0]  # the gate then says which run has no such phase
    requests = min((each.requests for each in levels), default=fewest(PERCENTILES[_TAILS[0]]))
    for tail in _TAILS:
        if requests >= fewest(PERCENTILES[tail]):
            return tail
    everywhere = set.intersection(*(set(each.steps) for each in levels))
    # An upgrade is judged by how long it took; what visitors felt meanwhile has gates where it is asked for.
    everywhere = {name for name in everywhere if not name.startswith(FELT)}
    # A step that is censored counts as its lower bound: it must not be passed over for failing.
    # What takes longest, over both sides alike: choosing by one side's figures would favour one.
    longest = [
        (each[0].measure, fmean(math.log(step.least) for step in each), name)
        for name in sorted(everywhere)
        if (each := [level.steps[name] for level in levels])
        if all(step.unit == "ms" and step.least > 0 for step in each)
    ]
    if longest:
        return f"{MEASURE}{max(longest)[2]}"
    return None if phase == "during" else "p50"
