"""Adds runs to the history: each once, whole or not at all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.errors import RunDirectoryError
from analysis.history.finding import find
from analysis.history.night import identity_of
from analysis.history.store import History
from analysis.history.summing import stamp_of, summed
from analysis.hostile import printable


@dataclass(frozen=True)
class Added:
    """How many runs are new, how many were known; what cannot be read (hostile); whose they are."""

    new: int
    known: int
    unreadable: list[str]
    experiments: list[str]


def add(
    history: History, paths: Sequence[Path], progress: Callable[[int, int], None] = lambda *_: None
) -> Added:
    """Add the runs that `paths` stand for. Raises RunDirectoryError where there is none at all."""
    found = find(paths)
    if not found.nights:
        raise RunDirectoryError("\n".join(found.unreadable) or f"{printable(str(paths[0]))}: holds no run")
    for night in found.nights:
        history.keep_night(night)
    new = 0
    for number, run in enumerate(found.runs):
        if history.stamp(identity_of(run.facts)) != stamp_of(run):
            history.keep(summed(run))
            new += 1
        progress(number + 1, len(found.runs))
    experiments = sorted({night.key.experiment for night in found.nights})
    return Added(new, len(found.runs) - new, found.unreadable, experiments)
