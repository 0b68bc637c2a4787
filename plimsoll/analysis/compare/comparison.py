"""A whole comparison, from directories to verdicts; its look at the runs is remembered beside them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

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
from plimsoll.analysis.compare.gates import ANSWERS_METRIC, MORE_WRONG, Gate, Gates, read_gates
from plimsoll.analysis.compare.questions import (
    build_questions,
    default_gates,
    find_comparison_findings,
    sentences,
)
from plimsoll.analysis.evidence.answers import wrong_share
from plimsoll.analysis.evidence.finding import Finding, FindingKind, disqualifying
from plimsoll.analysis.evidence.measure import measure_run
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.evidence.sides import OpenedSide, Side, UnreadableRun, find_orders, open_sides
from plimsoll.analysis.evidence.storage import described, differing
from plimsoll.analysis.statistics.permutation import error_of_look
from plimsoll.common.errors import OutputError, RunDirectoryError, gravest_first
from plimsoll.common.files import read_regular, replace_json
from plimsoll.common.units import significant
from plimsoll.rundir.find import is_run

Progress = Callable[[int, int], None]
EXIT_CODES: dict[Outcome, int] = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}
LOOKS_FILE = "looks.json"
FORMAT = 1
_MOST_LOOK_BYTES = 16 << 20
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
    differences: list[tuple[str, tuple[object, object]]]
    look: int = 1

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

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        return {
            "format": 1,
            "verdict": self.verdict,
            "confidence": self.gates.confidence,
            "look": self.look,
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
) -> Comparison:
    """Compare two paths, or two backends of one. Without a file of `gates` the default ones are asked.

    `progress` is called with the number of records read so far and that of all runs. Raises PlimsollError.
    """
    asked = None if gates is None else read_gates(gates)
    opened = open_sides(paths, baseline, candidate)
    total, read = sum(run.requests.count for side in opened for run in side.runs), 0

    def advance(records: int) -> None:
        nonlocal read
        read += records
        progress(read, total)

    first, second = (_measure_side(side, advance) for side in opened)
    return judge_sides(opened, (first, second), asked or default_gates(first, second))


def judge_sides(
    opened: tuple[OpenedSide, OpenedSide],
    sides: tuple[Side, Side],
    gates: Gates,
    further: Sequence[Finding] = (),
) -> Comparison:
    """Judge two sides that are measured; where anything can be decided, this look at them is remembered.

    `further` are findings of the caller's own, which weigh as all others do.
    """
    orders = find_orders(*sides)
    findings = gravest_first([*further, *find_comparison_findings(opened, sides, gates, orders)])
    stops = {
        scenario: [each for each in disqualifying(findings) if each.scenario in (None, scenario)]
        for scenario in dict.fromkeys(gate.scenario for gate in gates.gates)
    }
    questions = build_questions(*sides, gates, orders, stops)
    look, again = 1, list[Finding]()
    if not all(asked.question.blocked for asked in questions):
        look, again = _remember_look(look_at(*(side.runs for side in sides)), opened[1].path)
    verdicts = decide([asked.question for asked in questions], gates.confidence, look)
    judged = [  # a gate that rests on runs which show the candidate to be worse is broken
        GateVerdict(asked.gate, asked.question, broken_by(asked.stops) or verdict, asked.unit)
        for asked, verdict in zip(questions, verdicts, strict=True)
    ]
    if gates.answers:
        judged += [_judge_answers(sides, scenario, found) for scenario, found in stops.items()]
    return Comparison(
        baseline=sides[0],
        candidate=sides[1],
        gates=gates,
        judged=judged,
        findings=[*findings, *again, *dict.fromkeys(each for asked in questions for each in asked.findings)],
        look=look,
        differences=_find_differences(*sides),
    )


def _measure_side(side: OpenedSide, advance: Callable[[int], None]) -> Side:
    runs: list[MeasuredRun] = []
    unreadable = list(side.unreadable)
    for directory in side.runs:
        try:
            runs.append(measure_run(directory, advance, keep_requests=True))
        except RunDirectoryError as error:
            unreadable.append(UnreadableRun(directory.facts, str(error)))
    experiments = {run.facts.experiment.name if run.facts.experiment else None for run in side.runs}
    named = experiments.pop() if len(experiments) == 1 else None
    return Side(side.name, runs, unreadable, named and f"{side.path.resolve()}: {named}")


def _find_differences(baseline: Side, candidate: Side) -> list[tuple[str, tuple[object, object]]]:
    """Return what the lab read of both storages and their hosts, where it differs."""
    facts = []
    for side in (baseline, candidate):
        storage = next(
            (run.directory.facts.storage for run in side.runs if run.directory.facts.storage), None
        )
        if storage is None:
            return []
        facts.append(described(storage))
    return [(key, (values[0], values[1])) for key, values in differing(facts)]


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


@dataclass(frozen=True)
class DecisionLook:
    """The runs of both sides that were decided on, by their identity."""

    baseline: frozenset[str]
    candidate: frozenset[str]

    def continues(self, other: "DecisionLook") -> bool:
        """Return whether it asks again what `other` asked: both sides share runs with it."""
        return bool(self.baseline & other.baseline) and bool(self.candidate & other.candidate)


def look_at(baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun]) -> DecisionLook:
    """Return the look at these runs."""
    return DecisionLook(frozenset(map(_run_identity, baseline)), frozenset(map(_run_identity, candidate)))


def _remember_look(look: DecisionLook, folder: Path) -> tuple[int, list[Finding]]:
    """Remember `look` in the folder of the candidate's runs; return its number, and what to say of it.

    Raises RunDirectoryError of a damaged file.
    """
    if is_run(folder):
        return 1, []
    path = folder / LOOKS_FILE
    before = _read_looks(path)
    number = number_look(look, before)
    again = []
    if number > 1:
        share = significant(100 * error_of_look(1, number), 2)
        text = (
            f"This is look {number} at these runs, which were decided on before when they were fewer: it may "
            f"make {share} % of the errors that are allowed."
        )
        again.append(Finding(FindingKind.ANOTHER_LOOK, text))
    if look in before:
        return number, again
    shown = [
        {"baseline": sorted(each.baseline), "candidate": sorted(each.candidate)} for each in [*before, look]
    ]
    try:
        replace_json(path, {"format": FORMAT, "looks": shown})
    except OutputError as error:
        forgotten = f"This look was not remembered: {str(error).rstrip('.')}."
        return number, [*again, Finding(FindingKind.LOOK_NOT_REMEMBERED, forgotten)]
    return number, again


def number_look(look: DecisionLook, before: Sequence[DecisionLook]) -> int:
    """Return which look at its runs `look` is: 1, and one more for each other set of them seen earlier. Pure.

    The same runs again are the same look.
    """
    earlier = before[: before.index(look)] if look in before else before
    return 1 + sum(look.continues(each) for each in earlier)


def _read_looks(path: Path) -> list[DecisionLook]:
    try:
        found = json.loads(read_regular(path, _MOST_LOOK_BYTES))
        if found["format"] != FORMAT:
            raise ValueError("another format")
        return [
            DecisionLook(_check_names(each["baseline"]), _check_names(each["candidate"]))
            for each in found["looks"]
        ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise RunDirectoryError(
            f"{path}: cannot be read, so it is unknown how often these runs were decided on; put it back, or "
            "remove it if this is the first time"
        ) from None


def _check_names(names: object) -> frozenset[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("no list of runs")
    return frozenset(names)


def _run_identity(run: MeasuredRun) -> str:
    """Return what tells a run from all others: the sum of its records, else its name and start."""
    return run.records_sha256 or f"{run.name} {run.started_at}"
