"""Where run directories lie: found below a path, or made in the results folder, beside `latest`.

One rule, by which every command finds them: a run directory stands for itself, a folder for the run
directories in it (one level deep, by name), and an experiment's folder for those in its `runs`. Runs that
loaded one clone together lie in a folder of their own, which stands for them wherever it is found. Links,
such as `latest`, are left out: they lead to what is there already. So are hidden files.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from plimsoll.common.errors import OutputError, RunDirectoryError
from plimsoll.rundir.names import FACTS_FILE, REQUESTS_FILE, RUNS_FOLDER, TOGETHER_FILE
from plimsoll.rundir.read import RunDirectory


@dataclass(frozen=True)
class OpenedRuns:
    """The runs, each once; which of them were named; what is wrong with those that were left out."""

    runs: list[RunDirectory]
    named: set[Path]
    unreadable: list[str]


def open_runs(paths: Sequence[Path]) -> OpenedRuns:
    """Open the run directories `paths`, and those in folders that `paths` name.

    What was named itself has to be readable. Raises RunDirectoryError.
    """
    opened: dict[Path, RunDirectory] = {}
    named: set[Path] = set()
    unreadable: list[str] = []
    for path in paths:
        inside = find_runs(path)
        if not inside:
            named.add(path)
            opened.setdefault(path.resolve(), RunDirectory.open(path))
        for run in inside:
            if run.resolve() in opened:
                continue
            try:
                opened[run.resolve()] = RunDirectory.open(run)
            except RunDirectoryError as error:
                unreadable.append(str(error))
    if not opened:
        raise RunDirectoryError("\n".join(unreadable))
    return OpenedRuns(list(opened.values()), named, unreadable)


def is_run(path: Path) -> bool:
    """Return whether `path` is a run directory."""
    return _holds(path, FACTS_FILE)


def find_runs(folder: Path, *, damaged: bool = False) -> list[Path]:
    """Return the run directories in `folder`, by name; none if it is one itself, or not a folder.

    With `damaged` also those that hold records and have lost `run.json`. Raises RunDirectoryError where the
    folder cannot be read.
    """
    if is_run(folder) or not folder.is_dir():
        return []
    found: list[Path] = []
    for path in subfolders(folder):
        if is_run(path) or (damaged and _holds(path, REQUESTS_FILE)):
            found.append(path)
        elif is_group_folder(path):
            found += find_runs(path, damaged=damaged)
    return found


def is_group_folder(path: Path) -> bool:
    """Return whether `path` is the folder of runs that loaded one clone together."""
    return _holds(path, TOGETHER_FILE)


def run_group(run: Path) -> Path:
    """Return what holds the run directory `run` among others: itself, or the folder of those with it."""
    run = run.resolve()
    return run.parent if is_group_folder(run.parent) else run


def relative_name(run: Path) -> str:
    """Return the name of the run directory `run`, which alone tells two runs of one backend apart."""
    run = run.resolve()
    return f"{run.parent.name}/{run.name}" if is_group_folder(run.parent) else run.name


def runs_folder(path: Path, *, damaged: bool = False) -> Path:
    """Return where the runs of `path` lie: the `runs` of an experiment's folder, else `path` itself."""
    inside = path / RUNS_FOLDER
    return inside if not is_run(path) and find_runs(inside, damaged=damaged) else path


def subfolders(folder: Path) -> list[Path]:
    """Return the folders in `folder`, by name. Raises RunDirectoryError where it cannot be read."""
    try:
        inside = sorted(folder.iterdir())
    except OSError as error:
        raise RunDirectoryError(f"{folder}: cannot be read: {error.strerror}") from None
    return [path for path in inside if path.name[0] != "." and path.is_dir() and not path.is_symlink()]


def _holds(path: Path, name: str) -> bool:
    try:
        return (path / name).exists()
    except OSError:  # what is in a folder that may not be entered is said when it is opened
        return False


def directory_name(now: datetime, scenario: str) -> str:
    """Return a name that sorts by time, as `bin/replay` gives: `20261121T080910Z-save-article`. Pure."""
    return f"{now:%Y%m%dT%H%M%SZ}-{scenario}"


def new_directory(results: Path, name: str) -> Path:
    """Make `results/name`, with a number behind it where that exists, and return it. Raises OutputError."""
    for number in range(1, 1000):
        path = results / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise OutputError(
                f"{path}: cannot be created: {error.strerror}; choose another folder with --out"
            ) from None
        return path
    raise OutputError(f"{results}: has too many runs of this second; choose another folder with --out")


def point_latest(directory: Path) -> None:
    """Make `latest` beside `directory` a link to it, by rename, so that it always points somewhere."""
    link = directory.parent / "latest"
    hidden = directory.parent / f".latest-{os.getpid()}"
    try:
        hidden.unlink(missing_ok=True)
        hidden.symlink_to(directory.name)
        hidden.replace(link)
    except OSError as error:
        hidden.unlink(missing_ok=True)
        raise OutputError(f"{link}: cannot be made to point at the run: {error.strerror}") from None
