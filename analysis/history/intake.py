"""Adds runs to the history: each once, whole or not at all."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from analysis.history.digest import digest_of, stamp_of
from analysis.history.night import identity_of
from analysis.history.selection import RunSelection, select_runs
from analysis.history.store import History
from plimsoll.common.errors import NoRequestsError, RunDirectoryError
from plimsoll.common.hostile import printable
from plimsoll.rundir.directory import RunDirectory
from plimsoll.rundir.discovery import is_run


@dataclass(frozen=True)
class IntakeResult:
    """The numbers of new and of known runs; what cannot be read (hostile); the experiments."""

    new: int
    known: int
    unreadable: list[str]
    experiments: list[str]


def select_readable(paths: Sequence[Path]) -> RunSelection:
    """Return the runs that `paths` stand for. Raises RunDirectoryError, also for one named itself.

    A run in which nothing was answered belongs to its night; files that no run wrote do not.
    """
    found = select_runs(paths)
    if not found.nights:
        raise RunDirectoryError("\n".join(found.unreadable) or f"{printable(str(paths[0]))}: holds no run")
    for path in paths:
        if is_run(path):
            with suppress(NoRequestsError):
                RunDirectory.open(path)
    return found


def add_runs(
    history: History, found: RunSelection, progress: Callable[[int, int], None] = lambda *_: None
) -> IntakeResult:
    """Add the runs that were `found`."""
    for night in found.nights:
        history.keep_night(night)
    new = 0
    for number, run in enumerate(found.runs):
        if history.stamp(identity_of(run.facts)) != stamp_of(run):
            history.keep(digest_of(run))
            new += 1
        progress(number + 1, len(found.runs))
    experiments = sorted({night.key.experiment for night in found.nights})
    return IntakeResult(new, len(found.runs) - new, found.unreadable, experiments)
