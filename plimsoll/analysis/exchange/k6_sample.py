"""One sample of k6, and how its text forms are read. Pure."""

import json
from datetime import datetime
from typing import Any, NamedTuple

from plimsoll.common.hostile import is_figure

NS = 1_000_000_000
_LARGEST_NS = 1 << 62  # the year 2116: what is beyond is no instant
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


def from_json(line: bytes) -> K6Sample | K6Definition | None:
    """Return what a line of `k6 run --out json=FILE` holds; None for a blank one. Raises BrokenLineError."""
    if line.isspace():
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise BrokenLineError("is no JSON") from None
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
    raise BrokenLineError("is no sample of k6: it has not the keys type, metric and data")


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
        raise BrokenLineError(f"has a time that is none: {text[:40]!r}")
    return ns


def figure(value: Any) -> float:
    """Return a finite float. Raises BrokenLineError."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise BrokenLineError("has no value") from None
    if not is_figure(number):
        raise BrokenLineError("has a value that is no number")
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
            raise BrokenLineError(f"has a time that is none: {text[:40]!r}") from None
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
