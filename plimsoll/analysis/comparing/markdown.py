"""A comparison as Markdown: for a message, and for GitHub's step summary. Names are hostile."""

from collections.abc import Iterator

from plimsoll.analysis.comparing.comparison import Comparison
from plimsoll.analysis.comparing.text import effect, figure, interval, interval_heading, limit, summary
from plimsoll.common.hostile import markdown_text
from plimsoll.common.markdown import heading, row

_LONG = 1000


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
