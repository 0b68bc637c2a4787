"""What all imports share: lines of files, requests in order, routes, run directory, and result."""

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any, NoReturn
from urllib.parse import urlsplit

import click
import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.evidence.summary import summarise
from plimsoll.common.errors import PlimsollError
from plimsoll.common.hostile import printable
from plimsoll.common.units import counted
from plimsoll.rundir.events import MISSING_FILE
from plimsoll.rundir.facts import GeneratorHost, Program, RunFacts, RunTarget
from plimsoll.rundir.find import directory_name, new_directory, point_latest
from plimsoll.rundir.records import Records, Request
from plimsoll.rundir.write import RunWriter, Status

LARGEST_US = 0xFFFF_FFFF  # that a record has room for
_MOST_NAMED = 10  # lines that cannot be read
_MOST_SHOWN = 20  # names of files
_MOST_FILES = 0xFFFF  # a client's number has so much room for the file that it is from
_MOST_BROKEN = 0.01  # share of the lines
_LONGEST_LINE_BYTES = 1 << 20
_LONGEST_NAME = 48
_TELL_LINES = 1 << 12
_GZIP = b"\x1f\x8b"


class ImportingError(PlimsollError):
    """A file that cannot be imported; the message names it and says what to do."""


class CutOffError(Exception):
    """The file ends in the middle, as a killed program leaves it; the message says how."""


@dataclass(frozen=True)
class ImportResult:
    """Results of another program that are a run directory now, and what was not in order with them."""

    source: str
    directory: Path
    status: str
    reason: str | None
    requests: int
    broken_lines: int
    notes: list[str]

    @property
    def is_whole(self) -> bool:
        """True where every line could be read."""
        return self.status == "complete" and not self.broken_lines

    def lines(self) -> list[str]:
        """Return what the command prints."""
        said = [] if self.reason is None else [f"  {self.status}: {self.reason}"]
        return [f"{self.directory}: {counted(self.requests, 'request')} from {self.source}", *said] + [
            f"  {note}" for note in self.notes
        ]


def print_imports(imports: Iterable[ImportResult], as_json: bool) -> NoReturn:
    """Print each of `imports` once it is there, as JSON all at the end; exit with 1 unless all are whole."""
    imported = []
    for one in imports:
        imported.append(one)
        if not as_json:
            click.echo("\n".join(printable(line, 4096) for line in one.lines()))
    if as_json:
        runs = [asdict(one) | {"directory": str(one.directory)} for one in imported]
        click.echo(json.dumps({"format": 1, "runs": runs}, indent=2))
    click.get_current_context().exit(0 if all(one.is_whole for one in imported) else 1)


class LineReader:
    """Reads a program's output line by line: a line that cannot be read is named, and does not stop the rest.

    `broken` names the first of them, `broken_count` counts all; `cut_off` says how the output ended, if it
    did so in the middle. `label` precedes messages on a line.
    """

    def __init__(self, label: str = "") -> None:
        self.label = label
        self.broken: list[str] = []
        self.broken_count = self.line = 0
        self.cut_off: str | None = None

    def note_broken(self, number: int, why: str) -> None:
        """Count line `number` as one that cannot be read."""
        self.broken_count += 1
        if len(self.broken) < _MOST_NAMED:
            self.broken.append(printable(f"{self.label}line {number}{why}"))


class LogFile(LineReader):
    """A `LineReader` of the file `path`; `advance` is called with the bytes read since its last call."""

    def __init__(self, path: Path, advance: Callable[[int], None] = lambda _: None) -> None:
        super().__init__(f"{path.name}: ")
        self.path, self._advance = path, advance
        self.requests = 0

    def whole_lines(self) -> Iterator[bytes]:
        """Yield the lines; a last one that is cut off is left out, since a cut-off number is one too."""
        last: bytes | None = None
        try:
            for line in read_file_lines(self.path, self._advance):
                if last is not None:
                    yield last
                last = line
        except CutOffError as error:
            self.cut_off = str(error)
        if last is not None and last.endswith(b"\n"):
            yield last
        elif last is not None:
            self.cut_off = self.cut_off or "its last line is cut off"


def read_file_lines(path: Path, advance: Callable[[int], None] = lambda _: None) -> Iterator[bytes]:
    """Yield the lines of `path`, plain or gzip, with their line feeds; one longer than 1 MiB comes in pieces.

    `advance` is called now and then with the bytes of the file that were read since its last call. Raises
    ImportingError where it cannot be read, CutOffError after the last line of a gzip file that is cut off or
    damaged.
    """
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == _GZIP
            file.seek(0)
            source: IO[bytes] = gzip.GzipFile(fileobj=file) if zipped else file  # type: ignore[assignment]
            told = 0
            for number, line in enumerate(iter(partial(source.readline, _LONGEST_LINE_BYTES), b"")):
                yield line
                if number % _TELL_LINES == 0:
                    advance(file.tell() - told)
                    told = file.tell()
            advance(file.tell() - told)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CutOffError(f"the gzip data is cut off or damaged ({error})") from None
    except OSError as error:
        raise ImportingError(f"{path}: cannot be read: {error.strerror}") from None


def check_files(paths: Sequence[Path]) -> None:
    """Return if each of `paths` is a file, and given once. Raises ImportingError, a line for each other."""
    wrong = [f"{path}: is not there" for path in paths if not path.is_file()]
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            wrong.append(f"{path}: is given twice")
        seen.add(path.resolve())
    if len(paths) > _MOST_FILES:
        wrong.append(
            f"{len(paths):,} files are too many: clients can be numbered for {_MOST_FILES:,} at most"
        )
    if wrong:
        raise ImportingError("\n".join(wrong))


def count_bytes(
    paths: Sequence[Path], passes: int, progress: Callable[[int, int], None]
) -> Callable[[int], None]:
    """Return what to call with bytes that were read, where all of `paths` are read in so many passes."""
    total, done = passes * sum(path.stat().st_size for path in paths), 0

    def advance(read: int) -> None:
        nonlocal done
        done += read
        progress(done, total)

    return advance


def start_import(
    results: Path,
    program: Program,
    paths: Sequence[Path],
    scenario: str,
    target: str | None,
    started_at: datetime,
    *,
    settings: dict[str, object] | None = None,
    **further: Any,
) -> RunWriter:
    """Make a run directory in `results` for what `program` wrote into `paths`; `further` are more facts."""
    names = [printable(path.name) for path in paths[:_MOST_SHOWN]]
    if len(paths) > _MOST_SHOWN:
        names.append(f"and {len(paths) - _MOST_SHOWN} more")
    facts = RunFacts(
        scenario=scenario,
        target=None if target is None else RunTarget(url=target),
        command=["plimsoll", "import", program.name, *names],
        loop="closed",
        started_at=started_at,
        program=program,
        host=GeneratorHost(hostname="unknown"),  # it ran where it ran; this machine only reads what it wrote
        scenario_settings={"imported_from": names} | (settings or {}),
        **further,
    )
    directory = new_directory(results, directory_name(started_at, scenario))
    return RunWriter(directory, facts, summarise, at_once=False)


def finish_import(
    run: RunWriter,
    program: str,
    paths: Sequence[Path],
    readers: Sequence[LineReader],
    requests: int,
    notes: list[str],
    more: str = "more file",
) -> ImportResult:
    """End `run`, and let `latest` lead to it. `program` and `more` of `paths`: what people call them."""
    broken = sum(one.broken_count for one in readers)
    status: Status
    reason: str | None
    if cut_off := [f"{printable(one.label)}{one.cut_off}" for one in readers if one.cut_off]:
        status, reason = "interrupted", f"{program} was ended while it wrote: {'; '.join(cut_off[:3])}"
    elif run.target_died:
        status, reason = "failed", run.target_died
    else:
        status, reason = decide_status(broken, sum(one.line for one in readers))
    run.finish(status, reason)
    point_latest(run.directory)
    source = str(paths[0]) + (f" and {counted(len(paths) - 1, more)}" if len(paths) > 1 else "")
    notes = [line for one in readers for line in one.broken][:_MOST_NAMED] + notes
    return ImportResult(source, run.directory, status, reason, requests, broken, notes)


def decide_status(broken: int, lines: int) -> tuple[Status, str | None]:
    """Return how an import ends if so many of its `lines` could not be read: at over 1 % it fails. Pure."""
    if not broken:
        return "complete", None
    reason = f"{counted(broken, 'line')} of {lines:,} could not be read"
    return ("failed" if broken > _MOST_BROKEN * lines else "complete"), reason


def instant(epoch_ns: int) -> datetime:
    """Return nanoseconds since the epoch as an instant; what is below a microsecond is cut off."""
    return datetime.fromtimestamp(epoch_ns // 10**9, UTC).replace(microsecond=epoch_ns % 10**9 // 1000)


_MOST_EVENTS = 10_000  # of one measure, of failed checks, of missing files: events.jsonl is read whole
_MOST_VALUES = 1_000_000  # of one measure: they are kept in memory until the end
_MOST_MEASURES = 64


@dataclass(frozen=True)
class MeasureValue:
    """A value of a metric that is not of a single request; `t_ns` since the start of the run."""

    name: str
    value: float
    unit: str
    t_ns: int
    iteration: int


@dataclass(frozen=True)
class DroppedIterations:
    """Iterations that k6 had no free visitor for when they were due."""

    count: int


@dataclass(frozen=True)
class FailedCheck:
    """A check() of the script that did not hold. `kind`: MISSING_FILE, or another word."""

    step: str
    name: str
    kind: str
    t_ns: int
    iteration: int
    client: int


@dataclass(frozen=True)
class CachedRequest:
    """A request of the browser's that never left it."""


ImportedItem = Request | MeasureValue | DroppedIterations | FailedCheck | CachedRequest


class ImportWriter:
    """Puts requests, measures and failed checks into `run`, in bounded memory."""

    def __init__(self, run: RunWriter) -> None:
        self._run = run
        self._values: Counter[str] = Counter()
        self._names: set[tuple[str, str]] = set()
        self.failed_checks = self.missing_files = self.uncounted = 0
        self.good_requests = 0  # without an error, warm-up apart
        self.first_failure: str | None = None
        self.first_missing: str | None = None

    def put(self, item: ImportedItem) -> None:
        """Write `item` down. Raises OutputError when the disk is full."""
        match item:
            case Request():
                self._run.request(item)
                self.good_requests += item.error == "none" and not item.warmup
            case MeasureValue():
                self._put_measure(item)
            case DroppedIterations():
                self._run.skip("dropped_iterations", item.count)
            case CachedRequest():
                self._run.skip("from_cache")
            case FailedCheck():
                self._put_failed_check(item)

    def _put_failed_check(self, check: FailedCheck) -> None:
        if check.kind == MISSING_FILE:
            self.missing_files += 1
            self.first_missing = self.first_missing or check.name
            events = self.missing_files
        else:
            self.failed_checks += 1
            self.first_failure = self.first_failure or f"{check.step}: {check.name}"
            events = self.failed_checks
        if events <= _MOST_EVENTS:
            about = {"step": check.step, "kind": check.kind[:40], "detail": check.name[:300]}
            self._run.event("error", t_ns=check.t_ns, **about, iteration=check.iteration, client=check.client)

    def _put_measure(self, figure: MeasureValue) -> None:
        """Take a value of a measure; of very many, not every one becomes an event."""
        name = figure.name
        if (name, figure.unit) not in self._names:
            if len(self._names) >= _MOST_MEASURES:
                name = f"other ({figure.unit})"
            self._names.add((name, figure.unit))
        self._values[name] += 1
        if self._values[name] <= _MOST_EVENTS:
            iteration = figure.iteration or None
            self._run.measure(name, figure.value, figure.unit, iteration=iteration, t_ns=figure.t_ns)
        elif self._values[name] <= _MOST_VALUES:
            self._run.measures.add(name, figure.value, figure.unit)
        else:
            self.uncounted += 1

    def notes(self) -> list[str]:
        """Return what whoever imports should know of the measures."""
        if not self.uncounted:
            return []
        return [f"{self.uncounted} values of measures beyond a million each were not counted"]


Rows = NDArray[np.void]  # records, or what they are made of
Instants = NDArray[np.int64]
_ALL_HELD = 1 << 18  # records that all streams together hold: some 170 MB with what sorting them takes


def window_of(streams: int) -> int:
    """Return how many records of each of so many streams to hold back, so that all together are bounded."""
    return min(max(_ALL_HELD // max(streams, 1), 256), 1 << 16)


def done_ns(records: Records) -> Instants:
    """Return when each of `records`, shape (n,), was done, in nanoseconds since the start of the run."""
    took_us = records["lag_us"].astype(np.int64) + records["total_us"]
    done: Instants = records["due_ns"] + took_us * 1000
    return done


def in_order(
    streams: Sequence[Iterator[Rows]], window: int, done: Callable[[Rows], Instants] = done_ns
) -> Iterator[Rows]:
    """Yield every row of `streams` once, by the instant that `done` gives; ties in the order of the streams.

    Of each stream at least `window` rows are held, and a block more at most. So a row comes in its place if
    at most `window` rows that stand before it in its own stream were done after it; one that is further out
    of order comes late, but comes. Pure.
    """
    held = [
        _Backlog(first, stream, window, done)
        for stream in streams
        if (first := next(stream, None)) is not None
    ]
    while held:
        horizon = min(each.horizon() for each in held)
        whole = np.concatenate([each.take(horizon) for each in held])
        if len(whole):
            yield whole[np.argsort(done(whole), kind="stable")]
        held = [each for each in held if not each.is_empty]


class _Backlog:
    """The rows held of one stream, in order."""

    def __init__(
        self, first: Rows, stream: Iterator[Rows], window: int, done: Callable[[Rows], Instants]
    ) -> None:
        self._stream, self._window, self._done_of, self._ended = stream, window, done, False
        self._rows, self._done = first[:0], np.empty(0, dtype=np.int64)
        self._fill([first])

    @property
    def is_empty(self) -> bool:
        return self._ended and not len(self._rows)

    def horizon(self) -> int:
        """Return up to when its rows may go: so many later ones are held that none before is to come."""
        return int(np.iinfo(np.int64).max if self._ended else self._done[-self._window - 1])

    def take(self, until: int) -> Rows:
        """Take away what was done until then."""
        cut = int(np.searchsorted(self._done, until, side="right"))
        taken, self._rows, self._done = self._rows[:cut], self._rows[cut:], self._done[cut:]
        self._fill([])
        return taken

    def _fill(self, more: list[Rows]) -> None:
        while not self._ended and len(self._rows) + sum(map(len, more)) <= self._window:
            block = next(self._stream, None)
            if block is None:
                self._ended = True
            else:
                more.append(block)
        if more:
            rows = np.concatenate([self._rows, *more])
            done = self._done_of(rows)
            order = np.argsort(done, kind="stable")
            self._rows, self._done = rows[order], done[order]


# A shorter edition of the rules by which a replay names its routes (docs/run-format.md).
_EXTENSIONS = {
    extension: kind
    for kind, extensions in {
        "image": "jpg jpeg png gif webp avif svg ico bmp tif tiff heic",
        "css-js": "css js mjs map wasm",
        "font": "woff woff2 ttf otf eot",
        "download": "zip gz tgz bz2 xz zst 7z rar tar iso pdf deb rpm bin",
        "media": "mp3 mp4 m4a ogg opus webm wav flac avi mov mkv",
        "feed": "rss atom",
        "text": "txt json csv md yml",
    }.items()
    for extension in extensions.split()
}
_RULES = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"/wp-login\.php", "login"),
        (r"/admin-ajax\.php", "admin-ajax"),
        (r"/async-upload\.php", "upload"),
        (r"/load-(styles|scripts)\.php", "css-js"),
        (r"/wp-admin(/|$)", "admin"),
        (r"/wp-json(/|$)", "rest"),
        (r"/wp-cron\.php", "cron"),
        (r"/xmlrpc\.php", "xmlrpc"),
        (r"/wp-comments-post\.php", "comment"),
        (r"(^|/)feed/?$", "feed"),
        (r"sitemap[^/]*\.xml$", "sitemap"),
        (r"^/robots\.txt$", "robots"),
        (r"^(/forums?|/community)?/(threads?|topics?)/", "thread"),
        (r"^/(forums?|community)(/|$)", "forum"),
        (r"^/(login|logout|register)\b", "login"),
        (r"^/search(/|$)", "search"),
        (r"^/(api|graphql)(/|$)", "api"),
        (r"^/\d{4}/\d{2}/", "article"),
    )
)
_QUERIES = (("s=", "search"), ("rest_route=", "rest"), ("feed=", "feed"), ("p=", "article"))
_SEGMENT = re.compile(r"[a-z][a-z_-]{0,23}")


@lru_cache(maxsize=4096)
def route_of_url(url: str) -> str:
    """Return the kind of an address or target: `page`, `image`, `login` and so on.

    Where no rule knows it, it is the first segment of the path if that is a plain word; else `other`.
    """
    try:
        parts = urlsplit(url[:2048])
    except ValueError:
        return "other"
    path = parts.path.lower() or "/"
    if path in ("/", "/index.php"):
        return next((kind for start, kind in _QUERIES if parts.query.startswith(start)), "page")
    for pattern, kind in _RULES:
        if pattern.search(path):
            return kind
    extension = path.rpartition("/")[2].rpartition(".")[2]
    if "." in path.rpartition("/")[2]:
        return _EXTENSIONS.get(extension, "page" if extension in ("php", "html", "htm") else "other")
    segments = [part for part in path.split("/") if part]
    if len(segments) == 1:
        return "page"
    return segments[0] if segments and _SEGMENT.fullmatch(segments[0]) else "other"


def is_address(name: str) -> bool:
    """Return whether a request is called by its address, which cannot name a route."""
    return name.startswith("/") or "://" in name or "?" in name


def short_name(name: str) -> str:
    """Return `name`, cut to what a table has room for."""
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def status_error(status: int) -> str:
    """Return the kind of error that an HTTP status from 400 up is."""
    return "backend_dead" if status in (502, 503, 504) else "http_error"
