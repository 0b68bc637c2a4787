"""What a comparison is written as: text for a terminal, Markdown, JUnit, and the files that options name."""

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import click

from plimsoll.analysis.compare.comparison import Comparison
from plimsoll.analysis.compare.decision import Outcome
from plimsoll.analysis.compare.phase_table import phase_lines
from plimsoll.analysis.compare.questions import sentences
from plimsoll.analysis.compare.verdicts import GateVerdict
from plimsoll.analysis.evidence.finding import FindingKind
from plimsoll.common.errors import OutputError
from plimsoll.common.files import open_output
from plimsoll.common.hostile import markdown_text, printable
from plimsoll.common.junit import JUnit
from plimsoll.common.markdown import heading, row
from plimsoll.common.units import ABSENT, counted, milliseconds, significant

_PATH = click.Path(path_type=Path)
_WIDTH = 108
_WORDS: dict[Outcome, str] = {"PASS": "passed", "FAIL": "failed", "INCONCLUSIVE": "cannot be told yet"}
_LONG = 1000  # letters of a sentence in Markdown


def document_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --junit and --markdown."""
    for flag, name, says in (
        ("--markdown", "markdown_file", "Write a summary in Markdown."),
        ("--junit", "junit_file", "Write JUnit XML."),
    ):
        command = click.option(flag, name, metavar="FILE", type=_PATH, help=says)(command)
    return command


@dataclass(frozen=True)
class Documents:
    """Where to write them; None is nowhere. `command` is the subcommand that they are named by."""

    command: str
    junit: Path | None
    markdown: Path | None

    def __post_init__(self) -> None:
        for path in (self.junit, self.markdown):
            if path is not None and path.is_dir():
                raise OutputError(f"{path}: is a directory; give the name of a file")

    @property
    def wanted(self) -> bool:
        """True where any is to be written."""
        return self.junit is not None or self.markdown is not None

    def write(self, comparison: Comparison) -> None:
        """Write each, whole or not at all. Raises OutputError."""
        if self.junit is not None:
            _write(self.junit, junit(comparison, self.command))
        if self.markdown is not None:
            _write(self.markdown, markdown(comparison).encode())


def _write(path: Path, data: bytes) -> None:
    with open_output(path) as file:
        file.write(data)


def summary(comparison: Comparison) -> str:
    """Return what all verdicts come to, in one sentence (hostile)."""
    parts = [
        f"{comparison.count(outcome)} {word}" for outcome, word in _WORDS.items() if comparison.count(outcome)
    ]
    sides = f"{comparison.candidate.name} against {comparison.baseline.name}"
    return f"{sides}: {counted(len(comparison.judged), 'limit')} checked, {', '.join(parts)}"


def interval_heading(comparison: Comparison) -> str:
    """Return what the column of intervals holds: each of its ends is at `confidence`."""
    return f"{significant(100 * (2 * comparison.gates.confidence - 1))} % interval"


def figure(judged: GateVerdict, value: float | None) -> str:
    """Return one side's figure: a time, a share, or a measure without its unit."""
    if value is None:
        return ABSENT
    if judged.gate.kind.is_share:
        return share(value)
    return (
        milliseconds(value) if judged.in_ms else f"{significant(value)} {printable(judged.unit, 12)}".strip()
    )


def effect(judged: GateVerdict, value: float | None) -> str:
    """Return an effect or an end of its interval, in the terms of its limit."""
    if value is None:
        return ABSENT
    if judged.question.limit == "at_most_ratio":
        return f"× {value:.2f}" if value < 100 else f"× {significant(value)}"
    if judged.question.limit == "at_most_more":
        return ("+" if value > 0 else "−" if value < 0 else "±") + share(abs(value))
    return figure(judged, value)


def interval(judged: GateVerdict) -> str:
    """Return both confidence limits; a dash where so few runs have none."""
    verdict = judged.verdict
    if verdict.lower is None or verdict.upper is None:
        return ABSENT
    return f"{effect(judged, verdict.lower)} … {effect(judged, verdict.upper)}"


def limit(judged: GateVerdict) -> str:
    """Return the limit."""
    return f"≤ {effect(judged, judged.question.at_most)}"


def share(value: float) -> str:
    """Return a share in percent, three digits."""
    return f"{significant(100 * value)} %"


def lines(comparison: Comparison) -> Iterator[str]:
    """Yield the lines of the text, safe for a terminal."""
    yield f"{comparison.verdict}: {_safe(summary(comparison))}."
    yield ""
    yield from _table(comparison)
    if phases := list(phase_lines(comparison)):
        yield ""
        yield from (_safe(line) for line in phases)
    reasons = [each for each in comparison.judged if each.verdict.outcome != "PASS" and each.verdict.says]
    grouped: dict[str, list[str]] = {}
    for each in reasons:
        says = " ".join(filter(None, (each.verdict.says, each.verdict.power)))
        grouped.setdefault(says, []).append(f"{each.gate.name} {limit(each)}")
    for says, gates in grouped.items():
        yield ""
        yield from _wrapped(f"{', '.join(gates)}: {says}", "")
    for claim in dict.fromkeys(each.verdict.claim for each in comparison.judged if each.verdict.claim):
        yield ""
        yield from _wrapped(claim, "")
    if comparison.warnings:
        yield ""
    by_kind: dict[tuple[FindingKind, str | None], list[str]] = {}
    for finding in comparison.findings:
        if not finding.disqualifies:
            by_kind.setdefault((finding.kind, finding.scenario), []).append(finding.sentence)
    for warning in chain.from_iterable(map(sentences, by_kind.values())):
        yield from _wrapped(warning, "warning: ")


def _table(comparison: Comparison) -> Iterator[str]:
    heading = [
        "verdict",
        "gate",
        _safe(comparison.baseline.name, 24),
        _safe(comparison.candidate.name, 24),
        "effect",
        interval_heading(comparison),
        "limit",
        "runs",
    ]
    rows = [heading]
    for each in comparison.judged:
        baseline, candidate = (figure(each, value) for value in each.levels)
        runs = f"{len(each.question.baseline)} v {len(each.question.candidate)}"
        cells = [baseline, candidate, effect(each, each.verdict.estimate), interval(each), limit(each), runs]
        rows.append([each.verdict.outcome, _safe(each.gate.name, 48), *cells])
    widths = [max(len(line[column]) for line in rows) for column in range(len(heading))]
    for line in rows:
        left = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        yield "  ".join([*left, *right]).rstrip()


def _wrapped(text: str, label: str) -> list[str]:
    return textwrap.wrap(_safe(text, 4000), _WIDTH, initial_indent=label, subsequent_indent="  ")


def _safe(text: str, longest: int = 300) -> str:
    return printable(text, longest)


def markdown(comparison: Comparison) -> str:
    """Return the whole summary."""
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    sides = [markdown_text(side.name) for side in (comparison.baseline, comparison.candidate)]
    yield f"# Plimsoll: {comparison.verdict}"
    yield ""
    yield f"{markdown_text(summary(comparison), _LONG)}."
    yield ""
    figures = [*sides, "effect", interval_heading(comparison), "limit", "runs"]
    yield from heading(["", "gate"], figures)
    for each in comparison.judged:
        outcome = each.verdict.outcome
        cells = [figure(each, value) for value in each.levels]
        cells += [effect(each, each.verdict.estimate), interval(each), limit(each)]
        runs = f"{len(each.question.baseline)} v {len(each.question.candidate)}"
        shown = outcome if outcome == "PASS" else f"**{outcome}**"
        yield row(shown, *(markdown_text(cell) for cell in (each.gate.name, *cells, runs)))
    yield ""
    for each in comparison.judged:
        if each.verdict.outcome != "PASS" and each.verdict.says:
            says = " ".join(filter(None, (f"{each.gate.name}: {each.verdict.says}", each.verdict.power)))
            yield f"- {markdown_text(says, _LONG)}"
    for claim in dict.fromkeys(each.verdict.claim for each in comparison.judged if each.verdict.claim):
        yield f"- {markdown_text(claim, _LONG)}"
    for finding in comparison.findings:
        word = "Evidence" if finding.disqualifies else "Warning"
        yield f"- {word}: {markdown_text(finding.sentence, _LONG)}"


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
