"""Looks through a results folder, cheaply: what did not change since the last look is not read again."""

import os
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.figure import is_figure
from plimsoll.rundir.directory import is_killed, read_facts
from plimsoll.rundir.jsonfile import read_json
from plimsoll.rundir.names import (
    EXPERIMENT_FILE,
    FACTS_FILE,
    JOURNAL_FILE,
    READ,
    REQUESTS_FILE,
    SUMMARY_FILE,
)
from plimsoll.rundir.runfacts import RunFacts
from plimsoll.serving.documents import HEAD_BYTES, recognised
from plimsoll.serving.inside import lies_inside, opened_inside
from plimsoll.serving.items import Contents, Document, ExperimentItem, HistoryItem, Item, RunItem

_FRESH_S = 1.0  # a look is worth this long
_DEEPEST, _MOST_FOLDERS = 6, 20_000
_BEGINNING_S = 60.0  # a run may take so long before its first record
_HISTORY_HEAD = b"SQLite format 3\x00"

Stamp = tuple[int, int]


class Catalogue:
    """What is in `root`. Links are not followed, hidden names are left out."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._known: dict[PurePosixPath, tuple[tuple[Stamp, ...], Item | None]] = {}
        self._contents, self._looked_s = Contents(), float("-inf")

    def contents(self) -> Contents:
        """Return what is there now, or was a second ago."""
        with self._lock:
            if time.monotonic() - self._looked_s >= _FRESH_S:
                self._contents = self._look()
                self._looked_s = time.monotonic()
            return self._contents

    def path(self, item: Item) -> Path:
        """Return where an item lies."""
        return self.root / item.place

    def _look(self) -> Contents:
        found, folders = Contents(), 0
        left_out: list[str] = []
        waiting = [(PurePosixPath(), 0)]
        while waiting:
            place, depth = waiting.pop()
            folders += 1
            if folders > _MOST_FOLDERS:
                left_out.append(f"more than {_MOST_FOLDERS:,} folders: serve a part of them")
                break
            try:
                entries = list(_entries(self.root / place))
            except OSError as error:
                left_out.append(f"{place}: cannot be read: {error.strerror}")
                continue
            files = {entry.name: _stamp(entry) for entry in entries if entry.is_file(follow_symlinks=False)}
            inner = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            is_run = FACTS_FILE in files
            if is_run:
                run = self._run(place, files)
                found.runs[run.key] = run
            elif EXPERIMENT_FILE in files and JOURNAL_FILE in files:
                begun = ExperimentItem(place, self._name(place), _instant(files[JOURNAL_FILE]))
                found.experiments[begun.key] = begun
            self._files(place, files, found)
            if not is_run and inner:
                if depth == _DEEPEST:
                    left_out.append(f"{place}: what lies deeper")
                else:
                    waiting += [(place / name, depth + 1) for name in inner]
        return Contents(found.runs, found.experiments, found.documents, found.histories, tuple(left_out))

    def _files(self, place: PurePosixPath, files: dict[str, Stamp], found: Contents) -> None:
        for name, stamp in files.items():
            if not name.endswith((".html", ".sqlite")):
                continue
            item = self._kept(place / name, (stamp,))
            if isinstance(item, Document):
                found.documents[item.key] = item
            elif isinstance(item, HistoryItem):
                found.histories[item.key] = item

    def _kept(self, place: PurePosixPath, stamps: tuple[Stamp, ...]) -> Item | None:
        known = self._known.get(place)
        if known is None or known[0] != stamps:
            known = self._known[place] = (stamps, self._document(place, stamps[0]))
        return known[1]

    def _document(self, place: PurePosixPath, stamp: Stamp) -> Item | None:
        try:
            with opened_inside(self.root, place) as file:
                head = file.read(HEAD_BYTES)
        except OSError:
            return None
        if place.suffix == ".sqlite":
            return HistoryItem(place) if head.startswith(_HISTORY_HEAD) else None
        said = recognised(head)
        return Document(place, *said, changed_at=_instant(stamp)) if said else None

    def _run(self, place: PurePosixPath, files: dict[str, Stamp]) -> RunItem:
        stamps = tuple(files.get(name, (0, 0)) for name in (FACTS_FILE, SUMMARY_FILE))
        known = self._known.get(place)
        if known is None or known[0] != stamps:
            known = self._known[place] = (stamps, self._read(place))
        item = known[1]
        assert isinstance(item, RunItem)  # noqa: S101 a place of a run holds a run
        if item.status != "running":
            return item
        return _as_it_goes(item, self.root / place, files)

    def _read(self, place: PurePosixPath) -> RunItem:
        path = self.root / place
        if strays := [name for name in READ if not lies_inside(self.root, path / name)]:
            return RunItem(place, damage=f"{strays[0]} leads out of the folder that is served")
        try:
            facts, summary = read_facts(path), read_json(path / SUMMARY_FILE)
        except RunDirectoryError as error:
            return RunItem(place, damage=str(error))
        return _item(place, facts, summary if isinstance(summary, dict) else {})

    def _name(self, place: PurePosixPath) -> str:
        """Return the name of an experiment: its folder's, without the instant at its end."""
        name = (self.root / place).resolve().name
        return name.rpartition("-")[0] or name


def _item(place: PurePosixPath, facts: RunFacts, summary: dict[str, Any]) -> RunItem:
    requests = _dict(summary.get("requests"))
    response = _dict(summary.get("response_ms"))
    censored = _dict(response.get("censored"))
    return RunItem(
        place,
        scenario=facts.scenario,
        backend=facts.backend,
        repeat=None if facts.repeat is None else str(facts.repeat),
        status=facts.status,
        started_at=facts.started_at,
        experiment=facts.experiment.name if facts.experiment else None,
        requests=_count(requests.get("sent")),
        failures=_count(requests.get("failures")),
        p50_ms=_figure(response.get("p50")),
        p999_ms=_figure(response.get("p99.9")) or _figure(censored.get("p99.9")),
        p999_censored="p99.9" in censored,
        generator_limited=facts.generator_limited,
    )


def _as_it_goes(item: RunItem, path: Path, files: dict[str, Stamp]) -> RunItem:
    """Return a run that says `running`: interrupted where it was killed, or came to nothing."""
    facts = RunFacts(scenario=item.scenario)
    begun = REQUESTS_FILE in files
    if (begun and is_killed(path, facts)) or (not begun and _age_s(files[FACTS_FILE]) > _BEGINNING_S):
        return RunItem(**{**vars(item), "status": "interrupted"})
    return item


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as inside:
        yield from sorted((entry for entry in inside if entry.name[0] != "."), key=lambda entry: entry.name)


def _stamp(entry: os.DirEntry[str]) -> Stamp:
    try:
        facts = entry.stat(follow_symlinks=False)
    except OSError:  # it went away meanwhile
        return 0, 0
    return facts.st_mtime_ns, facts.st_size


def _instant(stamp: Stamp) -> datetime:
    return datetime.fromtimestamp(stamp[0] / 1e9, UTC)


def _age_s(stamp: Stamp) -> float:
    return time.time() - stamp[0] / 1e9


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _figure(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and is_figure(value) and value >= 0 else None
