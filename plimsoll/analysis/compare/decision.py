"""A verdict: how the values of a gate decide it, and the sentence that says it. Pure.

The text of PASS, FAIL and INCONCLUSIVE is here: of each limit (`Verdict.says`), and of all of them together
(`verdict_sentence`; `verdict_headline` for readers without statistics). Terminal, pages, Markdown and JUnit
print it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal

from plimsoll.analysis.compare.gates import Limit
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.statistics.binomial import BinomialTest
from plimsoll.analysis.statistics.permutation import (
    MOST_FORETOLD,
    Evidence,
    PermutationTest,
    adjust_by_holm,
    error_of_look,
)
from plimsoll.analysis.statistics.stalls import excluded_share
from plimsoll.common.units import counted, milliseconds, percent, significant

Outcome = Literal["PASS", "FAIL", "INCONCLUSIVE"]

_LOGS = ("at_most_ratio", "at_most_ms")
ALONE = ("at_most_ms", "at_most_share", "at_most_share_of_runs")
_ROUNDED = 1e-12
# How many limits have an outcome, and what became of one, to readers without statistics.
_COUNTED: dict[Outcome, str] = {
    "PASS": "passed",
    "FAIL": "failed",
    "INCONCLUSIVE": "cannot be decided yet",
}
PLAIN_WORDS: dict[Outcome, str] = {"PASS": "kept", "FAIL": "broken", "INCONCLUSIVE": "not decided"}
# What failures bring with them, and what therefore does not speak against them.
_BESIDE_FAILURES = (FindingKind.OTHER_ANSWERS, FindingKind.NOT_AS_LOGGED, FindingKind.CENSORED)


@dataclass(frozen=True)
class Question:
    """Does the candidate keep one limit? Values are one a run; `blocked` says why nothing can be decided.

    `is_paired`: the n-th values of both sides are of one repeat. `notes` say how the values came about.
    `doubts` are reasons for which no PASS is given; they prevent no FAIL. `excuses` are reasons for which no
    FAIL is given; they prevent no PASS.
    """

    limit: Limit
    at_most: float
    baseline: Sequence[float]
    candidate: Sequence[float]
    is_paired: bool = False
    blocked: Sequence[str] = ()
    notes: Sequence[str] = ()
    doubts: Sequence[str] = ()
    excuses: Sequence[str] = ()

    @property
    def uses_logs(self) -> bool:
        """True where the logarithms of the values are compared: ratios, and times."""
        return self.limit in _LOGS

    @property
    def is_absolute(self) -> bool:
        """True where the candidate's own values are held to the limit."""
        return self.limit in ALONE

    @property
    def threshold(self) -> float:
        """The limit, on the scale on which the values are compared."""
        return math.log(self.at_most) if self.uses_logs else self.at_most

    def procedure(self, alpha: float) -> PermutationTest | BinomialTest:
        """Return the values on that scale."""
        if self.limit == "at_most_share_of_runs":
            return BinomialTest.of(self.candidate, self.at_most, alpha)
        baseline, candidate = self.baseline, self.candidate
        if self.uses_logs:
            baseline, candidate = [math.log(v) for v in baseline], [math.log(v) for v in candidate]
        return PermutationTest(
            [] if self.is_absolute else baseline, candidate, self.is_paired and not self.is_absolute, alpha
        )

    def to_display(self, value: float | None) -> float | None:
        """Return a value on that scale as a ratio, a time, or a difference."""
        return value if value is None or not self.uses_logs else math.exp(value)


@dataclass(frozen=True)
class Verdict:
    """The decision on one limit, and why. Figures are None where none can be given.

    `estimate` is a ratio, a difference, or the candidate's own level; `lower` and `upper` are one-sided
    confidence limits, each on its own. `p_pass` is small where the limit is kept, `p_fail` where it is
    broken; `…_holm` are adjusted for all gates. `more_runs` is how many more a side would probably decide.
    `fails_from` and `passes_to` are the effects that so many runs, as far apart as these, find in 4 of 5
    cases. `excluded_share`: what happens in no more than that share of runs, these runs do not exclude. The
    sentences `claim` and `power` say so.
    """

    outcome: Outcome
    says: str
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    p_pass: float | None = None
    p_fail: float | None = None
    p_pass_holm: float | None = None
    p_fail_holm: float | None = None
    test: str | None = None
    arrangements: int | None = None
    more_runs: int | None = None
    fails_from: float | None = None
    passes_to: float | None = None
    excluded_share: float | None = None
    claim: str = ""
    power: str = ""

    @property
    def reason(self) -> str:
        """What it says, and what such runs would have found."""
        return " ".join(filter(None, (self.says, self.power)))


def level_of(values: Sequence[float], logs: bool) -> float | None:
    """Return what stands for all runs of a side: their geometric mean, or that of shares, which may be 0."""
    if not values or (logs and min(values) <= 0):
        return None
    return math.exp(fmean(map(math.log, values))) if logs else fmean(values)


def decide(questions: Sequence[Question], confidence: float, look: int | None = None) -> list[Verdict]:
    """Return a verdict each. Those that are blocked count among the gates all the same.

    `look` counts how often a growing experiment is decided on, from 1; None where that is not asked again.
    """
    error = 1 - confidence
    now, then = (
        (error, error) if look is None else (error_of_look(error, look), error_of_look(error, look + 1))
    )
    gates = max(len(questions), 1)
    asked = [_GateTest(question, now / gates) for question in questions]
    passes = adjust_by_holm([each.p_pass for each in asked])
    fails = adjust_by_holm([each.p_fail for each in asked])
    outcomes = [_outcome(p, f, now, each.question) for each, p, f in zip(asked, passes, fails, strict=True)]
    undecided = max(outcomes.count("INCONCLUSIVE"), 1)
    ahead = _NextLook(first=then / gates, asked=then / undecided)
    return [
        each.verdict(outcome, p, f, _Errors(error, now, ahead))
        for each, outcome, p, f in zip(asked, outcomes, passes, fails, strict=True)
    ]


def overall(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the verdict on all gates: FAIL if any is broken, PASS only if all are kept."""
    if "FAIL" in outcomes:
        return "FAIL"
    return "PASS" if outcomes and set(outcomes) == {"PASS"} else "INCONCLUSIVE"


def verdict_sentence(candidate: str, baseline: str, outcomes: Sequence[Outcome]) -> str:
    """Return what the verdicts on all limits come to; the names are hostile."""
    counts = [f"{outcomes.count(each)} {word}" for each, word in _COUNTED.items() if each in outcomes]
    return f"{candidate} against {baseline}: {counted(len(outcomes), 'limit')} checked, {', '.join(counts)}"


def verdict_headline(candidate: str, outcomes: Sequence[Outcome]) -> str:
    """Return the same for readers without statistics; the name is hostile."""
    verdict, total = overall(outcomes), len(outcomes)
    which = "the limit that was set" if total == 1 else f"{outcomes.count(verdict)} of {total} limits"
    if verdict == "PASS":
        every = which if total == 1 else f"all {total} limits that were set"
        return f"{candidate} keeps {every}."
    if verdict == "FAIL":
        return f"{candidate} breaks {which}."
    return f"Neither yes nor no: whether {candidate} keeps {which} cannot be decided from these runs."


def broken_by(found: Sequence[Finding]) -> Verdict | None:
    """Return FAIL where disqualifying findings show the candidate to be worse, else None.

    Not where another finding takes the ground from under that: from another load or a copy nothing follows.
    """
    worse = [finding for finding in found if finding.worse]
    if not worse or any(not each.worse and each.kind not in _BESIDE_FAILURES for each in found):
        return None
    return Verdict("FAIL", " ".join(finding.sentence for finding in worse))


def _outcome(p_pass: float, p_fail: float, alpha: float, question: Question) -> Outcome:
    if p_pass <= alpha + _ROUNDED:
        return "INCONCLUSIVE" if question.doubts else "PASS"
    return "FAIL" if p_fail <= alpha + _ROUNDED and not question.excuses else "INCONCLUSIVE"


@dataclass(frozen=True)
class _NextLook:
    """What the next look will ask: of the first gate, and of one that is undecided now."""

    first: float
    asked: float


@dataclass(frozen=True)
class _Errors:
    """The error of intervals, that of this look, and what comes after it."""

    interval: float
    look: float
    ahead: _NextLook


@dataclass
class _GateTest:
    question: Question
    first: float
    compared: PermutationTest | BinomialTest | None = None
    evidence: Evidence | BinomialTest | None = None
    p_pass: float = field(default=1.0, init=False)
    p_fail: float = field(default=1.0, init=False)

    def __post_init__(self) -> None:
        if self.question.blocked:
            return
        self.compared = self.question.procedure(self.first)
        self.evidence = self.compared.evidence()
        self.p_pass = self.evidence.p_below(self.question.threshold)
        self.p_fail = self.evidence.p_above(self.question.threshold)

    def verdict(self, outcome: Outcome, p_pass: float, p_fail: float, errors: _Errors) -> Verdict:
        question, evidence, compared = self.question, self.evidence, self.compared
        if evidence is None or compared is None:
            return replace(
                Verdict("INCONCLUSIVE", " ".join(question.blocked)), **_describe_power(question, self.first)
            )
        more, excluded, claim = None, None, ""
        if outcome == "INCONCLUSIVE":
            more = self._count_more_runs(compared, evidence, errors.ahead)
            says = self._explain_undecided(compared, evidence, more, errors.look)
        else:
            says = [_describe_effect(question, evidence)]
        if outcome == "PASS":
            excluded = excluded_share(len(question.candidate), 1 - errors.interval)
            claim = _describe_claim(len(question.candidate), excluded, 1 - errors.interval)
        return replace(
            Verdict(
                outcome=outcome,
                says=" ".join([*filter(None, says), *question.notes]),
                estimate=question.to_display(evidence.estimate),
                lower=question.to_display(evidence.lower(errors.interval)),
                upper=question.to_display(evidence.upper(errors.interval)),
                p_pass=self.p_pass,
                p_fail=self.p_fail,
                p_pass_holm=p_pass,
                p_fail_holm=p_fail,
                test=_test_name(question, evidence),
                arrangements=evidence.arrangements if isinstance(evidence, Evidence) else None,
                more_runs=more,
                excluded_share=excluded,
                claim=claim,
            ),
            **_describe_power(question, self.first),
        )

    def _count_more_runs(
        self, compared: PermutationTest | BinomialTest, evidence: Evidence | BinomialTest, ahead: _NextLook
    ) -> int | None:
        if (self.question.doubts and self.p_pass <= self.first) or (
            self.question.excuses and self.p_fail <= self.first
        ):
            return None
        away = abs(self.question.threshold - evidence.estimate)
        runs = replace(compared, alpha=ahead.first).runs_to_decide(away, ahead.asked)
        return None if runs is None else runs - compared.runs

    def _explain_undecided(
        self,
        compared: PermutationTest | BinomialTest,
        evidence: Evidence | BinomialTest,
        more: int | None,
        alpha: float,
    ) -> list[str]:
        if self.question.doubts:
            return list(self.question.doubts)
        if self.question.excuses and self.p_fail <= alpha:
            return list(self.question.excuses)
        where = "keeps" if evidence.estimate <= self.question.threshold else "breaks"
        gates = round(alpha / self.first)
        side = "" if self.question.is_absolute else " a side"
        if evidence.least_p > self.first * (1 + 1e-9):
            clean = " clean" if isinstance(compared, BinomialTest) else ""
            why = (
                f"{counted(compared.runs, 'run')}{side} cannot decide "
                f"{counted(gates, 'gate')}: it takes {compared.fewest_runs()} or more{clean}, or fewer gates."
            )
        else:
            alone = min(self.p_pass, self.p_fail) <= alpha
            why = f"As measured it {where} the limit, but the runs lie too far apart to be sure"
            why += " of all gates at once." if alone else "."
        if more is not None:
            return [why, f"About {counted(more, 'more run')}{side} would probably decide."]
        return [
            why,
            "How many more runs would decide cannot be said: it lies so near the limit that it may "
            f"take over {MOST_FORETOLD}{side}. Longer runs, a quieter machine or another limit would help.",
        ]


def _test_name(question: Question, evidence: Evidence | BinomialTest) -> str:
    if isinstance(evidence, BinomialTest):
        return "binomial"
    return "alone" if question.is_absolute else "paired" if evidence.paired else "unpaired"


def _describe_effect(question: Question, evidence: Evidence | BinomialTest) -> str:
    estimate = question.to_display(evidence.estimate)
    assert estimate is not None  # noqa: S101 an estimate is always there
    if question.limit == "at_most_ratio":
        if abs(estimate - 1) < 0.0005:
            return "As before."
        if not 0.5 < estimate < 2:
            times = significant(max(estimate, 1 / estimate), 2)
            return f"{times} times as {'slow' if estimate > 1 else 'fast'} as the baseline."
        return f"{percent(abs(estimate - 1), 2)} {'slower' if estimate > 1 else 'faster'} than the baseline."
    return ""


def _describe_claim(runs: int, excluded: float, confidence: float) -> str:
    """Return what a PASS does not claim: what happens in few runs may have happened in none of these."""
    return (
        f"A PASS from {counted(runs, 'run')} excludes, at {percent(confidence, 2)}, only stalls that come in "
        f"more than {percent(excluded, 2)} of runs; rarer ones may have been missed."
    )


def _describe_power(question: Question, alpha: float) -> dict[str, Any]:
    """Return the fields of a verdict that say what these runs, as far apart as they lie, would have found."""
    compared = _select_measurable(question, alpha)
    if compared is None:
        return {}
    runs = max(compared.runs, compared.fewest_runs())
    far = compared.found_from(runs)
    if far is None:
        return {}
    fails_from, passes_to = (
        question.to_display(question.threshold + far),
        question.to_display(question.threshold - far),
    )
    assert fails_from is not None and passes_to is not None  # noqa: S101 they come from figures
    if not question.uses_logs and passes_to < 0:
        passes_to = None
    few = f"{compared.runs} decide nothing, but " if runs > compared.runs else ""
    side = "" if question.is_absolute else " a side"
    sentence = (
        f"{few}{counted(runs, 'run')}{side} that lie as far apart as these find in 4 of 5 cases what is "
        f"{_amount_text(question, fails_from)} or more (FAIL)"
        + ("." if passes_to is None else f", or {_amount_text(question, passes_to)} or less (PASS).")
    )
    found = compared.runs >= runs
    return {
        "fails_from": fails_from if found else None,
        "passes_to": passes_to if found else None,
        "power": sentence[0].upper() + sentence[1:],
    }


def _select_measurable(question: Question, alpha: float) -> PermutationTest | None:
    """Return the values if they have a spread: one run has none, and a share of runs only its own."""
    sides = [question.candidate] if question.is_absolute else [question.baseline, question.candidate]
    if question.limit == "at_most_share_of_runs" or min(map(len, sides)) < 2:
        return None
    if question.uses_logs and min(map(min, sides)) <= 0:
        return None
    compared = question.procedure(alpha)
    return compared if isinstance(compared, PermutationTest) else None


def _amount_text(question: Question, value: float) -> str:
    if question.limit == "at_most_ratio":
        return f"× {value:.2f}" if value < 100 else f"× {significant(value)}"
    if question.limit == "at_most_ms":
        return milliseconds(value)
    return f"{'+' if question.limit == 'at_most_more' else ''}{percent(value, 2)}"
