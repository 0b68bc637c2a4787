"""Run directories to report: opens, measures, draws, writes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from plimsoll.analysis.evidence.run import Observer
from plimsoll.analysis.page.shell import write_page
from plimsoll.analysis.report.against_log import against_log_sentence, held_against
from plimsoll.analysis.report.answer import answer_lines, answers_json
from plimsoll.analysis.report.backends import by_scenario, numbered
from plimsoll.analysis.report.comparison_cautions import comparison_cautions, doubts
from plimsoll.analysis.report.differences import differences_json
from plimsoll.analysis.report.factors import factors_json
from plimsoll.analysis.report.fileio import read_fileio
from plimsoll.analysis.report.measure_medians import measure_sentence, said_of
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.report.midway import midway
from plimsoll.analysis.report.omissions import lost_in
from plimsoll.analysis.report.own_figures import own_line
from plimsoll.analysis.report.page import page
from plimsoll.analysis.report.phase_figures import ScenarioFigures, figures_of_scenario
from plimsoll.analysis.report.phase_table import phase_sentence
from plimsoll.analysis.report.precondition import read_rounds
from plimsoll.analysis.report.stall_section import ScenarioStalls, lines_of
from plimsoll.analysis.report.stalls import stalls_of
from plimsoll.analysis.report.subjects import subjects_of
from plimsoll.analysis.statistics.against_log import HeldRun
from plimsoll.analysis.statistics.run import measure
from plimsoll.common.errors import OutputError, RunDirectoryError
from plimsoll.common.hostile import printable
from plimsoll.rundir.cells import FsyncCell, MatrixCell
from plimsoll.rundir.discovery import OpenedRuns, open_runs
from plimsoll.rundir.names import REPORT_FILE
from plimsoll.rundir.rounds import VolumeRound

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Report:
    """A report that was written, and what it says."""

    path: Path
    runs: list[MeasuredRun]
    compared: list[ScenarioFigures]
    unreadable: list[str]
    fileio: list[MatrixCell] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    rounds: list[VolumeRound] = field(default_factory=list)
    stalls: list[ScenarioStalls] = field(default_factory=list)
    fsyncs: list[FsyncCell] = field(default_factory=list)
    held: list[HeldRun] = field(default_factory=list)

    @cached_property
    def doubts(self) -> int:
        """Grave reasons not to trust what the runs say beside one another."""
        scenarios = by_scenario(self.runs)
        return doubts(scenarios, comparison_cautions(scenarios, self.compared, self.unreadable))

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        factors = factors_json(self.compared)
        answers = answers_json(self.compared, self.doubts)
        return {
            "format": 1,
            "runs": [run.as_json() for run in self.runs],
            "phases": [each.as_json() for each in self.compared],
            "stalls": [each.as_json() for each in self.stalls],
            "differences": differences_json(self.runs),
            "fileio": [cell.model_dump() for cell in self.fileio],
            "unreadable": self.unreadable,
            "unfinished": self.unfinished,
            **({"answers": answers} if answers else {}),
            **({"fsync": [cell.model_dump() for cell in self.fsyncs]} if self.fsyncs else {}),
            **({"against_log": [each.as_json() for each in self.held]} if self.held else {}),
            **({"factors": factors} if factors else {}),
            **({"precondition": [one.model_dump() for one in self.rounds]} if self.rounds else {}),
        }

    def lines(self) -> list[str]:
        """Return what the command prints, safe for a terminal: the headline of each run, and the report."""
        said = [line for run in self.runs for line in (run.one_line(), *_own(run), *said_of(run))]
        said += answer_lines(self.compared, self.doubts)
        said += [*self.sentences(), *lines_of(self.stalls), *map(against_log_sentence, self.held)]
        return [*map(printable, said), f"report: {printable(str(self.path), 4096)}"]

    def sentences(self) -> list[str]:
        """Return what the saturator did to each scenario, in a sentence each (hostile)."""
        found = [
            (each.scenario.name, text)
            for each in self.compared
            for text in (phase_sentence(each), measure_sentence(each.scenario))
        ]
        several = len(self.compared) > 1
        return [f"{name}: {text}" if several else text for name, text in found if text]


def _own(run: MeasuredRun) -> list[str]:
    """Return a line on what a scripted run is about; none of any other."""
    return [f"  {line}"] if (line := own_line(run)) else []


def make_report(
    paths: Sequence[Path],
    out: Path | None = None,
    progress: Progress = lambda *_: None,
    against_log: Path | None = None,
) -> Report:
    """Read the run directories `paths` and write one report on all of them.

    A folder of run directories stands for those in it, and an experiment's folder for its runs. Results of
    `plimsoll fileio` are drawn too, where they are among `paths` or lie in such a folder. Written to `out`,
    by default `report.html` in the first of `paths`, whole or not at all. `progress` is called with the
    number of records read so far and that of all runs. Replays are held against `against_log`, the imported
    log that they replay, where it is given. Raises PlimsollError.
    """
    subjects = subjects_of(paths)
    fileio, rounds = read_fileio(subjects.fileio), read_rounds(subjects.rounds)
    if not subjects.runs and fileio.is_empty:
        raise RunDirectoryError("\n".join(fileio.troubles))
    found = open_runs(subjects.runs) if subjects.runs else OpenedRuns([], set(), [])
    directories, unreadable = found.runs, list(found.unreadable)
    unreadable += [lost for path in subjects.runs for lost in lost_in(path)]
    target = out or (paths[0].parent if paths[0].is_file() else paths[0]) / REPORT_FILE
    if target.is_dir():
        raise OutputError(f"{target}: is a directory; give the name of a file with --out")
    total, read = sum(run.requests.count for run in directories), 0

    def advance(records: int) -> None:
        nonlocal read
        read += records
        progress(read, total)

    several = len(directories) > 1
    measured = []
    for run in directories:
        try:
            observer = Observer(run)
            figures = measure(run, advance, compared=several, watch=observer.watch).condensed()
            measured.append((run, figures, observer.observation()))
        except RunDirectoryError as error:
            if run.path in found.named or len(directories) == 1:
                raise
            unreadable.append(str(error))
    if subjects.runs and not measured:
        raise RunDirectoryError("\n".join(unreadable))
    runs = numbered(measured)
    compared = [each for scenario in by_scenario(runs) if (each := figures_of_scenario(scenario))]
    unfinished = midway(runs)
    found_stalls = [(each, stalls_of(each)) for each in by_scenario(runs)]
    stalls = [ScenarioStalls(scenario, backends) for scenario, backends in found_stalls if backends]
    held = held_against(against_log, directories) if against_log else []
    write_page(target, page(runs, compared, unreadable, fileio, unfinished, rounds, stalls, held))
    cells, syncs = fileio.cells, fileio.syncs
    return Report(target, runs, compared, unreadable, cells, unfinished, rounds, stalls, syncs, held)
