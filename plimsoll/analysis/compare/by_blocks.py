"""Verdicts of a plan that is looked at block by block: each look so far counts, by its part of the error.

Each gate passes at the first look that shows it kept, at the full error through all looks; those of the same
runs fail by one step-down test through all looks. What one look decided stays decided. Pure.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

from plimsoll.analysis.compare.decision import (
    LATE,
    PLAN_OVER,
    Outcome,
    Question,
    Verdict,
    describe_claim,
    describe_effect,
    family_of,
)
from plimsoll.analysis.statistics.binomial import BinomialTest, BoundTest
from plimsoll.analysis.statistics.sequential import (
    BlockEvidence,
    first_deciding_block,
    of_blocks,
    of_candidate,
    spent,
    step_down,
)
from plimsoll.analysis.statistics.stalls import excluded_share
from plimsoll.common.units import counted


class _Ends(NamedTuple):
    """The evidence of one gate, at both ends of what the generator's lateness leaves open."""

    evidence: BlockEvidence
    best: BlockEvidence
    worst: BlockEvidence

    @classmethod
    def of(cls, question: Question, blocks: int) -> "_Ends":
        evidence = _evidence(question, blocks)
        if question.prompt is None:
            return cls(evidence, evidence, evidence)
        return cls(evidence, _evidence(question.at_best, blocks), _evidence(question.at_worst, blocks))


@dataclass(frozen=True)
class _Found:
    """What the looks so far found of one gate, and at which of them it passed or failed (from 1)."""

    test: _Ends | BinomialTest | BoundTest
    passed: int | None
    failed: int | None
    is_late: bool = False  # the same figures would decide if every request had been sent in time

    @property
    def outcome(self) -> Outcome:
        """The first that any look found."""
        if self.passed is not None and self.passed <= (self.failed or self.passed):
            return "PASS"
        return "INCONCLUSIVE" if self.failed is None else "FAIL"

    @property
    def evidence(self) -> BlockEvidence | BinomialTest | BoundTest:
        """The evidence of the figures as they are."""
        return self.test.evidence if isinstance(self.test, _Ends) else self.test


def decide_by_blocks(questions: Sequence[Question], confidence: float, blocks: int) -> list[Verdict]:
    """Return a verdict each, of the blocks that are there of the planned `blocks`.

    Those that are blocked count among the gates all the same. Every other one is in blocks, two values a
    side in each.
    """
    error = 1 - confidence
    found, share = _find(questions, error, blocks)
    return [
        _verdict(question, found[at], blocks, error, share)
        if at in found
        else Verdict("INCONCLUSIVE", " ".join(question.blocked))
        for at, question in enumerate(questions)
    ]


def outcomes_by_blocks(questions: Sequence[Question], confidence: float, blocks: int) -> list[Outcome]:
    """Return the outcomes of such verdicts alone, ten times as fast, of questions that nothing is against."""
    found, _ = _find(questions, 1 - confidence, blocks)
    return [found[at].outcome for at in range(len(questions))]


def _find(questions: Sequence[Question], error: float, blocks: int) -> tuple[dict[int, _Found], float]:
    """Return what the looks found of each question that is not blocked, and each family's share of error."""
    families = [family_of(question, at) for at, question in enumerate(questions)]
    share = error / max(len(set(families) - {None}), 1)
    found: dict[int, _Found] = {}
    redealt = defaultdict(list)
    for at, (question, family) in enumerate(zip(questions, families, strict=True)):
        if question.blocked:
            continue
        if question.is_at_bound or question.limit == "at_most_share_of_runs":
            found[at] = _count_runs(question, blocks, error, share)
        else:
            redealt[family].append(at)
    for gates in redealt.values():
        ends = [_Ends.of(questions[at], blocks) for at in gates]
        thresholds = [questions[at].threshold for at in gates]
        failed = step_down([each.best for each in ends], thresholds, share)
        for at, each, look in zip(gates, ends, failed, strict=True):
            passed = each.worst.look_below(questions[at].threshold, error)
            found[at] = _Found(each, passed, look, _is_late(questions[at], each.evidence, error, share))
    return found, share


def _evidence(question: Question, blocks: int) -> BlockEvidence:
    baseline, candidate = question.on_scale
    return of_candidate(candidate, blocks) if question.is_absolute else of_blocks(baseline, candidate, blocks)


def _is_late(question: Question, evidence: BlockEvidence, error: float, share: float) -> bool:
    """Return whether the figures would decide as they are, had the generator not been late."""
    if question.prompt is None:
        return False
    looks = evidence.look_below(question.threshold, error), evidence.look_above(question.threshold, share)
    return looks != (None, None)


def _count_runs(question: Question, blocks: int, error: float, share: float) -> _Found:
    """Return what counts of runs show, by what each look may spend for itself.

    A limit that every run so far keeps was kept at every earlier look, too.
    """
    passed, threshold = None, question.threshold
    for look in range(1, len(question.candidate) // 2 + 1):
        test = _counted(question, look)
        if test.p_above(threshold) <= _own_part(share, look, blocks):
            return _Found(test, passed, look)
        if isinstance(test, BoundTest):
            passed = None if test.bad else look
        elif passed is None and test.p_below(threshold) <= _own_part(error, look, blocks):
            passed = look
    return _Found(test, passed, None)


def _own_part(error: float, look: int, blocks: int) -> float:
    """Return what a look may spend that cannot use what earlier ones have left."""
    return spent(error, look / blocks) - spent(error, (look - 1) / blocks)


def _counted(question: Question, look: int) -> BinomialTest | BoundTest:
    runs = question.candidate[: 2 * look]
    if question.limit == "at_most_share_of_runs":
        return BinomialTest.of(runs, question.at_most, 0)
    bad = sum(value > question.at_most for value in runs)
    return BoundTest(bad, len(runs), question.bad_runs, fmean(runs))


def _verdict(question: Question, found: _Found, blocks: int, error: float, share: float) -> Verdict:
    evidence, outcome = found.evidence, found.outcome
    if (outcome == "PASS" and question.doubts) or (outcome == "FAIL" and question.excuses):
        says = list(question.doubts if outcome == "PASS" else question.excuses)
        outcome = "INCONCLUSIVE"
    elif outcome == "INCONCLUSIVE":
        says = list(question.doubts) or _explain_undecided(question, found, blocks, error)
    else:
        look = found.passed if outcome == "PASS" else found.failed
        alpha = _own_part(share, look or 1, blocks) if isinstance(evidence, BoundTest) else share
        says = [describe_effect(question, evidence, alpha)]
        if look and 2 * look < len(question.candidate):
            says.append(f"It was decided by the first {2 * look} runs a side.")
    excluded, claim = None, ""
    if outcome == "PASS":
        excluded = excluded_share(len(question.candidate), 1 - error)
        claim = describe_claim(len(question.candidate), excluded, 1 - error)
    verdict = Verdict(
        outcome=outcome,
        says=" ".join([*filter(None, says), *question.notes]),
        estimate=question.to_display(evidence.estimate),
        test="runs" if isinstance(evidence, BoundTest) else "binomial",
        excluded_share=excluded,
        claim=claim,
    )
    if isinstance(evidence, BoundTest):
        return verdict
    best: BlockEvidence | BinomialTest = evidence
    worst = best
    if isinstance(found.test, _Ends):
        _, best, worst = found.test
        test = "alone" if question.is_absolute else "blocks"
        verdict = replace(verdict, test=test, arrangements=best.arrangements)
    return replace(
        verdict,
        lower=question.to_display(best.lower(error)),
        upper=question.to_display(worst.upper(error)),
    )


def _explain_undecided(question: Question, found: _Found, blocks: int, error: float) -> list[str]:
    if found.is_late:
        return [LATE]
    done = len(question.candidate) // 2
    breaks = found.evidence.estimate > question.threshold
    why = f"As measured it {'breaks' if breaks else 'keeps'} the limit, but that is not sure."
    if isinstance(found.evidence, BlockEvidence):
        first = first_deciding_block(blocks, error, found.evidence.per_block)
        if first is None:
            return [why, f"A plan of {counted(2 * blocks, 'run')} a side cannot decide it: plan more."]
        if done < first:
            return [why, f"The plan can decide it from {2 * first} runs a side on."]
    if done < blocks:
        return [why, "The plan goes on: it looks again after the next block."]
    return [why, PLAN_OVER]
