"""A whole comparison, from directories to verdicts; its look at the runs is remembered beside them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from plimsoll.analysis.compare.by_blocks import decide_by_blocks
from plimsoll.analysis.compare.decision import (
    Outcome,
    Question,
    Verdict,
    broken_by,
    decide,
    level_of,
    overall,
    verdict_sentence,
)
from plimsoll.analysis.compare.gates import ANSWERS_METRIC, MORE_WRONG, Gate, Gates, default_gates, read_gates
from plimsoll.analysis.compare.looks import (
    KnownLooks,
    Plan,
    find_look_findings,
    look_at,
    recall_looks,
    remember_look,
)
from plimsoll.analysis.compare.plan import (
    NO_PLAN,
    PlanProgress,
    StatedPlan,
    count_done,
    find_stated,
    keep_to_plan,
)
from plimsoll.analysis.compare.questions import (
    GateQuestion,
    build_questions,
    find_comparison_findings,
    sentences,
)
from plimsoll.analysis.evidence.answers import wrong_share
from plimsoll.analysis.evidence.facts import Difference, find_differences
from plimsoll.analysis.evidence.finding import Finding, disqualifying
from plimsoll.analysis.evidence.measure import measure_run
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.evidence.sides import (
    OpenedSide,
    Side,
    UnreadableRun,
    experiment_key,
    find_experiments,
    find_orders,
    open_sides,
)
from plimsoll.common.errors import RunDirectoryError, gravest_first

Progress = Callable[[int, int], None]
EXIT_CODES: dict[Outcome, int] = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}
_FIGURES = (  # of a verdict, in JSON
    *("p_pass", "p_fail", "p_fail_adjusted", "test", "arrangements", "more_runs"),
    *("claim", "power", "fails_from", "passes_to", "excluded_share"),
)


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
        logs = not self.gate.metric_type.is_share
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
            **{name: getattr(verdict, name) for name in _FIGURES},
        }


@dataclass(frozen=True)
class Comparison:
    """Two sides, and a verdict on every gate. Names and texts are hostile."""

    baseline: Side
    candidate: Side
    gates: Gates
    judged: list[GateVerdict]
    findings: list[Finding]
    differences: list[Difference]
    looks: KnownLooks
    gates_written_at: datetime | None = None
    stated: StatedPlan = NO_PLAN

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcome of each limit."""
        return [each.verdict.outcome for each in self.judged]

    @property
    def verdict(self) -> Outcome:
        """FAIL if any gate is broken, PASS only if all are kept."""
        return overall(self.outcomes)

    @property
    def sentence(self) -> str:
        """What all verdicts come to (hostile)."""
        return verdict_sentence(self.candidate.name, self.baseline.name, self.outcomes)

    @property
    def warnings(self) -> list[str]:
        """The findings that forbid no verdict, each with its remedy (hostile)."""
        return [finding.sentence for finding in self.findings if not finding.disqualifies]

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0 PASS, 1 FAIL, 3 INCONCLUSIVE."""
        return EXIT_CODES[self.verdict]

    @property
    def confidence(self) -> float:
        """How sure each verdict is: what the gates ask for, shared by the sets of gates that were tried."""
        return 1 - (1 - self.gates.confidence) / self.looks.gates

    @property
    def plan(self) -> PlanProgress | None:
        """The plan that they were judged by, and how far it is; None where there is none."""
        if self.stated.plan is None:
            return None
        error = 1 - self.confidence
        return PlanProgress(self.stated.plan, self.looks.look.done, error, self.stated.beyond)

    @property
    def gates_sentence(self) -> str:
        """When the gates were written, beside the runs and earlier looks at them; empty for default gates."""
        written_at = self.gates_written_at
        if written_at is None:
            return ""
        began, ended = self._period
        when = {True: "after the last of these runs had ended", False: "while these runs were made"}
        place = ""
        if began and ended:
            before = "before the first of these runs began"
            place = f", {before if written_at < began else when[written_at > ended]}"
        late = ", and after a look at them by other gates" if self.looks.is_chosen_late(written_at) else ""
        return f"The gates were written at {written_at:%Y-%m-%d %H:%M:%S} UTC{place}{late}."

    @property
    def looks_sentence(self) -> str:
        """Which earlier looks at the candidate's runs are known here."""
        earlier = self.looks.earlier
        if not earlier:
            return "Looks known here: none before this one."
        first = next((each.at for each in earlier if each.at), None)
        since = f", the first at {first:%Y-%m-%d %H:%M:%S} UTC" if first else ""
        return f"Looks known here: {len(earlier)} before this one{since}."

    @property
    def _period(self) -> tuple[datetime | None, datetime | None]:
        """When the first run of both sides began, and the last one ended."""
        facts = [run.directory.facts for side in (self.baseline, self.candidate) for run in side.runs]
        began = [each.started_at for each in facts if each.started_at]
        ended = [at for each in facts if (at := each.ended_at or each.started_at)]
        return min(began, default=None), max(ended, default=None)

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        written_at, ended = self.gates_written_at, self._period[1]
        return {
            "format": 1,
            "verdict": self.verdict,
            "confidence": self.gates.confidence,
            "look": self.looks.number,
            "plan": self.plan and self.plan.as_json(),
            "looks_known_here": [
                {"at": shown["at"], "same_gates": each.gates == self.looks.look.gates}
                for each in self.looks.earlier
                for shown in [each.as_json()]
            ],
            "gates_tried": self.looks.gates,
            "candidates_tried": self.looks.candidates,
            "gates_written": written_at
            and {
                "at": f"{written_at:%Y-%m-%dT%H:%M:%S.%fZ}",
                "after_runs": None if ended is None else written_at > ended,
                "after_look": self.looks.is_chosen_late(written_at),
            },
            "baseline": _side_json(self.baseline),
            "candidate": _side_json(self.candidate),
            "gates": [each.as_json() for each in self.judged],
            "findings": [finding.as_json() for finding in self.findings],
            "warnings": self.warnings,
            "differences": [
                {"key": key, "baseline": one, "candidate": other} for key, (one, other) in self.differences
            ],
        }


def compare(
    paths: Sequence[Path],
    baseline: str | None = None,
    candidate: str | None = None,
    gates: Path | None = None,
    progress: Progress = lambda *_: None,
    plan: Plan | None = None,
) -> Comparison:
    """Compare two paths, or two backends of one. Without a file of `gates` the default ones are asked.

    `progress` is called with the number of records read so far and that of all runs. `plan` is the one that
    is asked for, beside that of the experiment. Raises PlimsollError.
    """
    asked = None if gates is None else read_gates(gates)
    opened = open_sides(paths, baseline, candidate)
    stated = find_stated(opened, plan)
    total, read = sum(run.requests.count for side in opened for run in side.runs), 0

    def advance(records: int) -> None:
        nonlocal read
        read += records
        progress(read, total)

    experiments = find_experiments(opened)
    first, second = (_measure_side(side, experiment_key(side, experiments), advance) for side in opened)
    written_at = None if gates is None else datetime.fromtimestamp(gates.stat().st_mtime, UTC)
    kept, sides = keep_to_plan(stated, recall_looks(opened[1].path), (first, second))
    return judge_sides(opened, sides, asked or default_gates(first, second), (), written_at, kept)


def judge_sides(
    opened: tuple[OpenedSide, OpenedSide],
    sides: tuple[Side, Side],
    gates: Gates,
    further: Sequence[Finding] = (),
    written_at: datetime | None = None,
    stated: StatedPlan = NO_PLAN,
) -> Comparison:
    """Judge two sides that are measured; where anything can be decided, this look at them is remembered.

    `further` are findings of the caller's own, which weigh as all others do. `written_at` is when the file of
    gates was written. `stated` is the plan in force; the sides have the runs that it takes in.
    """
    orders = find_orders(*sides)
    findings = gravest_first([*further, *find_comparison_findings(opened, sides, gates, orders)])
    stops = {
        scenario: [each for each in disqualifying(findings) if each.scenario in (None, scenario)]
        for scenario in dict.fromkeys(gate.scenario for gate in gates.gates)
    }
    questions = build_questions(*sides, gates, orders, stops)
    plan, done = stated.plan, 0
    if plan is not None:
        done = count_done(plan, sides, orders, list(stops))
        questions = [_wait_for(plan, done, asked) for asked in questions]
    looks, forgotten = KnownLooks(look_at(sides[0].runs, sides[1].runs, gates, plan, done)), list[str]()
    if not all(asked.question.blocked for asked in questions):
        looks, forgotten = remember_look(looks.look, opened[1].path)

    def decide_as_one_of(choices: int) -> list[Verdict]:
        confidence = 1 - (1 - gates.confidence) / choices
        asked = [each.question for each in questions]
        if plan is None:
            return decide(asked, confidence, looks.number)
        if plan.looks == "end":
            return decide(asked, confidence, is_last=True)
        return decide_by_blocks(asked, confidence, plan.runs // 2)

    verdicts = decide_as_one_of(looks.gates)
    holds_if_chosen = None
    if looks.candidates > 1 and _is_pass(verdicts):
        holds_if_chosen = _is_pass(decide_as_one_of(looks.gates * looks.candidates))
    judged = [  # a gate that rests on runs which show the candidate to be worse is broken
        GateVerdict(asked.gate, asked.question, broken_by(asked.stops) or verdict, asked.unit)
        for asked, verdict in zip(questions, verdicts, strict=True)
    ]
    if gates.answers:
        judged += [_judge_answers(sides, scenario, found) for scenario, found in stops.items()]
    on_the_way = dict.fromkeys(each for asked in questions for each in asked.findings)
    again = find_look_findings(looks, written_at, forgotten, holds_if_chosen)
    return Comparison(
        baseline=sides[0],
        candidate=sides[1],
        gates=gates,
        judged=judged,
        findings=[*findings, *stated.findings, *again, *on_the_way],
        looks=looks,
        gates_written_at=written_at,
        stated=stated,
        differences=find_differences(sides[0].runs, sides[1].runs),
    )


def _wait_for(plan: Plan, done: int, asked: GateQuestion) -> GateQuestion:
    """Return a gate's question, blocked where the plan has no look at the runs that are there."""
    question = asked.question
    if plan.looks == "end" and done < plan.runs:
        waits = f"The plan looks once, at its end: {done} of {plan.runs} runs a side are there."
    elif plan.looks == "blocks" and not question.in_blocks and not question.blocked:
        waits = "The plan looks at whole blocks: fewer than two are there, or an earlier one is missing."
    else:
        return asked
    return replace(asked, question=replace(question, blocked=[*question.blocked, waits]))


def _is_pass(verdicts: Sequence[Verdict]) -> bool:
    return all(verdict.outcome == "PASS" for verdict in verdicts)


def _measure_side(side: OpenedSide, experiment: str | None, advance: Callable[[int], None]) -> Side:
    runs: list[MeasuredRun] = []
    unreadable = list(side.unreadable)
    for directory in side.runs:
        try:
            runs.append(measure_run(directory, advance, keep_requests=True))
        except RunDirectoryError as error:
            unreadable.append(UnreadableRun(directory.facts, str(error)))
    return Side(side.name, runs, unreadable, experiment)


def _side_json(side: Side) -> dict[str, object]:
    return {
        "name": side.name,
        "runs": [
            {
                "directory": str(run.directory.path),
                "scenario": run.scenario,
                "backend": run.directory.facts.backend,
                "repeat": run.repeat,
                "status": run.directory.status,
            }
            for run in side.runs
        ],
        "unreadable": [each.why for each in side.unreadable],
    }


def _judge_answers(sides: tuple[Side, Side], scenario: str, stops: Sequence[Finding]) -> GateVerdict:
    """Return the verdict on a scenario's answers: the gate that is on unless the gates turn it off."""
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
