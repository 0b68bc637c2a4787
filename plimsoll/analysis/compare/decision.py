"""A verdict: how the values of a gate decide it, and the sentence that says it. Pure.

The text of PASS, FAIL and INCONCLUSIVE is here: of each limit (`Verdict.says`), and of all of them together
(`verdict_sentence`; `verdict_headline` for readers without statistics). Terminal, pages, Markdown and JUnit
print it.

A PASS of all limits takes that each is kept, so each is tested at the whole error (an intersection-union
test: Berger, Technometrics 24, 1982). A FAIL is wrong if any of them is, so there the error is shared: gates
of the same runs by the step-down test of their greatest statistic, those of other runs by Holm's correction.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal

from plimsoll.analysis.compare.gates import Limit
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.statistics.binomial import BinomialTest, BoundTest
from plimsoll.analysis.statistics.permutation import (
    MOST_FORETOLD,
    Evidence,
    PermutationTest,
    adjust_by_holm,
    error_of_look,
    levels_of_each,
    step_down,
)
from plimsoll.analysis.statistics.sequential import BlockEvidence
from plimsoll.analysis.statistics.stalls import excluded_share
from plimsoll.common.units import counted, milliseconds, percent, significant

Outcome = Literal["PASS", "FAIL", "INCONCLUSIVE"]

_LOGS = ("at_most_ratio", "at_most_ms")
ALONE = ("at_most_ms", "at_most_share", "at_most_share_of_runs")
_ROUNDED = 1e-12
LATE = (
    "The load generator was late, and the verdict depends on it: had it sent every request of one side in "
    "time, it could be another. Use a lower rate, or a quieter machine for the generator."
)
PLAN_OVER = "The plan is over and has spent its error: a new one counts new runs only."
BAD_RUNS = 0.1
_Procedure = PermutationTest | BinomialTest | BoundTest
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
    FAIL is given; they prevent no PASS. `runs_of`: questions of one name have the same runs, in the same
    order. `in_blocks`: they come block by block, two a side in each. Where the figure is at its bound, more
    than the share `bad_runs` of all runs have to break the limit for a FAIL. `prompt` are both sides' values
    without the time by which the generator was late: the other end of what they may be. A FAIL has to stand
    where that favours the candidate, a PASS where it favours the baseline.
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
    runs_of: str | None = None
    prompt: tuple[Sequence[float], Sequence[float]] | None = None
    in_blocks: bool = False
    bad_runs: float = BAD_RUNS

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

    @property
    def is_at_bound(self) -> bool:
        """True of a share that is 0 in all runs of the baseline, and in half of the candidate's or more."""
        return (
            self.limit in ("at_most_more", "at_most_share")
            and (self.is_absolute or not any(self.baseline))
            and 2 * sum(value == 0 for value in self.candidate) >= len(self.candidate)
        )

    @property
    def at_best(self) -> "Question":
        """The same at the end of all lateness that favours the candidate: its FAIL stands there, or not."""
        return self if self.prompt is None else replace(self, candidate=self.prompt[1], prompt=None)

    @property
    def at_worst(self) -> "Question":
        """The same at the other end, where its PASS has to stand."""
        return self if self.prompt is None else replace(self, baseline=self.prompt[0], prompt=None)

    def procedure(self, alpha: float) -> _Procedure:
        """Return the values on that scale."""
        if self.limit == "at_most_share_of_runs":
            return BinomialTest.of(self.candidate, self.at_most, alpha)
        if self.is_at_bound:
            bad = sum(value > self.at_most for value in self.candidate)
            return BoundTest(bad, len(self.candidate), self.bad_runs, fmean(self.candidate))
        baseline, candidate = self.on_scale
        if self.is_absolute:
            return PermutationTest([], candidate, False, alpha)
        return PermutationTest(baseline, candidate, self.is_paired, alpha, self.in_blocks)

    @property
    def on_scale(self) -> tuple[Sequence[float], Sequence[float]]:
        """Both sides' values, on the scale on which they are compared."""
        if not self.uses_logs:
            return self.baseline, self.candidate
        return [math.log(v) for v in self.baseline], [math.log(v) for v in self.candidate]

    def to_display(self, value: float | None) -> float | None:
        """Return a value on that scale as a ratio, a time, or a difference."""
        return value if value is None or not self.uses_logs else math.exp(value)


@dataclass(frozen=True)
class Verdict:
    """The decision on one limit, and why. Figures are None where none can be given.

    `estimate` is a ratio, a difference, or the candidate's own level; `lower` and `upper` are one-sided
    confidence limits, each on its own. `p_pass` is small where the limit is kept, `p_fail` where it is
    broken; `p_fail_adjusted` is so for all gates. `more_runs` is how many more a side would probably decide.
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
    p_fail_adjusted: float | None = None
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


def decide(
    questions: Sequence[Question], confidence: float, look: int | None = None, *, is_last: bool = False
) -> list[Verdict]:
    """Return a verdict each. Those that are blocked count among the gates all the same.

    `look` counts how often a growing experiment is decided on, from 1; None where that is not asked again.
    `is_last`: it is the one look of a plan.
    """
    error = 1 - confidence
    now, then = (
        (error, error) if look is None else (error_of_look(error, look), error_of_look(error, look + 1))
    )
    then = 0.0 if is_last else then
    families = [family_of(question, at) for at, question in enumerate(questions)]
    count = max(len(set(families) - {None}), 1)
    asked = [_GateTest(question, now / count) for question in questions]
    members = defaultdict(list)
    for each, family in zip(asked, families, strict=True):
        members[family].append(each)
    for gates in members.values():
        _adjust_family([each for each in gates if isinstance(each.at_best, Evidence)], now / count)
    tested = [at for at, family in enumerate(families) if family is not None]
    adjusted = adjust_by_holm([asked[at].p_adjusted for at in tested], [families[at] for at in tested])
    for at, p in zip(tested, adjusted, strict=True):
        asked[at].p_adjusted = p
    return [each.verdict(_Errors(error, now, then)) for each in asked]


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


def family_of(question: Question, at: int) -> Hashable:
    """Return what gates have in common that are dealt again together; None of one that takes no error.

    A blocked gate counts among those of its runs. Signs that flip are dealt apart from sides that change, and
    runs that are counted are not dealt at all. Where no run is bad, however they are dealt, nothing can FAIL.
    """
    if not question.blocked and question.is_at_bound and max(question.candidate) <= question.at_most:
        return None
    is_counted = not question.blocked and (question.is_at_bound or question.limit == "at_most_share_of_runs")
    return at if question.runs_of is None or is_counted else (question.runs_of, question.is_absolute)


def _adjust_family(family: Sequence["_GateTest"], alpha: float) -> None:
    """Adjust p of FAIL for all gates of one family; `alpha` is what they may spend together."""
    if not family:
        return
    evidence = [each.at_best for each in family if isinstance(each.at_best, Evidence)]
    shifts = [each.question.threshold for each in family]
    p_values, levels = step_down(evidence, shifts), levels_of_each(evidence, shifts, alpha)
    for each, p, level in zip(family, p_values, levels, strict=True):
        each.p_adjusted, each.fail_level = p, level


@dataclass(frozen=True)
class _Errors:
    """The error of intervals, that of this look, and that of the next one, 0 if there is none."""

    interval: float
    look: float
    next_look: float


@dataclass
class _GateTest:
    """A gate's test.

    `least` is the least level that is asked of it; at `fail_level` alone it would be as hard to FAIL as among
    all gates.
    """

    question: Question
    least: float
    compared: _Procedure | None = None
    evidence: Evidence | BinomialTest | BoundTest | None = None
    at_best: Evidence | BinomialTest | BoundTest | None = None
    at_worst: Evidence | BinomialTest | BoundTest | None = None
    p_pass: float = field(default=1.0, init=False)
    p_fail: float = field(default=1.0, init=False)
    p_adjusted: float = field(default=1.0, init=False)
    fail_level: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.fail_level = self.least
        if self.question.blocked:
            return
        self.compared = self.question.procedure(self.least)
        self.evidence = self.at_best = self.at_worst = self.compared.evidence()
        if self.question.prompt is not None:
            self.at_best = self.question.at_best.procedure(self.least).evidence()
            self.at_worst = self.question.at_worst.procedure(self.least).evidence()
        self.p_pass = self.at_worst.p_below(self.question.threshold)
        self.p_fail = self.p_adjusted = self.at_best.p_above(self.question.threshold)

    def verdict(self, errors: _Errors) -> Verdict:
        question, evidence, compared = self.question, self.evidence, self.compared
        power = _describe_power(question, self.least, errors.look, self.fail_level)
        if evidence is None or compared is None:
            return replace(Verdict("INCONCLUSIVE", " ".join(question.blocked)), **power)
        outcome = self._decide(errors.look)
        more, excluded, claim = None, None, ""
        if outcome == "INCONCLUSIVE":
            more = self._count_more_runs(compared, evidence, errors)
            says = self._explain_undecided(compared, evidence, more, errors)
        else:
            says = [describe_effect(question, evidence, errors.look)]
        if outcome == "PASS":
            excluded = excluded_share(len(question.candidate), 1 - errors.interval)
            claim = describe_claim(len(question.candidate), excluded, 1 - errors.interval)
        verdict = Verdict(
            outcome=outcome,
            says=" ".join([*filter(None, says), *question.notes]),
            estimate=question.to_display(evidence.estimate),
            test=_test_name(question, evidence),
            more_runs=more,
            excluded_share=excluded,
            claim=claim,
            **power,
        )
        if isinstance(evidence, BoundTest):
            p_fail = self.p_fail if evidence.bad else None
            return replace(verdict, p_fail=p_fail, p_fail_adjusted=p_fail and self.p_adjusted)
        best, worst = (
            evidence if each is None or isinstance(each, BoundTest) else each
            for each in (self.at_best, self.at_worst)
        )
        return replace(
            verdict,
            lower=question.to_display(best.lower(errors.interval)),
            upper=question.to_display(worst.upper(errors.interval)),
            p_pass=self.p_pass,
            p_fail=self.p_fail,
            p_fail_adjusted=self.p_adjusted,
            arrangements=evidence.arrangements if isinstance(evidence, Evidence) else None,
        )

    def _decide(self, alpha: float) -> Outcome:
        if self.p_pass <= alpha + _ROUNDED:
            return "INCONCLUSIVE" if self.question.doubts else "PASS"
        is_broken = self.p_adjusted <= alpha + _ROUNDED and not self.question.excuses
        return "FAIL" if is_broken else "INCONCLUSIVE"

    def _count_more_runs(
        self, compared: _Procedure, evidence: Evidence | BinomialTest | BoundTest, errors: _Errors
    ) -> int | None:
        question = self.question
        if (
            not errors.next_look
            or (question.doubts and self.p_pass <= errors.look)
            or (question.excuses and self.p_adjusted <= errors.look)
        ):
            return None
        away = abs(question.threshold - evidence.estimate)
        share = 1.0 if evidence.estimate <= question.threshold else self.fail_level / errors.look
        if not isinstance(compared, BoundTest):
            compared = replace(compared, alpha=errors.next_look * self.least / errors.look)
        runs = compared.runs_to_decide(away, errors.next_look * share)
        return None if runs is None else runs - compared.runs

    def _explain_undecided(
        self,
        compared: _Procedure,
        evidence: Evidence | BinomialTest | BoundTest,
        more: int | None,
        errors: _Errors,
    ) -> list[str]:
        alpha = errors.look
        if self.question.doubts:
            return list(self.question.doubts)
        if self.question.excuses and self.p_adjusted <= alpha:
            return list(self.question.excuses)
        if self._is_for_lateness(evidence, alpha):
            return [LATE]
        side = "" if self.question.is_absolute else " a side"
        why = self._explain_spread(compared, evidence, alpha, side)
        if not errors.next_look:
            return [why, PLAN_OVER]
        if more is not None:
            return [why, f"About {counted(more, 'more run')}{side} would probably decide."]
        if isinstance(evidence, BoundTest):
            return [why, "Runs without failures cannot show it: find what makes them, and run it again."]
        return [
            why,
            "How many more runs would decide cannot be said: it lies so near the limit that it may "
            f"take over {MOST_FORETOLD}{side}. Longer runs, a quieter machine or another limit would help.",
        ]

    def _is_for_lateness(self, evidence: Evidence | BinomialTest | BoundTest, alpha: float) -> bool:
        """Return whether the same figures would decide if the generator had sent every request in time."""
        if self.question.prompt is None:
            return False
        threshold = self.question.threshold
        return evidence.p_below(threshold) <= alpha or evidence.p_above(threshold) <= self.fail_level

    def _explain_spread(
        self, compared: _Procedure, evidence: Evidence | BinomialTest | BoundTest, alpha: float, side: str
    ) -> str:
        """Return why neither is sure: too few runs, or runs too far apart."""
        if isinstance(compared, BoundTest) or isinstance(evidence, BoundTest):
            assert isinstance(evidence, BoundTest)  # noqa: S101 a test of its own evidence
            share = percent(evidence.limit, 2)
            runs = counted(evidence.runs, "run")
            return f"{evidence.bad} of {runs} break it, which does not show that more than {share} of all do."
        breaks = evidence.estimate > self.question.threshold
        needed, sets = (self.least, round(alpha / self.least)) if breaks else (alpha, 1)
        if evidence.least_p > needed * (1 + 1e-9):
            what = "decide" if sets == 1 else f"show that one of {sets} sets of limits is broken"
            fewest = f"{replace(compared, alpha=needed).fewest_runs()} or more"
            clean = " clean" if isinstance(compared, BinomialTest) else ""
            fewer = "" if sets == 1 else ", or fewer sets"
            return f"{counted(compared.runs, 'run')}{side} cannot {what}: it takes {fewest}{clean}{fewer}."
        where = "breaks" if breaks else "keeps"
        among = " among so many limits" if self.p_fail <= alpha else ""
        return f"As measured it {where} the limit, but the runs lie too far apart to be sure{among}."


def _test_name(question: Question, evidence: Evidence | BinomialTest | BoundTest) -> str:
    if isinstance(evidence, BoundTest):
        return "runs"
    if isinstance(evidence, BinomialTest):
        return "binomial"
    return "alone" if question.is_absolute else evidence.dealt


def describe_effect(
    question: Question, evidence: Evidence | BlockEvidence | BinomialTest | BoundTest, alpha: float
) -> str:
    """Return how far the candidate is from the baseline; of runs that are counted, how many break it."""
    if isinstance(evidence, BoundTest) and evidence.bad:
        more, sure = percent(evidence.least_share(alpha), 2), percent(1 - alpha, 2)
        return (
            f"{evidence.bad} of {evidence.runs} runs break it: with {sure} confidence, over {more} of all do."
        )
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


def describe_claim(runs: int, excluded: float, confidence: float) -> str:
    """Return what a PASS does not claim: what happens in few runs may have happened in none of these."""
    return (
        f"A PASS from {counted(runs, 'run')} excludes, at {percent(confidence, 2)}, only stalls that come in "
        f"more than {percent(excluded, 2)} of runs; rarer ones may have been missed."
    )


def _describe_power(question: Question, least: float, pass_level: float, fail_level: float) -> dict[str, Any]:
    """Return the fields of a verdict that say what these runs, as far apart as they lie, would have found."""
    compared = _select_measurable(question, least)
    if compared is None:
        return {}
    runs = max(compared.runs, compared.fewest_runs())
    found = compared.runs >= runs
    below = compared.found_from(runs, pass_level)
    above = compared.found_from(runs, fail_level if found else least)
    if below is None or above is None:
        return {}
    fails_from, passes_to = (
        question.to_display(question.threshold + above),
        question.to_display(question.threshold - below),
    )
    assert fails_from is not None and passes_to is not None  # noqa: S101 they come from figures
    if not question.uses_logs and passes_to < 0:
        passes_to = None
    few = "" if found else f"{compared.runs} decide nothing, but "
    side = "" if question.is_absolute else " a side"
    sentence = (
        f"{few}{counted(runs, 'run')}{side} that lie as far apart as these find in 4 of 5 cases what is "
        f"{_amount_text(question, fails_from)} or more (FAIL)"
        + ("." if passes_to is None else f", or {_amount_text(question, passes_to)} or less (PASS).")
    )
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
