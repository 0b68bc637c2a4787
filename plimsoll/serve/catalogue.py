"""What lies in a results folder: found, recognised, listed, opened. Names and texts in it are hostile.

What has not changed since the last scan is not read again. The result of a scan is kept in a file of the
user's, for the first scan of the next server. No link is followed on the way to a file, and `..` leads
nowhere.
"""

import hashlib
import html
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal
from urllib.parse import urlencode

from pydantic import TypeAdapter

from plimsoll import __version__
from plimsoll.analysis.statistics.percentiles import P999, rank
from plimsoll.common.errors import RunDirectoryError
from plimsoll.common.files import open_replacement
from plimsoll.common.hostile import is_figure
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.names import EXPERIMENT_FILE, FACTS_FILE, JOURNAL_FILE, READ, REQUESTS_FILE, SUMMARY_FILE
from plimsoll.rundir.read import is_killed, read_facts, read_json

_FRESH_S = 1.0  # a look is worth this long
_DEEPEST, _MOST_FOLDERS = 6, 20_000
_BEGINNING_S = 60.0  # a run may take so long before its first record
_HISTORY_HEAD = b"SQLite format 3\x00"
_KEPT_S = 60.0  # while things change, the index is written once in so long
_INDEX = f"2 of plimsoll {__version__}"  # raise the number where the same files make other items
_INDEX_BYTES = 64 << 20
HEAD_BYTES = 4096  # the title stands before the style sheet
_TITLE = re.compile(rb"<title>([^<]{1,2000}) \xe2\x80\x93 Plimsoll</title>")
_POLICY = b'<meta http-equiv="Content-Security-Policy"'
_VERDICT = r"(PASS|FAIL|INCONCLUSIVE)"
ON_A_PAGE = 100
_LAST = float("inf")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

Stamp = tuple[int, int]


@dataclass(frozen=True)
class Item:
    """One thing at `place`, relative to the folder."""

    place: PurePosixPath

    @property
    def key(self) -> str:
        """Its key in addresses."""
        return item_key(self.place)


Kind = Literal["report", "comparison", "sign-off", "nights"]


@dataclass(frozen=True)
class Document(Item):
    """A page that Plimsoll wrote, by its title; `verdict` as it stands there."""

    kind: Kind
    title: str
    verdict: str | None
    changed_at: datetime


@dataclass(frozen=True)
class HistoryItem(Item):
    """A history of nights, as `plimsoll regress` keeps it."""


@dataclass(frozen=True)
class RunItem(Item):
    """A run as run.json and summary.json describe it. What is unknown is None.

    `damage` says why it cannot be read. `p999_censored`: the p99.9 is a failure's, at its time-out;
    `p999_wrong`: that of a wrong answer, which came in time.
    """

    scenario: str = ""
    backend: str | None = None
    repeat: str | None = None
    status: str = "unknown"
    started_at: datetime | None = None
    experiment: str | None = None
    requests: int | None = None
    failures: int | None = None
    p50_ms: float | None = None
    p999_ms: float | None = None
    p999_censored: bool = False
    p999_wrong: bool = False
    generator_limited: bool = False
    damage: str | None = None

    @property
    def name(self) -> str:
        """What people call it: its backend and repeat, else its directory."""
        if not self.backend:
            return self.place.name
        return f"{self.backend} #{self.repeat}" if self.repeat else self.backend

    @property
    def identity(self) -> tuple[object, ...]:
        """Independent of its place: an experiment moves a run that has ended."""
        return (self.scenario, self.backend, self.repeat, self.started_at)


Known = dict[str, tuple[tuple[Stamp, ...], HistoryItem | RunItem | Document | None]]


@dataclass(frozen=True)
class _Index:
    """What lies in `folder`, each thing with the stamps of the files that say so."""

    version: str
    folder: str
    known: Mapping[str, tuple[tuple[Stamp, ...], HistoryItem | RunItem | Document]]


_INDICES = TypeAdapter(_Index)


@dataclass(frozen=True)
class ExperimentItem(Item):
    """The folder of an experiment."""

    name: str
    changed_at: datetime


@dataclass(frozen=True)
class Contents:
    """All that was found, by key. `left_out` says what was not scanned."""

    runs: dict[str, RunItem] = field(default_factory=dict)
    experiments: dict[str, ExperimentItem] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    histories: dict[str, HistoryItem] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def running(self) -> list[RunItem]:
        """Return the runs in progress, latest start first."""
        return newest_first([run for run in self.runs.values() if run.status == "running"])

    def inside(self, experiment: ExperimentItem) -> list[RunItem]:
        """Return the runs of an experiment, in the order of their places."""
        found = [run for run in self.runs.values() if run.place.is_relative_to(experiment.place)]
        return sorted(found, key=lambda run: run.place)

    def around(self, run: RunItem) -> ExperimentItem | None:
        """Return the experiment in whose folder a run lies."""
        return next(
            (each for each in self.experiments.values() if run.place.is_relative_to(each.place)), None
        )

    def report_of(self, item: Item) -> Document | None:
        """Return the report that lies in a run directory or an experiment's folder."""
        found = self.documents.get(item_key(item.place / "report.html"))
        return found if found and found.kind == "report" else None

    def of_kind(self, kind: Kind) -> list[Document]:
        """Return the documents of a kind, latest first."""
        found = [each for each in self.documents.values() if each.kind == kind]
        return sorted(found, key=lambda each: each.changed_at, reverse=True)


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
            with open_inside(self.root, place) as file:
                head = file.read(HEAD_BYTES)
        except OSError:
            return None
        if place.suffix == ".sqlite":
            return HistoryItem(place) if head.startswith(_HISTORY_HEAD) else None
        said = recognise_page(head)
        return Document(place, *said, changed_at=_instant(stamp)) if said else None

    def _run(self, place: PurePosixPath, files: dict[str, Stamp], links: list[str], before: Known) -> RunItem:
        path = self.root / place
        if strays := [name for name in READ if name in links and not is_inside(self.root, path / name)]:
            return RunItem(place, damage=f"{strays[0]} leads out of the folder that is served")
        stamps = tuple(files.get(name, (0, 0)) for name in (FACTS_FILE, SUMMARY_FILE))
        known = before.get(str(place))
        item = known[1] if known and known[0] == stamps else None
        if not isinstance(item, RunItem):
            item = self._read(place)
        self._known[str(place)] = (stamps, item)
        return _with_current_status(item, path, files) if item.status == "running" else item

    def _read(self, place: PurePosixPath) -> RunItem:
        path = self.root / place
        try:
            facts, summary = read_facts(path), read_json(path / SUMMARY_FILE)
        except RunDirectoryError as error:
            return RunItem(place, damage=str(error))
        return _item(place, facts, summary if isinstance(summary, dict) else {})

    def _keep(self) -> None:
        """Write what is known to the index if it changed, but not each time. The disk may refuse.

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


def find_index_file(root: Path, environment: Mapping[str, str]) -> Path | None:
    """Return the file for the index of `root` in the user's cache folder, or None if that is missing."""
    caches = Path(environment.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():
        caches = Path(environment.get("HOME", "")) / ".cache"
    return (
        caches / "plimsoll" / "serve" / f"{item_key(PurePosixPath(root))}.json"
        if caches.is_absolute()
        else None
    )


def _read_index(root: Path, path: Path) -> Known:
    """Return what the index knows of `root`: nothing if it is damaged, or another user's or version's."""
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
    answered, errors = _count(requests.get("ok")), _count(requests.get("errors"))
    at = rank(P999, answered + errors) if answered is not None and errors is not None else None
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
        # Wrong answers stand before the requests that got none.
        p999_wrong="p99.9" in censored and at is not None and at <= (answered or 0),
        generator_limited=facts.generator_limited,
    )


def _with_current_status(item: RunItem, path: Path, files: dict[str, Stamp]) -> RunItem:
    """Return a run that says `running`: as interrupted if it was killed or never began."""
    facts = RunFacts(scenario=item.scenario)
    if REQUESTS_FILE in files:
        has_ended = is_killed(path, facts)
    else:
        has_ended = time.time() - files[FACTS_FILE][0] / 1e9 > _BEGINNING_S
    if has_ended:
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


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _figure(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and is_figure(value) and value >= 0 else None


def item_key(place: PurePosixPath) -> str:
    """Return the key that names what is at `place` in addresses: the same as long as it stays there.

    It is not a path, so that only what was found can be requested.
    """
    return hashlib.sha256(str(place).encode("utf-8", "surrogateescape")).hexdigest()[:20]


def newest_first(runs: list[RunItem]) -> list[RunItem]:
    """Return runs by start, latest first; those that never began come last."""
    return sorted(
        runs,
        key=lambda run: (run.started_at.timestamp() if run.started_at else 0.0, str(run.place)),
        reverse=True,
    )


def recognise_page(head: bytes) -> tuple[Kind, str, str | None] | None:
    """Return kind, title and verdict of a page by its first bytes; None for somebody else's page."""
    found = _TITLE.search(head)
    if found is None or _POLICY not in head:
        return None
    title = html.unescape(found[1].decode("utf-8", errors="replace"))
    if match := re.match(rf"Sign-off, {_VERDICT}: (.*)", title, re.DOTALL):
        return "sign-off", match[2], match[1]
    if match := re.fullmatch(r"([A-Z ]+): the nights", title):
        return "nights", "The nights", match[1]
    if match := re.match(rf"{_VERDICT}: (.*)", title, re.DOTALL):
        return "comparison", match[2], match[1]
    return "report", title, None


FILTERS: dict[str, Callable[[RunItem], str | None]] = {
    "scenario": lambda run: run.scenario,
    "backend": lambda run: run.backend,
    "status": lambda run: run.status,
    "experiment": lambda run: run.experiment,
}

SORTS: dict[str, tuple[str, Callable[[RunItem], tuple[float | str, ...]]]] = {
    "newest": ("newest first", lambda run: (-run.started_at.timestamp() if run.started_at else _LAST,)),
    "oldest": ("oldest first", lambda run: (run.started_at.timestamp() if run.started_at else _LAST,)),
    "slowest": ("highest p99.9 first", lambda run: (-run.p999_ms if run.p999_ms is not None else _LAST,)),
    "fastest": ("lowest p99.9 first", lambda run: (_LAST if run.p999_ms is None else run.p999_ms,)),
    "name": ("by name", lambda run: (run.name.casefold(), str(run.place))),
}


@dataclass(frozen=True)
class RunQuery:
    """What was asked for: words that all occur, values of filters, an order, a page from 1."""

    words: str = ""
    wanted: Mapping[str, str] = field(default_factory=dict)
    order: str = "newest"
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "RunQuery":
        """Return what a query asks for; anything else in it is ignored."""
        page = query.get("page", "1")
        return cls(
            words=query.get("q", "")[:200],
            wanted={name: query[name] for name in FILTERS if query.get(name)},
            order=query.get("order", "") if query.get("order") in SORTS else "newest",
            page=int(page) if page.isascii() and page.isdigit() and 0 < len(page) < 6 else 1,
        )

    def query(self, page: int) -> str:
        """Return the query of another page of the same choice."""
        return urlencode({"q": self.words, **self.wanted, "order": self.order, "page": page})


@dataclass(frozen=True)
class RunPage:
    """A page of the runs that were chosen: which page of how many, and how many runs in all."""

    runs: Sequence[RunItem]
    page: int
    pages: int
    total: int


def filter_runs(runs: Sequence[RunItem], choice: RunQuery) -> RunPage:
    """Return the runs that are asked for."""
    words = choice.words.casefold().split()
    found = [
        run
        for run in runs
        if all((FILTERS[name](run) or "") == value for name, value in choice.wanted.items())
        and all(word in _searched_text(run) for word in words)
    ]
    found.sort(key=SORTS[choice.order][1])
    pages = max(-(-len(found) // ON_A_PAGE), 1)
    page = min(max(choice.page, 1), pages)
    return RunPage(found[(page - 1) * ON_A_PAGE : page * ON_A_PAGE], page, pages, len(found))


def filter_values(runs: Sequence[RunItem]) -> dict[str, list[str]]:
    """Return the values that each filter can have among `runs`."""
    return {name: sorted({value for run in runs if (value := of(run))}) for name, of in FILTERS.items()}


def _searched_text(run: RunItem) -> str:
    parts = (str(run.place), run.scenario, run.name, run.status, run.experiment or "")
    return "\n".join(parts).casefold()


class OutsideError(OSError):
    """It is not in the folder, or not a regular file."""


@contextmanager
def open_inside(root: Path, place: PurePosixPath) -> Iterator[BinaryIO]:
    """Open the regular file at `place` in the folder `root`, step by step. Raises OSError."""
    if place.is_absolute() or not place.parts or ".." in place.parts:
        raise OutsideError(f"{place}: is not in the folder")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in place.parts[:-1]:
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        descriptor = os.open(place.parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OutsideError(f"{place}: is not a regular file")
        yield file


def is_inside(root: Path, path: Path) -> bool:
    """Return whether `path`, which need not exist, leads into `root` once all links are followed."""
    try:
        return path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False
