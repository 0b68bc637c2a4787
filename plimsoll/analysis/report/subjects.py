"""The subjects of a report: run directories, folders of them, experiments, results of fileio."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.rundir.discovery import is_run, is_together, place_of, runs_folder
from plimsoll.rundir.names import FACTS_FILE, ROUNDS_FILE, RUNS_FOLDER

_FILEIO = "fileio*.json*"


@dataclass(frozen=True)
class Subjects:
    """The places to look for runs in, the files of fileio, and those with rounds of preconditioning."""

    runs: list[Path]
    fileio: list[Path]
    rounds: list[Path]


def subjects_of(paths: Sequence[Path]) -> Subjects:
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
        fileio += _lying_in(path, _FILEIO)
        rounds += _lying_in(path, ROUNDS_FILE)
    return Subjects(runs, list(dict.fromkeys(fileio)), list(dict.fromkeys(rounds)))


def _lying_in(path: Path, named: str) -> list[Path]:
    if is_run(path) or is_together(path):  # only its experiment's folder may hold any
        folder = (place_of(path) if is_run(path) else path.absolute()).parent
        return _files(folder.parent, named) if folder.name == RUNS_FOLDER else []
    folder = path.absolute()
    return _files(folder, named) + (_files(folder.parent, named) if folder.name == RUNS_FOLDER else [])


def _files(folder: Path, named: str) -> list[Path]:
    return sorted(path for path in folder.glob(named) if path.is_file())
