"""JUnit, Markdown and the page: well-formed, whole, and deaf to hostile names; and docs/regress.md."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree

from plimsoll.analysis.regress import changes, judge, judgement, levels, store, tonight
from plimsoll.analysis.regress.judgement import STALE_AFTER_S, Judgement, SeriesResult
from plimsoll.analysis.regress.page import trend_charts
from plimsoll.analysis.regress.store import open_history
from plimsoll.analysis.regress.tonight import judge_last_night
from plimsoll.common import notify
from plimsoll.common.hostile import markdown_text
from tests.support.comparable import regress, write_night
from tests.support.pages import HOSTILE, write_hostile_history
from tests.support.programs import DOCS
from tests.verdicts.regress import NOISES, series

# As the Jenkins plugin and GitLab read it: the Windy Road schema, in the parts that matter.
SCHEMA = """<?xml version="1.0"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
 <xs:complexType name="outcome" mixed="true">
  <xs:attribute name="message" type="xs:string"/><xs:attribute name="type" type="xs:string"/>
 </xs:complexType>
 <xs:element name="testsuites"><xs:complexType><xs:sequence>
  <xs:element name="testsuite" maxOccurs="unbounded" minOccurs="0"><xs:complexType><xs:sequence>
   <xs:element name="testcase" maxOccurs="unbounded" minOccurs="0"><xs:complexType><xs:sequence>
    <xs:choice minOccurs="0">
     <xs:element name="skipped" type="outcome"/>
     <xs:element name="error" type="outcome"/>
     <xs:element name="failure" type="outcome"/>
    </xs:choice>
    <xs:element name="system-out" type="xs:string" minOccurs="0"/>
   </xs:sequence>
    <xs:attribute name="name" type="xs:string" use="required"/>
    <xs:attribute name="classname" type="xs:string" use="required"/>
    <xs:attribute name="time" type="xs:decimal" use="required"/>
   </xs:complexType></xs:element>
  </xs:sequence>
   <xs:attribute name="name" type="xs:string" use="required"/>
   <xs:attribute name="timestamp" type="xs:dateTime" use="required"/>
   <xs:attribute name="hostname" type="xs:token" use="required"/>
   <xs:attribute name="tests" type="xs:int" use="required"/>
   <xs:attribute name="failures" type="xs:int" use="required"/>
   <xs:attribute name="errors" type="xs:int" use="required"/>
   <xs:attribute name="skipped" type="xs:int"/>
   <xs:attribute name="time" type="xs:decimal" use="required"/>
  </xs:complexType></xs:element>
 </xs:sequence>
  <xs:attribute name="name" type="xs:string"/>
  <xs:attribute name="tests" type="xs:int"/>
  <xs:attribute name="failures" type="xs:int"/>
  <xs:attribute name="errors" type="xs:int"/>
 </xs:complexType></xs:element>
</xs:schema>"""


def quiet_history(folder: Path, nights: int = 3) -> Path:
    history = folder / "history.sqlite"
    for number in range(nights):
        regress(history, write_night(folder / "results", number, {"nvme": 50 + number}))
    return history


def junit_of(folder: Path, history: Path) -> ET.Element:
    path = folder / "regress.xml"
    regress(history, "--junit", path)
    document = etree.fromstring(path.read_bytes())
    schema = etree.XMLSchema(etree.fromstring(SCHEMA.encode()))
    assert schema.validate(document), schema.error_log
    return ET.parse(path).getroot()  # noqa: S314 our own


def test_junit_of_a_regression_fails(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    for number in range(20):
        result = regress(
            history, write_night(tmp_path, number, {"nvme": (50 + number % 3) * (3 if number > 15 else 1)})
        )
        if result.exit_code:
            break
    root = junit_of(tmp_path, history)
    failures = root.findall("testsuite/testcase/failure")
    assert {failure.get("type") for failure in failures} == {"regression"}
    assert int(root.get("failures", "0")) == len(failures) == 2, "during, and the whole run"
    assert "times as slow since nightly-20260117T020000Z" in str(failures[0].get("message"))


def test_junit_of_a_night_that_cannot_be_judged_has_an_error(tmp_path: Path) -> None:
    history = quiet_history(tmp_path)
    regress(history, write_night(tmp_path / "results", 3, {"nvme": 50}, planned=5))
    root = junit_of(tmp_path, history)
    errors = root.findall("testsuite/testcase/error")
    assert [error.get("type") for error in errors] == ["unjudged"]
    assert "has 1 of its 5 runs" in str(errors[0].get("message"))


def test_junit_of_a_quiet_night_has_a_case_a_series(tmp_path: Path) -> None:
    root = junit_of(tmp_path, quiet_history(tmp_path))
    names = [case.get("name") for case in root.iter("testcase")]
    assert names == [
        "replay on nvme, during: p99.9",
        "replay on nvme, whole: p99.9",
        "replay on nvme, whole: error share",
    ]
    assert len(root.findall("testsuite/testcase/skipped")) == 3, "too young to be judged"


def test_junit_with_hostile_names_is_well_formed(tmp_path: Path) -> None:
    root = junit_of(tmp_path, write_hostile_history(tmp_path))
    text = ET.tostring(root, encoding="unicode")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202e]", text)
    assert any(HOSTILE[0] in str(case.get("name")) for case in root.iter("testcase"))


MARKDOWN = [
    ("HTML", "<img src=x onerror=owned=1>", "&lt;img"),
    ("a column", "a|b", r"a\|b"),
    ("a link", "[x](javascript:1)", r"\[x\]\(javascript"),
    ("a bare link", "https://example.org", "https<!-- -->"),
    ("a mention", "@everyone", "@<!-- -->everyone"),
    ("an issue", "fixes #1", "#<!-- -->1"),
    ("a line of its own", "a\n# b", r"a\\x0a"),
    ("code", "`x`", r"\`x\`"),
]


@pytest.mark.parametrize(("what", "text", "shown"), MARKDOWN, ids=[row[0] for row in MARKDOWN])
def test_markdown_shows_names_as_they_are(what: str, text: str, shown: str) -> None:
    assert shown in markdown_text(text), what


def test_markdown_with_hostile_names_keeps_its_table(tmp_path: Path) -> None:
    history, path = write_hostile_history(tmp_path), tmp_path / "regress.md"
    regress(history, "--markdown", path)
    lines = path.read_text().splitlines()
    assert "<script" not in path.read_text()
    rows = [line for line in lines if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8, 7}
    assert lines[0].startswith("# Plimsoll: ")


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    history = quiet_history(tmp_path)
    for option in ("--junit", "--markdown", "--html"):
        assert regress(history, option, tmp_path / "new" / option[2:] / "file").exit_code != 2
        assert (tmp_path / "new" / option[2:] / "file").is_file()
        missing = regress(history, option, tmp_path / "new" / option[2:] / "file" / "below")
        assert missing.exit_code == 2
        assert "cannot be written" in missing.stderr
        assert regress(history, option, tmp_path).exit_code == 2, "a folder"
    written = tmp_path / "out"
    written.mkdir()
    regress(history, "--junit", written / "a", "--markdown", written / "b", "--html", written / "c")
    assert sorted(path.name for path in written.iterdir()) == ["a", "b", "c"], "nothing half is left"


def test_the_page_marks_nights_without_a_figure(tmp_path: Path) -> None:
    with open_history(write_hostile_history(tmp_path)) as kept:
        judged = judge_last_night(kept, "nightly")
    assert judged is not None
    figure = trend_charts(0, judged)[0]
    line = next(trace for trace in figure.data if trace.get("showlegend"))
    assert len(line["x"]) == 15, "every night has its place"
    assert line["y"][8] is None
    missing = next(trace for trace in figure.data if trace.get("marker", {}).get("symbol") == "x-thin")
    assert missing["x"] == [8]
    assert "was limited by the load generator" in missing["text"][0]


def test_the_page_of_a_thousand_nights_stays_small(tmp_path: Path) -> None:
    """What the browser gets grows by some bytes a night, not by a point a repeat for ever."""
    nights = series(NOISES[0].of(np.random.default_rng(1), 1000))
    nights = replace(nights, nights=[replace(each, repeats=each.repeats * 8) for each in nights.nights])
    result = SeriesResult(nights, "steady", "", 50.0, 50.0)
    judged = Judgement("study", nights.nights[-1].night, 1000, [result], [], [], [], [])
    figure = trend_charts(0, judged)[0]
    assert sum(len(trace["x"]) for trace in figure.data) < 7000


DOC = (DOCS / "regress.md").read_text(encoding="utf-8")
TEXT = " ".join(DOC.split())


def test_every_key_of_the_json_is_documented(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    for number in range(2):
        regress(history, write_night(tmp_path, number, {"nvme": 50}), "--set-baseline", "latest")
    found = json.loads(regress(history, "--json").stdout)
    documented = set(re.findall(r"`(\w+)`", DOC.partition("## The JSON")[2]))
    assert _keys(found) <= documented | {"at_most_ratio", "at_most_more"}


def test_the_limits_are_those_of_the_code() -> None:
    for says in (
        f"worse by {100 * changes.MARGIN:g} % or more",
        f"(of error shares: by {100 * changes.MORE_ERRORS_MARGIN:g} in 100), "
        f"and of kinds of requests by {changes.ROUTE_MARGIN_MS:g} ms",
        "its p is 10⁻⁶ or less" if changes.NEWS_P == 1e-6 else "?",
        f"{changes.LEAST_BEFORE} nights or more came before it, "
        f"{changes.LEAST_SINCE} since the change before, "
        f"and {changes.LEAST_AFTER} or more after",
        f"within the last {levels.RECENT} nights",
        f"with those of the last {tonight.NIGHTS} nights",
        f"first {changes.LEAST_BEFORE + changes.LEAST_AFTER - 1} nights yield figures only",
        f"within {changes.SAME} nights of it",
        f"the last {judge.LAST_NIGHTS} nights after the baseline",
        f"against its {judge.BASELINE_NIGHTS} nights",
        f"the last {changes.LEAST_AFTER} nights or more are not worse than before the change by "
        f"{100 * changes.MARGIN:g} %",
        f"(p 10⁻⁴ or less, or {levels.RECENT} nights)" if changes.MENDED_P == 1e-4 else "?",
        f"began over {STALE_AFTER_S / 3600:g} hours ago",
        f"show the last {judgement.LAST_DECISIONS}, page and JSON all",
        f"{store.MOST_ATTEMPTS} times at most",
        f"It has {notify.TIMEOUT_S:g} s",
    ):
        assert says in TEXT
    assert judge.LOOKS == 100, "a hundredth of the doubt"


def test_the_example_looks_like_what_is_printed(tmp_path: Path) -> None:
    history = tmp_path / "history.sqlite"
    for number in range(36):
        tails = {"nvme": (50 + number % 3) * (1.4 if number > 32 else 1), "sata": 80 + number % 4}
        result = regress(history, write_night(tmp_path, number, tails))
    shown = DOC.partition("```console\n")[2].partition("```")[0].splitlines()[1:]
    printed = result.output.splitlines()
    assert [_shape(line) for line in printed] == [_shape(line) for line in shown]


def _shape(line: str) -> str:
    """A line without its figures, and as if its columns were as wide as any."""
    return re.sub(r"[\d.,]+", "0", " ".join(line.split()))


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    return set().union(*map(_keys, value)) if isinstance(value, list) else set()
