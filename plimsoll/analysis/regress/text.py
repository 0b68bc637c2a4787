"""The text that the command prints. Names and texts are hostile until they are made printable here."""

import textwrap
from collections.abc import Iterator, Sequence

from plimsoll.analysis.comparing.text import share
from plimsoll.analysis.regress.judgement import GateResult, Judgement, NightVerdict, SeriesResult, overall
from plimsoll.analysis.regress.rows import Decision, NightFinding
from plimsoll.common.hostile import printable
from plimsoll.common.severity import Severity
from plimsoll.common.units import ABSENT, counted, milliseconds

_WIDTH = 108
_NOTHING = 1e-9
_STATES = {
    "news": "WORSE",
    "known": "still worse",
    "recovered": "recovered",
    "better": "better",
    "steady": "steady",
    "young": "young",
    "missing": "missing",
}
DECIDED = {"accept": "accepted", "baseline": "baseline set to", "drop": "dropped"}
LAST_DECISIONS = 5
_HEADLINES: dict[NightVerdict, str] = {
    "worse": "WORSE",
    "unjudged": "CANNOT BE JUDGED",
    "steady": "NOTHING WORSE",
}


def state(result: SeriesResult) -> str:
    """Return what a series' state is called."""
    return _STATES[result.state]


def figure(result: SeriesResult, value: float | None) -> str:
    """Return a figure of a series in its unit."""
    if value is None:
        return ABSENT
    return share(value) if result.series.shares else milliseconds(value)


def against(result: SeriesResult) -> str:
    """Return tonight by the level of the nights before."""
    if result.tonight is None or result.level is None:
        return ABSENT
    if result.series.shares:
        more = result.tonight - result.level
        if abs(more) < _NOTHING:
            return "±0 %"
        return f"{'+' if more > 0 else '−'}{share(abs(more))}"
    return f"× {result.tonight / result.level:.2f}"


def subject(judgements: Sequence[Judgement]) -> str:
    """Return the news in one line (hostile)."""
    word = overall(list(judgements))
    reasons = []
    for each in judgements:
        if each.verdict == word:
            reasons += [f"{one.series.key.name} {one.says}" for one in _news_first(each)]
            reasons += [f"{one.name} breaks its limit" for one in each.failed]
            reasons += [one.text.rstrip(".") for one in each.shown_worse]
            reasons += each.unjudged if word == "unjudged" else []
    if not reasons:
        nights = ", ".join(f"{title(each)}" for each in judgements) or "no night"
        return f"nothing worse: {nights}"
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return f"{'worse' if word == 'worse' else 'cannot be judged'}: {reasons[0]}{more}"


def _news_first(judgement: Judgement) -> list[SeriesResult]:
    """Return the series that fail, those with news before those that were reported before."""
    return sorted(judgement.red, key=lambda each: each.state != "news")


def news(judgement: Judgement) -> str:
    """Return what a message of tonight is about, in one line (hostile)."""
    worse = [f"{each.series.key.name} {each.says}" for each in judgement.news]
    worse += [f"{each.name} breaks its limit" for each in judgement.failed if each.is_news]
    worse += [each.text.rstrip(".") for each in judgement.shown_worse]
    recovered = [f"{each.series.key.name} {each.says}" for each in judgement.recovered]
    recovered += [f"{each.name} keeps its limit again" for each in judgement.gates if each.is_recovered]
    word = "worse" if worse else "cannot be judged" if judgement.unjudged else "recovered"
    reported = [*worse, *judgement.unjudged, *recovered]
    more = f" (and {len(reported) - 1} more)" if len(reported) > 1 else ""
    return (
        f"{judgement.experiment or 'plimsoll'} {word}: {reported[0]}{more}"
        if reported
        else subject([judgement])
    )


def finding_word(finding: NightFinding) -> str:
    """Return what a finding of the gatekeeper comes to."""
    if finding.disqualifies:
        return "worse" if finding.worse else "no evidence"
    return "doubt" if finding.level is Severity.WARN else "note"


def decision(decided: Decision) -> str:
    """Return what was decided, when, by whom, and why (hostile)."""
    by = f" by {decided.by}" if decided.by else ""
    why = f": {decided.note.rstrip('.')}" if decided.note else ""
    return f"{DECIDED[decided.kind]} {decided.name}, {decided.at[:10]}{by}{why}"


def last_decisions(judgement: Judgement) -> Iterator[str]:
    """Yield the last decisions, the newest first, and how many there were before (hostile)."""
    yield from map(decision, reversed(judgement.decisions[-LAST_DECISIONS:]))
    earlier = len(judgement.decisions) - LAST_DECISIONS
    if earlier > 0:
        yield f"{counted(earlier, 'decision')} before these: --html or --json has them"


def title(judgement: Judgement) -> str:
    """Return which night it is (hostile)."""
    return judgement.night.name or judgement.experiment


def gate_effect(result: GateResult, value: float | None) -> str:
    """Return an effect on a gate, or its limit, in the terms of the limit."""
    if value is None:
        return ABSENT
    if result.limit == "at_most_ratio":
        return f"× {value:.2f}"
    if result.limit == "at_most_more":
        return f"{'+' if value > 0 else '−' if value < 0 else '±'}{share(abs(value))}"
    return share(value) if result.gate.kind.is_share else milliseconds(value)


def lines(judgements: Sequence[Judgement]) -> Iterator[str]:
    """Yield the lines of the text, safe for a terminal."""
    for number, each in enumerate(judgements):
        if number:
            yield ""
        yield from _one(each)
    if not judgements:
        yield "The history holds no night yet: plimsoll regress RUNS..."


def _one(judgement: Judgement) -> Iterator[str]:
    name = f"{judgement.experiment}, " if judgement.experiment else ""
    yield _safe(
        f"{_HEADLINES[judgement.verdict]}: {name}{title(judgement)}, {judgement.unit} {judgement.nights:,}."
    )
    if judgement.series:
        yield ""
        heading = ["", "series", judgement.last, "before", "effect", f"{judgement.unit}s", ""]
        rows = [
            [
                state(each),
                _safe(each.series.key.name, 70),
                figure(each, each.tonight),
                figure(each, each.level),
                against(each),
                str(len(each.series.values)),
                _safe(each.says, 200),
            ]
            for each in judgement.series
        ]
        yield from _table([heading, *rows], left=(0, 1, 6))
    if judgement.gates:
        yield ""
        first, last = judgement.baseline[0], judgement.baseline[-1]
        nights = f"{first.name} … {last.name}"
        heading = ["baseline", "gate", "effect", "limit", f"{judgement.unit}s"]
        rows = [
            [
                each.verdict.outcome,
                _safe(each.name, 70),
                gate_effect(each, each.verdict.estimate),
                f"≤ {gate_effect(each, each.at_most)}",
                f"{each.nights[0]} v {each.nights[1]}",
            ]
            for each in judgement.gates
        ]
        yield from _table([heading, *rows], left=(0, 1))
        yield from _wrapped(f"The baseline is {nights}, {counted(len(judgement.baseline), judgement.unit)}.")
        said = [
            each.verdict.says
            for each in judgement.gates
            if each.verdict.outcome != "PASS" and each.verdict.says
        ]
        for says in filter(None, dict.fromkeys(said)):
            yield from _wrapped(says, "  ")
    if judgement.unjudged or judgement.findings or judgement.notes or judgement.decisions:
        yield ""
    for problem in judgement.unjudged:
        yield from _wrapped(f"{problem}.", "cannot be judged: ")
    for finding in judgement.findings:
        yield from _wrapped(f"{finding.text} {finding.remedy}", f"{finding_word(finding)}: ")
    for note in judgement.notes:
        yield from _wrapped(f"{note}.", "note: ")
    for decided in last_decisions(judgement):
        yield from _wrapped(f"{decided}.", "decided: ")


def _table(rows: Sequence[Sequence[str]], left: Sequence[int]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _wrapped(text: str, label: str = "") -> list[str]:
    return textwrap.wrap(_safe(text, 2000), _WIDTH, initial_indent=label, subsequent_indent="  ")


def _safe(text: str, longest: int = 300) -> str:
    return printable(text, longest)
