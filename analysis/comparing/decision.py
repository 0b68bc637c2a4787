"""From the values of every gate to a verdict each. Pure: it knows numbers, and nothing of runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from analysis.comparing.design import MOST_FORETOLD, GateValues
from analysis.comparing.holm import holm
from analysis.comparing.metrics.metric import Limit
from analysis.comparing.permutation import Evidence
from plimsoll.common.units import counted, significant

Outcome = Literal["PASS", "FAIL", "INCONCLUSIVE"]

_LOGS = ("at_most_ratio", "at_most_ms")
_ALONE = ("at_most_ms", "at_most_share")
_ROUNDED = 1e-12


@dataclass(frozen=True)
class Question:
    """Does the candidate keep one limit? Values are one a run; `blocked` says why nothing can be decided.

    `in_pairs`: the n-th values of both sides are of one repeat.
    """

    limit: Limit
    at_most: float
    baseline: Sequence[float]
    candidate: Sequence[float]
    in_pairs: bool = False
    blocked: Sequence[str] = ()

    @property
    def logs(self) -> bool:
        """True where the logarithms of the values are compared: ratios, and times."""
        return self.limit in _LOGS

    @property
    def alone(self) -> bool:
        """True where the candidate's own values are held to the limit."""
        return self.limit in _ALONE

    @property
    def threshold(self) -> float:
        """The limit, on the scale on which the values are compared."""
        return math.log(self.at_most) if self.logs else self.at_most

    def compared(self, alpha: float) -> GateValues:
        """Return the values on that scale."""
        baseline, candidate = self.baseline, self.candidate
        if self.logs:
            baseline, candidate = [math.log(v) for v in baseline], [math.log(v) for v in candidate]
        return GateValues([] if self.alone else baseline, candidate, self.in_pairs and not self.alone, alpha)

    def back(self, value: float | None) -> float | None:
        """Return a value on that scale as a ratio, a time, or a difference."""
        return value if value is None or not self.logs else math.exp(value)


@dataclass(frozen=True)
class Verdict:
    """The decision on one limit, and why. Figures are None where none can be given.

    `estimate` is a ratio, a difference, or the candidate's own level; `lower` and `upper` are one-sided
    confidence limits, each on its own. `p_pass` is small where the limit is kept, `p_fail` where it is
    broken; `…_holm` are adjusted for all gates. `more_runs` is how many more a side would probably decide.
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


def level_of(values: Sequence[float], logs: bool) -> float | None:
    """Return what stands for all runs of a side: their geometric mean, or that of shares, which may be 0."""
    if not values or (logs and min(values) <= 0):
        return None
    return math.exp(fmean(map(math.log, values))) if logs else fmean(values)


def decide(questions: Sequence[Question], confidence: float) -> list[Verdict]:
    """Return a verdict each. Those that are blocked count among the gates all the same."""
    alpha = 1 - confidence
    first = alpha / max(len(questions), 1)
    asked = [_GateTest(question, first) for question in questions]
    passes = holm([each.p_pass for each in asked])
    fails = holm([each.p_fail for each in asked])
    outcomes = [_outcome(p, f, alpha) for p, f in zip(passes, fails, strict=True)]
    undecided = max(outcomes.count("INCONCLUSIVE"), 1)
    return [
        each.verdict(outcome, p, f, alpha, alpha / undecided)
        for each, outcome, p, f in zip(asked, outcomes, passes, fails, strict=True)
    ]


def overall(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the verdict on all gates: FAIL if any is broken, PASS only if all are kept."""
    if "FAIL" in outcomes:
        return "FAIL"
    return "PASS" if outcomes and set(outcomes) == {"PASS"} else "INCONCLUSIVE"


def _outcome(p_pass: float, p_fail: float, alpha: float) -> Outcome:
    if p_pass <= alpha + _ROUNDED:
        return "PASS"
    return "FAIL" if p_fail <= alpha + _ROUNDED else "INCONCLUSIVE"


@dataclass
class _GateTest:
    question: Question
    first: float
    compared: GateValues | None = None
    evidence: Evidence | None = None
    p_pass: float = field(default=1.0, init=False)
    p_fail: float = field(default=1.0, init=False)

    def __post_init__(self) -> None:
        if self.question.blocked:
            return
        self.compared = self.question.compared(self.first)
        self.evidence = self.compared.evidence()
        self.p_pass = self.evidence.p_below(self.question.threshold)
        self.p_fail = self.evidence.p_above(self.question.threshold)

    def verdict(self, outcome: Outcome, p_pass: float, p_fail: float, alpha: float, asked: float) -> Verdict:
        question, evidence, compared = self.question, self.evidence, self.compared
        if evidence is None or compared is None:
            return Verdict("INCONCLUSIVE", " ".join(question.blocked))
        more, says = None, _found(question, evidence)
        if outcome == "INCONCLUSIVE":
            more = self._more(compared, evidence, asked)
            says = self._undecided(compared, evidence, more, alpha)
        return Verdict(
            outcome=outcome,
            says=says,
            estimate=question.back(evidence.estimate),
            lower=question.back(evidence.lower(alpha)),
            upper=question.back(evidence.upper(alpha)),
            p_pass=self.p_pass,
            p_fail=self.p_fail,
            p_pass_holm=p_pass,
            p_fail_holm=p_fail,
            test="alone" if question.alone else "paired" if evidence.paired else "unpaired",
            arrangements=evidence.arrangements,
            more_runs=more,
        )

    def _more(self, compared: GateValues, evidence: Evidence, asked: float) -> int | None:
        away = abs(self.question.threshold - evidence.estimate)
        runs = compared.runs_to_decide(away, asked)
        return None if runs is None else runs - compared.runs

    def _undecided(self, compared: GateValues, evidence: Evidence, more: int | None, alpha: float) -> str:
        where = "keeps" if evidence.estimate <= self.question.threshold else "breaks"
        gates = round(alpha / self.first)
        if evidence.least_p > self.first * (1 + 1e-9):
            why = (
                f"{counted(compared.runs, 'run')}{'' if self.question.alone else ' a side'} cannot decide "
                f"{counted(gates, 'gate')}: it takes {compared.fewest_runs()} or more, or fewer gates."
            )
        else:
            alone = min(self.p_pass, self.p_fail) <= alpha
            why = f"As measured it {where} the limit, but the runs lie too far apart to be sure"
            why += " of all gates at once." if alone else "."
        side = "" if self.question.alone else " a side"
        if more is not None:
            return f"{why} About {counted(more, 'more run')}{side} would probably decide."
        return (
            f"{why} How many more runs would decide cannot be said: it lies so near the limit that it may "
            f"take over {MOST_FORETOLD}{side}. Longer runs, a quieter machine or another limit would help."
        )


def _found(question: Question, evidence: Evidence) -> str:
    """Return what an outcome that is sure says."""
    estimate = question.back(evidence.estimate)
    assert estimate is not None  # noqa: S101 an estimate is always there
    if question.limit == "at_most_ratio":
        if abs(estimate - 1) < 0.0005:
            return "As before."
        if not 0.5 < estimate < 2:
            times = significant(max(estimate, 1 / estimate), 2)
            return f"{times} times as {'slow' if estimate > 1 else 'fast'} as the baseline."
        return f"{percent(abs(estimate - 1))} {'slower' if estimate > 1 else 'faster'} than the baseline."
    return ""


def percent(share: float) -> str:
    """Return a share in percent: `8.1 %`."""
    return f"{significant(100 * share, 2)} %"
