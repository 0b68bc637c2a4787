"""The night as Markdown: for a message, and for GitHub's step summary. Names are hostile."""

import re
from collections.abc import Iterator, Sequence

from analysis.history.judgement import Judgement
from analysis.history.text import (
    against,
    figure,
    finding_word,
    gate_effect,
    last_decisions,
    state,
    subject,
    title,
)
from plimsoll.common.hostile import printable

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|~^:@$=])")


def escaped(text: str, longest: int = 300) -> str:
    """Return `text` so that Markdown shows it as it is: no link, no mention, no HTML, no image, one line."""
    shown = printable(text, longest).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    shown = _SPECIAL.sub(r"\\\1", shown)
    # GitHub mentions, links and closes in spite of a backslash: an invisible comment keeps the words apart.
    shown = shown.replace(r"\@", "@<!-- -->").replace("\\#", "#<!-- -->")
    return re.sub(r"(?i)(https?|ftp|www|mailto)(?=\\[:.])", r"\1<!-- -->", shown)


def markdown(judgements: Sequence[Judgement]) -> str:
    """Return the whole summary."""
    return "\n".join([f"# Plimsoll: {escaped(subject(judgements))}", "", *_all(judgements)]) + "\n"


def _all(judgements: Sequence[Judgement]) -> Iterator[str]:
    for each in judgements:
        name = f"{escaped(each.experiment)}, " if each.experiment else ""
        yield f"## {name}{escaped(title(each))} (night {each.nights:,})"
        yield ""
        if each.series:
            yield from _row("", "series", "tonight", "before", "effect", "nights", "")
            yield "| --- | --- | ---: | ---: | ---: | ---: | --- |"
            for one in each.series:
                bold = each.is_red(one) or one.state in ("recovered", "missing")
                mark = f"**{state(one)}**" if bold else state(one)
                figures = (figure(one, one.tonight), figure(one, one.level), against(one))
                yield from _row(
                    mark,
                    escaped(one.series.key.name),
                    *figures,
                    str(len(one.series.values)),
                    escaped(one.says),
                )
            yield ""
        if each.gates:
            yield from _row("baseline", "gate", "effect", "limit", "nights", "")
            yield "| --- | --- | ---: | ---: | ---: | --- |"
            for gate in each.gates:
                outcome = (
                    f"**{gate.verdict.outcome}**" if gate.verdict.outcome == "FAIL" else gate.verdict.outcome
                )
                limit = f"≤ {gate_effect(gate, gate.at_most)}"
                says = "" if gate.verdict.outcome == "PASS" else escaped(gate.verdict.says)
                nights = f"{gate.nights[0]} v {gate.nights[1]}"
                effect = gate_effect(gate, gate.verdict.estimate)
                yield from _row(outcome, escaped(gate.name), effect, limit, nights, says)
            yield ""
        for problem in each.unjudged:
            yield f"- Cannot be judged: {escaped(problem, 1000)}"
        for finding in each.findings:
            word = finding_word(finding).capitalize()
            yield f"- {word}: {escaped(f'{finding.text} {finding.remedy}', 1000)}"
        for note in each.notes:
            yield f"- {escaped(note, 1000)}"
        for decided in last_decisions(each):
            yield f"- Decided: {escaped(decided, 1000)}"
        if each.unjudged or each.findings or each.notes or each.decisions:
            yield ""


def _row(*cells: str) -> Iterator[str]:
    yield f"| {' | '.join(cells)} |"
