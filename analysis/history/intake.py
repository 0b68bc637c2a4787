"""Adds runs to the history: each once, whole or not at all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.history.digest import digest_of, stamp_of
from analysis.history.night import identity_of
from analysis.history.selection import select_runs
from analysis.history.store import History
from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.hostile import printable


@dataclass(frozen=True)
class IntakeResult:
    """The numbers of new and of known runs; what cannot be read (hostile); the experiments."""

    new: int
    known: int
    unreadable: list[str]
    experiments: list[str]


def add_runs(
    history: History, paths: Sequence[Path], progress: Callable[[int, int], None] = lambda *_: None
) -> IntakeResult:
    """Add the runs that `paths` stand for. Raises RunDirectoryError where there is none at all."""
    found = select_runs(paths)
    if not found.nights:
        raise RunDirectoryError("\n".join(found.unreadable) or f"{printable(str(paths[0]))}: holds no run")
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
