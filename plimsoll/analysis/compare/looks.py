"""Looks at a growing experiment, remembered beside its runs: how often these were decided on before."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.statistics.permutation import spent
from plimsoll.common.errors import OutputError, RunDirectoryError
from plimsoll.common.files import read_regular, replace_json
from plimsoll.common.units import significant
from plimsoll.rundir.find import is_run

LOOKS_FILE = "looks.json"
FORMAT = 1
_MOST_BYTES = 16 << 20


@dataclass(frozen=True)
class Look:
    """The runs of both sides that were decided on, by their identity."""

    baseline: frozenset[str]
    candidate: frozenset[str]

    def continues(self, other: "Look") -> bool:
        """Return whether it asks again what `other` asked: both sides share runs with it."""
        return bool(self.baseline & other.baseline) and bool(self.candidate & other.candidate)


def number_of(look: Look, before: Sequence[Look]) -> int:
    """Return which look at its runs `look` is: 1, and one more for each other set of them seen earlier. Pure.

    The same runs again are the same look.
    """
    earlier = before[: before.index(look)] if look in before else before
    return 1 + sum(look.continues(each) for each in earlier)


def look_at(baseline: Sequence[MeasuredRun], candidate: Sequence[MeasuredRun]) -> Look:
    """Return the look at these runs."""
    return Look(frozenset(map(_identity, baseline)), frozenset(map(_identity, candidate)))


def numbered(look: Look, folder: Path) -> tuple[int, list[Finding]]:
    """Remember `look` in the folder of the candidate's runs; return its number, and what to say of it.

    Raises RunDirectoryError of a damaged file.
    """
    if is_run(folder):
        return 1, []
    path = folder / LOOKS_FILE
    before = _read(path)
    number = number_of(look, before)
    again = [Finding(FindingKind.ANOTHER_LOOK, _again(number))] if number > 1 else []
    if look in before:
        return number, again
    shown = [
        {"baseline": sorted(each.baseline), "candidate": sorted(each.candidate)} for each in [*before, look]
    ]
    try:
        replace_json(path, {"format": FORMAT, "looks": shown})
    except OutputError as error:
        forgotten = f"This look was not remembered: {str(error).rstrip('.')}."
        return number, [*again, Finding(FindingKind.LOOK_NOT_REMEMBERED, forgotten)]
    return number, again


def _again(number: int) -> str:
    share = significant(100 * spent(1, number), 2)
    return (
        f"This is look {number} at these runs, which were decided on before when they were fewer: it may "
        f"make {share} % of the errors that are allowed."
    )


def _read(path: Path) -> list[Look]:
    try:
        found = json.loads(read_regular(path, _MOST_BYTES))
        if found["format"] != FORMAT:
            raise ValueError("another format")
        return [Look(_runs(each["baseline"]), _runs(each["candidate"])) for each in found["looks"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise RunDirectoryError(
            f"{path}: cannot be read, so nobody knows how often these runs were decided on; put it back, or "
            "remove it if this is the first time"
        ) from None


def _runs(names: object) -> frozenset[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("no list of runs")
    return frozenset(names)


def _identity(run: MeasuredRun) -> str:
    """Return what tells a run from all others: the sum of its records, else its name and start."""
    return run.records_sha256 or f"{run.name} {run.started_at}"
