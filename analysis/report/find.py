"""Which run directories a report is about: those that were named, and those in folders that were named."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.errors import RunDirectoryError
from analysis.records import RunDirectory


@dataclass(frozen=True)
class Found:
    """The runs, each once; which were named themselves; what is wrong with those that were left out."""

    runs: list[RunDirectory]
    named: set[Path]
    unreadable: list[str]


def open_all(paths: Sequence[Path]) -> Found:
    """Open the run directories `paths`, and those in folders that `paths` name.

    A folder stands for the run directories in it, by name, one level deep. What was named itself has to be
    readable. Raises RunDirectoryError.
    """
    opened: dict[Path, RunDirectory] = {}
    named: set[Path] = set()
    unreadable: list[str] = []
    for path in paths:
        inside = runs_in(path)
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
    return Found(list(opened.values()), named, unreadable)


def runs_in(path: Path) -> list[Path]:
    """Return the run directories in folder `path`, by name; none where it is one itself, or holds none.

    Links, such as `latest`, are left out: they lead to what is there already. So is what is hidden.
    """
    if (path / "run.json").exists() or not path.is_dir():
        return []
    try:
        found = [one.parent for one in path.glob("*/run.json")]
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None
    return sorted(run for run in found if not run.is_symlink() and not run.name.startswith("."))
