"""A trial of two servers: its plan, its runs in blocks, and after each block what they come to so far."""

import math
import random
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from plimsoll.ab.targets import ServedSide
from plimsoll.analysis.compare.comparison import EXIT_CODES, Comparison, GateVerdict, compare
from plimsoll.analysis.compare.gates import ERROR_SHARE, MORE_ERRORS, PERCENTILE_METRICS, RATIO, Gates
from plimsoll.analysis.compare.page import comparison_document, comparison_page
from plimsoll.analysis.page.shell import write_page
from plimsoll.analysis.page.verdict import text_lines
from plimsoll.analysis.statistics.percentiles import PERCENTILES, fewest
from plimsoll.common.errors import PlimsollError, SettingsError
from plimsoll.common.files import replace_text
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown
from plimsoll.common.units import parse_duration_s, seconds
from plimsoll.common.validation import sentence_of
from plimsoll.init.answers import count_requests_per_s
from plimsoll.lab.experiment.design import plan_runs
from plimsoll.lab.experiment.experiment import Experiment, run_experiment
from plimsoll.lab.experiment.folder import ExperimentFolder, make_folder
from plimsoll.lab.experiment.labfile import REPLAY, Lab
from plimsoll.lab.experiment.notices import open_notices
from plimsoll.lab.experiment.order import PlannedRun
from plimsoll.lab.experiment.plan import expected_s
from plimsoll.lab.experiment.scenarios import read_traits

SIDES = ("baseline", "candidate")
GATES_FILE, PAGE_FILE = "gates.yml", "comparison.html"
RUNS = 8
_FEWEST_RUNS, _MOST_RUNS = 4, 100
_BEYOND = 10  # requests beyond a percentile, in a run of the default length
_LONGEST_S = 300.0
_SHORTEST_S = 10.0
_UNEVEN = 1.5  # a log's pace by that of its quieter parts
_WARMUP_S, _SETTLE_S = 2.0, 0.5
_OBSERVED = ("diskstats", "pressure", "cpu", "memory")  # of this machine: nothing is known of the servers'
_ORDINARY = re.compile(r"^run \d+ of \d+: |: setting up")
_GATE = re.compile(
    r"(?P<figure>p\d{2}(?:\.\d{1,2})?|mean|errors):(?P<number>\d{1,9}(?:\.\d{1,6})?)(?P<unit>x|ms|s|%)"
)


@dataclass(frozen=True)
class TrialPlan:
    """What is going to be done: the experiment as lab.yml would have it, and its limits."""

    lab: Lab
    gates: Gates

    def describe(self, *, ends_early: bool) -> str:
        """Return how many runs it has, and how long they take."""
        run_s = (self.lab.phases.during_s or 0.0) + self.lab.warmup_s
        earlier = ", or less where it is decided earlier" if ends_early else ""
        return (
            f"{self.lab.repeats} runs a side of {seconds(run_s)} in {self.lab.repeats // 2} blocks of four: "
            f"{seconds(expected_s(self.lab) or 0.0)}{earlier}."
        )


def plan_trial(
    command: str,
    logs: Sequence[str],
    sides: tuple[ServedSide, ServedSide],
    *,
    log_format: str | None = None,
    speed: float = 1.0,
    limits: Sequence[str] = (),
    runs: int | None = None,
    within: str | None = None,
    duration: str | None = None,
    looks: str = "blocks",
    out: Path = Path("results"),
) -> TrialPlan:
    """Return the plan of `command`; the log is read for it. Raises SettingsError with all problems."""
    problems: list[str] = []
    if not speed > 0:
        problems.append("--speed: must be greater than 0")
    if runs is not None and within is not None:
        problems.append("--runs and --within: give one of them")
    if runs is not None and (runs % 2 or not _FEWEST_RUNS <= runs <= _MOST_RUNS):
        problems.append(
            f"--runs: must be an even number from {_FEWEST_RUNS} to {_MOST_RUNS}: runs come in blocks of four"
        )
    within_s, duration_s = (
        _parse_time(name, text, problems) for name, text in (("--within", within), ("--duration", duration))
    )
    gates = [gate for text in limits if (gate := parse_gate(text, problems))]
    if problems:
        raise SettingsError("\n".join(problems))
    try:
        per_s = count_requests_per_s(logs, log_format)
    except ValueError as error:
        raise SettingsError(f"LOG: {error}") from None
    if per_s is None:
        raise SettingsError("LOG: all its requests are of one instant, so it has no pace: give a longer log")
    per_s *= speed
    gates = gates or default_gates(per_s * (duration_s or _LONGEST_S))
    needed = max(
        (fewest(PERCENTILES[gate["metric"]]) for gate in gates if gate["metric"] in PERCENTILES), default=1
    )
    duration_s = duration_s or min(max(_BEYOND * needed / per_s, _SHORTEST_S), _LONGEST_S)
    if (times := _UNEVEN * needed / (per_s * duration_s)) > 1:
        raise SettingsError(
            f"--gate: takes {needed:,} requests in each run, and in {seconds(duration_s)} this log has about "
            f"{per_s * duration_s:,.0f} at speed {speed:g}, more or less: give --duration "
            f"{math.ceil(times * duration_s)}s, or --speed {math.ceil(10 * times * speed) / 10:g}"
        )

    def lab_of(repeats: int) -> Lab:
        options = {"log": list(logs), "speed": speed} | ({"format": log_format} if log_format else {})
        return Lab.model_validate(
            {
                "name": command,
                "backends": [
                    {
                        "name": side.name,
                        "clone": {"driver": "static", "target": side.url}
                        | ({"connect_to": side.connect_to} if side.connect_to else {}),
                    }
                    for side in sides
                ],
                "scenarios": [
                    {
                        "scenario": REPLAY,
                        "options": options | ({"flags": ["--insecure"]} if sides[0].insecure else {}),
                    }
                ],
                "phases": {"before_s": 0, "during_s": duration_s, "after_s": 0},
                "warmup_s": _WARMUP_S,
                "repeats": repeats,
                "order": "blocks",
                "looks": looks,
                "seed": random.SystemRandom().randrange(1 << 31),
                "observe": {"observe": _OBSERVED},
                "limits": {"settle_s": _SETTLE_S},
                "out": out,
            }
        )

    try:
        lab = lab_of(runs or RUNS)
    except ValidationError as error:
        raise SettingsError(sentence_of(error)) from None
    if within_s is not None:
        each_s = (expected_s(lab) or 0.0) / RUNS
        fitting = min(int(within_s / each_s) // 2 * 2, _MOST_RUNS)
        if fitting < _FEWEST_RUNS:
            raise SettingsError(
                f"--within: the fewest runs that decide, {_FEWEST_RUNS} a side, take "
                f"{seconds(_FEWEST_RUNS * each_s)}: give that, or a shorter --duration"
            )
        lab = lab_of(fitting)
    return TrialPlan(lab, Gates.model_validate({"gates": gates}))


class TrialRuns:
    """The runs of a trial in its folder, new or begun."""

    def __init__(self, folder: ExperimentFolder, lab: Lab, progress: bool | None) -> None:
        self.folder, self._lab = folder, lab
        self._runs = plan_runs(lab)
        self._shown = is_shown(progress)
        self._advance: Callable[[str], None] = lambda text: None
        self._began_s, self._done_before = time.monotonic(), self.done

    @property
    def done(self) -> int:
        """How many are finished."""
        return sum(self.folder.is_finished(run.name) for run in self._runs)

    @property
    def can_be_judged(self) -> bool:
        """True if each side has one."""
        return {run.backend for run in self._runs if self.folder.is_finished(run.name)} == {
            run.backend for run in self._runs
        }

    @property
    def is_complete(self) -> bool:
        """True if all are finished."""
        return self.done == len(self._runs)

    def left_s(self) -> float:
        """Return about how long those that are left take."""
        each_s = (time.monotonic() - self._began_s) / max(self.done - self._done_before, 1)
        return each_s * (len(self._runs) - self.done)

    def make(self, after_block: Callable[[], tuple[bool, str]]) -> bool:
        """Make those that are left; return whether that was interrupted. Raises PlimsollError.

        `after_block` says after each block whether to end with it, and where the trial stands.
        """

        def is_enough(run: PlannedRun) -> bool:
            if any(not self.folder.is_finished(each.name) for each in self._runs if each.block == run.block):
                self._advance("")
                return False
            enough, standing = after_block()
            self._advance(f"block {run.block} of {self._runs[-1].block} · {standing}")
            return enough

        kinds = read_traits(self._lab, str(self.folder.path))
        notices = open_notices(None, self._lab.name, self.folder.path, {}, say)
        try:
            with self._show():
                run_experiment(Experiment(self._lab, self.folder, kinds, self._note, notices, is_enough))
        except KeyboardInterrupt:
            return True
        except PlimsollError:
            if not self.folder.journal.path.exists():  # it did not even begin
                shutil.rmtree(self.folder.path, ignore_errors=True)
            raise
        return False

    @contextmanager
    def _show(self) -> Iterator[None]:
        """Show a bar of the runs, with what they come to so far; else a line a block."""
        if not self._shown:
            self._advance = lambda text: say(text) if text else None
            yield
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs"))
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("block 1", total=len(self._runs), completed=self.done)
            self._advance = lambda text: bar.update(task, completed=self.done, description=text or None)
            yield

    def _note(self, text: str) -> None:
        """Say what went wrong with a run; that one began or ended is shown anyway."""
        if not _ORDINARY.search(text):
            say(text)


def begin_trial(plan: TrialPlan, *, ends_early: bool) -> ExperimentFolder:
    """Make the folder of a new trial, its limits in it before its first run. Raises OutputError.

    `ends_early`: it ends as soon as its limits are decided.
    """
    folder = make_folder(plan.lab)
    text = yaml.safe_dump(plan.gates.model_dump(mode="json", exclude_defaults=True), sort_keys=False)
    replace_text(folder.path / GATES_FILE, text)
    say(plan.describe(ends_early=ends_early))
    return folder


def find_trial(path: Path, command: str) -> ExperimentFolder:
    """Return the trial that was begun in a folder. Raises SettingsError."""
    folder = ExperimentFolder(path)
    if not (path / GATES_FILE).is_file() or folder.settings().name != command:
        raise SettingsError(f"--resume: {path}: is not a folder of plimsoll {command}")
    return folder


def carry_out(folder: ExperimentFolder, progress: bool | None) -> "TrialResult":
    """Make the runs that are left until all limits are decided, and judge them. Raises PlimsollError."""
    runs = TrialRuns(folder, folder.settings(), progress)
    found: Comparison | None = None

    def judge() -> bool:
        nonlocal found
        found = compare([folder.path], *SIDES, folder.path / GATES_FILE)
        return found.verdict != "INCONCLUSIVE"

    def after_block() -> tuple[bool, str]:
        decided = judge()
        assert found is not None  # noqa: S101 just judged
        effects = filter(None, map(describe_effect, found.judged[:1]))
        left = "" if decided or runs.is_complete else f", at most {seconds(runs.left_s())} more"
        return decided, " · ".join([*effects, (found.verdict if decided else "undecided") + left])

    interrupted = False
    if not runs.is_complete and not (runs.can_be_judged and judge()):
        interrupted = runs.make(after_block)
    if runs.can_be_judged:
        judge()
    page = None
    if found is not None:
        page = folder.path / PAGE_FILE
        write_page(page, comparison_page(found))
    return TrialResult(folder.path, found, page, interrupted)


@dataclass(frozen=True)
class TrialResult:
    """How a trial ended: the comparison of all its runs, None where there is none yet."""

    directory: Path
    comparison: Comparison | None
    page: Path | None
    interrupted: bool

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        if self.comparison is None or self.interrupted:
            return EXIT_CODES["INCONCLUSIVE"]
        return self.comparison.exit_code

    def lines(self) -> Iterator[str]:
        """Yield what the command prints, in lines."""
        if self.comparison is not None:
            yield from text_lines(comparison_document(self.comparison, "ab"))
            yield ""
            yield from filter(None, map(describe_excluded, self.comparison.judged))
        if self.page is not None:
            yield f"Page: {printable(str(self.page), 1000)}"
        if self.interrupted:
            yield f"Interrupted; no finished run is lost. To continue: plimsoll ab --resume {self.directory}"

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        found = {} if self.comparison is None else self.comparison.as_json()
        page = None if self.page is None else str(self.page)
        return {**found, "directory": str(self.directory), "page": page, "interrupted": self.interrupted}


def describe_effect(judged: GateVerdict) -> str:
    """Return a ratio and its interval: `p99.9 × 1.03 (0.96 to 1.11)`; empty where there is none."""
    verdict = judged.verdict
    if judged.question.limit != "at_most_ratio" or verdict.estimate is None:
        return ""
    ends = [f"{each:.2f}" if each is not None else "?" for each in (verdict.lower, verdict.upper)]
    return f"{judged.gate.metric} × {verdict.estimate:.2f} ({' to '.join(ends)})"


def describe_excluded(judged: GateVerdict) -> str:
    """Return between which ratios a figure surely lies; empty where nothing is known."""
    verdict = judged.verdict
    if judged.question.limit != "at_most_ratio" or verdict.upper is None or verdict.lower is None:
        return ""
    where = {"PASS": f"at most × {verdict.upper:.2f}", "FAIL": f"at least × {verdict.lower:.2f}"}
    between = f"between × {verdict.lower:.2f} and × {verdict.upper:.2f}"
    return f"{judged.gate.metric}: surely {where.get(verdict.outcome, between)}."


def say(text: str) -> None:
    """Print a line for people."""
    print(printable(text, 2000), file=sys.stderr, flush=True)


def _parse_time(name: str, text: str | None, problems: list[str]) -> float | None:
    if text is None:
        return None
    try:
        return parse_duration_s(text)
    except ValueError as error:
        problems.append(f"{name}: {error}")
        return None


def parse_gate(text: str, problems: list[str]) -> dict[str, object] | None:
    """Return the gate that `p99.9:1.10x`, `p99:480ms` or `errors:0.1%` stands for."""
    found = _GATE.fullmatch(text)
    figure, number, unit = (
        (found["figure"], float(found["number"]), found["unit"]) if found else ("", 0.0, "")
    )
    is_known = figure in ("errors", "mean") or figure in PERCENTILE_METRICS
    if not is_known or not number or (unit == "%") != (figure == "errors"):
        problems.append(
            f"--gate: {printable(text, 100)}: is not a limit: write p99.9:1.10x (times the baseline's), "
            f"p99:480ms, errors:0.1% (more than the baseline's); figures: {', '.join(PERCENTILE_METRICS)}, "
            "mean, errors"
        )
        return None
    if unit == "%":
        return {"scenario": REPLAY, "metric": ERROR_SHARE, "at_most_more": number / 100}
    limit = (
        {"at_most_ratio": number} if unit == "x" else {"at_most_ms": number * (1000 if unit == "s" else 1)}
    )
    return {"scenario": REPLAY, "metric": figure, **limit}


def default_gates(requests: float) -> list[dict[str, object]]:
    """Return the limits of one who gives none: the highest percentile that a run has the requests for."""
    figure = next((name for name in PERCENTILE_METRICS if requests >= fewest(PERCENTILES[name])), "p50")
    return [
        {"scenario": REPLAY, "metric": figure, "at_most_ratio": RATIO},
        {"scenario": REPLAY, "metric": ERROR_SHARE, "at_most_more": MORE_ERRORS},
    ]
