"""The verdict on one limit of one gate, and that on the answers, which stands before all others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from plimsoll.analysis.compare.decision import Outcome, Question, Verdict, level_of
from plimsoll.analysis.compare.gates import Gate, Gates
from plimsoll.analysis.compare.metrics import ANSWERS_METRIC, MORE_WRONG
from plimsoll.analysis.compare.questions import Side, sentences
from plimsoll.analysis.evidence.answers import wrong_share
from plimsoll.analysis.evidence.finding import Finding, FindingKind

# What failures bring with them, and what therefore does not speak against them.
_BESIDE_FAILURES = (FindingKind.OTHER_ANSWERS, FindingKind.NOT_AS_LOGGED, FindingKind.CENSORED)


@dataclass(frozen=True)
class GateVerdict:
    """One limit of one gate, and the verdict on it."""

    gate: Gate
    question: Question
    verdict: Verdict
    unit: str

    @property
    def levels(self) -> tuple[float | None, float | None]:
        """The levels of the baseline's and the candidate's runs: geometric means, or mean shares."""
        logs = not self.gate.kind.is_share
        return level_of(self.question.baseline, logs), level_of(self.question.candidate, logs)

    @property
    def in_ms(self) -> bool:
        """True where its figures are milliseconds; a measure may be anything."""
        return self.unit == "ms"

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints of it."""
        question, verdict, (baseline, candidate) = self.question, self.verdict, self.levels
        effect = {"at_most_ratio": "ratio", "at_most_more": "difference", "at_most_ms": "ms"}
        return {
            "scenario": self.gate.scenario,
            "phase": self.gate.phase,
            "metric": self.gate.metric,
            "unit": self.unit,
            "limit": {question.limit: question.at_most},
            "verdict": verdict.outcome,
            "says": verdict.says,
            "blocked": list(question.blocked),
            "effect": effect.get(question.limit, "share"),
            "estimate": verdict.estimate,
            "lower": verdict.lower,
            "upper": verdict.upper,
            "baseline": {"level": baseline, "runs": list(question.baseline)},
            "candidate": {"level": candidate, "runs": list(question.candidate)},
            "p_pass": verdict.p_pass,
            "p_fail": verdict.p_fail,
            "p_pass_holm": verdict.p_pass_holm,
            "p_fail_holm": verdict.p_fail_holm,
            "test": verdict.test,
            "arrangements": verdict.arrangements,
            "more_runs": verdict.more_runs,
            "claim": verdict.claim,
            "power": verdict.power,
            "fails_from": verdict.fails_from,
            "passes_to": verdict.passes_to,
            "excluded_share": verdict.excluded_share,
        }


def broken_by(found: Sequence[Finding]) -> Verdict | None:
    """Return FAIL where disqualifying findings show the candidate to be worse, else None. Pure.

    Not where another finding takes the ground from under that: from another load or a copy nothing follows.
    """
    worse = [finding for finding in found if finding.worse]
    undermined = any(not finding.worse and finding.kind not in _BESIDE_FAILURES for finding in found)
    return (
        Verdict("FAIL", " ".join(finding.sentence for finding in worse)) if worse and not undermined else None
    )


def answers_verdicts(
    sides: tuple[Side, Side], gates: Gates, stops: dict[str, list[Finding]]
) -> list[GateVerdict]:
    """Return a verdict on the answers of each scenario: the gate that is on unless the gates turn it off."""
    return [_answers(sides, scenario, found) for scenario, found in stops.items()] if gates.answers else []


def _answers(sides: tuple[Side, Side], scenario: str, stops: Sequence[Finding]) -> GateVerdict:
    shares = [
        [share for run in side.of(scenario) if (share := wrong_share(run)) is not None] for side in sides
    ]
    gate = Gate(scenario=scenario, metric=ANSWERS_METRIC, at_most_more=MORE_WRONG)
    blocked = list(sentences([finding.sentence for finding in stops]))
    question = Question("at_most_more", MORE_WRONG, shares[0], shares[1], blocked=blocked)
    estimate = fmean(shares[1]) - fmean(shares[0]) if all(shares) else None
    outcome: Outcome = "INCONCLUSIVE" if stops or not all(shares) else "PASS"
    verdict = broken_by(stops) or Verdict(outcome, " ".join(blocked))
    return GateVerdict(gate, question, replace(verdict, estimate=estimate), "")
