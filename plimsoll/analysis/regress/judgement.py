"""The judgement of a night, in every form that it is given out in. Names and texts are hostile."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from plimsoll.analysis.compare.decision import Verdict
from plimsoll.analysis.compare.gates import Gate
from plimsoll.analysis.page.verdict import (
    CaseTable,
    JUnitCase,
    VerdictCase,
    VerdictDocument,
    VerdictNote,
    VerdictPart,
    finding_case,
    wrap,
)
from plimsoll.analysis.regress.nights import Decision, NightRow, NightSeries, StoredFinding
from plimsoll.common.errors import Severity
from plimsoll.common.units import ABSENT, counted, milliseconds, percent

# steady: no news. news: worse since tonight. known: worse, reported before. recovered: as before again, found
# tonight. better: since tonight. young: too few nights. missing: no value tonight. late: worse, or only the
# load generator late.
SeriesState = Literal["steady", "news", "known", "recovered", "better", "young", "missing", "late"]
NightVerdict = Literal["worse", "unjudged", "steady"]
EXIT_CODES: dict[NightVerdict, int] = {"steady": 0, "worse": 1, "unjudged": 3}
STALE_AFTER_S = 36 * 3600.0
LAST_DECISIONS = 5
_STATES = {
    "news": "WORSE",
    "known": "still worse",
    "recovered": "recovered",
    "better": "better",
    "steady": "steady",
    "young": "young",
    "missing": "missing",
    "late": "undecided",
}
DECIDED = {"accept": "accepted", "baseline": "baseline set to", "drop": "dropped"}
_HEADLINES: dict[NightVerdict, str] = {
    "worse": "WORSE",
    "unjudged": "CANNOT BE JUDGED",
    "steady": "NOTHING WORSE",
}
_NOTHING = 1e-9


@dataclass(frozen=True)
class JudgingOptions:
    """How a night is judged: at which instant, after how long the newest night is stale, what stays red.

    `tell_once`: a regression counts as a failure only in the night that reports it.
    """

    at: datetime
    stale_after_s: float = STALE_AFTER_S
    tell_once: bool = False


@dataclass(frozen=True)
class SeriesResult:
    """One series and what is to be said of it. `level`: of the nights before, since the last change.

    `changes`: the places of the nights that a page marks; `since`: when the news began; `is_open`: what was
    reported before tonight has neither recovered nor been accepted.
    """

    series: NightSeries
    state: SeriesState
    says: str
    tonight: float | None
    level: float | None
    changes: list[int] = field(default_factory=list)
    since: str | None = None
    is_open: bool = False


@dataclass(frozen=True)
class GateResult:
    """One limit on one backend, against the baseline's nights."""

    backend: str
    gate: Gate
    limit: str
    at_most: float
    verdict: Verdict
    nights: tuple[int, int]
    is_news: bool = False
    is_recovered: bool = False

    @property
    def name(self) -> str:
        """Its name (hostile)."""
        where = f" on {self.backend}" if self.backend else ""
        return f"{self.gate.scenario}{where}, {self.gate.phase}: {self.gate.metric}"


@dataclass(frozen=True)
class Judgement:
    """One experiment's last night, judged. `unjudged` says why it cannot be; `notes` forbid nothing.

    `decisions` are those that somebody took; `is_stale`: a newer night is overdue; `findings` are the
    gatekeeper's on tonight's runs, beside those of the nights before. `daily`: its nights are days of access
    logs; `earlier` are days that were added along with it, and had news.
    """

    experiment: str
    night: NightRow
    nights: int
    series: list[SeriesResult]
    gates: list[GateResult]
    unjudged: list[str]
    notes: list[str]
    baseline: list[NightRow]
    decisions: list[Decision] = field(default_factory=list)
    tell_once: bool = False
    is_stale: bool = False
    findings: list[StoredFinding] = field(default_factory=list)
    daily: bool = False
    earlier: list["Judgement"] = field(default_factory=list)

    @property
    def unit(self) -> str:
        """What its nights are."""
        return "day" if self.daily else "night"

    @property
    def last(self) -> str:
        """What the last of them is called."""
        return "that day" if self.daily else "tonight"

    @property
    def news(self) -> list[SeriesResult]:
        """The regressions of tonight."""
        return [each for each in self.series if each.state == "news"]

    @property
    def recovered(self) -> list[SeriesResult]:
        """The series that are found tonight to be as before a regression."""
        return [each for each in self.series if each.state == "recovered"]

    @property
    def red(self) -> list[SeriesResult]:
        """The series that fail: by what is news, and by what has neither recovered nor been accepted."""
        return [each for each in self.series if self.is_red(each)]

    def is_red(self, result: SeriesResult) -> bool:
        """Return whether a series fails."""
        return result.state == "news" or (result.is_open and not self.tell_once)

    @property
    def failed(self) -> list[GateResult]:
        """The gates that FAIL."""
        return [each for each in self.gates if each.verdict.outcome == "FAIL"]

    @property
    def shown_worse(self) -> list[StoredFinding]:
        """The findings that show the site to be worse."""
        return [each for each in self.findings if each.disqualifies and each.worse]

    @property
    def verdict(self) -> NightVerdict:
        """The verdict on tonight."""
        if self.red or self.failed or self.shown_worse:
            return "worse"
        return "unjudged" if self.unjudged else "steady"

    @property
    def has_news(self) -> bool:
        """True where there is news to send."""
        gates = any(each.is_news or each.is_recovered for each in self.gates)
        return bool(self.news or self.recovered or gates or self.unjudged or self.shown_worse)


def overall(judgements: list[Judgement]) -> NightVerdict:
    """Return the verdict on all experiments: worse before unjudged before steady."""
    words = {each.verdict for each in judgements}
    return "worse" if "worse" in words else "unjudged" if "unjudged" in words else "steady"


def judgement_document(judgements: Sequence[Judgement]) -> VerdictDocument:
    """Return the report on the nights, as a document that has every form."""
    parts = [_part(each) for each in judgements]
    return VerdictDocument("regress", describe_judgements(judgements), parts, notes_first=True)


def _part(judgement: Judgement) -> VerdictPart:
    name = judgement.experiment or "runs"
    tables = [_series_table(judgement)] if judgement.series else []
    return VerdictPart(
        word=_HEADLINES[judgement.verdict],
        heading=f"{judgement.experiment}, {title(judgement)}" if judgement.experiment else title(judgement),
        about=f"{judgement.unit} {judgement.nights:,}",
        tables=[*tables, _gate_table(judgement)] if judgement.gates else tables,
        notes=list(_notes(judgement)),
        suite=name,
        suite_class=name,
        began_at=judgement.night.facts.started_at[:19],
    )


def _series_table(judgement: Judgement) -> CaseTable:
    unit, last = judgement.unit, judgement.last
    return CaseTable(
        title=last.capitalize(),
        caption=(
            f"Each series: its last {unit}, and the level of the {unit}s before it since the last change."
        ),
        columns=["", "series", last, "before", "effect", f"{unit}s"],
        cases=[_series_case(each, judgement.is_red(each)) for each in judgement.series],
        says_column=True,
    )


def _series_case(result: SeriesResult, is_red: bool) -> VerdictCase:
    name, says = result.series.key.name, result.says
    tonight, before = _figure_text(result, result.tonight), _figure_text(result, result.level)
    effect = against(result)
    figures = f"tonight {tonight}, before {before} ({effect})"
    if is_red:
        test = JUnitCase(name, "failure", f"{says}: {figures}", "regression")
    elif result.state == "missing":
        test = JUnitCase(name, "skipped", f"no figure tonight: {says}")
    elif result.state in ("young", "late"):
        test = JUnitCase(name, "skipped", says)
    else:
        test = JUnitCase(name, "passed", f"{figures} {says}".strip())
    return VerdictCase(
        word=_STATES[result.state],
        name=name,
        cells=[tonight, before, effect, str(len(result.series.values))],
        says=says,
        test=test,
        look="amiss" if is_red or result.state == "missing" else "new" if result.state == "recovered" else "",
    )


def _gate_table(judgement: Judgement) -> CaseTable:
    unit, first, last = judgement.unit, judgement.baseline[0].name, judgement.baseline[-1].name
    baseline = f"The baseline is {first} … {last}, {counted(len(judgement.baseline), unit)}."
    reasons = dict.fromkeys(
        each.verdict.says for each in judgement.gates if each.verdict.outcome != "PASS" and each.verdict.says
    )
    return CaseTable(
        title="Against the baseline",
        caption=f"The last {unit}s against the baseline's, {first} to {last}. A {unit} is one value.",
        columns=["baseline", "gate", "effect", "limit", f"{unit}s"],
        cases=[_gate_case(each) for each in judgement.gates],
        says_column=True,
        below=[*wrap(baseline), *(line for says in reasons for line in wrap(says, "  "))],
    )


def _gate_case(gate: GateResult) -> VerdictCase:
    outcome, says = gate.verdict.outcome, gate.verdict.says
    name = f"{gate.name} ({gate.limit})"
    if outcome == "FAIL":
        test = JUnitCase(name, "failure", f"breaks its limit: {says}", "baseline")
    else:
        test = JUnitCase(name, "passed") if outcome == "PASS" else JUnitCase(name, "skipped", says)
    limit = f"≤ {_gate_effect(gate, gate.at_most)}"
    return VerdictCase(
        word=outcome,
        name=gate.name,
        cells=[_gate_effect(gate, gate.verdict.estimate), limit, f"{gate.nights[0]} v {gate.nights[1]}"],
        says=says,
        test=test,
        look="amiss" if outcome == "FAIL" else "",
    )


def _notes(judgement: Judgement) -> Iterator[VerdictNote]:
    for problem in judgement.unjudged:
        test = JUnitCase(f"{title(judgement)} is complete", "error", problem, "unjudged")
        yield VerdictNote("cannot be judged", problem, test)
    for finding in judgement.findings:
        says = f"{finding.text} {finding.remedy}".strip()
        test = finding_case(finding.name, says, finding.disqualifies, finding.worse)
        yield VerdictNote(finding_word(finding), says, test)
    yield from (VerdictNote("note", note) for note in judgement.notes)
    yield from (VerdictNote("decided", decided) for decided in _last_decisions(judgement))


def judgements_json(judgements: Sequence[Judgement]) -> dict[str, object]:
    """Return what `--json` prints."""
    verdict = overall(list(judgements))
    return {
        "format": 1,
        "verdict": verdict,
        "exit_code": EXIT_CODES[verdict],
        "experiments": [_experiment_json(each) for each in judgements],
    }


def _experiment_json(judgement: Judgement) -> dict[str, object]:
    return {
        "experiment": judgement.experiment,
        "night": judgement.night.name,
        "nights": judgement.nights,
        "verdict": judgement.verdict,
        "series": [_series_json(each, judgement.is_red(each)) for each in judgement.series],
        "baseline": [night.name for night in judgement.baseline],
        "gates": [_gate_json(each) for each in judgement.gates],
        "unjudged": judgement.unjudged,
        "findings": [
            {
                "name": each.name,
                "level": each.level.value,
                "worse": each.worse,
                "text": each.text,
                "remedy": each.remedy,
            }
            for each in judgement.findings
        ],
        "notes": judgement.notes,
        "decisions": [
            {
                "kind": each.kind,
                "name": each.name,
                "at": each.at,
                "by": each.by or None,
                "note": each.note or None,
            }
            for each in judgement.decisions
        ],
    }


def _series_json(result: SeriesResult, fails: bool) -> dict[str, object]:
    key = result.series.key
    return {
        "scenario": key.scenario,
        "backend": key.backend,
        "phase": key.phase,
        "metric": key.metric,
        "unit": result.series.unit,
        "state": result.state,
        "fails": fails,
        "says": result.says,
        "tonight": result.tonight,
        "before": result.level,
        "nights": len(result.series.values),
    }


def _gate_json(result: GateResult) -> dict[str, object]:
    verdict = result.verdict
    return {
        "scenario": result.gate.scenario,
        "backend": result.backend,
        "phase": result.gate.phase,
        "metric": result.gate.metric,
        "limit": {result.limit: result.at_most},
        "verdict": verdict.outcome,
        "says": verdict.says,
        "estimate": None if verdict.estimate is None else finite(verdict.estimate),
        "lower": None if verdict.lower is None else finite(verdict.lower),
        "upper": None if verdict.upper is None else finite(verdict.upper),
        "nights": {"baseline": result.nights[0], "candidate": result.nights[1]},
        "more_nights": verdict.more_runs,
    }


def finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def describe_judgements(judgements: Sequence[Judgement]) -> str:
    """Return the news in one line (hostile)."""
    word = overall(list(judgements))
    reasons = []
    for each in judgements:
        if each.verdict == word:
            news_first = sorted(each.red, key=lambda one: one.state != "news")
            reasons += [f"{one.series.key.name} {one.says}" for one in news_first]
            reasons += [f"{one.name} breaks its limit" for one in each.failed]
            reasons += [one.text.rstrip(".") for one in each.shown_worse]
            reasons += each.unjudged if word == "unjudged" else []
    if not reasons:
        nights = ", ".join(f"{title(each)}" for each in judgements) or "no night"
        return f"nothing worse: {nights}"
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return f"{'worse' if word == 'worse' else 'cannot be judged'}: {reasons[0]}{more}"


def message_subject(judgement: Judgement) -> str:
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
        else describe_judgements([judgement])
    )


def _figure_text(result: SeriesResult, value: float | None) -> str:
    """Return a figure of a series in its unit."""
    if value is None:
        return ABSENT
    return percent(value) if result.series.shares else milliseconds(value)


def against(result: SeriesResult) -> str:
    """Return tonight by the level of the nights before."""
    if result.tonight is None or result.level is None:
        return ABSENT
    if result.series.shares:
        more = result.tonight - result.level
        if abs(more) < _NOTHING:
            return "±0 %"
        return f"{'+' if more > 0 else '−'}{percent(abs(more))}"
    return f"× {result.tonight / result.level:.2f}"


def _gate_effect(result: GateResult, value: float | None) -> str:
    """Return an effect on a gate, or its limit, in the terms of the limit."""
    if value is None:
        return ABSENT
    if result.limit == "at_most_ratio":
        return f"× {value:.2f}"
    if result.limit == "at_most_more":
        return f"{'+' if value > 0 else '−' if value < 0 else '±'}{percent(abs(value))}"
    return percent(value) if result.gate.metric_type.is_share else milliseconds(value)


def finding_word(finding: StoredFinding) -> str:
    """Return what a finding of the gatekeeper comes to."""
    if finding.disqualifies:
        return "worse" if finding.worse else "no evidence"
    return "doubt" if finding.level is Severity.WARN else "note"


def decision(decided: Decision) -> str:
    """Return what was decided, when, who decided it, and why (hostile)."""
    by = f" by {decided.by}" if decided.by else ""
    why = f": {decided.note.rstrip('.')}" if decided.note else ""
    return f"{DECIDED[decided.kind]} {decided.name}, {decided.at[:10]}{by}{why}"


def _last_decisions(judgement: Judgement) -> Iterator[str]:
    """Yield the last decisions, the newest first, and how many there were before (hostile)."""
    yield from map(decision, reversed(judgement.decisions[-LAST_DECISIONS:]))
    earlier = len(judgement.decisions) - LAST_DECISIONS
    if earlier > 0:
        yield f"{counted(earlier, 'decision')} before these: --html or --json has them"


def title(judgement: Judgement) -> str:
    """Return which night it is (hostile)."""
    return judgement.night.name or judgement.experiment
