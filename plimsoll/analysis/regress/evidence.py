"""What the gatekeeper finds on the runs of a night, beside those of the nights before. Pure.

`findings_of_night` is the one place where the history asks the gatekeeper; it has no rules of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from plimsoll.analysis.comparing.runs import ComparedRun
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.gatekeeper import ANSWERS, findings_of_sides
from plimsoll.analysis.evidence.identity import identity_findings
from plimsoll.analysis.evidence.load import load_facts
from plimsoll.analysis.evidence.run import RunEvidence, run_findings
from plimsoll.analysis.regress.rows import NightFinding, NightRow, Past, RunRow

NIGHTS = 10  # whose runs tonight's are held against
_SIDES = ("the nights before", "tonight")
_UNTIL = "If it is to be so from now on: plimsoll regress --accept --note WHY."


@dataclass(frozen=True)
class NightEvidence(RunEvidence):
    """A run whose name says of which night it is: the runs of all nights are called alike."""

    night: str = ""

    @cached_property
    def name(self) -> str:
        """The night and the run (hostile)."""
        return f"{self.night}/{super().name}"


@dataclass(frozen=True)
class NightRun:
    """A run, its row, and its night."""

    row: RunRow
    night: NightRow
    run: ComparedRun

    @cached_property
    def evidence(self) -> NightEvidence:
        """The run as the gatekeeper knows it."""
        known = self.run.evidence
        parts = known.directory, known.observation, known.lag_ms, known.response_ms
        return NightEvidence(*parts, night=self.night.name)


def rows_before(past: Past, night: NightRow) -> list[RunRow]:
    """Return the fit runs of the last nights before `night`, since somebody last accepted what there was."""
    place = {each.id: at for at, each in enumerate(past.nights)}
    accepted = [
        place[each.night]
        for each in past.decisions
        if each.kind != "drop" and each.night in place and place[each.night] <= place[night.id]
    ]
    first = max(accepted, default=0)
    ran = {run.night for run in past.runs if run.is_fit and first <= place[run.night] < place[night.id]}
    last = sorted(ran, key=lambda each: place[each])[-NIGHTS:]
    return [run for run in past.runs if run.is_fit and run.readable and run.night in last]


def findings_of_night(
    before: Sequence[NightRun], tonight: Sequence[NightRun], answers: bool = True
) -> list[NightFinding]:
    """Return what is wrong with `tonight` beside `before`, scenario by scenario and backend by backend.

    What a run shows by itself is known already. Without `answers`, what concerns them are doubts.
    """
    every = [each.evidence for each in (*before, *tonight)]
    found: dict[Finding, None] = dict.fromkeys(identity_findings(every))
    for group in sorted({each.row.group for each in tonight}):
        now = [each.evidence for each in tonight if each.row.group == group]
        then = _alike([each.evidence for each in before if each.row.group == group], now)
        alone = {finding for run in now for finding in run_findings(run)}
        for finding in findings_of_sides(then, now, _SIDES):
            told = finding if then else replace(finding, worse=False)
            if told not in alone:
                found[told] = None
    ids = {each.evidence.name: each.row.id for each in tonight}
    return [_of_night(finding, ids, answers) for finding in found if ids.keys() & set(finding.runs)]


def with_findings(past: Past, night: NightRow, found: Sequence[NightFinding]) -> Past:
    """Return `past` with what was found on a night, whose runs are refused by it."""
    refused = {
        run: tuple(each.text for each in found if each.disqualifies and run in each.runs)
        for each in found
        for run in each.runs
    }
    return replace(
        past,
        nights=[
            replace(each, findings=tuple(found)) if each.id == night.id else each for each in past.nights
        ],
        runs=[
            replace(run, refused=refused.get(run.id, ())) if run.night == night.id else run
            for run in past.runs
        ],
    )


def _alike(before: Sequence[RunEvidence], tonight: Sequence[RunEvidence]) -> list[RunEvidence]:
    """Return those of `before` that were of the last one's load, if they say as much of it as `tonight`."""
    says_load = tonight[0].directory.facts.load is not None
    mine = [run for run in before if (run.directory.facts.load is not None) == says_load]
    return [run for run in mine if load_facts(run) == load_facts(mine[-1])]


def _of_night(finding: Finding, ids: dict[str, int], answers: bool) -> NightFinding:
    told = finding if answers or finding.kind not in ANSWERS else replace(finding, demoted=True)
    remedy = told.remedy
    if told.disqualifies and told.kind not in (FindingKind.COPY, FindingKind.OVERLAP):
        remedy = f"{remedy} {_UNTIL}"
    return NightFinding(
        name=told.kind.value.name,
        level=told.level,
        text=told.text,
        remedy=remedy,
        worse=told.worse,
        runs=tuple(ids[name] for name in told.runs if name in ids),
    )
