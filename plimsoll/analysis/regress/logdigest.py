"""From an imported access log to what the history keeps of it: every hour, every time. Read once."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from plimsoll.analysis.comparing.weeks import began_ns
from plimsoll.analysis.evidence.run import Observer, RunEvidence, unfit
from plimsoll.analysis.regress.digest import size_bytes, stamp_of
from plimsoll.analysis.regress.night import identity_of
from plimsoll.analysis.regress.selection import SelectedRun
from plimsoll.analysis.statistics.failures import CLIENT_ERROR, counted_us, failed, timeout_us
from plimsoll.analysis.statistics.served import HOUR_NS, Served, alike, hours_of, packed, unpacked
from plimsoll.common.errors import RunDirectoryError
from plimsoll.rundir.directory import RunDirectory
from plimsoll.rundir.requestfile import WARMUP, Records
from plimsoll.rundir.runfacts import RunFacts


@dataclass(frozen=True)
class HourDigest:
    """One hour: how many requests, failures and refusals (a status from 400 on), and all times, packed."""

    hour: int
    requests: int
    failed: int
    refused: int
    times: bytes


@dataclass(frozen=True)
class LogDigest:
    """An imported access log, as it is kept. `unfit`: why nothing can be decided by it. Texts are hostile."""

    experiment: str
    facts: RunFacts
    unfit: tuple[str, ...]
    path: str
    root: str
    stamp: str
    size_bytes: int
    first_us: int = 0
    last_us: int = 0
    hours: list[HourDigest] = field(default_factory=list)

    @property
    def identity(self) -> str:
        """The same for every copy of an import, and for no import of other requests."""
        return log_identity(self.facts)


def log_identity(facts: RunFacts) -> str:
    """Return what tells an imported log from all others: imports may begin with the same request."""
    load = facts.load.digest if facts.load else ""
    return hashlib.sha256(json.dumps([identity_of(facts), load]).encode()).hexdigest()[:32]


def log_digest_of(run: SelectedRun, route_ids: Callable[[list[str]], list[int]]) -> LogDigest:
    """Return what is kept of an import; of one that cannot be read, that it cannot.

    `route_ids` gives the numbers by which the history knows routes.
    """
    stamp, place = stamp_of(run), (str(run.path), str(run.root))
    try:
        directory = RunDirectory.open(run.path)
        began = began_ns(directory)
        names = [directory.route_name(at) for at in range(max(len(directory.routes), 1))]
        hours = _Hours(directory, began, np.array(route_ids(names), dtype=np.int64))
        observer = Observer(directory, summed=True)
        for block in directory.requests.blocks():
            observer.watch(block)
            hours.add(block)
    except RunDirectoryError as error:
        why = (f"cannot be read: {error}",)
        return LogDigest(run.night.key.experiment, run.facts, why, *place, stamp, size_bytes(run))
    evidence = RunEvidence(directory, observer.observation(), {}, {})
    return LogDigest(
        run.night.key.experiment,
        directory.facts,
        tuple(unfit(evidence)),
        *place,
        stamp,
        size_bytes(run),
        hours.first_us,
        hours.last_us,
        list(hours.digests()),
    )


class _Hours:
    """The requests of a log by hour. They come in order but for seconds, so that few hours are open."""

    def __init__(self, run: RunDirectory, began: int, routes: np.ndarray) -> None:
        self._began_ns, self._routes, self._timeout_us = began, routes, timeout_us(run.facts)
        self._open: dict[int, list[Served]] = {}
        self._closed: dict[int, bytes] = {}
        self._refused: dict[int, int] = {}
        self._first_ns, self._last_ns = 1 << 62, 0

    @property
    def first_us(self) -> int:
        """The first request, since 1970."""
        return self._first_ns // 1000

    @property
    def last_us(self) -> int:
        """The last one."""
        return self._last_ns // 1000

    def add(self, block: Records) -> None:
        """Take the next requests."""
        measured = block[(block["flags"] & WARMUP) == 0]
        if not len(measured):
            return
        at_ns = self._began_ns + measured["due_ns"]
        self._first_ns = min(self._first_ns, int(at_ns.min()))
        self._last_ns = max(self._last_ns, int(at_ns.max()))
        failures = failed(measured)
        took_us = counted_us(measured["lag_us"] + measured["total_us"], failures, self._timeout_us)
        route = self._routes[np.minimum(measured["route"], len(self._routes) - 1)]
        hour = at_ns // HOUR_NS
        refused = hour[(measured["status"] >= CLIENT_ERROR) & ~failures]
        for each, number in zip(*np.unique(refused, return_counts=True), strict=True):
            self._refused[int(each)] = self._refused.get(int(each), 0) + int(number)
        ones = np.ones(len(hour), dtype=np.int64)
        for each, part in hours_of(alike(Served(hour, route, took_us, failures, ones))):
            self._open.setdefault(each, []).append(part)
        for each in [each for each in self._open if each < int(hour.min())]:
            self._close(each)

    def _close(self, hour: int) -> None:
        parts = self._open.pop(hour)
        if hour in self._closed:
            parts.append(unpacked(hour, self._closed[hour]))
        self._closed[hour] = packed(alike(Served.joined(parts)))

    def digests(self) -> Iterator[HourDigest]:
        """Yield all hours."""
        for hour in list(self._open):
            self._close(hour)
        for hour, times in sorted(self._closed.items()):
            served = unpacked(hour, times)
            yield HourDigest(hour, served.requests, served.failures, self._refused.get(hour, 0), times)
