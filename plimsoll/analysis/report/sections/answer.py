"""Which backend is faster, by how much, and how sure that is: what a page on several backends says first."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.evidence.run import WHOLE
from plimsoll.analysis.evidence.sides import RunPlace, find_order
from plimsoll.analysis.page.section import HeadlineFigure, Section, Sentence
from plimsoll.analysis.report.comparison_findings import count_doubts
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.runs import (
    AMONG,
    Backend,
    BackendRuns,
    Scenario,
    ScenarioFigures,
    common_percentile,
)
from plimsoll.analysis.report.sections.headline import main_measure
from plimsoll.analysis.statistics.factors import Distance, distance
from plimsoll.analysis.statistics.measures import MS_OF, StepFigures
from plimsoll.analysis.statistics.percentiles import PERCENTILES
from plimsoll.analysis.statistics.windows import WHOLE_RUN
from plimsoll.common.units import at_least, counted, listed, milliseconds, significant

_CAPTION = (
    "A typical run: the geometric mean of the runs' own figures, each run counting once; below, the requests "
    "of all repeats are pooled. How sure: a permutation test of all pairs of backends (docs/statistics.md). "
    "To judge it by limits, run plimsoll compare; for a document to sign, plimsoll signoff."
)
_UNCLEAR = {"clear": "", "late": "; not clear, as the load generator was late"}
_P50 = PERCENTILES["p50"]
_OfRun = dict[int, tuple[float, bool]]  # by the run's number: its figure, and whether it is but a lower bound


def answers(compared: Sequence[ScenarioFigures], found: Sequence[Finding]) -> list[Section]:
    """Return the answer of each scenario that ran on several backends.

    `found` are the findings on all runs together; the grave ones put an answer in doubt where they reach it.
    """
    return [_answer(each) for figures in compared if (each := rank_backends(figures, found))]


def answer_lines(compared: Sequence[ScenarioFigures], found: Sequence[Finding]) -> list[str]:
    """Return the same for the terminal (hostile), a line a scenario."""
    ranked = [(each, stands) for each in compared if (stands := rank_backends(each, found))]
    several = len(compared) > 1
    return [(f"{each.scenario.name}: " if several else "") + _in_a_line(stands) for each, stands in ranked]


def answers_json(compared: Sequence[ScenarioFigures], found: Sequence[Finding]) -> list[dict[str, object]]:
    """Return what `--json` prints of the answers."""
    return [_json(each) for figures in compared if (each := rank_backends(figures, found))]


@dataclass(frozen=True)
class RankedBackend:
    """One backend: its runs' figures by number, above 0; `unknown` runs have none that is known.

    `bounds` of the figures are lower bounds, as more than that failed. `prompt` are the figures of the runs
    that were sent late, without the time by which they were.
    """

    backend: Backend
    values: dict[int, float]
    bounds: int
    unknown: int
    prompt: dict[int, float]

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(self.values) + self.unknown

    @property
    def failed(self) -> int:
        """Runs whose figure is a failure's."""
        return self.bounds + self.unknown

    @property
    def level(self) -> float | None:
        """The geometric mean of its runs' figures; None without one."""
        return math.exp(fmean(map(math.log, self.values.values()))) if self.values else None


@dataclass(frozen=True)
class Lead:
    """The best backend's lead over another: how many times as long that takes, or at least.

    `interleaved`: their runs alternated in time, so that what drifts meanwhile favours neither. `distance` is
    as measured except for its limits, which are at both ends of lateness; `holds` where it favours the other,
    too.
    """

    other: RankedBackend
    distance: Distance
    is_bound: bool
    interleaved: bool
    holds: bool

    @property
    def outcome(self) -> str:
        """`clear`, `not clear`, `too few runs` to be either; `not alternating` or `late` leave it open."""
        if self.distance.outcome != "clear":
            return self.distance.outcome
        return "late" if not self.holds else "clear" if self.interleaved else "not alternating"


@dataclass(frozen=True)
class Subject:
    """What the backends are held against one another by, in one phase; `name` is hostile.

    A time in ms where `unit` is that, else a rate in `unit` (hostile), of which more is better.
    """

    name: str
    phase: str
    unit: str
    is_percentile: bool

    @property
    def is_time(self) -> bool:
        """Whether less is better."""
        return self.unit == "ms"


@dataclass(frozen=True)
class Ranking:
    """The backends of a scenario, the best first; `leads` are over each of those that have a figure.

    `doubts` is how many grave warnings say that the figures are not to be trusted.
    """

    scenario: Scenario
    saturators: str
    subject: Subject
    standings: list[RankedBackend]
    leads: list[Lead]
    doubts: int


def _answer(stands: Ranking) -> Section:
    nearest = stands.leads[0] if stands.leads else None
    # The nearest, which decides, and the one that is farthest off: often that which is to be replaced.
    told = [stands.leads[at] for at in sorted({0, len(stands.leads) - 1})] if stands.leads else []
    big = [
        _faster(stands, nearest),
        *(_how_much(stands, lead) for lead in told),
        _how_sure(stands, nearest),
    ]
    return Section(
        title=f"Which backend is faster{stands.scenario.title_end}: {_what(stands)}",
        sentences=[Sentence(_sentence(stands))],
        figures=big,
        caption=_CAPTION,
        layout="answer",
    )


def _faster(stands: Ranking, nearest: Lead | None) -> HeadlineFigure:
    """Return the name of the best backend where that is clear, and else that it is not."""
    best = stands.standings[0]
    if nearest and nearest.outcome == "clear" and not stands.doubts:
        return HeadlineFigure(
            "faster", best.backend.called, _level(stands, best), first=True, colour=best.backend.colour
        )
    unclear = nearest is not None and nearest.outcome == "not clear"
    value = "in doubt" if stands.doubts else "no clear winner" if unclear else "not known"
    return HeadlineFigure(
        "faster", value, f"{best.backend.called} is ahead: {_level(stands, best)}", first=True
    )


def _how_much(stands: Ranking, lead: Lead) -> HeadlineFigure:
    first, other = stands.standings[0].backend.called, lead.other.backend.called
    limits = f"; {_limits(lead)} at 95 %" if _limits(lead) else ""
    faint = bool(stands.doubts) or lead.outcome != "clear"
    name, as_much = (
        (f"{other} takes", "as long") if stands.subject.is_time else (f"{first} has", f"as much as {other}")
    )
    return HeadlineFigure(name, _times(lead), f"{as_much}: {_level(stands, lead.other)}{limits}", faint=faint)


def _how_sure(stands: Ranking, lead: Lead | None) -> HeadlineFigure:
    """Return how sure it is that the best backend is before the nearest."""
    if stands.doubts:
        return HeadlineFigure("how sure", "not at all", f"{counted(stands.doubts, 'grave warning')} below")
    if lead is None:
        return HeadlineFigure("how sure", "not at all", "failures have no time")
    best, other = stands.standings[0].backend.called, lead.other.backend.called
    name = "how sure" if len(stands.standings) == 2 else f"how sure: {best} over {other}"
    runs = f"{lead.distance.runs[0]} against {counted(lead.distance.runs[1], 'run')}"
    if lead.outcome == "too few runs":
        return HeadlineFigure(
            name, "too few runs", f"{runs}; it takes {lead.distance.needs} each at least", faint=True
        )
    if lead.outcome == "not alternating":
        return HeadlineFigure(
            name,
            "not sure",
            f"{runs} that did not alternate: what drifted meanwhile may be the gap",
            faint=True,
        )
    if lead.outcome == "late":
        why = f"{runs}; the load generator was late, and that may be the gap"
        return HeadlineFigure(name, "not sure", why, faint=True)
    clear = lead.outcome == "clear"
    return HeadlineFigure(name, "clear" if clear else "not sure", f"{_chance(lead)}; {runs}", faint=not clear)


def _sentence(stands: Ranking) -> str:
    subject, best = stands.subject, stands.standings[0]
    parts = [f"{_figure(stands, best)} on {best.backend.called}"]
    for other in stands.standings[1:]:
        lead = next((each for each in stands.leads if each.other is other), None)
        text = f"{_figure(stands, other)} on {other.backend.called}"
        if lead:
            limits = f", {_limits(lead)}" if _limits(lead) else ""
            unclear = _UNCLEAR.get(lead.outcome, f"; {lead.outcome}")
            text += f" ({_times(lead)}{limits}{unclear})"
        parts.append(text)
    took = "took" if subject.is_time else "was"
    text = f"{_what(stands, as_begin=True)} {took}, in a typical run, {listed(parts)}."
    if failed := [one for one in stands.standings if one.failed]:
        named = [f"{one.failed} of {counted(one.runs, 'run')} on {one.backend.called}" for one in failed]
        text += f" It is a failure's in {listed(named)}, and so at least that."
    if stands.doubts:
        says = "says" if stands.doubts == 1 else "say"
        text += f" {counted(stands.doubts, 'grave warning')} below {says} why not to trust it."
    return text


def _in_a_line(stands: Ranking) -> str:
    nearest = stands.leads[0] if stands.leads else None
    faster, sure = _faster(stands, nearest), _how_sure(stands, nearest)
    return f"Faster: {faster.value} ({sure.value}: {sure.below}). {_sentence(stands)}"


def _what(stands: Ranking, as_begin: bool = False) -> str:
    """Return what the figures are of and when: as a sentence begins, or as a title goes on."""
    subject = stands.subject
    name = AMONG[subject.name] if subject.is_percentile else f"“{subject.name.replace('_', ' ')}”"
    when = f"while {stands.saturators} ran" if subject.phase == "during" else ""
    if not as_begin:
        return f"{name} {when}".strip()
    text = f"{when}, {name}" if when else name
    return text[0].upper() + text[1:]


def _level(stands: Ranking, one: RankedBackend) -> str:
    of = stands.subject.name.replace("_", " ")
    return f"{of} {_figure(stands, one)}"


def _figure(stands: Ranking, one: RankedBackend) -> str:
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
    return f"if both were equal, a gap this large would occur in {often} experiments"


def _json(stands: Ranking) -> dict[str, object]:
    return {
        "scenario": stands.scenario.name,
        "of": stands.subject.name,
        "phase": stands.subject.phase,
        "unit": stands.subject.unit,
        "grave_warnings": stands.doubts,
        "backends": [
            {
                "backend": one.backend.name,
                "level": None if one.unknown else one.level,
                "runs": one.runs,
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


def rank_backends(figures: ScenarioFigures, on_all: Sequence[Finding]) -> Ranking | None:
    """Return where the backends stand.

    None of one backend, of more than a figure shows, where fewer than two have a figure, in an experiment
    with factors, of which the report tells what each did, and of access logs, whose weeks have a section.
    """
    if len(figures.backends) < 2 or figures.scenario.crowded or figures.scenario.is_weeks:
        return None
    if any(run.directory.facts.factors for run in figures.scenario.runs):
        return None
    found = _own_measure(figures) or _percentile(figures)
    if found is None:
        return None
    subject, of_run = found
    prompt = _prompt_figures(figures.scenario.runs, subject) if subject.is_percentile else {}
    standings = [_standing(each.backend, of_run, prompt) for each in figures.backends]
    if sum(bool(each.values) for each in standings) < 2:
        return None
    sign = 1 if subject.is_time else -1
    # A failure has no figure: a backend with failures comes after those without.
    standings.sort(key=lambda one: (one.failed > 0, sign * (one.level or math.inf)))
    best, others = standings[0], [each for each in standings[1:] if each.values]
    runs = figures.scenario.runs
    places = {run.number: RunPlace.of(run.label, run.directory.facts) for run in runs}
    leads = [] if best.failed else [_lead(best, each, sign, len(standings), places) for each in others]
    metric = subject.name if subject.is_percentile else f"measure {subject.name}"
    doubts = count_doubts(figures.scenario, on_all, metric)
    return Ranking(figures.scenario, figures.scenario.saturators_label, subject, standings, leads, doubts)


def _standing(backend: BackendRuns, of_run: _OfRun, prompt: Mapping[int, float]) -> RankedBackend:
    found = {run.number: of_run[run.number] for run in backend.runs if run.number in of_run}
    values = {number: value for number, (value, _) in found.items() if math.isfinite(value)}
    bounds = sum(is_bound for number, (_, is_bound) in found.items() if number in values)
    late = {number: prompt[number] for number in values if number in prompt}
    return RankedBackend(backend, values, bounds, len(found) - len(values), late)


def _lead(
    best: RankedBackend, other: RankedBackend, sign: int, sides: int, places: Mapping[int, RunPlace]
) -> Lead:
    order = find_order(*([places[number] for number in one.values] for one in (best, other)))

    def between(first: Mapping[int, float], second: Mapping[int, float]) -> Distance:
        logs = [[sign * math.log(value) for value in side.values()] for side in (first, second)]
        if order.pairs is not None:
            logs = [[side[pair[at]] for pair in order.pairs] for at, side in enumerate(logs)]
        return distance(logs[0], logs[1], order.pairs is not None, sides)

    found = between(best.values, other.values)
    nearest, farthest = between(best.values, other.values | other.prompt), found
    if best.prompt:
        farthest = between(best.values | best.prompt, other.values)
    found = replace(found, lower=nearest.lower, upper=None if other.failed else farthest.upper)
    holds = nearest.outcome == "clear"
    return Lead(other, found, is_bound=other.failed > 0, interleaved=order.interleaved, holds=holds)


def _percentile(figures: ScenarioFigures) -> tuple[Subject, _OfRun] | None:
    phase = "during" if figures.saturated else WHOLE_RUN
    times = {
        repeat.run.number: repeat.phases[phase].response_ms
        for each in figures.backends
        for repeat in each.repeats
        if phase in repeat.phases and repeat.phases[phase].requests
    }
    name = common_percentile(list(times.values()))
    if name is None:
        return None
    found = {}
    for number, each in times.items():
        least = each.least_ms(name)
        if least != 0:
            found[number] = (math.inf if least is None else least, name in each.censored)
    return Subject(name, phase, "ms", is_percentile=True), found


def _prompt_figures(runs: Sequence[ReportRun], subject: Subject) -> dict[int, float]:
    """Return a percentile of the runs that were sent late, by number, without their generator's lateness."""
    phase = WHOLE if subject.phase == WHOLE_RUN else subject.phase
    found = {run.number: run.prompt_ms[phase].least_ms(subject.name) for run in runs if run.prompt_ms}
    return {number: ms for number, ms in found.items() if ms}


def _own_measure(figures: ScenarioFigures) -> tuple[Subject, _OfRun] | None:
    """Return the median of what a scripted scenario is about, of each run; None of other scenarios."""
    runs = figures.scenario.runs
    name = main_measure(runs)
    if name is None:
        return None
    for phase in ("during", WHOLE_RUN) if figures.saturated else (WHOLE_RUN,):
        all_of = [run.phase_values.get(phase) if phase == "during" else run.values for run in runs]
        found = [each.get(name) if each else None for each in all_of]
        there = [each for each in found if each and each.tries]
        if len(there) == len(runs):
            break
    units = {"ms" if each.unit in MS_OF else each.unit for each in there}
    if len(there) < len(runs) or len(units) != 1:
        return None
    return Subject(name, phase, units.pop(), is_percentile=False), _medians(runs, there)


def _medians(runs: Sequence[ReportRun], values: Sequence[StepFigures]) -> _OfRun:
    found = {}
    for run, each in zip(runs, values, strict=True):
        value, least = each.at(_P50)
        known = least if value is None else value
        if known is None or known > 0:
            scale = MS_OF.get(each.unit, 1.0)
            found[run.number] = (math.inf if known is None else known * scale, value is None)
    return found
