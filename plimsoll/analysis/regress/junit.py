"""The night as JUnit XML: a test case a series and a gate."""

from collections.abc import Sequence

from plimsoll.analysis.regress.judgement import GateResult, Judgement, SeriesResult
from plimsoll.analysis.regress.rows import NightFinding
from plimsoll.analysis.regress.text import against, figure, title
from plimsoll.common.junit import JUnit


def junit(judgements: Sequence[Judgement]) -> bytes:
    """Return the document, UTF-8."""
    document = JUnit("plimsoll regress")
    for each in judgements:
        name = each.experiment or "runs"
        document.suite(name, name, each.night.facts.started_at[:19])
        for unjudged in each.unjudged:
            document.outcome(f"{title(each)} is complete", "error", "unjudged", unjudged)
        for finding in each.findings:
            _finding(document, finding)
        for result in each.series:
            _series(document, result, each.is_red(result))
        for gate in each.gates:
            _gate(document, gate)
    return document.document()


def _series(document: JUnit, result: SeriesResult, is_red: bool) -> None:
    name = result.series.key.name
    figures = (
        f"tonight {figure(result, result.tonight)}, before {figure(result, result.level)} ({against(result)})"
    )
    if is_red:
        document.outcome(name, "failure", "regression", f"{result.says}: {figures}")
    elif result.state == "missing":
        document.outcome(name, "skipped", "", f"no figure tonight: {result.says}")
    elif result.state == "young":
        document.outcome(name, "skipped", "", result.says)
    else:
        document.passed(name, f"{figures} {result.says}".strip())


def _finding(document: JUnit, finding: NightFinding) -> None:
    name, says = f"evidence: {finding.name}", f"{finding.text} {finding.remedy}"
    if finding.disqualifies:
        document.outcome(name, "failure" if finding.worse else "error", "evidence", says)
    else:
        document.passed(name, says)


def _gate(document: JUnit, gate: GateResult) -> None:
    name = f"{gate.name} ({gate.limit})"
    if gate.verdict.outcome == "FAIL":
        document.outcome(name, "failure", "baseline", f"breaks its limit: {gate.verdict.says}")
    elif gate.verdict.outcome == "INCONCLUSIVE":
        document.outcome(name, "skipped", "", gate.verdict.says)
    else:
        document.passed(name)
