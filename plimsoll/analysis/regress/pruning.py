"""Removes raw data of runs whose figures the history holds."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from plimsoll.analysis.regress.baseline import baseline_nights
from plimsoll.analysis.regress.logdigest import log_identity
from plimsoll.analysis.regress.logstore import LogStore
from plimsoll.analysis.regress.night import identity_of, instant
from plimsoll.analysis.regress.rows import RunRow
from plimsoll.analysis.regress.store import History
from plimsoll.common.errors import OutputError, RunDirectoryError
from plimsoll.rundir.directory import read_facts

_GONE = ".pruned"


@dataclass(frozen=True)
class PruningResult:
    """The runs removed, or to be removed (hostile paths), their bytes, and old runs that were spared."""

    runs: list[str]
    size_bytes: int
    spared: list[str]


def prune(history: History, keep_days: float, forced: bool, dry_run: bool) -> PruningResult:
    """Remove the run directories that began more than `keep_days` days ago. Raises OutputError.

    Of imported logs it takes those that end so long ago: the history has all of their hours. Those of every
    experiment's newest night and of its baseline stay unless `forced`. What is reached by a link, lies
    outside its folder, or is not the run that the history knows, always stays.
    """
    before = instant(datetime.now(UTC) - timedelta(days=keep_days))
    logs = LogStore(history)
    marks: list[tuple[RunRow, Callable[[int], None]]] = [
        *((run, history.mark_pruned) for run in history.runs()),
        *((log, logs.mark_pruned) for log in logs.directories()),
    ]
    old = [(run, mark) for run, mark in marks if run.readable and not run.pruned and run.started_at < before]
    safe = set() if forced else _safe_nights(history)
    removed: list[str] = []
    spared: list[str] = []
    total = 0
    for run, mark in old:
        path = Path(run.path)
        if not path.exists():
            continue
        if run.night in safe:
            continue
        if why := "; ".join(_reasons_to_spare(run, path)):
            spared.append(f"{run.path}: {why}")
            continue
        if not dry_run:
            _remove(run, path, mark)
        removed.append(run.path)
        total += run.size_bytes
    if not dry_run:
        _finish_removals([run for run, _ in marks if run.root])
    return PruningResult(removed, total, spared)


def _safe_nights(history: History) -> set[int]:
    safe: set[int] = set()
    for experiment in history.experiments():
        nights = history.nights(experiment)
        safe |= {nights[-1].id, *(night.id for night in baseline_nights(nights))}
    return safe


def _reasons_to_spare(run: RunRow, path: Path) -> Iterator[str]:
    root = Path(run.root)
    if path.is_symlink() or path.resolve() != path:
        yield "is reached by a link"
        return
    if root not in path.parents:
        yield f"is not in {root}, where it was found"
        return
    try:
        facts = read_facts(path)
        if run.identity not in (identity_of(facts), log_identity(facts)):
            yield "is another run than the one that the history knows"
    except RunDirectoryError as error:
        yield str(error)


def _remove(run: RunRow, path: Path, mark: Callable[[int], None]) -> None:
    """Remove one. Hidden first, so that what a crash leaves is no run any more, and is found again."""
    hidden = path.with_name(f".{path.name}{_GONE}")
    try:
        path.rename(hidden)
        mark(run.id)
        shutil.rmtree(hidden)
    except OSError as error:
        raise OutputError(f"{path}: cannot be removed: {error.strerror}; see who owns it") from None


def _finish_removals(runs: Sequence[RunRow]) -> None:
    """Remove what a crash left of those that were being removed."""
    for run in runs:
        path = Path(run.path)
        hidden = path.with_name(f".{path.name}{_GONE}")
        if run.pruned and hidden.is_dir() and not hidden.is_symlink():
            with suppress(OSError):
                shutil.rmtree(hidden)
