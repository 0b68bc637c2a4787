"""k6's samples become a run directory: `plimsoll import k6`, and how requests are put together from samples.

k6 writes the samples of one HTTP request one after another, with one time and one set of tags: http_reqs,
http_req_duration, …_blocked, …_connecting, …_tls_handshaking, …_sending, …_waiting, …_receiving, …_failed.
Their time is the end of the request. `blocked` lasts from asking for a connection until one was had, so it
holds the opening of a new one; `duration` is sending + waiting + receiving. So the request started at
time − duration − blocked.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from plimsoll.analysis.evidence.generator import is_late
from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.exchange.importing import (
    CachedRequest,
    DroppedIterations,
    FailedCheck,
    ImportedItem,
    ImportingError,
    ImportResult,
    ImportWriter,
    MeasureValue,
    finish_import,
    instant,
    read_file_lines,
    start_import,
    status_error,
)
from plimsoll.analysis.exchange.k6_samples import (
    DIAL_TIMEOUT_CODE,
    FILES,
    NS,
    K6Definition,
    K6Reader,
    K6Sample,
    error_kind,
    measure_of,
    route_of_tags,
)
from plimsoll.common.errors import NoRequestsError
from plimsoll.rundir.facts import Program
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import Request
from plimsoll.rundir.write import RunWriter

# What Plimsoll's own scripts measure for the assembler's sake.
LAG, INTERVAL, BYTES = "plimsoll_lag", "plimsoll_interval", "plimsoll_bytes"
DIAL_TIMEOUT_S = 30.0  # k6's own, which no option changes
_MOST_WAITING = 100_000
_MS = 1_000_000
_BROWSER = "browser_http_req_duration"
_FASTEST_MS = 0.5  # nothing that went through a browser's network process and a server came back sooner


def import_k6(
    path: Path,
    results: Path,
    *,
    scenario: str = "k6",
    target: str | None = None,
    timeout_s: float = 60.0,
    advance: Callable[[int], None] = lambda _: None,
) -> ImportResult:
    """Write a run directory into `results` from `path`: `k6 run --out json=FILE` or `csv=FILE`, gzip or not.

    `target` is the base URL to note (k6 does not write it), `timeout_s` k6's time-out. `advance` is called
    with the bytes read since its last call. Raises ImportingError if `path` has no sample,
    OutputError if the run directory cannot be written.
    """
    reader = K6Reader(read_file_lines(path, advance))
    first, items = _peek(reader)
    if first is None:
        if reader.line == 0:
            raise ImportingError(f"{path}: is empty; k6 writes it with: k6 run --out json=FILE script.js")
        why = f" ({reader.broken[0]})" if reader.broken else ""
        raise ImportingError(f"{path}: holds no sample of k6{why}; give what k6 run --out json=FILE writes")
    base_ns = max((first.time_ns - NS) // 1000 * 1000, 1000)
    assembler = K6Assembler(base_ns, timeout_s)
    settings: dict[str, object] = {"imported_from": path.name}
    started_at = instant(base_ns)
    with start_import(
        results, Program(name="k6"), [path], scenario, target, started_at, settings=settings
    ) as run:
        writer = ImportWriter(run)
        write_samples(items, assembler, writer)
        limited = find_k6_limit(run, assembler, "raise the executor's maxVUs, or lower its rate")
        run.update(
            loop="open" if assembler.knows_lag or assembler.dropped else "closed",
            generator_limited=limited is not None,
            generator_limited_reason=limited,
            ended_at=datetime.fromtimestamp(assembler.last_ns / NS, UTC),
        )
        notes = _notes(reader, assembler, writer)
        return finish_import(run, "k6", [path], [reader], assembler.requests, notes)


def _peek(reader: K6Reader) -> tuple[K6Sample | None, Iterable[K6Sample | K6Definition]]:
    """Return the first sample, and all that `reader` holds from the first on; None if there is none."""
    items = iter(reader)
    before: list[K6Sample | K6Definition] = []
    for item in items:
        before.append(item)
        if isinstance(item, K6Sample):
            return item, chain(before, items)
        if len(before) > 10_000:
            break
    return None, before


def _notes(reader: K6Reader, assembler: "K6Assembler", writer: ImportWriter) -> list[str]:
    notes = []
    if assembler.strays:
        notes.append(f"{assembler.strays} samples belong to no request: the output begins in the middle")
    if writer.failed_checks:
        notes.append(f"{writer.failed_checks} checks of the script failed; see events.jsonl")
    notes += writer.notes()
    if reader.whole_seconds:
        notes.append("times are whole seconds: run k6 with K6_CSV_TIME_FORMAT=rfc3339_nano, or --out json")
    return notes


def write_samples(
    items: Iterable[K6Sample | K6Definition], assembler: "K6Assembler", writer: ImportWriter
) -> None:
    """Write down what `assembler` makes of all samples. Raises OutputError when the disk is full."""
    for item in items:
        if isinstance(item, K6Definition):
            assembler.define(item)
        else:
            for found in assembler.feed(item):
                writer.put(found)
    for found in assembler.end():
        writer.put(found)


def find_k6_limit(run: RunWriter, assembler: "K6Assembler", remedy: str) -> str | None:
    """Return why the generator was the limit of what was recorded, and what to do; None if it was not."""
    if assembler.dropped:
        return (
            f"k6 had no free visitor for {assembler.dropped} iterations when they were due, "
            f"and dropped them: {remedy}"
        )
    if not assembler.knows_lag:
        return None
    run.flush()
    try:
        samples = measure_figures(RunDirectory.open(run.directory)).samples
    except NoRequestsError:
        return None
    lag_ms, response_ms = (samples[name].tail().least_ms("p99.9") for name in ("lag", "response"))
    if lag_ms is None or response_ms is None or not is_late(lag_ms, response_ms):
        return None
    return (
        f"visits started late: lag p99.9 is {lag_ms:.1f} ms of a response p99.9 of {response_ms:.1f} ms: "
        "lower the rate, or run k6 on a machine with more free processors"
    )


class _OpenRequest:
    """The request whose samples are coming."""

    __slots__ = ("tags", "time_ns", "values")

    def __init__(self, sample: K6Sample) -> None:
        self.time_ns, self.tags = sample.time_ns, sample.tags
        self.values = {sample.metric: sample.value}

    def take(self, sample: K6Sample) -> bool:
        """Take `sample` if it is of this request."""
        if sample.time_ns != self.time_ns or sample.metric in self.values or sample.tags != self.tags:
            return False
        self.values[sample.metric] = sample.value
        return True

    def ms(self, name: str) -> float:
        return max(self.values.get(f"http_req_{name}", 0.0), 0.0)


class K6Assembler:
    """Takes samples by `feed`, in the order in which k6 wrote them, and gives what they make.

    `base_ns` is the start of the run, nanoseconds since the epoch; None: one second before the first
    sample, since k6 does not write when it started, but writes a sample within a second. `timeout_s` is what
    a request counts that timed out before it had a connection. `ramping` says that the clock of the schedule
    starts when the visitors are ready, which k6 does not tell: lag then counts from the first visit.
    `strict` counts a status of 400 or more as an error, as scripted scenarios do.
    """

    def __init__(
        self,
        base_ns: int | None = None,
        timeout_s: float = 60.0,
        ramping: bool = False,
        strict: bool = False,
    ) -> None:
        self.base_ns, self._timeout_s, self._ramping, self._strict = base_ns, timeout_s, ramping, strict
        self.strays = 0  # samples of a request whose first sample is missing
        self.requests = self.iterations = self.dropped = 0
        self.last_ns = 0  # when the last sample was taken
        self.knows_lag = False
        self._open: _OpenRequest | None = None
        self._definitions: dict[str, K6Definition] = {}
        self._first_lag_ms: float | None = None
        self._lag_ms: dict[str, float] = {}  # of the visit that a visitor is about to begin
        self._waiting: dict[tuple[str, str], Request] = {}  # for the size of their bodies

    def define(self, definition: K6Definition) -> None:
        """Take what k6 says of a metric."""
        self._definitions[definition.metric] = definition

    def feed(self, sample: K6Sample) -> Iterator[ImportedItem]:
        """Take one sample and yield what is now whole."""
        if self.base_ns is None:
            self.base_ns = sample.time_ns - NS
        self.last_ns = max(self.last_ns, sample.time_ns)
        if self._open is not None:
            if self._open.take(sample):
                return
            yield from self._close()
        metric = sample.metric
        if metric in ("http_reqs", _BROWSER):
            self._open = _OpenRequest(sample)
        elif metric.startswith(("http_req_", "browser_http_req_", "browser_data_received")):
            self.strays += not metric.startswith("browser_data")
        else:
            yield from self._take_other(sample)

    def end(self) -> Iterator[ImportedItem]:
        """Yield what was still waiting for more."""
        yield from self._close()
        yield from self._waiting.values()
        self._waiting.clear()

    def _close(self) -> Iterator[ImportedItem]:
        whole, self._open = self._open, None
        if whole is None:
            return
        self.requests += 1
        if _BROWSER in whole.values:
            yield CachedRequest() if _is_from_cache(whole) else self._browser_request(whole)
            return
        request = self._request(whole)
        slot = whole.tags.get("slot")
        if slot is None:
            yield request
            return
        key = (whole.tags.get("vu", ""), slot)
        if key in self._waiting:  # a redirect: the size is that of the last in the chain
            yield self._waiting.pop(key)
        elif len(self._waiting) >= _MOST_WAITING:
            yield self._waiting.pop(next(iter(self._waiting)))
        self._waiting[key] = request

    def _request(self, whole: _OpenRequest) -> Request:
        tags = whole.tags
        blocked_ms, duration_ms = whole.ms("blocked"), whole.ms("duration")
        total_ns = round((blocked_ms + duration_ms) * _MS)
        status, code = _number(tags.get("status")), _number(tags.get("error_code"))
        error = error_kind(code, tags.get("error", ""), status)
        if "status" not in tags and error == "none" and tags.get("expected_response") == "false":
            error = "other"
        if error == "timeout" and total_ns == 0:
            total_ns = round((DIAL_TIMEOUT_S if code == DIAL_TIMEOUT_CODE else self._timeout_s) * NS)
        warmup = tags.get("group", "").startswith(("::setup", "::teardown"))
        if self._strict:
            # What is looked for before the visits may be missing; a server that is down may not.
            error = error if status < (500 if warmup else 400) else _unwanted_status_error(status)
            warmup = warmup and error == "none"
        answered = status > 0 or whole.ms("receiving") > 0
        lag_ms = self._lag_ms.pop(tags.get("vu", ""), 0.0)
        connecting, shaking = whole.ms("connecting"), whole.ms("tls_handshaking")
        return Request(
            due_ns=self._since_ns(whole.time_ns - total_ns - round(lag_ms * _MS)),
            lag_us=round(lag_ms * 1000),
            connect_us=round(connecting * 1000),
            tls_us=round(shaking * 1000),
            ttfb_us=round((blocked_ms + whole.ms("sending") + whole.ms("waiting")) * 1000) if answered else 0,
            total_us=total_ns // 1000,
            route=route_of_tags(tags),
            status=status,
            error=error,
            reused=answered and connecting == 0 and shaking == 0,
            http2=tags.get("proto") == "HTTP/2.0",
            tls="tls_version" in tags,
            warmup=warmup,
            iteration=_iteration(tags),
            client=_number(tags.get("vu")),
        )

    def _browser_request(self, whole: _OpenRequest) -> Request:
        tags = whole.tags
        total_ns = round(max(whole.values[_BROWSER], 0.0) * _MS)
        status = _number(tags.get("status"))
        # Scripts of a page ask for things that they may not have; the page itself has to come.
        needed = self._strict and status >= 400 and tags.get("resource_type") == "Document"
        return Request(
            due_ns=self._since_ns(whole.time_ns - total_ns),
            total_us=total_ns // 1000,
            ttfb_us=total_ns // 1000 if status else 0,
            route=route_of_tags(tags),
            status=status,
            error=_unwanted_status_error(status) if not status or needed else "none",
            bytes=max(int(whole.values.get("browser_data_received", 0.0)), 0),
            http2=tags.get("proto") in ("h2", "HTTP/2.0"),
            tls=tags.get("url", "").startswith("https:"),
            iteration=_iteration(tags),
            client=_number(tags.get("client")),  # k6 gives a browser's requests no tag vu
        )

    def _take_other(self, sample: K6Sample) -> Iterator[ImportedItem]:
        metric, tags = sample.metric, sample.tags
        if metric == BYTES:
            if request := self._waiting.pop((tags.get("vu", ""), tags.get("slot", "")), None):
                yield replace(request, bytes=max(int(sample.value), 0))
        elif metric == LAG:
            self.knows_lag = True
            if self._first_lag_ms is None:
                self._first_lag_ms = sample.value if self._ramping else 0.0
            self._lag_ms[tags.get("vu", "")] = max(sample.value - self._first_lag_ms, 0.0)
        elif metric == INTERVAL:
            # Iterations that were dropped have no number, so each puts the later ones one interval back.
            late_ms = self._lag_ms.get(tags.get("vu", ""), 0.0) - self.dropped * sample.value
            self._lag_ms[tags.get("vu", "")] = max(late_ms, 0.0)
        elif metric == "iterations":
            self.iterations += int(sample.value)
        elif metric == "dropped_iterations":
            self.dropped += int(sample.value)
            yield DroppedIterations(int(sample.value))
        elif metric == "checks":
            if sample.value == 0:
                yield FailedCheck(
                    route_of_tags(tags),
                    tags.get("detail") or tags.get("check", "check"),
                    tags.get("kind", "check_failed"),
                    self._since_ns(sample.time_ns),
                    _iteration(tags),
                    _number(tags.get("vu")),
                )
        elif named := measure_of(sample, self._definitions.get(metric)):
            name, unit = named
            yield MeasureValue(name, sample.value, unit, self._since_ns(sample.time_ns), _iteration(tags))

    def _since_ns(self, time_ns: int) -> int:
        return max(time_ns - (self.base_ns or 0), 0)


def _is_from_cache(whole: _OpenRequest) -> bool:
    """Tell whether a browser's request never left it; of the cache in memory k6 does not say so."""
    if whole.tags.get("from_cache") == "true" or whole.tags.get("from_prefetch_cache") == "true":
        return True
    return whole.tags.get("resource_type") in FILES and whole.values[_BROWSER] < _FASTEST_MS


def _unwanted_status_error(status: int) -> str:
    """Return the kind of error that a status is where success was needed."""
    return status_error(status) if status else "other"


def _number(text: str | None) -> int:
    """Return a tag's number; 0 if it is not one, or not one that a record could hold."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 9:
        return 0
    return int(text)


def _iteration(tags: dict[str, str]) -> int:
    """Return the number of the iteration from 1: of all (`visit`, our own scripts'), else of the visitor."""
    text = tags.get("visit") or tags.get("iteration") or tags.get("iter")
    return _number(text) + 1 if text is not None and text.isdigit() else 0
