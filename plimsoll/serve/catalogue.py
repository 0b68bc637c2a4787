"""Looks through a results folder, cheaply: what did not change since the last look is not read again.

What a look found is kept in a file of the user's own, for the first look of the next server.
"""

import os
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import TypeAdapter

from plimsoll import __version__
from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.files import open_replacement
from plimsoll.common.hostile import is_figure
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.names import (
    EXPERIMENT_FILE,
    FACTS_FILE,
    JOURNAL_FILE,
    READ,
    REQUESTS_FILE,
    SUMMARY_FILE,
)
from plimsoll.rundir.read import is_killed, read_facts, read_json
from plimsoll.serve.documents import HEAD_BYTES, recognised
from plimsoll.serve.inside import lies_inside, opened_inside
from plimsoll.serve.items import Contents, Document, ExperimentItem, HistoryItem, Item, RunItem, key_of

_FRESH_S = 1.0  # a look is worth this long
_DEEPEST, _MOST_FOLDERS = 6, 20_000
_BEGINNING_S = 60.0  # a run may take so long before its first record
_HISTORY_HEAD = b"SQLite format 3\x00"

_KEPT_S = 60.0  # while things change, the index is written once in so long
_INDEX = f"1 of plimsoll {__version__}"  # raise the number where the same files make other items
_INDEX_BYTES = 64 << 20

Stamp = tuple[int, int]
Known = dict[str, tuple[tuple[Stamp, ...], HistoryItem | RunItem | Document | None]]


@dataclass(frozen=True)
class _Index:
    """What lies in `folder`, each thing with the stamps of the files that say so."""

    version: str
    folder: str
    known: Mapping[str, tuple[tuple[Stamp, ...], HistoryItem | RunItem | Document]]


_INDICES = TypeAdapter(_Index)


class Catalogue:
    """What is in `root`. Links are not followed, hidden names are left out.

    `index` is the file in which it keeps what it read, None for no file.
    """

    def __init__(self, root: Path, index: Path | None = None) -> None:
        self.root, self._index = root, index
        self._lock = threading.Lock()
        self._known = self._kept_known = _read_index(root, index) if index else {}
        self._contents, self._looked_s, self._written_s = Contents(), float("-inf"), float("-inf")

    def contents(self) -> Contents:
        """Return what is there now, or was a second ago."""
        with self._lock:
            if time.monotonic() - self._looked_s >= _FRESH_S:
                self._contents = self._look()
                self._keep()
                self._looked_s = time.monotonic()
            return self._contents

    def path(self, item: Item) -> Path:
        """Return where an item lies."""
        return self.root / item.place

    def _look(self) -> Contents:
        found, folders = Contents(), 0
        before, self._known = self._known, {}
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
                links = [entry.name for entry in entries if entry.is_symlink()]
                run = self._run(place, files, links, before)
                found.runs[run.key] = run
            elif EXPERIMENT_FILE in files and JOURNAL_FILE in files:
                begun = ExperimentItem(place, self._name(place), _instant(files[JOURNAL_FILE]))
                found.experiments[begun.key] = begun
            self._files(place, files, found, before)
            if not is_run and inner:
                if depth == _DEEPEST:
                    left_out.append(f"{place}: what lies deeper")
                else:
                    waiting += [(place / name, depth + 1) for name in inner]
        return Contents(found.runs, found.experiments, found.documents, found.histories, tuple(left_out))

    def _files(self, place: PurePosixPath, files: dict[str, Stamp], found: Contents, before: Known) -> None:
        for name, stamp in files.items():
            if not name.endswith((".html", ".sqlite")):
                continue
            key = str(place / name)
            known = before.get(key)
            if known is None or known[0] != (stamp,):
                known = ((stamp,), self._document(place / name, stamp))
            self._known[key] = known
            if isinstance(item := known[1], Document):
                found.documents[item.key] = item
            elif isinstance(item, HistoryItem):
                found.histories[item.key] = item

    def _document(self, place: PurePosixPath, stamp: Stamp) -> HistoryItem | Document | None:
        try:
            with opened_inside(self.root, place) as file:
                head = file.read(HEAD_BYTES)
        except OSError:
            return None
        if place.suffix == ".sqlite":
            return HistoryItem(place) if head.startswith(_HISTORY_HEAD) else None
        said = recognised(head)
        return Document(place, *said, changed_at=_instant(stamp)) if said else None

    def _run(self, place: PurePosixPath, files: dict[str, Stamp], links: list[str], before: Known) -> RunItem:
        path = self.root / place
        if strays := [name for name in READ if name in links and not lies_inside(self.root, path / name)]:
            return RunItem(place, damage=f"{strays[0]} leads out of the folder that is served")
        stamps = tuple(files.get(name, (0, 0)) for name in (FACTS_FILE, SUMMARY_FILE))
        known = before.get(str(place))
        item = known[1] if known and known[0] == stamps else None
        if not isinstance(item, RunItem):
            item = self._read(place)
        self._known[str(place)] = (stamps, item)
        return _as_it_goes(item, path, files) if item.status == "running" else item

    def _read(self, place: PurePosixPath) -> RunItem:
        path = self.root / place
        try:
            facts, summary = read_facts(path), read_json(path / SUMMARY_FILE)
        except RunDirectoryError as error:
            return RunItem(place, damage=str(error))
        return _item(place, facts, summary if isinstance(summary, dict) else {})

    def _keep(self) -> None:
        """Write what is known to the index, where it changed, but not each time. The disk may refuse.

        What could not be read may be readable next time, with the same stamps.
        """
        now_s = time.monotonic()
        if self._index is None or now_s - self._written_s < _KEPT_S or self._known == self._kept_known:
            return
        self._written_s, self._kept_known = now_s, self._known
        known = {
            place: (stamps, item)
            for place, (stamps, item) in self._known.items()
            if item and not getattr(item, "damage", None) and place.isprintable()
        }
        text = _INDICES.dump_json(_Index(_INDEX, str(self.root), known))
        with suppress(OSError):
            self._index.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open_replacement(self._index, mode=0o600) as file:
                file.write(text)

    def _name(self, place: PurePosixPath) -> str:
        """Return the name of an experiment: its folder's, without the instant at its end."""
        name = (self.root / place).resolve().name
        return name.rpartition("-")[0] or name


def index_of(root: Path, environment: Mapping[str, str]) -> Path | None:
    """Return the file for the index of `root`, in the user's folder for caches; None where there is none."""
    caches = Path(environment.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():
        caches = Path(environment.get("HOME", "")) / ".cache"
    return (
        caches / "plimsoll" / "serve" / f"{key_of(PurePosixPath(root))}.json"
        if caches.is_absolute()
        else None
    )


def _read_index(root: Path, path: Path) -> Known:
    """Return what the index knows of `root`: nothing where it is damaged, or not by this user and program."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            facts = os.fstat(file.fileno())
            if facts.st_uid != os.geteuid() or facts.st_mode & 0o022 or not stat.S_ISREG(facts.st_mode):
                return {}
            index = _INDICES.validate_json(file.read(_INDEX_BYTES))
    except (OSError, ValueError):
        return {}
    return dict(index.known) if (index.version, index.folder) == (_INDEX, str(root)) else {}


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
