"""Which backend is faster, by how much, and how sure that is: what a page on several backends says first."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.analysis.page.section import Big
from plimsoll.analysis.report.phase_figures import ScenarioFigures
from plimsoll.analysis.report.phase_table import AMONG, spoken
from plimsoll.analysis.report.standing import Lead, Standing, Standings, stand
from plimsoll.common.units import at_least, counted, listed, milliseconds, significant

_CAPTION = (
    "A typical run: the geometric mean of the runs' own figures, each run counting once; below, the requests "
    "of all repeats are pooled. How sure: a permutation test of all pairs of backends (docs/statistics.md). "
    "To hold it to limits run plimsoll compare, to have a document to sign plimsoll signoff."
)


@dataclass(frozen=True)
class Answer:
    """The answer of one scenario, ready to be shown; names of backends in it are hostile."""

    title: str
    sentence: str
    big: list[Big]
    caption: str = _CAPTION


def answers(compared: Sequence[ScenarioFigures], doubts: int) -> list[Answer]:
    """Return the answer of each scenario that ran on several backends.

    `doubts` is how many grave warnings say that the figures are not to be trusted.
    """
    found = [each for figures in compared if (each := stand(figures))]
    return [_answer(each, len(compared) == 1, doubts) for each in found]


def answer_lines(compared: Sequence[ScenarioFigures], doubts: int) -> list[str]:
    """Return the same for the terminal (hostile), a line a scenario."""
    found = [(each, stands) for each in compared if (stands := stand(each))]
    several = len(compared) > 1
    return [(f"{each.scenario.name}: " if several else "") + _in_a_line(one, doubts) for each, one in found]


def answers_json(compared: Sequence[ScenarioFigures], doubts: int) -> list[dict[str, object]]:
    """Return what `--json` prints of the answers."""
    return [_json(each, doubts) for figures in compared if (each := stand(figures))]


def _answer(stands: Standings, alone: bool, doubts: int) -> Answer:
    nearest = stands.leads[0] if stands.leads else None
    # The nearest, which decides, and the one that is farthest off: often that which is to be replaced.
    told = [stands.leads[at] for at in sorted({0, len(stands.leads) - 1})] if stands.leads else []
    big = [
        _faster(stands, nearest, doubts),
        *(_how_much(stands, lead, doubts) for lead in told),
        _how_sure(stands, nearest, doubts),
    ]
    of = "" if alone else f"{stands.figures.scenario.name}: "
    return Answer(f"Which backend is faster: {of}{_what(stands)}", _sentence(stands, doubts), big)


def _faster(stands: Standings, nearest: Lead | None, doubts: int) -> Big:
    """Return the name of the best backend where that is clear, and else that it is not."""
    best = stands.standings[0]
    if nearest and nearest.outcome == "clear" and not doubts:
        return Big(
            "faster", best.backend.called, _level(stands, best), first=True, colour=best.backend.colour
        )
    unclear = nearest is not None and nearest.outcome == "not clear"
    value = "in doubt" if doubts else "no clear winner" if unclear else "not known"
    return Big("faster", value, f"{best.backend.called} is ahead: {_level(stands, best)}", first=True)


def _how_much(stands: Standings, lead: Lead, doubts: int) -> Big:
    first, other = stands.standings[0].backend.called, lead.other.backend.called
    limits = f"; {_limits(lead)} at 95 %" if _limits(lead) else ""
    faint = bool(doubts) or lead.outcome != "clear"
    name, as_much = (
        (f"{other} takes", "as long") if stands.subject.is_time else (f"{first} has", f"as much as {other}")
    )
    return Big(name, _times(lead), f"{as_much}: {_level(stands, lead.other)}{limits}", faint=faint)


def _how_sure(stands: Standings, lead: Lead | None, doubts: int) -> Big:
    """Return how sure it is that the best backend is before the nearest."""
    if doubts:
        return Big("how sure", "not at all", f"{counted(doubts, 'grave warning')} below")
    if lead is None:
        return Big("how sure", "not at all", "failures have no time")
    best, other = stands.standings[0].backend.called, lead.other.backend.called
    name = "how sure" if len(stands.standings) == 2 else f"how sure: {best} over {other}"
    runs = f"{lead.distance.runs[0]} against {counted(lead.distance.runs[1], 'run')}"
    if lead.outcome == "too few runs":
        return Big(name, "too few runs", f"{runs}; it takes {lead.distance.needs} each at least", faint=True)
    if lead.outcome == "not alternating":
        return Big(
            name,
            "not sure",
            f"{runs} that did not alternate: what drifted meanwhile may be the gap",
            faint=True,
        )
    clear = lead.outcome == "clear"
    return Big(name, "clear" if clear else "not sure", f"{_chance(lead)}; {runs}", faint=not clear)


def _sentence(stands: Standings, doubts: int) -> str:
    subject, best = stands.subject, stands.standings[0]
    parts = [f"{_figure(stands, best)} on {best.backend.called}"]
    for other in stands.standings[1:]:
        lead = next((each for each in stands.leads if each.other is other), None)
        text = f"{_figure(stands, other)} on {other.backend.called}"
        if lead:
            limits = f", {_limits(lead)}" if _limits(lead) else ""
            unclear = "" if lead.outcome == "clear" else f"; {lead.outcome}"
            text += f" ({_times(lead)}{limits}{unclear})"
        parts.append(text)
    took = "took" if subject.is_time else "was"
    text = f"{_what(stands, as_begin=True)} {took}, in a typical run, {listed(parts)}."
    if failed := [one for one in stands.standings if one.failed]:
        named = [f"{one.failed} of {_runs_of(one)} on {one.backend.called}" for one in failed]
        text += f" It is a failure's in {listed(named)}, and so at least that."
    if doubts:
        says = "says" if doubts == 1 else "say"
        text += f" {counted(doubts, 'grave warning')} below {says} why not to trust it."
    return text


def _in_a_line(stands: Standings, doubts: int) -> str:
    nearest = stands.leads[0] if stands.leads else None
    faster, sure = _faster(stands, nearest, doubts), _how_sure(stands, nearest, doubts)
    return f"Faster: {faster.value} ({sure.value}: {sure.below}). {_sentence(stands, doubts)}"


def _what(stands: Standings, as_begin: bool = False) -> str:
    """Return what the figures are of and when: as a sentence begins, or as a title goes on."""
    subject = stands.subject
    name = AMONG[subject.name] if subject.is_percentile else f"“{subject.name.replace('_', ' ')}”"
    while_ = " and ".join(spoken(saturator) for saturator in stands.figures.scenario.saturators)
    when = f"while {while_} ran" if subject.phase == "during" else ""
    if not as_begin:
        return f"{name} {when}".strip()
    text = f"{when}, {name}" if when else name
    return text[0].upper() + text[1:]


def _level(stands: Standings, one: Standing) -> str:
    of = stands.subject.name.replace("_", " ")
    return f"{of} {_figure(stands, one)}"


def _figure(stands: Standings, one: Standing) -> str:
    if one.level is None or one.unknown:
        return "unknown (failed)"
    unit = stands.subject.unit
    text = milliseconds(one.level) if stands.subject.is_time else f"{significant(one.level)} {unit}"
    return at_least(text) if one.bounds else text


def _times(lead: Lead) -> str:
    text = f"{_ratio(lead.distance.ratio)} times"
    return at_least(text) if lead.is_bound else text


def _limits(lead: Lead) -> str:
    if lead.distance.lower is None:
        return ""
    if lead.distance.upper is None:
        return at_least(_ratio(lead.distance.lower))
    return f"{_ratio(lead.distance.lower)} to {_ratio(lead.distance.upper)}"


def _ratio(value: float) -> str:
    return significant(value, 2) if value >= 2 else f"{value:.2f}"


def _chance(lead: Lead) -> str:
    """Return how often backends that are alike would lie as far apart: p in words."""
    p = lead.distance.p
    often = "most" if p > 0.5 else f"1 of {math.floor(1 / p + 1e-9):,}"
    return f"were both equal, so large a gap would come in {often} experiments"


def _runs_of(one: Standing) -> str:
    return counted(len(one.values) + one.unknown, "run")


def _json(stands: Standings, doubts: int) -> dict[str, object]:
    return {
        "scenario": stands.figures.scenario.name,
        "of": stands.subject.name,
        "phase": stands.subject.phase,
        "unit": stands.subject.unit,
        "grave_warnings": doubts,
        "backends": [
            {
                "backend": one.backend.name,
                "level": None if one.unknown else one.level,
                "runs": len(one.values) + one.unknown,
                "failed_runs": one.failed,
            }
            for one in stands.standings
        ],
        "against_first": [
            {
                "backend": lead.other.backend.name,
                "outcome": lead.outcome,
                "ratio": lead.distance.ratio,
                "lower": lead.distance.lower,
                "upper": lead.distance.upper,
                "is_bound": lead.is_bound,
                "p": lead.distance.p,
            }
            for lead in stands.leads
        ],
    }
