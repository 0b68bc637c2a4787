"""The night as JUnit XML: a test case a series and a gate, as Jenkins, GitLab and others read it."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from analysis.history.judgement import GateResult, Judgement, SeriesResult
from analysis.history.rows import NightFinding
from analysis.history.text import against, figure, title
from plimsoll.common.hostile import printable

# What XML 1.0 cannot hold, not even as a reference.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(judgements: Sequence[Judgement]) -> bytes:
    """Return the document, UTF-8."""
    root = ET.Element("testsuites", name="plimsoll regress")
    for each in judgements:
        suite = ET.SubElement(root, "testsuite", name=_text(each.experiment or "runs"))
        suite.set("timestamp", each.night.facts.started_at[:19])
        suite.set("hostname", "localhost")
        for unjudged in each.unjudged:
            case = _case(suite, f"{title(each)} is complete", each)
            _outcome(case, "error", "unjudged", unjudged)
        for finding in each.findings:
            _finding(_case(suite, f"evidence: {finding.name}", each), finding)
        for result in each.series:
            _series(_case(suite, result.series.key.name, each), result, each.is_red(result))
        for gate in each.gates:
            _gate(_case(suite, f"{gate.name} ({gate.limit})", each), gate)
        counts = {name: len(suite.findall(f"testcase/{name}")) for name in ("failure", "error", "skipped")}
        suite.set("tests", str(len(suite.findall("testcase"))))
        suite.set("failures", str(counts["failure"]))
        suite.set("errors", str(counts["error"]))
        suite.set("skipped", str(counts["skipped"]))
        suite.set("time", "0")
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _case(suite: ET.Element, name: str, judgement: Judgement) -> ET.Element:
    classname = f"plimsoll.{(judgement.experiment or 'runs').replace('.', '_')}"
    return ET.SubElement(suite, "testcase", name=_text(name), classname=_text(classname), time="0")


def _series(case: ET.Element, result: SeriesResult, is_red: bool) -> None:
    figures = (
        f"tonight {figure(result, result.tonight)}, before {figure(result, result.level)} ({against(result)})"
    )
    if is_red:
        _outcome(case, "failure", "regression", f"{result.says}: {figures}")
    elif result.state == "missing":
        _outcome(case, "skipped", "", f"no figure tonight: {result.says}")
    elif result.state == "young":
        _outcome(case, "skipped", "", result.says)
    else:
        ET.SubElement(case, "system-out").text = _text(f"{figures} {result.says}".strip())


def _finding(case: ET.Element, finding: NightFinding) -> None:
    says = f"{finding.text} {finding.remedy}"
    if finding.disqualifies and finding.worse:
        _outcome(case, "failure", "evidence", says)
    elif finding.disqualifies:
        _outcome(case, "error", "evidence", says)
    else:
        ET.SubElement(case, "system-out").text = _text(says)


def _gate(case: ET.Element, gate: GateResult) -> None:
    if gate.verdict.outcome == "FAIL":
        _outcome(case, "failure", "baseline", f"breaks its limit: {gate.verdict.says}")
    elif gate.verdict.outcome == "INCONCLUSIVE":
        _outcome(case, "skipped", "", gate.verdict.says)


def _outcome(case: ET.Element, kind: str, what: str, message: str) -> None:
    element = ET.SubElement(case, kind, message=_text(message))
    if what:
        element.set("type", what)
        element.text = _text(message)


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", printable(text, 2000))
