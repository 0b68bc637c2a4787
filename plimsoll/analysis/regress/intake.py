"""Run directories, added to the history: each once, whole or not at all."""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.analysis.evidence.checks import unfit
from plimsoll.analysis.evidence.measure import Observer, measure_run, read_counted
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.evidence.weeks import began_ns
from plimsoll.analysis.regress.days import LogStore
from plimsoll.analysis.regress.judge import baseline_nights
from plimsoll.analysis.regress.nights import (
    HourDigest,
    LogDigest,
    NightFacts,
    NightKey,
    RunDigest,
    RunRow,
    instant,
    log_identity,
    run_identity,
)
from plimsoll.analysis.regress.store import HistoryStore
from plimsoll.analysis.statistics.requests import CLIENT_ERROR, CountedRequests
from plimsoll.analysis.statistics.standardised import (
    HOUR_NS,
    Served,
    alike,
    hours_of,
    packed,
    time_zone,
    unpacked,
)
from plimsoll.analysis.statistics.standardised import UTC as UTC_ZONE
from plimsoll.common.errors import NoRequestsError, OutputError, RunDirectoryError, SettingsError
from plimsoll.common.files import is_locked
from plimsoll.common.hostile import printable
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.find import find_runs, is_run, run_group, subfolders
from plimsoll.rundir.names import (
    EVENTS_FILE,
    EXPERIMENT_FILE,
    FACTS_FILE,
    JOURNAL_FILE,
    REQUESTS_FILE,
    RUNS_FOLDER,
    SUMMARY_FILE,
)
from plimsoll.rundir.read import RunDirectory, read_facts, read_json

_STAMP = re.compile(r"(\d{8}T\d{6})Z$")
_GONE = ".pruned"


@dataclass(frozen=True)
class SelectedRun:
    """One run directory, the folder that it was found in, and its night."""

    path: Path
    root: Path
    facts: RunFacts
    night: NightFacts


@dataclass(frozen=True)
class RunSelection:
    """All runs and nights that were named (also nights without a run), and what cannot be read (hostile)."""

    runs: list[SelectedRun]
    nights: list[NightFacts]
    unreadable: list[str]


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
    history: HistoryStore,
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
        store.keep_time_zone(name, _agree_on_zone(store.time_zone(name), zone, name))
    for night in found.nights:
        history.keep_night(night)
    new, unreadable = 0, list(found.unreadable)
    for number, run in enumerate(found.runs):
        new += _add_log(store, run, unreadable) if run.facts.from_log else _add_run(history, run)
        progress(number + 1, len(found.runs))
    experiments = sorted({*logs, *(night.key.experiment for night in found.nights)})
    return IntakeResult(new, len(found.runs) - new, unreadable, experiments)


def _add_run(history: HistoryStore, run: SelectedRun) -> bool:
    """Add a run unless it is known; return whether it was not."""
    if history.stamp(run_identity(run.facts)) == _directory_stamp(run):
        return False
    history.keep(digest_run(run))
    return True


def _add_log(store: LogStore, run: SelectedRun, unreadable: list[str]) -> bool:
    """Add an imported access log unless it is known; return whether it was not, and say what none is."""
    if store.stamp(log_identity(run.facts)) == _directory_stamp(run):
        return False
    digest = _digest_log(run, store.route_ids)
    if not digest.hours:
        unreadable += [f"{run.path} {why}" for why in digest.unfit]
    store.keep(digest, run_identity(run.facts))
    return True


def _agree_on_zone(kept: str | None, wanted: str | None, name: str) -> str:
    """Return the zone by which the days of experiment `name` begin."""
    if kept is not None and wanted not in (None, kept):
        raise SettingsError(
            f"--time-zone {printable(str(wanted), 80)}: the history counts {printable(name, 80)} in {kept}: "
            "leave the option out, or begin another history with --history and --new"
        )
    return time_zone(kept or wanted or UTC_ZONE).key


def select_runs(paths: Sequence[Path]) -> RunSelection:
    """Return what `paths` stand for: run directories, folders of them, or of experiments.

    A folder stands for what is in it, one level deep; links and what is hidden are left out, and so is a
    night whose experiment still runs: it would be judged by half of its runs. Raises RunDirectoryError.
    """
    runs: dict[Path, SelectedRun] = {}
    nights: dict[NightKey, NightFacts] = {}
    unreadable: list[str] = []
    for path in paths:
        for folder, inside in _find_folders(path):
            if is_locked((folder.parent if folder.name == RUNS_FOLDER else folder) / JOURNAL_FILE):
                unreadable.append(f"{folder}: its experiment still runs: add it when it has ended")
                continue
            lab = _read_lab(folder)
            if lab is not None:
                nights.setdefault(lab.key, lab)
            for one in inside:
                try:
                    facts = read_facts(one)
                    found = SelectedRun(one.resolve(), folder.resolve(), facts, _find_night(one, facts))
                except RunDirectoryError as error:
                    if one == path:
                        raise
                    unreadable.append(str(error))
                    continue
                runs.setdefault(found.path, found)
                if not facts.from_log:  # the nights of a log are its days
                    nights.setdefault(found.night.key, found.night)
    return RunSelection(list(runs.values()), list(nights.values()), unreadable)


def _find_night(path: Path, facts: RunFacts) -> NightFacts:
    """Return of which night the run at `path` is.

    Runs of one experiment's folder are one night; others go by the UTC day on which they began. An imported
    access log has many nights: its first day stands for them. Raises RunDirectoryError where it does not say
    when it began.
    """
    if facts.started_at is None:
        raise RunDirectoryError(f"{path}: does not say when it began, so it has no place in a history")
    runs = run_group(path).parent
    folder = runs.parent if runs.name == RUNS_FOLDER else None
    experiment, planned = (facts.experiment.name, facts.experiment.of) if facts.experiment else ("", None)
    began = instant(facts.started_at)
    if facts.from_log:
        return NightFacts(NightKey(f"days of {facts.scenario}", began[:10]), began, None, str(runs))
    if folder is None:
        day = NightKey(experiment, began[:10])
        return NightFacts(day, f"{began[:10]}T00:00:00.000000Z", planned, str(runs))
    lab = _read_lab(folder)
    if lab is not None and lab.key.experiment == experiment:
        return lab
    stamp = _STAMP.search(folder.name)
    name = folder.name if stamp else f"{folder.name} {began[:10]}"
    started = _parse_stamp(stamp[1]) if stamp else f"{began[:10]}T00:00:00.000000Z"
    return NightFacts(NightKey(experiment, name), started, planned, str(folder))


def _find_folders(path: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Yield the folders that `path` stands for, each with its run directories."""
    if is_run(path):
        yield run_group(path).parent, [path]
        return
    if not path.is_dir():
        read_facts(path)  # says what is wrong with it
    found = False
    if _is_experiment(path):
        found = True
        yield path, find_runs(path / RUNS_FOLDER)
    elif inside := find_runs(path):
        found = True
        yield path, inside
    for one in subfolders(path):
        if one.name not in (RUNS_FOLDER, "attempts") and _is_experiment(one):
            found = True
            yield one, find_runs(one / RUNS_FOLDER)
    if not found:
        raise RunDirectoryError(
            f"{path}: is not a run directory and contains none; give run directories, folders of them, or "
            "experiments' folders"
        )


def _is_experiment(path: Path) -> bool:
    return (path / EXPERIMENT_FILE).is_file() or bool(find_runs(path / RUNS_FOLDER))


def _read_lab(folder: Path) -> NightFacts | None:
    """Return the night in an experiment's folder; None if it is not one, or its lab.json is damaged."""
    try:
        lab: Any = read_json(folder / EXPERIMENT_FILE)
    except RunDirectoryError:
        return None
    stamp = _STAMP.search(folder.resolve().name)
    if stamp is None or not isinstance(lab, dict) or not isinstance(lab.get("name"), str):
        return None
    key = NightKey(lab["name"], folder.resolve().name)
    return NightFacts(key, _parse_stamp(stamp[1]), _count_planned(lab), str(folder.resolve()))


def _count_planned(lab: dict[str, Any]) -> int | None:
    backends, scenarios, repeats = (lab.get(key) for key in ("backends", "scenarios", "repeats"))
    if isinstance(backends, list) and isinstance(scenarios, list) and isinstance(repeats, int):
        return len(backends) * sum(map(_count_members, scenarios)) * repeats
    return None


def _count_members(scenario: Any) -> int:
    """Return how many runs an entry of `scenarios` has on one backend each time: one, or as many together."""
    together = scenario.get("together") if isinstance(scenario, dict) else None
    return len(together) if isinstance(together, list) and together else 1


def _parse_stamp(text: str) -> str:
    try:
        return instant(datetime.strptime(text, "%Y%m%dT%H%M%S").replace(tzinfo=UTC))
    except ValueError:
        return f"{text[:4]}-{text[4:6]}-{text[6:8]}T00:00:00.000000Z"


def digest_run(run: SelectedRun, progress: Callable[[int], None] = lambda _: None) -> RunDigest:
    """Return what is kept of `run`; of one that cannot be read, that it cannot."""
    measured: MeasuredRun | None = None
    stamp, facts, status = _directory_stamp(run), run.facts, str(run.facts.status)
    try:
        directory = RunDirectory.open(run.path)
        measured = measure_run(directory, progress)
        facts, status, reasons = directory.facts, directory.status, unfit(measured)
    except RunDirectoryError as error:
        reasons = [f"cannot be read: {error}"]
    return RunDigest(
        night=run.night,
        facts=facts,
        status=status,
        run=measured,
        unfit=tuple(reasons),
        path=str(run.path),
        root=str(run.root),
        stamp=stamp,
        size_bytes=size_bytes(run),
    )


def _directory_stamp(run: SelectedRun) -> str:
    """Return what changes when the run directory does; cheap."""
    parts = []
    for name in (FACTS_FILE, REQUESTS_FILE, SUMMARY_FILE, EVENTS_FILE):
        try:
            status = (run.path / name).stat()
            parts.append(f"{status.st_size}.{status.st_mtime_ns}")
        except OSError:
            parts.append("-")
    return " ".join(parts)


def size_bytes(run: SelectedRun) -> int:
    """Return how much the run directory takes."""
    total = 0
    for each in run.path.rglob("*"):
        try:
            total += each.lstat().st_size
        except OSError:
            continue
    return total


def _digest_log(run: SelectedRun, route_ids: Callable[[list[str]], list[int]]) -> LogDigest:
    """Return what is kept of an import; of one that cannot be read, that it cannot.

    `route_ids` gives the numbers by which the history knows routes.
    """
    stamp, place = _directory_stamp(run), (str(run.path), str(run.root))
    try:
        directory = RunDirectory.open(run.path)
        began = began_ns(directory)
        names = [directory.route_name(at) for at in range(max(len(directory.routes), 1))]
        hours = _Hours(began, np.array(route_ids(names), dtype=np.int64))
        observer = Observer(directory)
        for counted in read_counted(directory, observer):
            hours.add(counted)
    except RunDirectoryError as error:
        why = (f"cannot be read: {error}",)
        return LogDigest(run.night.key.experiment, run.facts, why, *place, stamp, size_bytes(run))
    return LogDigest(
        run.night.key.experiment,
        directory.facts,
        tuple(unfit(observer.run())),
        *place,
        stamp,
        size_bytes(run),
        hours.first_us,
        hours.last_us,
        list(hours.digests()),
    )


class _Hours:
    """The requests of a log by hour. They come in order within seconds, so that few hours are open."""

    def __init__(self, began: int, routes: np.ndarray) -> None:
        self._began_ns, self._routes = began, routes
        self._open: dict[int, list[Served]] = {}
        self._closed: dict[int, bytes] = {}
        self._refused: dict[int, int] = {}
        self._first_ns, self._last_ns = 1 << 62, 0

    @property
    def first_us(self) -> int:
        """The first request, since 1970."""
        return self._first_ns // 1000

    @property
    def last_us(self) -> int:
        """The last one."""
        return self._last_ns // 1000

    def add(self, counted: CountedRequests) -> None:
        """Take the next requests."""
        if not len(counted):
            return
        at_ns = self._began_ns + counted.due_ns
        self._first_ns = min(self._first_ns, int(at_ns.min()))
        self._last_ns = max(self._last_ns, int(at_ns.max()))
        failures, hour = counted.failures, at_ns // HOUR_NS
        route = self._routes[np.minimum(counted.column("route"), len(self._routes) - 1)]
        refused = hour[(counted.column("status") >= CLIENT_ERROR) & ~failures]
        for each, number in zip(*np.unique(refused, return_counts=True), strict=True):
            self._refused[int(each)] = self._refused.get(int(each), 0) + int(number)
        ones = np.ones(len(hour), dtype=np.int64)
        for each, part in hours_of(alike(Served(hour, route, counted.response_us, failures, ones))):
            self._open.setdefault(each, []).append(part)
        for each in [each for each in self._open if each < int(hour.min())]:
            self._close(each)

    def _close(self, hour: int) -> None:
        parts = self._open.pop(hour)
        if hour in self._closed:
            parts.append(unpacked(hour, self._closed[hour]))
        self._closed[hour] = packed(alike(Served.joined(parts)))

    def digests(self) -> Iterator[HourDigest]:
        """Yield all hours."""
        for hour in list(self._open):
            self._close(hour)
        for hour, times in sorted(self._closed.items()):
            served = unpacked(hour, times)
            yield HourDigest(hour, served.requests, served.failures, self._refused.get(hour, 0), times)


@dataclass(frozen=True)
class PruningResult:
    """The runs removed, or to be removed (hostile paths), their bytes, and old runs that were spared."""

    runs: list[str]
    size_bytes: int
    spared: list[str]


def prune(history: HistoryStore, keep_days: float, forced: bool, dry_run: bool) -> PruningResult:
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


def _safe_nights(history: HistoryStore) -> set[int]:
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
        if run.identity not in (run_identity(facts), log_identity(facts)):
            yield "is another run than the one that the history knows"
    except RunDirectoryError as error:
        yield str(error)


def _remove(run: RunRow, path: Path, mark: Callable[[int], None]) -> None:
    """Remove one. Hidden first, so that what a crash leaves no longer counts as a run, and is found again."""
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
