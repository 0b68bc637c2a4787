"""A prober: visits pages in the open loop beside something else, and keeps what came of each visit."""

import csv
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import gevent

from plimsoll.common.atomic import unwritable
from plimsoll.common.hostile import printable
from plimsoll.scenarios.running.client import Reply, SiteClient, StepFailedError, Trouble, trouble
from plimsoll.scenarios.running.visited import GOOD, HELD_BACK, Visit

# A visitor is gone by then.
LONGEST_S = 10.0
# Of each kind of visitor. More would pile up in front of a site that is slow, and keep it so.
MOST_UNDER_WAY = 16
COLUMNS = ("due_ns", "who", "page", "lag_us", "total_us", "status", "error")
_LOOK_S = 0.05

# Asks for a page; returns its status (0: no answer) and the kind of error, `GOOD` if it is a page.
Ask = Callable[[str], tuple[int, str]]


class Clock(Protocol):
    """A clock to wait by; a test has one of its own."""

    def now_ns(self) -> int:
        """Return the time, monotonic."""

    def sleep(self, seconds: float) -> None:
        """Wait, and let others do their work."""

    def spawn(self, act: Callable[..., None], *args: Any) -> Any:
        """Do `act` beside, and return what can be joined or killed."""


class RealClock:
    """The monotonic clock, and greenlets."""

    def now_ns(self) -> int:
        """Return the time."""
        return time.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        gevent.sleep(seconds)

    def spawn(self, act: Callable[..., None], *args: Any) -> Any:
        """Do it in a greenlet."""
        return gevent.spawn(act, *args)


def asker(site: SiteClient, longest_s: float = LONGEST_S) -> Ask:
    """Return what asks `site` for a page; an answer that is not whole after `longest_s` is a time-out."""

    def ask(page: str) -> tuple[int, str]:
        status = 0

        def check(reply: Reply) -> Trouble | None:
            nonlocal status
            status = reply.status
            return page_trouble(reply)

        try:
            with gevent.Timeout(longest_s, False):
                site.send("visit", "GET", page, base=site.base, check=check)
                return status, GOOD
        except StepFailedError as error:
            return status, error.kind
        return 0, "timeout"

    return ask


def page_trouble(reply: Reply) -> Trouble | None:
    """Return why a reply is not the page that it was before, or None."""
    if found := trouble(reply):
        return found
    return Trouble("check_failed", f"leads to {reply.location}") if reply.location else None


class Prober:
    """Visits `pages` in turn, one each `interval_ns` for each kind of visitor, however long answers take.

    `asks` has what asks for a page, by kind of visitor: their visits are due spread over the interval.
    `keep` gets each visit when it is over.
    """

    def __init__(
        self,
        asks: Mapping[str, Ask],
        pages: Sequence[str],
        interval_ns: int,
        keep: Callable[[str, Visit], None],
        clock: Clock | None = None,
    ) -> None:
        self._asks, self._pages, self._interval_ns, self._keep = asks, pages, interval_ns, keep
        self._clock = clock or RealClock()
        self.visits: dict[str, list[Visit]] = {who: [] for who in asks}
        self._under_way: set[Any] = set()
        self._waiting = dict.fromkeys(asks, 0)
        self._loops: list[Any] = []
        self._stopped = False
        self.end_ns = 0

    def __enter__(self) -> Self:
        start_ns = self._clock.now_ns()
        for index, who in enumerate(self._asks):
            first_ns = start_ns + index * self._interval_ns // len(self._asks)
            self._loops.append(self._clock.spawn(self._loop, who, first_ns))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all of it at once; visits under way are forgotten."""
        self._stopped = True
        for each in (*self._loops, *self._under_way):
            each.kill(block=False)

    def await_good(self, good_s: float, most_s: float) -> None:
        """Wait until nobody has had but good pages for `good_s`; for `most_s` at most."""
        until_ns = self._clock.now_ns() + int(most_s * 1e9)
        while not self._is_good(int(good_s * 1e9)) and self._clock.now_ns() < until_ns:
            self._clock.sleep(_LOOK_S)

    def stop(self) -> None:
        """Begin no more visits, and wait for those under way."""
        self._stopped = True
        self.end_ns = self._clock.now_ns()
        while self._under_way:
            self._clock.sleep(_LOOK_S)

    def _is_good(self, good_ns: int) -> bool:
        """Return True if all visits due within the last `good_ns`, over or not, were good."""
        since_ns = self._clock.now_ns() - good_ns
        for visits in self.visits.values():
            late = [visit for visit in visits if visit.due_ns >= since_ns]
            first_ns = min((visit.due_ns for visit in visits), default=None)
            if first_ns is None or first_ns > since_ns or not late:
                return False
            if not all(visit.is_good for visit in late):
                return False
        return True

    def _loop(self, who: str, first_ns: int) -> None:
        """Begin each visit when it is due by the clock; what is late delays no later one."""
        number = 0
        while not self._stopped:
            due_ns = first_ns + number * self._interval_ns
            if (wait_ns := due_ns - self._clock.now_ns()) > 0:
                self._clock.sleep(wait_ns / 1e9)
                continue
            page = self._pages[number % len(self._pages)]
            number += 1
            if self._waiting[who] >= MOST_UNDER_WAY:
                self._over(who, Visit(page, due_ns, due_ns, due_ns, 0, HELD_BACK))
                continue
            self._waiting[who] += 1
            visit = self._clock.spawn(self._visit, who, page, due_ns)
            self._under_way.add(visit)
            visit.link(self._under_way.discard)

    def _visit(self, who: str, page: str, due_ns: int) -> None:
        start_ns = self._clock.now_ns()
        status, error = self._asks[who](page)
        self._waiting[who] -= 1
        self._over(who, Visit(page, due_ns, start_ns, self._clock.now_ns(), status, error))

    def _over(self, who: str, visit: Visit) -> None:
        self.visits[who].append(visit)
        self._keep(who, visit)


class ProbesFile:
    """`probes.csv`: one line a visit, when it is over. A full disk ends it, and is for the run to say."""

    def __init__(self, path: Path, since_start_ns: Callable[[int], int]) -> None:
        """Begin the file; `since_start_ns` turns an instant into one of the run. Raises OutputError."""
        self._since_start_ns = since_start_ns
        try:
            self._file = path.open("w", encoding="utf-8", newline="", buffering=1)
        except OSError as error:
            raise unwritable(path, error) from None
        self._writer = csv.writer(self._file, lineterminator="\n")
        self.broken: str | None = None
        self._write(COLUMNS)

    def keep(self, who: str, visit: Visit) -> None:
        """Append a visit."""
        lag_us, total_us = (visit.start_ns - visit.due_ns) // 1000, (visit.done_ns - visit.start_ns) // 1000
        due_ns = self._since_start_ns(visit.due_ns)
        self._write((due_ns, who, printable(visit.page), lag_us, total_us, visit.status, visit.error))

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            self.broken = self.broken or str(error.strerror)

    def _write(self, row: Sequence[object]) -> None:
        if self.broken is None:
            try:
                self._writer.writerow(row)
            except OSError as error:
                self.broken = str(error.strerror)
