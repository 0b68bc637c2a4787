"""`plimsoll rehearse`: the runs, made or taken as they are, and what they say of an experiment here."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from statistics import median

from plimsoll.ab.rehearsal import Rehearsal, rehearse_blocks
from plimsoll.ab.rehearsal_page import plants_table, rehearsal_page, runs_table, sentence_of_rehearsal
from plimsoll.ab.trial import GATES_FILE, TrialRuns, default_gates, parse_gate
from plimsoll.analysis.compare.gates import Gates, read_gates
from plimsoll.analysis.evidence.checks import (
    RunGroup,
    identity_findings,
    merge_alike,
    run_findings,
)
from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.evidence.generator import load_findings
from plimsoll.analysis.evidence.measure import measure_run
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.page.section import Table
from plimsoll.analysis.page.shell import write_page
from plimsoll.analysis.page.verdict import align, wrap
from plimsoll.common.errors import RunDirectoryError, SettingsError
from plimsoll.common.files import replace_json
from plimsoll.common.hostile import printable
from plimsoll.common.progress import is_shown, progress_bar
from plimsoll.common.units import counted, listed, seconds
from plimsoll.lab.experiment.folder import ExperimentFolder
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.find import open_runs, runs_folder
from plimsoll.rundir.names import REHEARSAL_FILE
from plimsoll.rundir.read import RunDirectory

COMMAND, PAGE_FILE = "rehearse", "rehearsal.html"
_OF_BLOCK, _FEWEST_BLOCKS = 4, 2

_Blocks = list[list[RunDirectory]]


@dataclass(frozen=True)
class RehearsalResult:
    """What came of it: the rehearsal, or what bars every verdict on such runs, or an interruption.

    `target` is the site's URL (hostile). `left_out` counts the runs that fill no block.
    """

    directory: Path
    target: str | None = None
    rehearsal: Rehearsal | None = None
    bars: tuple[Finding, ...] = ()
    page: Path | None = None
    left_out: int = 0

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        return 0 if self.rehearsal else 3

    def lines(self) -> Iterator[str]:
        """Yield what the command prints, in lines."""
        if self.rehearsal is not None:
            yield from wrap(sentence_of_rehearsal(self.rehearsal))
            for table in (plants_table(self.rehearsal), runs_table(self.rehearsal)):
                if table is not None:
                    yield from _lines_of(table)
        elif self.bars:
            yield "No experiment of such runs is decided:"
            for finding in self.bars:
                yield from wrap(finding.sentence, "- ")
        else:
            again = f"plimsoll rehearse --resume {self.directory}"
            yield f"Interrupted; no finished run is lost. To continue: {again}"
        if self.left_out:
            yield f"Beyond whole blocks of {_OF_BLOCK}, and left out: {counted(self.left_out, 'run')}."
        if self.page is not None:
            yield f"Page: {printable(str(self.page), 1000)}"

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        return {
            "rehearsal": self.rehearsal and self.rehearsal.as_json(),
            "says": self.rehearsal and sentence_of_rehearsal(self.rehearsal),
            "target": self.target,
            "findings": [finding.as_json() for finding in self.bars],
            "left_out": self.left_out,
            "directory": str(self.directory),
            "page": self.page and str(self.page),
        }


def carry_out(folder: ExperimentFolder, progress: bool | None) -> RehearsalResult:
    """Make the runs of a rehearsal that are left, and judge plants in them. Raises PlimsollError."""
    lab = folder.settings()
    runs = TrialRuns(folder, lab, progress)

    def after_block() -> tuple[bool, str]:
        return False, "all runs are made" if runs.is_complete else f"about {seconds(runs.left_s())} more"

    if not runs.is_complete and runs.make(after_block):
        return RehearsalResult(folder.path)
    gates = read_gates(folder.path / GATES_FILE)
    blocks, left_out = block_up(_open([folder.path]))
    return _judge(blocks, left_out, gates, lab.looks, folder.path, progress)


def rehearse_recorded(
    paths: Sequence[Path], limits: Sequence[str], looks: str, out: Path, progress: bool | None
) -> RehearsalResult:
    """Judge plants in existing runs. Raises PlimsollError; SettingsError where they are not of one site."""
    problems: list[str] = []
    parsed = [gate for text in limits if (gate := parse_gate(text, problems))]
    if problems:
        raise SettingsError("\n".join(problems))
    runs = _open(paths)
    refuse_other_sites(runs)
    blocks, left_out = block_up(runs)
    fewest = min(run.requests.count for run in chain.from_iterable(blocks))
    scenario = {"scenario": blocks[0][0].facts.scenario}
    gates = Gates.model_validate({"gates": [gate | scenario for gate in parsed or default_gates(fewest)]})
    return _judge(blocks, left_out, gates, looks, out, progress)


def _open(paths: Sequence[Path]) -> list[RunDirectory]:
    """Return the runs there. Raises RunDirectoryError if any cannot be read: the rest may be the better."""
    opened = open_runs([runs_folder(path) for path in paths])
    if opened.unreadable:
        remedy = "Move away what does not count, or repair it."
        raise RunDirectoryError("\n".join([*opened.unreadable, remedy]))
    return opened.runs


def refuse_other_sites(runs: Sequence[RunDirectory]) -> None:
    """Raise SettingsError unless all runs are of one scenario on one site."""
    for what, of in (("sites", _site_of), ("scenarios", lambda facts: facts.scenario)):
        several = sorted({printable(of(run.facts), 200) for run in runs})
        if len(several) > 1:
            raise SettingsError(
                f"--from: these are runs of several {what} ({listed(several)}): name those of one, each by "
                "its own --from"
            )


def _site_of(facts: RunFacts) -> str:
    """Return what tells the sites of runs apart; both sides of a rehearsal are one."""
    is_rehearsal = facts.experiment is not None and facts.experiment.name == COMMAND
    if facts.backend and not is_rehearsal:
        return facts.backend
    return str(facts.target.connect_to or facts.target.url) if facts.target else "no target"


def block_up(runs: Sequence[RunDirectory]) -> tuple[_Blocks, int]:
    """Return runs in blocks of four, and how many are left over. Raises SettingsError for too few.

    Those of an experiment stay in the blocks that it made, and all others are taken as they came.
    """
    by_block: defaultdict[tuple[str, int], list[RunDirectory]] = defaultdict(list)
    others: list[RunDirectory] = []
    for run in runs:
        made = run.facts.experiment
        if made is None or made.block is None:
            others.append(run)
        else:
            by_block[str(run.path.resolve().parent), made.block].append(run)
    blocks = [sorted(each, key=_began) for each in by_block.values() if len(each) == _OF_BLOCK]
    others += [run for each in by_block.values() if len(each) != _OF_BLOCK for run in each]
    others.sort(key=_began)
    whole = len(others) // _OF_BLOCK * _OF_BLOCK
    blocks += [others[at : at + _OF_BLOCK] for at in range(0, whole, _OF_BLOCK)]
    if len(blocks) < _FEWEST_BLOCKS:
        fewest = _FEWEST_BLOCKS * _OF_BLOCK
        raise SettingsError(
            f"--from: a rehearsal takes {fewest} runs of one site or more, and here "
            f"{'is' if len(runs) == 1 else 'are'} {len(runs)}: add runs, each folder by its own --from, or "
            "make them: plimsoll rehearse LOG --target URL"
        )
    return sorted(blocks, key=lambda block: _began(block[0])), len(others) - whole


def _began(run: RunDirectory) -> datetime:
    return run.facts.started_at or datetime.max.replace(tzinfo=UTC)


def _judge(
    blocks: _Blocks, left_out: int, gates: Gates, looks: str, out: Path, progress: bool | None
) -> RehearsalResult:
    shown = is_shown(progress)
    total, done = sum(run.requests.count for run in chain.from_iterable(blocks)), 0
    with progress_bar("reading", "requests", shown) as advance:

        def read(records: int) -> None:
            nonlocal done
            done += records
            advance(done, total)

        measured = [[measure_run(run, read, keep_requests=True) for run in block] for block in blocks]
    if bars := tuple(find_bars(list(chain.from_iterable(measured)), gates)):
        return RehearsalResult(out, bars=bars, left_out=left_out)
    with progress_bar("judging", "slowdowns", shown) as advance:
        rehearsal = rehearse_blocks(measured, gates, _lasted_s(blocks), looks, advance)
    page, target = out / PAGE_FILE, blocks[0][0].facts.target
    write_page(page, rehearsal_page(rehearsal))
    result = RehearsalResult(out, target.url if target else None, rehearsal, page=page, left_out=left_out)
    replace_json(out / REHEARSAL_FILE, result.as_json())
    return result


def find_bars(runs: Sequence[MeasuredRun], gates: Gates) -> list[Finding]:
    """Return what no verdict of an experiment with such runs gets past."""
    scenario = runs[0].scenario
    found = [finding for run in runs for finding in run_findings(run)]
    found += [*load_findings(runs, scenario), *identity_findings(runs)]
    bars = [finding for finding in found if any(finding.bars(gate.metric) for gate in gates.gates)]
    return merge_alike(bars, [RunGroup("", [run.name for run in runs])])


def _lasted_s(blocks: _Blocks) -> float:
    """Return how long a run takes, from its start to its end."""
    facts = [run.facts for run in chain.from_iterable(blocks)]
    lengths = [(f.ended_at - f.started_at).total_seconds() for f in facts if f.ended_at and f.started_at]
    return median(lengths) if lengths else 0.0


def _lines_of(table: Table) -> Iterator[str]:
    yield ""
    rows = [table.columns, *([row.name, *row.cells] for row in table.rows)]
    yield from align(rows, left=[0])
