"""One file of the listener that `plimsoll import locust --listener` prints: every request of one process."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.analysis.exchange.kinds import route_of_url
from plimsoll.analysis.exchange.lines import CutOffError, ImportingError, read_file_lines
from plimsoll.common.hostile import printable
from plimsoll.rundir.records import RECORD, Records, error_number

_BLOCK_RECORDS = 1 << 14
_MOST_NAMED = 10
_LONGEST = 48
_LARGEST_US = 0xFFFF_FFFF
_LAST_US = (1 << 62) // 1000
# Of Python's and requests' exceptions, by a part of their name and text; the first that fits.
_KINDS = (
    ("Timeout", "timeout"),
    ("timed out", "timeout"),
    ("refused", "connect_refused"),
    ("SSL", "tls_failed"),
    ("reset by peer", "reset"),
    ("RemoteDisconnected", "closed_early"),
    ("IncompleteRead", "closed_early"),
    ("BadStatusLine", "bad_response"),
    ("NameResolution", "connect_failed"),
    ("gaierror", "connect_failed"),
    ("ConnectionError", "connect_failed"),
    ("CatchResponseError", "check_failed"),
    ("ResponseError", "check_failed"),
)


class LocustLog:
    """Iterate over it, once, for blocks of records, shape (n,); `due_ns` counts from the epoch.

    `broken` names the first lines that could not be read, `broken_count` counts all; `cut_off` says how the
    file ended, if it did so in the middle.
    """

    def __init__(
        self,
        path: Path,
        advance: Callable[[int], None] = lambda _: None,
        route_number: Callable[[str], int] = lambda _: 0,
    ) -> None:
        self.path, self._advance, self._route_number = path, advance, route_number
        self.broken: list[str] = []
        self.broken_count = self.line = self.requests = 0
        self.cut_off: str | None = None
        self.version: str | None = None

    def __iter__(self) -> Iterator[Records]:
        """Yield the records. Raises ImportingError if the listener never wrote this."""
        self.line = 0
        rows = []
        for line in self._lines():
            self.line += 1
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, dict) and value.get("plimsoll_locust") == 1:
                self.version = str(value.get("locust"))[:20]
            elif self.line == 1:
                raise ImportingError(
                    f"{self.path}: is no file of the listener (plimsoll import locust --listener), "
                    "nor one of Locust's CSV files"
                )
            elif row := self._row(value):
                rows.append(row)
                self.requests += 1
            else:
                self._note()
            if len(rows) >= _BLOCK_RECORDS:
                yield np.array(rows, dtype=RECORD)
                rows = []
        if rows:
            yield np.array(rows, dtype=RECORD)

    def _lines(self) -> Iterator[bytes]:
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

    def _row(self, value: Any) -> tuple[int, ...] | None:
        if not isinstance(value, list) or len(value) != 8:
            return None
        start_us, total_us, method, name, status, size, error, user = value
        numbers = (start_us, total_us, status, size, user)
        if (
            not all(isinstance(number, int) and 0 <= number <= _LAST_US for number in numbers)
            or start_us == 0
        ):
            return None
        if not all(isinstance(text, str) for text in (method, name, error)) or status > 0xFFFF:
            return None
        number = error_number(_kind(error, status))
        route = self._route_number(locust_route(name))
        due_ns, user, total_us = start_us * 1000, user & 0xFFFF, min(total_us, _LARGEST_US)
        return (due_ns, 0, 0, 0, 0, 0, total_us, size, -1, 0, user, route, status, 0, number, 0)

    def _note(self) -> None:
        self.broken_count += 1
        if len(self.broken) < _MOST_NAMED:
            self.broken.append(f"{printable(self.path.name)}: line {self.line} is no request")


def locust_route(name: str) -> str:
    """Return the route of what Locust calls a request: an address only by its kind, as in other imports."""
    if not name or name.startswith("/") or "://" in name or "?" in name:
        return route_of_url(name)
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _kind(error: str, status: int) -> str:
    if not error:
        return "none"
    if status >= 400:
        return "backend_dead" if status in (502, 503, 504) else "http_error"
    return next((kind for part, kind in _KINDS if part in error), "other")
