"""The verdict document: what compare, regress and sign-off say of gates, as text, Markdown, JUnit and HTML.

Each command makes the document of what it judged; every form is rendered here. All texts are hostile until a
form has made them harmless.
"""

import re
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click

from plimsoll.analysis.page.section import Row, Table
from plimsoll.common.errors import OutputError
from plimsoll.common.files import open_output
from plimsoll.common.hostile import markdown_text, printable

CaseResult = Literal["passed", "failure", "error", "skipped"]

_PATH = click.Path(path_type=Path)
_WIDTH = 108
_LONGEST_NOTE = 1000  # letters in Markdown
_KINDS = ("failure", "error", "skipped")
# What XML 1.0 cannot hold, not even as a reference.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JUnitCase(NamedTuple):
    """What JUnit has of a case or a note. `kind` classes what did not pass."""

    name: str
    result: CaseResult
    message: str = ""
    kind: str = ""


def finding_case(name: str, says: str, is_blocking: bool, shows_worse: bool) -> JUnitCase:
    """Return the case of a finding: one that forbids no verdict has passed."""
    result: CaseResult = "passed" if not is_blocking else "failure" if shows_worse else "error"
    return JUnitCase(f"evidence: {name}", result, says, "evidence")


class VerdictCase(NamedTuple):
    """One limit of a gate, or one series of nights: a row of a table.

    `word` is its verdict, and `says` why. One that is `amiss` or `new` stands out.
    """

    word: str
    name: str
    cells: Sequence[str]
    says: str
    test: JUnitCase
    look: Literal["", "new", "amiss"] = ""


class CaseTable(NamedTuple):
    """A table of cases. `columns`: of words, of names, and of each cell.

    `says_column`: what cases say is a column of it. `below` are lines for a terminal, made harmless; where
    there are any, they say what the cases say. `is_hostile`: cells have text of others, not figures only.
    """

    title: str
    caption: str
    columns: Sequence[str]
    cases: Sequence[VerdictCase]
    says_column: bool = False
    below: Sequence[str] = ()
    is_hostile: bool = False
    longest_name: int = 70

    def as_table(self) -> Table:
        """Return it as a page draws it, its names first."""
        word, name, *figures = self.columns
        heading = "verdict" if word else ""
        last = [""] if self.says_column else []
        rows = [
            Row(
                case.name,
                [case.word, *case.cells, *([case.says] if last else [])],
                "amiss" if case.look == "amiss" else "",
            )
            for case in self.cases
        ]
        return Table(self.title, self.caption, [name, heading, *figures, *last], rows)


class VerdictNote(NamedTuple):
    """A sentence beside the tables, with what it is called: `warning`, `decided`, or nothing."""

    label: str
    text: str
    test: JUnitCase | None = None
    on_terminal: bool = True


class VerdictPart(NamedTuple):
    """One comparison, or one experiment's last night.

    `about` says which night it is. In JUnit it is a `suite`, whose cases are of `suite_class`.
    """

    word: str
    heading: str
    tables: Sequence[CaseTable]
    notes: Sequence[VerdictNote]
    suite: str
    suite_class: str
    about: str = ""
    began_at: str | None = None


class VerdictDocument(NamedTuple):
    """All that `plimsoll COMMAND` judged. `notes_first`: JUnit has notes before the cases of tables."""

    command: str
    title: str
    parts: Sequence[VerdictPart]
    notes_first: bool = False


def document_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --junit and --markdown."""
    for flag, name, says in (
        ("--markdown", "markdown_file", "Write a summary in Markdown."),
        ("--junit", "junit_file", "Write JUnit XML."),
    ):
        command = click.option(flag, name, metavar="FILE", type=_PATH, help=says)(command)
    return command


@dataclass(frozen=True)
class DocumentFiles:
    """Where to write a document; None is nowhere. Raises OutputError where one is a directory."""

    junit: Path | None
    markdown: Path | None
    html: Path | None = None

    def __post_init__(self) -> None:
        for path in (self.junit, self.markdown, self.html):
            if path is not None and path.is_dir():
                raise OutputError(f"{path}: is a directory; give the name of a file")

    def write(self, document: VerdictDocument, page: Callable[[], str] | None = None) -> None:
        """Write each, whole or not at all. Raises OutputError."""
        if self.junit is not None:
            _write(self.junit, junit(document))
        if self.markdown is not None:
            _write(self.markdown, markdown(document).encode())
        if self.html is not None and page is not None:
            _write(self.html, page().encode())


def _write(path: Path, data: bytes) -> None:
    with open_output(path) as file:
        file.write(data)


def text_lines(document: VerdictDocument) -> Iterator[str]:
    """Yield the lines of the text, safe for a terminal."""
    for number, part in enumerate(document.parts):
        if number:
            yield ""
        about = f", {part.about}" if part.about else ""
        yield printable(f"{part.word}: {part.heading}{about}.")
        for table in part.tables:
            yield ""
            yield from _table_lines(table)
            yield from table.below
        if any(note.on_terminal for note in part.notes):
            yield ""
        for note in part.notes:
            if note.on_terminal:
                yield from wrap(f"{note.text.rstrip('.')}.", f"{note.label}: ")


def _table_lines(table: CaseTable) -> Iterator[str]:
    says_column = table.says_column and not table.below
    rows = [[*(printable(column, 24) for column in table.columns), *([""] if says_column else [])]]
    for case in table.cases:
        cells = [case.word, printable(case.name, table.longest_name), *case.cells]
        rows.append([*cells, *([printable(case.says, 200)] if says_column else [])])
    return align(rows, left=(0, 1, len(table.columns)))


def align(rows: Sequence[Sequence[str]], left: Sequence[int]) -> Iterator[str]:
    """Yield a line each of a table, its columns to the right, but those whose numbers are in `left`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for each in rows:
        cells = [
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(each, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def wrap(text: str, label: str = "") -> list[str]:
    """Return the lines of a paragraph, safe for a terminal."""
    return textwrap.wrap(printable(text, 4000), _WIDTH, initial_indent=label, subsequent_indent="  ")


def markdown(document: VerdictDocument) -> str:
    """Return a summary in Markdown: for a message, and for GitHub's step summary."""
    return "\n".join([*_markdown_lines(document)]).rstrip("\n") + "\n"


def _markdown_lines(document: VerdictDocument) -> Iterator[str]:
    yield f"# Plimsoll: {markdown_text(document.title)}"
    yield ""
    for part in document.parts:
        if part.about:
            yield f"## {markdown_text(part.heading)} ({part.about})"
        else:
            yield f"{markdown_text(part.heading, _LONGEST_NOTE)}."
        yield ""
        for table in part.tables:
            yield from _markdown_table(table)
            yield ""
        for note in part.notes:
            # a note that is not a finding needs no label in a list
            is_plain = not note.label or (note.label == "note" and note.test is None)
            label = "" if is_plain else f"{note.label.capitalize()}: "
            yield f"- {label}{markdown_text(note.text, _LONGEST_NOTE)}"
        if part.notes:
            yield ""


def _markdown_table(table: CaseTable) -> Iterator[str]:
    word, name, *figures = (markdown_text(column) for column in table.columns)
    last = [""] if table.says_column else []
    yield _row([word, name, *figures, *last])
    yield _row(["---", "---", *("---:" for _ in figures), *("---" for _ in last)])
    for case in table.cases:
        cells = [markdown_text(cell) for cell in case.cells] if table.is_hostile else case.cells
        says = ["" if case.word == "PASS" else markdown_text(case.says)] if last else []
        yield _row([f"**{case.word}**" if case.look else case.word, markdown_text(case.name), *cells, *says])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def junit(document: VerdictDocument) -> bytes:
    """Return JUnit XML, UTF-8, as Jenkins, GitLab and others read it: a case a limit, a series and a finding.

    What could not be decided is an error or skipped: a job that reads it does not take it for good.
    """
    root = ET.Element("testsuites", name=f"plimsoll {document.command}")
    for part in document.parts:
        suite = ET.SubElement(root, "testsuite", name=_xml_text(part.suite))
        if part.began_at is not None:
            suite.set("timestamp", part.began_at)
        suite.set("hostname", "localhost")
        cases = [case.test for table in part.tables for case in table.cases]
        notes = [note.test for note in part.notes if note.test]
        suite_class = _xml_text(f"plimsoll.{part.suite_class.replace('.', '_')}")
        for test in [*notes, *cases] if document.notes_first else [*cases, *notes]:
            _add_case(suite, test, suite_class)
        suite.set("tests", str(len(suite)))
        for kind in _KINDS:
            plural = kind if kind == "skipped" else f"{kind}s"
            suite.set(plural, str(len(suite.findall(f"testcase/{kind}"))))
        suite.set("time", "0")
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _add_case(suite: ET.Element, test: JUnitCase, suite_class: str) -> None:
    case = ET.SubElement(suite, "testcase", name=_xml_text(test.name), classname=suite_class, time="0")
    message = _xml_text(test.message)
    if test.result == "passed":
        if message:
            ET.SubElement(case, "system-out").text = message
        return
    element = ET.SubElement(case, test.result, message=message)
    if test.result != "skipped":
        element.set("type", test.kind)
        element.text = message


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", printable(text, 2000))
