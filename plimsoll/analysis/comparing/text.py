"""The text that the command prints. Names and texts are hostile until they are made printable here."""

import textwrap
from collections.abc import Iterator
from itertools import chain

from plimsoll.analysis.comparing.comparison import Comparison
from plimsoll.analysis.comparing.decision import Outcome
from plimsoll.analysis.comparing.phase_table import phase_lines
from plimsoll.analysis.comparing.questions import sentences
from plimsoll.analysis.comparing.verdicts import GateVerdict
from plimsoll.analysis.evidence.finding import FindingKind
from plimsoll.common.hostile import printable
from plimsoll.common.units import ABSENT, counted, milliseconds, significant

_WIDTH = 108
_WORDS: dict[Outcome, str] = {"PASS": "passed", "FAIL": "failed", "INCONCLUSIVE": "cannot be told yet"}


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
    widths = [max(len(row[column]) for row in rows) for column in range(len(heading))]
    for row in rows:
        left = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        yield "  ".join([*left, *right]).rstrip()


def _wrapped(text: str, label: str) -> list[str]:
    return textwrap.wrap(_safe(text, 4000), _WIDTH, initial_indent=label, subsequent_indent="  ")


def _safe(text: str, longest: int = 300) -> str:
    return printable(text, longest)
