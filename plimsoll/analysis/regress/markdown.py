"""The night as Markdown: for a message, and for GitHub's step summary. Names are hostile."""

from collections.abc import Iterator, Sequence

from plimsoll.analysis.regress.judgement import Judgement
from plimsoll.analysis.regress.text import (
    against,
    figure,
    finding_word,
    gate_effect,
    last_decisions,
    state,
    subject,
    title,
)
from plimsoll.common.hostile import markdown_text
from plimsoll.common.markdown import heading, row


def markdown(judgements: Sequence[Judgement]) -> str:
    """Return the whole summary."""
    return "\n".join([f"# Plimsoll: {markdown_text(subject(judgements))}", "", *_all(judgements)]) + "\n"


def _all(judgements: Sequence[Judgement]) -> Iterator[str]:
    for each in judgements:
        name = f"{markdown_text(each.experiment)}, " if each.experiment else ""
        yield f"## {name}{markdown_text(title(each))} ({each.unit} {each.nights:,})"
        yield ""
        if each.series:
            yield from heading(["", "series"], [each.last, "before", "effect", f"{each.unit}s"], [""])
            for one in each.series:
                bold = each.is_red(one) or one.state in ("recovered", "missing")
                mark = f"**{state(one)}**" if bold else state(one)
                figures = (figure(one, one.tonight), figure(one, one.level), against(one))
                yield row(
                    mark,
                    markdown_text(one.series.key.name),
                    *figures,
                    str(len(one.series.values)),
                    markdown_text(one.says),
                )
            yield ""
        if each.gates:
            yield from heading(["baseline", "gate"], ["effect", "limit", f"{each.unit}s"], [""])
            for gate in each.gates:
                outcome = (
                    f"**{gate.verdict.outcome}**" if gate.verdict.outcome == "FAIL" else gate.verdict.outcome
                )
                limit = f"≤ {gate_effect(gate, gate.at_most)}"
                says = "" if gate.verdict.outcome == "PASS" else markdown_text(gate.verdict.says)
                nights = f"{gate.nights[0]} v {gate.nights[1]}"
                effect = gate_effect(gate, gate.verdict.estimate)
                yield row(outcome, markdown_text(gate.name), effect, limit, nights, says)
            yield ""
        for problem in each.unjudged:
            yield f"- Cannot be judged: {markdown_text(problem, 1000)}"
        for finding in each.findings:
            word = finding_word(finding).capitalize()
            yield f"- {word}: {markdown_text(f'{finding.text} {finding.remedy}', 1000)}"
        for note in each.notes:
            yield f"- {markdown_text(note, 1000)}"
        for decided in last_decisions(each):
            yield f"- Decided: {markdown_text(decided, 1000)}"
        if each.unjudged or each.findings or each.notes or each.decisions:
            yield ""
