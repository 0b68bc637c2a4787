"""What a report is asked to be about: run directories, folders of them, experiments, results of fileio."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_FILEIO = "fileio*.json*"
_RUNS = "runs"  # where an experiment keeps its finished runs


@dataclass(frozen=True)
class Given:
    """Where runs are looked for, and the files of fileio."""

    runs: list[Path]
    fileio: list[Path]


def sorted_out(paths: Sequence[Path]) -> Given:
    """Tell run directories and folders from files of fileio, and find those that lie in the folders.

    An experiment's folder stands for its `runs`; what `plimsoll fileio` left in it, or in any other folder of
    runs, counts as given.
    """
    runs: list[Path] = []
    fileio: list[Path] = []
    for path in paths:
        if path.is_file() and path.suffix in (".json", ".jsonl") and path.name != "run.json":
            fileio.append(path)
            continue
        inside = path / _RUNS
        is_experiment = not (path / "run.json").exists() and next(inside.glob("*/run.json"), None) is not None
        runs.append(inside if is_experiment else path)
        fileio += _lying_in(path)
    return Given(runs, list(dict.fromkeys(fileio)))


def _lying_in(path: Path) -> list[Path]:
    if (path / "run.json").exists():  # a run: only its experiment's folder may hold any
        folder = path.absolute().parent
        return _files(folder.parent) if folder.name == _RUNS else []
    folder = path.absolute()
    return _files(folder) + (_files(folder.parent) if folder.name == _RUNS else [])


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(_FILEIO) if path.is_file())
