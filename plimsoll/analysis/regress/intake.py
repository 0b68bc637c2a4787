"""Adds runs to the history: each once, whole or not at all."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plimsoll.analysis.regress.digest import digest_of, stamp_of
from plimsoll.analysis.regress.logdigest import log_digest_of, log_identity
from plimsoll.analysis.regress.logstore import LogStore
from plimsoll.analysis.regress.night import identity_of
from plimsoll.analysis.regress.selection import RunSelection, SelectedRun, select_runs
from plimsoll.analysis.regress.store import History
from plimsoll.analysis.statistics.localhours import UTC, time_zone
from plimsoll.common.errors import NoRequestsError, RunDirectoryError, SettingsError
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
    if not found.nights and not found.runs:
        raise RunDirectoryError("\n".join(found.unreadable) or f"{printable(str(paths[0]))}: holds no run")
    for path in paths:
        if is_run(path):
            with suppress(NoRequestsError):
                RunDirectory.open(path)
    return found


def add_runs(
    history: History,
    found: RunSelection,
    progress: Callable[[int, int], None] = lambda *_: None,
    zone: str | None = None,
) -> IntakeResult:
    """Add the runs that were `found`; days of access logs begin by `zone`, None: as before, or in UTC.

    Raises SettingsError where their days are counted in another one.
    """
    store = LogStore(history)
    logs = sorted({run.night.key.experiment for run in found.runs if run.facts.from_log})
    for name in logs:
        store.keep_time_zone(name, _agreed(store.time_zone(name), zone, name))
    for night in found.nights:
        history.keep_night(night)
    new, unreadable = 0, list(found.unreadable)
    for number, run in enumerate(found.runs):
        new += _added_log(store, run, unreadable) if run.facts.from_log else _added(history, run)
        progress(number + 1, len(found.runs))
    experiments = sorted({*logs, *(night.key.experiment for night in found.nights)})
    return IntakeResult(new, len(found.runs) - new, unreadable, experiments)


def _added(history: History, run: SelectedRun) -> bool:
    """Add a run unless it is known; return whether it was not."""
    if history.stamp(identity_of(run.facts)) == stamp_of(run):
        return False
    history.keep(digest_of(run))
    return True


def _added_log(store: LogStore, run: SelectedRun, unreadable: list[str]) -> bool:
    """Add an imported access log unless it is known; return whether it was not, and say what none is."""
    if store.stamp(log_identity(run.facts)) == stamp_of(run):
        return False
    digest = log_digest_of(run, store.route_ids)
    if not digest.hours:
        unreadable += [f"{run.path} {why}" for why in digest.unfit]
    store.keep(digest, identity_of(run.facts))
    return True


def _agreed(kept: str | None, wanted: str | None, name: str) -> str:
    """Return the zone by which the days of experiment `name` begin."""
    if kept is not None and wanted not in (None, kept):
        raise SettingsError(
            f"--time-zone {printable(str(wanted), 80)}: the history counts {printable(name, 80)} in {kept}: "
            "leave the option out, or begin another history with --history and --new"
        )
    return time_zone(kept or wanted or UTC).key
