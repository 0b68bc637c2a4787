"""Which backend is faster, by how much, and how sure that is: what a page on several backends says first."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.analysis.charts.style import RUN_COLOURS
from plimsoll.analysis.report.headline import Big
from plimsoll.analysis.report.phase_figures import ScenarioFigures
from plimsoll.analysis.report.phase_table import AMONG, spoken
from plimsoll.analysis.report.standing import Lead, Standing, Standings, stand
from plimsoll.common.units import at_least, counted, listed, milliseconds, significant

_CAPTION = (
    "Geometric means of the runs' own figures; a permutation test tells how sure it is "
    "(docs/statistics.md). plimsoll compare judges by limits, plimsoll signoff writes it to be signed."
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
    title = "Which backend is faster"
    big = [
        _faster(stands, nearest, doubts),
        *([_how_much(stands, nearest)] if nearest else []),
        _how_sure(nearest, doubts),
    ]
    return Answer(
        title if alone else f"{title}: {stands.figures.scenario.name}", _sentence(stands, doubts), big
    )


def _faster(stands: Standings, nearest: Lead | None, doubts: int) -> Big:
    """Return the name of the best backend where that is clear, and else that it is not."""
    best = stands.standings[0]
    if nearest and nearest.distance.outcome == "clear" and not doubts:
        colour = best.backend.shade % RUN_COLOURS + 1
        return Big("faster", best.backend.called, _level(stands, best), first=True, colour=colour)
    unclear = nearest is not None and nearest.distance.outcome == "not clear"
    value = "in doubt" if doubts else "not clear" if unclear else "not known"
    return Big("faster", value, f"{best.backend.called} is ahead: {_level(stands, best)}", first=True)


def _how_much(stands: Standings, lead: Lead) -> Big:
    first, other = stands.standings[0].backend.called, lead.other.backend.called
    limits = f"; {_limits(lead)} at 95 %" if _limits(lead) else ""
    if stands.subject.is_time:
        return Big(f"{other} takes", _times(lead), f"as long: {_level(stands, lead.other)}{limits}")
    return Big(f"{first} has", _times(lead), f"as much as {other}: {_level(stands, lead.other)}{limits}")


def _how_sure(lead: Lead | None, doubts: int) -> Big:
    if doubts:
        return Big("how sure", "not at all", f"{counted(doubts, 'grave warning')} below")
    if lead is None:
        return Big("how sure", "not at all", "failures have no time")
    runs = f"{lead.distance.runs[0]} against {counted(lead.distance.runs[1], 'run')}"
    if lead.distance.outcome == "too few runs":
        return Big("how sure", "too few runs", f"{runs}; it takes {lead.distance.needs} each at least")
    return Big(
        "how sure", "clear" if lead.distance.outcome == "clear" else "chance", f"{_chance(lead)}; {runs}"
    )


def _sentence(stands: Standings, doubts: int) -> str:
    subject, best = stands.subject, stands.standings[0]
    parts = [f"{_figure(stands, best)} on {best.backend.called}"]
    by_name = {lead.other.backend.name: lead for lead in stands.leads}
    for other in stands.standings[1:]:
        lead = by_name.get(other.backend.name)
        text = f"{_figure(stands, other)} on {other.backend.called}"
        if lead:
            limits = f", {_limits(lead)}" if _limits(lead) else ""
            unclear = "" if lead.distance.outcome == "clear" else f"; {lead.distance.outcome}"
            text += f" ({_times(lead)}{limits}{unclear})"
        parts.append(text)
    took = "took" if subject.is_time else "was"
    text = f"{_what(stands)} {took} {listed(parts)}."
    if failed := [one for one in stands.standings if one.failed]:
        named = [f"{one.failed} of {_runs_of(one)} on {one.backend.called}" for one in failed]
        text += f" It is a failure's in {listed(named)}, and so at least that."
    if doubts:
        says = "says" if doubts == 1 else "say"
        text += f" {counted(doubts, 'grave warning')} below {says} why not to trust it."
    return text


def _in_a_line(stands: Standings, doubts: int) -> str:
    nearest = stands.leads[0] if stands.leads else None
    faster, sure = _faster(stands, nearest, doubts), _how_sure(nearest, doubts)
    return f"Faster: {faster.value} ({sure.value}: {sure.below}). {_sentence(stands, doubts)}"


def _what(stands: Standings) -> str:
    """Return what the figures are of, as a sentence begins."""
    subject = stands.subject
    name = AMONG[subject.name] if subject.is_percentile else f"“{subject.name.replace('_', ' ')}” typically"
    if subject.phase != "during":
        return name[0].upper() + name[1:]
    while_ = " and ".join(spoken(saturator) for saturator in stands.figures.scenario.saturators)
    return f"While {while_} ran, {name}"


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
    if lead.distance.p > 0.5:
        return "chance alone does that more often than not"
    often = math.floor(1 / lead.distance.p + 1e-9)
    return f"chance alone does that in 1 of {often:,}"


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
                "outcome": lead.distance.outcome,
                "ratio": lead.distance.ratio,
                "lower": lead.distance.lower,
                "upper": lead.distance.upper,
                "is_bound": lead.is_bound,
                "p": lead.distance.p,
            }
            for lead in stands.leads
        ],
    }
