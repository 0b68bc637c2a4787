"""A whole comparison, from directories to verdicts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.analysis.compare.decision import Outcome, decide, overall
from plimsoll.analysis.compare.default_gates import default_gates
from plimsoll.analysis.compare.findings import comparison_findings
from plimsoll.analysis.compare.gates import Gates, read_gates
from plimsoll.analysis.compare.looks import look_at, numbered
from plimsoll.analysis.compare.questions import GateQuestion, Side, orders_of, questions_of
from plimsoll.analysis.compare.sides import OpenedSide, UnreadableRun, open_sides
from plimsoll.analysis.compare.verdicts import GateVerdict, answers_verdicts, broken_by
from plimsoll.analysis.evidence.finding import Finding, disqualifying
from plimsoll.analysis.evidence.measure import measure_run
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.evidence.storage import described
from plimsoll.common.differences import differing
from plimsoll.common.errors import RunDirectoryError, gravest_first

Progress = Callable[[int, int], None]

EXIT_CODES: dict[Outcome, int] = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}


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
    def verdict(self) -> Outcome:
        """FAIL if any gate is broken, PASS only if all are kept."""
        return overall([each.verdict.outcome for each in self.judged])

    @property
    def warnings(self) -> list[str]:
        """The findings that forbid no verdict, each with its remedy (hostile)."""
        return [finding.sentence for finding in self.findings if not finding.disqualifies]

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0 PASS, 1 FAIL, 3 INCONCLUSIVE."""
        return EXIT_CODES[self.verdict]

    def count(self, outcome: Outcome) -> int:
        """Return how many limits have this verdict."""
        return sum(each.verdict.outcome == outcome for each in self.judged)

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

    first, second = (_measured(side, advance) for side in opened)
    return judged_sides(opened, (first, second), asked or default_gates(first, second))


def judged_sides(
    opened: tuple[OpenedSide, OpenedSide],
    sides: tuple[Side, Side],
    gates: Gates,
    further: Sequence[Finding] = (),
) -> Comparison:
    """Judge two sides that are measured; where anything can be decided, this look at them is remembered.

    `further` are findings of the caller's own, which weigh as all others do.
    """
    orders = orders_of(*sides)
    findings = gravest_first([*further, *comparison_findings(opened, sides, gates, orders)])
    stops = {
        scenario: [each for each in disqualifying(findings) if each.scenario in (None, scenario)]
        for scenario in dict.fromkeys(gate.scenario for gate in gates.gates)
    }
    questions = questions_of(*sides, gates, orders, stops)
    look, again = _look(opened, sides) if not all(asked.question.blocked for asked in questions) else (1, [])
    return Comparison(
        baseline=sides[0],
        candidate=sides[1],
        gates=gates,
        judged=[*_judged(questions, gates.confidence, look), *answers_verdicts(sides, gates, stops)],
        findings=[*findings, *again, *dict.fromkeys(each for asked in questions for each in asked.findings)],
        look=look,
        differences=_differences(*sides),
    )


def _look(opened: tuple[OpenedSide, OpenedSide], sides: tuple[Side, Side]) -> tuple[int, list[Finding]]:
    """Remember this look beside the candidate's runs; return its number, and what to say of it."""
    return numbered(look_at(*(side.runs for side in sides)), opened[1].path)


def _judged(questions: Sequence[GateQuestion], confidence: float, look: int) -> list[GateVerdict]:
    """Judge every question; a gate that rests on runs which show the candidate to be worse is broken."""
    verdicts = decide([asked.question for asked in questions], confidence, look)
    return [
        GateVerdict(asked.gate, asked.question, broken_by(asked.stops) or verdict, asked.unit)
        for asked, verdict in zip(questions, verdicts, strict=True)
    ]


def _measured(side: OpenedSide, advance: Callable[[int], None]) -> Side:
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


def _differences(baseline: Side, candidate: Side) -> list[tuple[str, tuple[object, object]]]:
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
