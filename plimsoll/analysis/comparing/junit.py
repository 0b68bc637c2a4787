"""A comparison as JUnit XML: a test case a limit, and one a finding."""

from plimsoll.analysis.comparing.comparison import Comparison
from plimsoll.analysis.comparing.text import effect, figure, limit, summary
from plimsoll.analysis.comparing.verdicts import GateVerdict
from plimsoll.common.junit import JUnit


def junit(comparison: Comparison, command: str) -> bytes:
    """Return the document, UTF-8. What could not be decided is an error: a job that reads it stays red."""
    document = JUnit(f"plimsoll {command}")
    document.suite(summary(comparison), command)
    for each in comparison.judged:
        _gate(document, each)
    for finding in comparison.findings:
        name = f"evidence: {finding.kind.value.name}"
        if finding.disqualifies:
            document.outcome(name, "failure" if finding.worse else "error", "evidence", finding.sentence)
        else:
            document.passed(name, finding.sentence)
    return document.document()


def _gate(document: JUnit, judged: GateVerdict) -> None:
    name, verdict = f"{judged.gate.name} {limit(judged)}", judged.verdict
    baseline, candidate = (figure(judged, value) for value in judged.levels)
    figures = f"{effect(judged, verdict.estimate)} ({baseline} before, {candidate} after)"
    says = " ".join(filter(None, (verdict.says, verdict.power)))
    if verdict.outcome == "PASS":
        document.passed(name, " ".join(filter(None, (f"{figures}.", says))))
    elif verdict.outcome == "FAIL":
        document.outcome(name, "failure", "gate", f"{figures}: {says}")
    else:
        document.outcome(name, "error", "inconclusive", says)
