"""k6's samples, one after another, become requests and figures. Pure: it keeps state, and touches nothing.

k6 writes the samples of one HTTP request one after another, with one time and one set of tags: http_reqs,
http_req_duration, …_blocked, …_connecting, …_tls_handshaking, …_sending, …_waiting, …_receiving, …_failed.
Their time is the end of the request. `blocked` lasts from asking for a connection until one was had, so it
holds the opening of a new one; `duration` is sending + waiting + receiving. So the request started at
time − duration − blocked.
"""

from collections.abc import Iterator
from dataclasses import replace

from plimsoll.analysis.exchange.k6_errors import DIAL_TIMEOUT_CODE, error_kind
from plimsoll.analysis.exchange.k6_names import FILES, measure_of, route_of_tags
from plimsoll.analysis.exchange.k6_sample import NS, K6Definition, K6Sample
from plimsoll.analysis.exchange.product import (
    CachedRequest,
    DroppedIterations,
    FailedCheck,
    ImportedItem,
    MeasureValue,
)
from plimsoll.rundir.records import Request

DIAL_TIMEOUT_S = 30.0  # k6's own, which no option changes
_MOST_WAITING = 100_000
_MS = 1_000_000

# What Plimsoll's own scripts measure for this assembler's sake.
LAG, INTERVAL, BYTES = "plimsoll_lag", "plimsoll_interval", "plimsoll_bytes"

# Nothing that went through a browser's network process and a server has come back sooner.
_FASTEST_MS = 0.5
_BROWSER = "browser_http_req_duration"


class _OpenRequest:
    """The request whose samples are coming."""

    __slots__ = ("tags", "time_ns", "values")

    def __init__(self, sample: K6Sample) -> None:
        self.time_ns, self.tags = sample.time_ns, sample.tags
        self.values = {sample.metric: sample.value}

    def takes(self, sample: K6Sample) -> bool:
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
        if self._open is not None:
            if self._open.takes(sample):
                return
            yield from self._close()
        metric = sample.metric
        if metric in ("http_reqs", _BROWSER):
            self._open = _OpenRequest(sample)
        elif metric.startswith(("http_req_", "browser_http_req_", "browser_data_received")):
            self.strays += not metric.startswith("browser_data")
        else:
            yield from self._other(sample)

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
            yield CachedRequest() if _from_cache(whole) else self._browser_request(whole)
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
            error = error if status < (500 if warmup else 400) else _wrong(status)
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
            error=_wrong(status) if not status or needed else "none",
            bytes=max(int(whole.values.get("browser_data_received", 0.0)), 0),
            http2=tags.get("proto") in ("h2", "HTTP/2.0"),
            tls=tags.get("url", "").startswith("https:"),
            iteration=_iteration(tags),
            client=_number(tags.get("client")),  # k6 gives a browser's requests no tag vu
        )

    def _other(self, sample: K6Sample) -> Iterator[ImportedItem]:
        metric, tags = sample.metric, sample.tags
        if metric == BYTES:
            if request := self._waiting.pop((tags.get("vu", ""), tags.get("slot", "")), None):
                yield replace(request, bytes=max(int(sample.value), 0))
        elif metric == LAG:
            self._take_lag(tags.get("vu", ""), sample.value)
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

    def _take_lag(self, visitor: str, late_ms: float) -> None:
        self.knows_lag = True
        if self._first_lag_ms is None:
            self._first_lag_ms = late_ms if self._ramping else 0.0
        self._lag_ms[visitor] = max(late_ms - self._first_lag_ms, 0.0)

    def _since_ns(self, time_ns: int) -> int:
        return max(time_ns - (self.base_ns or 0), 0)


def _from_cache(whole: _OpenRequest) -> bool:
    """Tell whether a browser's request never left it; of the cache in memory k6 does not say so."""
    if whole.tags.get("from_cache") == "true" or whole.tags.get("from_prefetch_cache") == "true":
        return True
    return whole.tags.get("resource_type") in FILES and whole.values[_BROWSER] < _FASTEST_MS


def _wrong(status: int) -> str:
    """Return the kind of error that a status is where success was needed."""
    if status in (502, 503, 504):
        return "backend_dead"
    return "http_error" if status else "other"


def _number(text: str | None) -> int:
    """Return a tag's number; 0 where it is none, or none that a record could hold."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 9:
        return 0
    return int(text)


def _iteration(tags: dict[str, str]) -> int:
    """Return the number of the iteration from 1: of all (`visit`, our own scripts'), else of the visitor."""
    text = tags.get("visit") or tags.get("iteration") or tags.get("iter")
    return _number(text) + 1 if text is not None and text.isdigit() else 0
