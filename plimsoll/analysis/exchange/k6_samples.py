"""k6's samples: read from JSON or CSV, with the route, the measure and the kind of error that each is of."""

import csv
import json
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from plimsoll.analysis.exchange.importing import (
    CutOffError,
    LineReader,
    is_address,
    route_of_url,
    short_name,
)
from plimsoll.common.hostile import is_figure

NS = 1_000_000_000
# What a browser fetches for a page (k6's tag `resource_type`), beside the page and the calls of its scripts.
FILES = {"Stylesheet", "Script", "Image", "Font", "Media", "Manifest", "Other"}
DIAL_TIMEOUT_CODE = 1211
_LARGEST_NS = 1 << 62  # the year 2116: anything later is not an instant
_SECONDS: dict[str, int] = {}


class K6Sample(NamedTuple):
    """One value of one metric; `time_ns` counts from the epoch, `tags` holds k6's metadata as well."""

    metric: str
    time_ns: int
    value: float
    tags: dict[str, str]


class K6Definition(NamedTuple):
    """A metric as k6 introduces it when it first appears: a `kind` (trend), and what it `contains` (time)."""

    metric: str
    kind: str
    contains: str


class BrokenLineError(ValueError):
    """A line that holds neither a sample nor a definition; the message says why."""


class K6Reader(LineReader):
    """Reads the lines of one output of k6, JSON or CSV; iterate over it, once.

    `whole_seconds` says that a CSV has no finer times.
    """

    def __init__(self, lines: Iterator[bytes]) -> None:
        super().__init__()
        self.whole_seconds = False
        self._lines = lines
        self._last_broken = 0
        self._ended_whole = True

    def __iter__(self) -> Iterator[K6Sample | K6Definition]:
        """Yield what the lines hold."""
        try:
            first = next(self._count_lines(), None)
            if first is None:
                return
            text = first.decode("utf-8", errors="replace")
            if text.startswith("metric_name,timestamp,metric_value"):
                yield from self._rows(text.strip().split(","))
            else:
                yield from self._json(first)
        except CutOffError as error:
            self.cut_off = f"after line {self.line} {error}"
        else:
            self._settle()

    def _count_lines(self) -> Iterator[bytes]:
        for line in self._lines:
            self.line += 1
            self._ended_whole = line.endswith(b"\n")
            yield line

    def _json(self, first: bytes) -> Iterator[K6Sample | K6Definition]:
        for line in chain([first], self._count_lines()):
            try:
                if (item := from_json(line)) is not None:
                    yield item
            except BrokenLineError as error:
                self._note(error)

    def _rows(self, header: list[str]) -> Iterator[K6Sample]:
        rows = csv.reader(line.decode("utf-8", errors="replace") for line in self._count_lines())
        while True:
            try:
                row = next(rows, None)
                if row is None:
                    return
                if row:
                    sample = from_row(row, header)
                    self.whole_seconds = len(row[1]) == len("1795228600")
                    yield sample
            except (BrokenLineError, csv.Error) as error:
                self._note(error)

    def _note(self, error: Exception) -> None:
        self._last_broken = self.line
        self.note_broken(self.line, f": {error}")

    def _settle(self) -> None:
        """Take a broken last line without a line feed for what a killed k6 was about to write."""
        if not self._ended_whole and self.broken_count and self._last_broken == self.line:
            self.broken_count -= 1
            self.cut_off = f"line {self.line} is cut off"
            if self.broken and self.broken[-1].startswith(f"line {self.line}:"):
                self.broken.pop()


def from_json(line: bytes) -> K6Sample | K6Definition | None:
    """Return what a line of `k6 run --out json=FILE` holds; None for a blank one. Raises BrokenLineError."""
    if line.isspace():
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise BrokenLineError("is not JSON") from None
    try:
        data = value["data"]
        if value["type"] == "Point":
            tags: dict[str, str] = data["tags"] or {}
            if metadata := data.get("metadata"):
                tags = tags | metadata
            return K6Sample(
                _text(value["metric"]), instant_ns(data["time"]), figure(data["value"]), _texts(tags)
            )
        if value["type"] == "Metric":
            return K6Definition(_text(data["name"]), _text(data["type"]), _text(data["contains"]))
    except (KeyError, TypeError, AttributeError):
        pass
    raise BrokenLineError("is not a sample of k6: it lacks the keys type, metric and data")


def from_row(row: list[str], header: list[str]) -> K6Sample:
    """Return what a row of `k6 run --out csv=FILE` holds. Raises BrokenLineError."""
    if len(row) != len(header):
        raise BrokenLineError(f"has {len(row)} columns, the first line {len(header)}")
    fields = dict(zip(header, row, strict=True))
    tags = _pairs(fields.pop("extra_tags", "")) | _pairs(fields.pop("metadata", ""))
    metric, time, value = (fields.pop(name) for name in ("metric_name", "timestamp", "metric_value"))
    return K6Sample(metric, instant_ns(time), figure(value), {k: v for k, v in fields.items() if v} | tags)


def instant_ns(text: Any) -> int:
    """Return nanoseconds since the epoch of RFC 3339 text, or of whole seconds, ms, µs or ns. Exact."""
    if not isinstance(text, str):
        raise BrokenLineError("has no time")
    if text.isascii() and text.isdigit() and len(text) in (10, 13, 16, 19):
        ns = int(text.ljust(19, "0"))
    else:
        ns = _rfc3339_ns(text)
    if not 0 < ns < _LARGEST_NS:
        raise BrokenLineError(f"has an invalid time: {text[:40]!r}")
    return ns


def figure(value: Any) -> float:
    """Return a finite float. Raises BrokenLineError."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise BrokenLineError("has no value") from None
    if not is_figure(number):
        raise BrokenLineError("has a value that is not a number")
    return number


def _rfc3339_ns(text: str) -> int:
    fraction, at = 0, 19
    if text[19:20] == ".":
        at = 20
        while at < len(text) and text[at] in "0123456789":
            at += 1
        fraction = int(text[20:at][:9].ljust(9, "0"))
    key = text[:19] + text[at:]
    seconds = _SECONDS.get(key)
    if seconds is None:
        try:
            parsed = datetime.fromisoformat(key)
            if parsed.tzinfo is None:
                raise ValueError
            seconds = int(parsed.timestamp())
        except (ValueError, OverflowError):
            raise BrokenLineError(f"has an invalid time: {text[:40]!r}") from None
        if len(_SECONDS) > 64:  # samples come nearly in order, so that few seconds are met at a time
            _SECONDS.clear()
        _SECONDS[key] = seconds
    return seconds * NS + fraction


def _pairs(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split("&") if part)
    return {name: value for name, _, value in pairs}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts(tags: dict[str, Any]) -> dict[str, str]:
    for value in tags.values():
        if type(value) is not str:
            return {str(name): str(value) for name, value in tags.items()}
    return tags


def route_of_tags(tags: dict[str, str]) -> str:
    """Return the route of a request.

    Its tag `step` (a browser's files apart); else `name` where the script gave one; else its group; else the
    kind of its address.
    """
    if step := tags.get("step"):
        return f"{short_name(step)}: files" if tags.get("resource_type") in FILES else short_name(step)
    name = tags.get("name", "")
    if name and not is_address(name):
        return short_name(name)
    group = tags.get("group", "").rpartition("::")[2]
    if group:
        return short_name(group)
    return route_of_url(name or tags.get("url", ""))


def measure_of(sample: K6Sample, definition: K6Definition | None) -> tuple[str, str] | None:
    """Return name and unit of the measure that `sample` is a value of; None if it is of none.

    Measures are web vitals, and trends of times (`new Trend(name, true)`).
    """
    metric, tags = sample.metric, sample.tags
    if metric.startswith("browser_web_vital_"):
        if tags.get("url", "").startswith("about:"):  # an empty frame, such as an editor's canvas
            return None
        vital = metric.removeprefix("browser_web_vital_")
        # They come when a page is left, so that only the page itself says whose they are.
        page = tags.get("name") or tags.get("url", "")
        page = route_of_url(page) if is_address(page) else short_name(page)
        return f"{vital}: {page}", "score" if vital == "cls" else "ms"
    # Requests show these already; the others count things or are k6's own bookkeeping.
    if metric.startswith(("http_req", "browser_http_req", "browser_data", "plimsoll_")) or definition is None:
        return None
    if definition.kind != "trend" or definition.contains != "time":
        return None
    about = tags.get("page") or tags.get("group", "").rpartition("::")[2]
    return (f"{metric}: {short_name(about)}" if about else metric), "ms"


# k6's error codes (its lib/netext/httpext/error_codes.go) as kinds of errors.json.
_EXACT = {
    1050: "timeout",
    1201: "write_failed",
    1211: "timeout",
    1212: "connect_refused",
    1220: "reset",
    1701: "bad_response",
}
_RANGES = (
    (1100, 1109, "connect_failed"),  # the name cannot be resolved
    (1110, 1111, "other"),  # k6's own blockHostnames and blacklistIPs: it was never sent
    (1210, 1219, "connect_failed"),
    (1300, 1399, "tls_failed"),
    (1610, 1699, "h2_refused"),
)
# Code 1000 is all that k6 has no code for; its text is Go's own.
_WORDS = (
    ("malformed HTTP", "bad_response"),
    ("transport connection broken", "bad_response"),
    ("EOF", "closed_early"),
    ("server closed", "closed_early"),
    ("connection reset", "reset"),
    ("broken pipe", "write_failed"),
    ("context canceled", "aborted"),
    ("timeout", "timeout"),
)


def error_kind(code: int, text: str, status: int) -> str:
    """Return the name in errors.json for k6's tags `error_code` (0: none), `error` and `status`.

    A whole response is not an error, whatever its status: k6's codes 1400 to 1599 only repeat that.
    """
    if status > 0 or (code == 0 and not text):
        return "none"
    if code in _EXACT:
        return _EXACT[code]
    for first, last, kind in _RANGES:
        if first <= code <= last:
            return kind
    return next((kind for words, kind in _WORDS if words in text), "other")
