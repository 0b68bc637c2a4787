"""What visitors and members notice while a site is being changed: visits on schedule, and outages.

Visits are sent in the open loop, beside whatever the scenario does, and are kept in a file of their own. A
visit counts where it was due, so a late generator, or a server that holds answers back, moves no edge of an
outage. All instants are nanoseconds of one clock.
"""

import csv
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import urljoin

import gevent

from plimsoll.common.files import write_error
from plimsoll.common.hostile import printable
from plimsoll.rundir.events import PROBES
from plimsoll.rundir.names import PROBES_FILE
from plimsoll.rundir.write import RunWriter
from plimsoll.scenarios.running.client import Reply, SiteClient, StepFailedError, StepFailure, find_failure
from plimsoll.scenarios.running.settings import ProbedSettings, origin

VISITORS, MEMBERS = "visitors", "members"
_GOOD_S, _MOST_S = 2.0, 30.0
_APART_NS = 1_000_000_000
_CLOSED = 503
_CONNECTIONS = 20  # more than are under way
Measure = Callable[[str, float, int], None]  # name, ms, when what it tells of ended
Find = Callable[[SiteClient], list[str]]  # the pages that visitors of a site of this kind read

# A visitor is gone by then.
LONGEST_S = 10.0
# Of each kind of visitor. More would pile up in front of a site that is slow, and keep it so.
MOST_UNDER_WAY = 16
COLUMNS = ("due_ns", "who", "page", "lag_us", "total_us", "status", "error")
_LOOK_S = 0.05

# Asks for a page; returns its status (0: no answer) and the kind of error, `GOOD` if it is a page.
FetchPage = Callable[[str], tuple[int, str]]
GOOD = "none"
HELD_BACK = "held_back"  # not sent, since many before it had no answer yet: it says nothing
MAINTENANCE = "upgrade_locked"  # what `find_failure` calls WordPress's maintenance page
_NS = 1e6  # of a millisecond


@dataclass(frozen=True)
class Visit:
    """One page that was asked for; `error` is a name of `errors.json`, `status` 0 where no answer came."""

    page: str
    due_ns: int
    start_ns: int
    done_ns: int
    status: int
    error: str

    @property
    def is_good(self) -> bool:
        """True if the page came, and was a page."""
        return self.error == GOOD


class Visits:
    """Visits to a site from here to the end of the block, by visitors and by members.

    None of their requests is one of the scenario's: they have a file of their own.
    """

    def __init__(
        self,
        settings: ProbedSettings,
        writer: RunWriter,
        find: Find,
        member: SiteClient | None = None,
        *,
        closed_before: bool = False,
    ) -> None:
        """Visit the pages that `find` finds, unless the settings name others; as `member` is logged in, too.

        `closed_before`: a page that is closed (503) from the beginning is visited all the same, and has been
        out since then.
        """
        self._writer, self._find, self._closed_before = writer, find, closed_before
        self._interval_ms, self._named = settings.probe_ms, settings.probe_pages
        self._clients = {VISITORS: SiteClient(settings, lambda _: None, _CONNECTIONS)}
        if member is not None:
            self._clients[MEMBERS] = SiteClient(settings, lambda _: None, _CONNECTIONS)
            self._clients[MEMBERS].take_cookies(member)
        self._prober: Prober | None = None
        self._reported = False
        self._file: ProbesFile | None = None
        self._close = ExitStack()

    def __enter__(self) -> Self:
        for client in self._clients.values():
            self._close.callback(client.close)
        if not self._interval_ms:
            return self
        asks = {who: page_fetcher(client) for who, client in self._clients.items()}
        if pages := self._good_pages(asks):
            self._file = ProbesFile(self._writer.directory / PROBES_FILE, self._writer.since_start_ns)
            self._close.callback(self._file.close)
            prober = Prober(asks, pages, self._interval_ms * 1_000_000, self._file.keep)
            self._prober = self._close.enter_context(prober)
            self._pages = pages
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the visits. Where the block failed, its outages are events, and no measures."""
        try:
            if self._prober and not self._reported and isinstance(error, Exception):
                self._prober.stop()
                self._report(self._prober)
        finally:
            self._close.close()

    def wait_until_good(self, since_ns: int, measure: Measure) -> None:
        """Wait until the site works again for everybody, and record all outages since `since_ns`.

        Where it is not within half a minute, an outage counts to there, and an event says so.
        """
        if self._prober is None:
            return
        self._prober.wait_until_good(_GOOD_S, _MOST_S)
        self._prober.stop()
        self._report(self._prober)
        for who, visits in self._prober.visits.items():
            found = measure_outages(visits, since_ns, self._prober.end_ns)
            self._report_outage(who, found, measure)
            if not found.is_over:
                self._writer.event(PROBES, phase="not good again", who=who, waited_s=_MOST_S)

    def _good_pages(self, asks: dict[str, "FetchPage"]) -> list[str]:
        """Return the pages that everybody gets before anything is done."""
        good = []
        for page in self._named_pages() or self._found_pages():
            said = {who: ask(page) for who, ask in asks.items()}
            bad: dict[str, Any] = {
                who: f"{error} ({status})"
                for who, (status, error) in said.items()
                if error != GOOD and not (self._closed_before and status == _CLOSED)
            }
            if bad:
                self._writer.event(PROBES, phase="left out", page=page, **bad)
            else:
                good.append(page)
        return good

    def _named_pages(self) -> list[str]:
        site = self._clients[VISITORS]
        return [site.url("visit", page.strip()) for page in (self._named or "").split(",") if page.strip()]

    def _found_pages(self) -> list[str]:
        site = self._clients[VISITORS]
        try:
            pages = [urljoin(site.base, page) for page in self._find(site)]
        except (StepFailedError, LookupError, TypeError):
            pages = []
        return [page for page in dict.fromkeys([*pages] or [site.base]) if origin(page) == origin(site.base)]

    def _report(self, prober: "Prober") -> None:
        self._reported = True
        writer = self._writer
        every = [visit for visits in prober.visits.values() for visit in visits]
        further: dict[str, Any] = {who: len(visits) for who, visits in prober.visits.items()}
        further["late_ms"] = max(((one.start_ns - one.due_ns) / 1e6 for one in every), default=None)
        writer.event(PROBES, phase="told", pages=self._pages, interval_ms=self._interval_ms, **further)
        if self._file and self._file.broken:
            writer.event(PROBES, phase="not kept", detail=self._file.broken)
        for who, visits in prober.visits.items():
            for start_ns, stop_ns in join_outages(
                find_outages(visits, prober.end_ns), prober.end_ns, _APART_NS
            ):
                writer.event(f"outage: {who}", phase="start", t_ns=writer.since_start_ns(start_ns))
                writer.event(f"outage: {who}", phase="stop", t_ns=writer.since_start_ns(stop_ns))

    def _report_outage(self, who: str, found: "OutageFigures", measure: Measure) -> None:
        measure(f"outage: {who}", found.outage_ms, found.ended_ns)
        if not self._closed_before:  # a forum's closed page is in its own words: an error as any other
            measure(f"maintenance: {who}", found.maintenance_ms, found.ended_ns)
        if found.longest_gap_ms is not None:
            measure(f"longest gap: {who}", found.longest_gap_ms, found.ended_ns)
        if found.first_good_ms is not None:
            measure(f"first good page: {who}", found.first_good_ms, found.ended_ns)


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


def page_fetcher(site: SiteClient, longest_s: float = LONGEST_S) -> FetchPage:
    """Return what asks `site` for a page; an answer that is not whole after `longest_s` is a time-out."""

    def ask(page: str) -> tuple[int, str]:
        status = 0

        def check(reply: Reply) -> StepFailure | None:
            nonlocal status
            status = reply.status
            return find_page_failure(reply)

        try:
            with gevent.Timeout(longest_s, False):
                site.send("visit", "GET", page, base=site.base, check=check)
                return status, GOOD
        except StepFailedError as error:
            return status, error.kind
        return 0, "timeout"

    return ask


def find_page_failure(reply: Reply) -> StepFailure | None:
    """Return why a reply is not the page that it was before, or None."""
    if found := find_failure(reply):
        return found
    return StepFailure("check_failed", f"leads to {reply.location}") if reply.location else None


class Prober:
    """Visits `pages` in turn, one each `interval_ns` for each kind of visitor, however long answers take.

    `asks` has what asks for a page, by kind of visitor: their visits are due spread over the interval.
    `keep` gets each visit when it is over.
    """

    def __init__(
        self,
        asks: Mapping[str, FetchPage],
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
            self._loops.append(self._clock.spawn(self._visit_on_time, who, first_ns))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all of it at once; visits under way are forgotten."""
        self._stopped = True
        for each in (*self._loops, *self._under_way):
            each.kill(block=False)

    def wait_until_good(self, good_s: float, most_s: float) -> None:
        """Wait until everybody has had only good pages for `good_s`, at most for `most_s`."""
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

    def _visit_on_time(self, who: str, first_ns: int) -> None:
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
                self._note_visit(who, Visit(page, due_ns, due_ns, due_ns, 0, HELD_BACK))
                continue
            self._waiting[who] += 1
            visit = self._clock.spawn(self._visit, who, page, due_ns)
            self._under_way.add(visit)
            visit.link(self._under_way.discard)

    def _visit(self, who: str, page: str, due_ns: int) -> None:
        start_ns = self._clock.now_ns()
        status, error = self._asks[who](page)
        self._waiting[who] -= 1
        self._note_visit(who, Visit(page, due_ns, start_ns, self._clock.now_ns(), status, error))

    def _note_visit(self, who: str, visit: Visit) -> None:
        self.visits[who].append(visit)
        self._keep(who, visit)


class ProbesFile:
    """`probes.csv`: one line a visit, when it is over. A full disk ends it; the run reports that."""

    def __init__(self, path: Path, since_start_ns: Callable[[int], int]) -> None:
        """Begin the file; `since_start_ns` turns an instant into one of the run. Raises OutputError."""
        self._since_start_ns = since_start_ns
        try:
            self._file = path.open("w", encoding="utf-8", newline="", buffering=1)
        except OSError as error:
            raise write_error(path, error) from None
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


@dataclass(frozen=True)
class Outage:
    """From the first bad visit to the first good one after it, each where it was due.

    `stop_ns` is None where none was good any more. `maintenance_ns` is the part whose visits got the
    maintenance page.
    """

    start_ns: int
    stop_ns: int | None
    maintenance_ns: int


@dataclass(frozen=True)
class OutageFigures:
    """Figures in ms. None where there is none: no good page, no outage, or one that did not end."""

    outage_ms: float
    maintenance_ms: float
    longest_gap_ms: float | None
    first_good_ms: float | None
    ended_ns: int
    is_over: bool


def find_outages(visits: Iterable[Visit], end_ns: int) -> list[Outage]:
    """Return the outages in `visits`, in order; one that is not over by `end_ns` counts to there."""
    sent = (visit for visit in visits if visit.error != HELD_BACK)
    ordered = sorted(sent, key=lambda visit: visit.due_ns)
    found: list[Outage] = []
    start_ns: int | None = None
    maintenance_ns = 0
    for index, visit in enumerate(ordered):
        if visit.is_good:
            if start_ns is not None:
                found.append(Outage(start_ns, visit.due_ns, maintenance_ns))
            start_ns, maintenance_ns = None, 0
            continue
        start_ns = visit.due_ns if start_ns is None else start_ns
        next_ns = ordered[index + 1].due_ns if index + 1 < len(ordered) else max(end_ns, visit.due_ns)
        maintenance_ns += (next_ns - visit.due_ns) if visit.error == MAINTENANCE else 0
    if start_ns is not None:
        found.append(Outage(start_ns, None, maintenance_ns))
    return found


def measure_outages(visits: Sequence[Visit], since_ns: int, end_ns: int) -> OutageFigures:
    """Return what `visits` felt until `end_ns`.

    The longest gap is between two good pages that came one after the other. `first_good_ms` is from
    `since_ns` until the first good page after the last outage had come.
    """
    found = find_outages(visits, end_ns)
    last = found[-1] if found else None
    good = sorted((visit for visit in visits if visit.is_good), key=lambda visit: visit.done_ns)
    gaps = [(later.done_ns - before.done_ns) / _NS for before, later in pairwise(good)]
    if last and last.stop_ns is None and good:
        gaps.append((max(end_ns, good[-1].done_ns) - good[-1].done_ns) / _NS)
    first = None
    if last and last.stop_ns is not None:
        stop_ns = last.stop_ns
        first = (min(visit.done_ns for visit in good if visit.due_ns >= stop_ns) - since_ns) / _NS
    return OutageFigures(
        outage_ms=sum((_stop(one, end_ns) - one.start_ns) / _NS for one in found),
        maintenance_ms=sum(one.maintenance_ns / _NS for one in found),
        longest_gap_ms=max(gaps, default=None),
        first_good_ms=first,
        ended_ns=_stop(last, end_ns) if last else end_ns,
        is_over=last is None or last.stop_ns is not None,
    )


def join_outages(found: Iterable[Outage], end_ns: int, apart_ns: int) -> list[tuple[int, int]]:
    """Return from when to when outages lasted, those less than `apart_ns` apart as one.

    Where some pages are served from a cache and others are not, an outage is many short ones.
    """
    joined: list[tuple[int, int]] = []
    for one in found:
        stop_ns = _stop(one, end_ns)
        if joined and one.start_ns - joined[-1][1] < apart_ns:
            joined[-1] = joined[-1][0], stop_ns
        else:
            joined.append((one.start_ns, stop_ns))
    return joined


def _stop(one: Outage, end_ns: int) -> int:
    return max(end_ns, one.start_ns) if one.stop_ns is None else one.stop_ns
