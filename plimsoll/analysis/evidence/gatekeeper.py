"""The gatekeeper: what is wrong with runs as evidence, by themselves and side by side. Pure.

`report`, `compare`, `signoff`, `regress` and `merge` have no rules of their own. docs/evidence.md lists all
findings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from plimsoll.analysis.evidence.agreement import log_findings, side_findings
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.load import load_findings
from plimsoll.analysis.evidence.run import RunEvidence, run_findings
from plimsoll.analysis.evidence.storage import cache_findings, drive_findings, precondition_findings
from plimsoll.common.units import milliseconds

_LAG_APART_MS = 0.5
_LAG_APART_FRACTION = 0.025
_OF_DEATH = (FindingKind.TARGET_DIED, FindingKind.INCOMPLETE)
# What `answers: false` in gates.yml turns into doubts.
ANSWERS = frozenset(
    {
        FindingKind.MORE_FAILURES,
        FindingKind.EMPTY_ANSWERS,
        FindingKind.OTHER_ANSWERS,
        FindingKind.NOT_AS_LOGGED,
    }
)


def findings_of_sides(
    baseline: Sequence[RunEvidence], candidate: Sequence[RunEvidence], names: tuple[str, str]
) -> list[Finding]:
    """Return all findings on the runs of one scenario on two sides that are called `names`, but for copies.

    Where only the candidate lost its target, that, and that its run then failed, shows it to be worse.
    """
    scenario = (*baseline, *candidate)[0].scenario if baseline or candidate else ""
    found = [finding for run in baseline for finding in run_findings(run)]
    alive = not any(run.observation.silence for run in baseline)
    for run in candidate:
        died = alive and run.observation.silence is not None
        found += [replace(finding, worse=died and finding.kind in _OF_DEATH) for finding in run_findings(run)]
    for side, runs in zip(names, (baseline, candidate), strict=True):
        found += log_findings(runs, side, scenario)
    found += side_findings(baseline, candidate, scenario)
    found += load_findings([*baseline, *candidate], scenario)
    found += cache_findings((baseline, candidate), names, scenario)
    found += precondition_findings([*baseline, *candidate], scenario)
    found += drive_findings([*baseline, *candidate], scenario)
    found += _lag_apart(baseline, candidate, scenario)
    return found


def _lag_apart(
    baseline: Sequence[RunEvidence], candidate: Sequence[RunEvidence], scenario: str
) -> Iterator[Finding]:
    """Yield at which percentile the generator's lag is not the same on both sides."""
    sides = [[run for run in side if run.directory.facts.loop == "open"] for side in (baseline, candidate)]
    if not all(sides):
        return
    phases = set.intersection(*(set(run.lag_ms) for side in sides for run in side))
    for phase in sorted(phases):
        for name in sides[0][0].lag_ms[phase]:
            lags = [_middle([run.lag_ms[phase].get(name) for run in side]) for side in sides]
            times = [_middle([run.response_ms[phase].get(name) for run in side]) for side in sides]
            (one, other), (first, second) = lags, times
            if one is None or other is None or first is None or second is None:
                continue
            if abs(one - other) > max(_LAG_APART_MS, _LAG_APART_FRACTION * min(first, second)):
                text = (
                    f"{scenario}: the load generator's own lag at {name} is {milliseconds(one)} on the "
                    f"baseline and {milliseconds(other)} on the candidate."
                )
                runs = tuple(run.name for side in sides for run in side)
                yield Finding(FindingKind.LAG_DIFFERS, text, runs, scenario)
                return


def _middle(values: Sequence[float | None]) -> float | None:
    known = sorted(value for value in values if value is not None)
    return known[len(known) // 2] if known else None
