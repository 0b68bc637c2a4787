"""The history as one page that is complete in itself, in the look of the report."""

from collections.abc import Sequence
from pathlib import Path

from plimsoll.analysis.comparing.metrics.error_share import ERROR_SHARE
from plimsoll.analysis.comparing.page import TEMPLATES as COMPARING
from plimsoll.analysis.regress.judgement import Judgement, overall
from plimsoll.analysis.regress.text import (
    DECIDED,
    against,
    figure,
    finding_word,
    gate_effect,
    state,
    subject,
    title,
)
from plimsoll.analysis.regress.trends import trend_charts
from plimsoll.analysis.report.shell import rendered
from plimsoll.analysis.report.tables import Row, Table
from plimsoll.common.units import ABSENT

_OWN = Path(__file__).parent / "templates"
_LAST = 30
_LOOKS = {"worse": "FAIL", "unjudged": "INCONCLUSIVE", "steady": "PASS"}
_WORDS = {"worse": "worse", "unjudged": "cannot be judged", "steady": "nothing worse"}


def history_page(judgements: Sequence[Judgement]) -> str:
    """Return the HTML."""
    verdict = overall(list(judgements))
    parts = [
        (
            *(each, title(each), _series(each), _gates(each), trend_charts(number, each)),
            *(_missing(each), _decisions(each)),
        )
        for number, each in enumerate(judgements)
    ]
    return rendered(
        "history.html",
        [figure for part in parts for figure in part[4]],
        _OWN,
        COMPARING,
        styles=["compare.css", "history.css"],
        look=_LOOKS[verdict],
        word=_WORDS[verdict],
        subject=subject(judgements),
        finding_word=finding_word,
        parts=parts,
    )


def _series(judgement: Judgement) -> Table:
    rows = [
        Row(
            each.series.key.name,
            [
                state(each),
                figure(each, each.tonight),
                figure(each, each.level),
                against(each),
                str(len(each.series.values)),
                each.says,
            ],
            "amiss" if judgement.is_red(each) or each.state == "missing" else "",
        )
        for each in judgement.series
    ]
    unit, last = judgement.unit, judgement.last
    caption = f"Each series: its last {unit}, and the level of the {unit}s before it since the last change."
    columns = ["series", "", last, "before", "effect", f"{unit}s", ""]
    return Table(last.capitalize(), caption, columns, rows)


def _gates(judgement: Judgement) -> Table | None:
    if not judgement.gates:
        return None
    rows = [
        Row(
            each.name,
            [
                each.verdict.outcome,
                gate_effect(each, each.verdict.estimate),
                f"≤ {gate_effect(each, each.at_most)}",
                f"{each.nights[0]} v {each.nights[1]}",
                each.verdict.says,
            ],
            "amiss" if each.verdict.outcome == "FAIL" else "",
        )
        for each in judgement.gates
    ]
    first, last = judgement.baseline[0].name, judgement.baseline[-1].name
    unit = judgement.unit
    caption = f"The last {unit}s against the baseline's, {first} to {last}. A {unit} is one value."
    columns = ["gate", "verdict", "effect", "limit", f"{unit}s", ""]
    return Table("Against the baseline", caption, columns, rows)


def _decisions(judgement: Judgement) -> Table | None:
    """Return what was decided, the last first."""
    if not judgement.decisions:
        return None
    rows = [
        Row(each.at[:10], [DECIDED[each.kind], each.name, each.by or ABSENT, each.note or ABSENT])
        for each in reversed(judgement.decisions)
    ]
    caption = "What somebody accepted, set or dropped: it is no failure any more because of that."
    return Table("Decisions", caption, ["day", "", "what", "who", "why"], rows)


def _missing(judgement: Judgement) -> Table | None:
    """Return the nights in which a series has no figure, the last ones first."""
    found: dict[tuple[str, str], Row] = {}
    for each in judgement.series:
        if each.series.key.metric == ERROR_SHARE:
            continue
        for night in each.series.nights:
            if not night.repeats:
                name = night.night.name
                what = " on ".join(filter(None, each.series.key.group))
                found.setdefault((name, what), Row(name, [what, night.why]))
    if not found:
        return None
    rows = [found[key] for key in sorted(found, reverse=True)]
    more = f" The last {_LAST} of {len(rows)}." if len(rows) > _LAST else ""
    caption = f"They are in no series, and the figures mark them.{more}"
    unit = judgement.unit
    title = f"{unit.capitalize()}s without a figure"
    return Table(title, caption, [unit, "series", "why"], rows[:_LAST])
