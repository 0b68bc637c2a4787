"""Run directories become one page: which there are, and the report on all of them."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.analysis.evidence.measure import measure_in_detail
from plimsoll.analysis.page.against_log import hold_against_log
from plimsoll.analysis.page.shell import write_page
from plimsoll.analysis.report.comparison_findings import find_lost_runs
from plimsoll.analysis.report.contents import Report, render_report
from plimsoll.analysis.report.runs import ScenarioRuns, group_by_scenario, number_runs
from plimsoll.analysis.report.sections.storage import read_fileio, read_rounds
from plimsoll.common.errors import OutputError, RunDirectoryError
from plimsoll.common.units import counted
from plimsoll.rundir.find import (
    OpenedRuns,
    find_runs,
    is_group_folder,
    is_run,
    open_runs,
    run_group,
    runs_folder,
    subfolders,
)
from plimsoll.rundir.names import FACTS_FILE, REPORT_FILE, ROUNDS_FILE, RUNS_FOLDER

if TYPE_CHECKING:
    from plimsoll.analysis.evidence.weeks import WeeksBeside

Progress = Callable[[int, int], None]
_FILEIO = "fileio*.json*"
_MOST_SHOWN = 10  # folders of runs


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
    subjects = find_inputs(paths)
    fileio, rounds = read_fileio(subjects.fileio), read_rounds(subjects.rounds)
    if not subjects.runs and fileio.is_empty:
        raise RunDirectoryError("\n".join(fileio.troubles))
    found = open_runs(subjects.runs) if subjects.runs else OpenedRuns([], set(), [])
    directories, unreadable = found.runs, list(found.unreadable)
    unreadable += [lost for path in subjects.runs for lost in find_lost_runs(path)]
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
            measured.append(measure_in_detail(run, advance, sliced=several))
        except RunDirectoryError as error:
            if run.path in found.named or len(directories) == 1:
                raise
            unreadable.append(str(error))
    if subjects.runs and not measured:
        raise RunDirectoryError("\n".join(unreadable))
    held = hold_against_log(against_log, directories) if against_log else []
    runs = number_runs(measured)
    weeks = [_hold_weeks(each) for each in group_by_scenario(runs) if each.is_weeks]
    made = Report(target, runs, unreadable, fileio, rounds, held, weeks)
    write_page(target, render_report(made))
    return made


def _hold_weeks(scenario: ScenarioRuns) -> "WeeksBeside":
    from plimsoll.analysis.evidence.weeks import hold_weeks

    before, after = scenario.backends
    sides = ([run.directory for run in before.runs], [run.directory for run in after.runs])
    return hold_weeks(sides, (before.called, after.called))


@dataclass(frozen=True)
class ReportInputs:
    """The places to look for runs in, the files of fileio, and those with rounds of preconditioning."""

    runs: list[Path]
    fileio: list[Path]
    rounds: list[Path]


def find_inputs(paths: Sequence[Path]) -> ReportInputs:
    """Tell run directories and folders from files of fileio, and find those that lie in the folders.

    An experiment's folder stands for its `runs`; what `plimsoll fileio` left in it, or in any other folder of
    runs, counts as named.
    """
    runs: list[Path] = []
    fileio: list[Path] = []
    rounds: list[Path] = []
    for path in paths:
        if path.is_file() and path.suffix in (".json", ".jsonl") and path.name != FACTS_FILE:
            fileio.append(path)
            continue
        runs.append(runs_folder(path))
        _refuse_folders_of_folders(path, runs[-1])
        fileio += _lying_in(path, _FILEIO)
        rounds += _lying_in(path, ROUNDS_FILE)
    return ReportInputs(runs, list(dict.fromkeys(fileio)), list(dict.fromkeys(rounds)))


def _refuse_folders_of_folders(path: Path, folder: Path) -> None:
    """Raise RunDirectoryError, with the commands to type, where only the folders in `path` hold runs."""
    if is_run(folder) or find_runs(folder) or not path.is_dir():
        return
    if below := [each for each in subfolders(path) if find_runs(runs_folder(each))]:
        shown = [f"  plimsoll report {shlex.quote(str(each))}" for each in below[:_MOST_SHOWN]]
        more = [f"  and {len(below) - _MOST_SHOWN} more"] if len(below) > _MOST_SHOWN else []
        why = f"{path}: holds no run, but {counted(len(below), 'folder')} of runs; name one:"
        raise RunDirectoryError("\n".join([why, *shown, *more]))


def _lying_in(path: Path, named: str) -> list[Path]:
    if is_run(path) or is_group_folder(path):  # only its experiment's folder may hold any
        folder = (run_group(path) if is_run(path) else path.absolute()).parent
        return _files(folder.parent, named) if folder.name == RUNS_FOLDER else []
    folder = path.absolute()
    return _files(folder, named) + (_files(folder.parent, named) if folder.name == RUNS_FOLDER else [])


def _files(folder: Path, named: str) -> list[Path]:
    return sorted(path for path in folder.glob(named) if path.is_file())
