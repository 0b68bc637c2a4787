"""Running tests as a browser follows them: one message a second, on whatever runs or on one run.

A run directory is read as it grows, each byte once, into seconds of bounded memory.
"""

import csv
import json
import math
import re
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.evidence.host_rows import SUBJECTS, HostRow
from plimsoll.analysis.page.chart import Chart, Json, axis, layout, rounded
from plimsoll.analysis.statistics.percentiles import NEVER_US
from plimsoll.analysis.statistics.requests import CountedRequests
from plimsoll.common.errors import PlimsollError
from plimsoll.common.hostile import is_figure, plotly_text, printable
from plimsoll.common.units import ABSENT, at_least, counted, milliseconds, seconds, significant
from plimsoll.lab.experiment.folder import ExperimentFolder
from plimsoll.lab.experiment.status.running import (
    BINS,
    LAB_EVENTS_FILE,
    NEVER_BIN,
    bin_of,
    p999_bin,
    upper_us,
)
from plimsoll.lab.experiment.status.text import lines
from plimsoll.lab.experiment.status.watch import StatusReader
from plimsoll.rundir.events import Event, Span, parsed_event, spans
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.names import EVENTS_FILE, HOST_FILE, REQUESTS_FILE
from plimsoll.rundir.read import read_facts
from plimsoll.rundir.records import QUEUED, WARMUP, Records, RecordTail, Tail
from plimsoll.serve.catalogue import Catalogue, Contents, ExperimentItem, RunItem, is_inside, newest_first

_RESENT_S = 5  # seconds that are sent again: late ones may have come in
_MOST_OPEN = 16  # runs that are read at once
_BACK_RECORDS = 2_000_000  # of a long run only these are read, from the end: 162 MB
_FLUSHED_S = 1  # writers hand records over once a second
_MOST_EVENTS = 200
_AGAIN_S = 0.5  # whoever looks sooner, sees the same
KEPT_S = 600  # seconds that are shown
TAIL_S = 60  # each p99.9 is of the requests that ended in so many seconds
_SECOND_NS = 10**9
_AHEAD_S = 60  # so much two clocks may differ
Pieces = list[tuple[NDArray[np.int64], NDArray[np.int64]]]  # bins of latencies, and how many are in each
_OVER = 60  # samples, one a second


@dataclass
class Viewer:
    """What one browser sees: the run that it picked (a key, empty: whatever runs), and how far it got."""

    picked: str = ""
    run: RunItem | None = None
    ended: bool = False
    sent_s: int = 0


@dataclass(frozen=True)
class Point:
    """Second `t_s` of a run. Times are None where nothing ended in it, or where they are unknown.

    `p999_ms` is of the last TAIL_S seconds, None under a thousand requests; `lag_ms` is the largest lag of
    what did not wait for a connection.
    """

    t_s: int
    done: int
    failed: int
    slowest_ms: float | None
    p999_ms: float | None
    lag_ms: float | None


@dataclass(frozen=True)
class HostLine:
    """A row: its subject, what it says, its last value, and the least and most of the last minute."""

    subject: str
    name: str
    now: str
    least: str
    most: str


@dataclass(frozen=True)
class RunNow:
    """A run as it is at second `t_s`. `requests` is what it has written in all; texts are hostile."""

    t_s: float
    timeout_ms: float | None
    requests: int
    failures: int | None
    points: list[Point]
    events: list[Event]
    spans: list[Span]
    host: list[HostLine]


class LiveRun:
    """Reads a run as it grows, each byte once; `root` is the folder out of which no file may lead.

    Raises RunDirectoryError where there is no run.
    """

    def __init__(self, root: Path, path: Path) -> None:
        self.path, self.facts = path, read_facts(path)
        self._lock, self._looked_s = threading.Lock(), float("-inf")
        records = path / REQUESTS_FILE
        self._records = RecordTail(records, _BACK_RECORDS) if is_inside(root, records) else None
        self._timeout_us = self.facts.timeout_us
        self._seconds = LiveSeconds(self._timeout_us)
        around = [path, path.parent, path.parent.parent]  # an attempt of the lab, or a member of one
        events = [path / EVENTS_FILE, *(folder / LAB_EVENTS_FILE for folder in around[1:])]
        self._event_tails = [Tail(each) for each in events if is_inside(root, each)]
        self._hosts = [
            HostNow(folder / HOST_FILE) for folder in around if is_inside(root, folder / HOST_FILE)
        ]
        self._events: deque[Event] = deque(maxlen=10_000)

    def look(self, from_s: int = 0) -> RunNow:
        """Read what is new, and return the seconds from `from_s` on, as far as they are kept."""
        with self._lock:
            if self.facts.started_at is None:  # it was first seen before it began
                with suppress(PlimsollError):
                    self.facts = read_facts(self.path)
            if time.monotonic() - self._looked_s >= _AGAIN_S:
                self._read(run_clock_s(self.facts))
                self._looked_s = time.monotonic()
            t_s = run_clock_s(self.facts)
            host = next((lines for each in self._hosts if (lines := each.look())), [])
            events = sorted(self._events, key=lambda event: event.t_ns)
            skipped = self._records.skipped if self._records else 0
            return RunNow(
                t_s=t_s,
                timeout_ms=None if self._timeout_us is None else self._timeout_us / 1000,
                requests=skipped + self._seconds.requests,
                failures=None if skipped else self._seconds.failures,
                points=list(self._seconds.points(from_s, int(t_s) - _FLUSHED_S)),
                events=[event for event in events if event.name != "measure"][-_MOST_EVENTS:],
                spans=[span for span in spans(events, t_s) if span.stop_s >= t_s - KEPT_S],
                host=host,
            )

    def _read(self, now_s: float) -> None:
        for records in self._records.records() if self._records else ():
            self._seconds.add(records, now_s)
        for tail in self._event_tails:
            self._events.extend(event for line in tail.lines() if (event := parsed_event(line)))


@dataclass
class LiveRuns:
    """The runs that are read as they grow, shared by all who look at them."""

    catalogue: Catalogue
    _growing: dict[str, LiveRun] = field(default_factory=dict)
    _watches: dict[str, StatusReader] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, viewer: Viewer) -> Json:
        """Return the next message to a browser, and note in `viewer` what it has seen."""
        contents = self.catalogue.contents()
        running = contents.running()
        with self._lock:  # one look at a time: the load comes first
            self._forget(contents)
            begun = self._choose(viewer, contents, running)
            message: Json = {
                "running": [{"key": run.key, "name": _name(run)} for run in running],
                "begun": begun,
                "last": _ended_run_json(last) if (last := _find_last_ended(contents)) else None,
                "run": None,
            }
            if viewer.run is not None:
                message["run"] = self._run(viewer, contents)
            return message

    def _choose(self, viewer: Viewer, contents: Contents, running: list[RunItem]) -> bool:
        """Choose the run to be shown; return whether it is another one."""
        before = viewer.run
        if viewer.picked:
            viewer.run = viewer.run or contents.runs.get(viewer.picked)
        elif running and (before is None or before.identity not in [run.identity for run in running]):
            viewer.run = running[0]
        if viewer.run is None or viewer.run is before:
            return False
        viewer.sent_s, viewer.ended = 0, False
        return True

    def _run(self, viewer: Viewer, contents: Contents) -> Json | None:
        shown = viewer.run
        assert shown is not None  # noqa: S101 the caller has one
        now = contents.runs.get(shown.key) or next(
            (run for run in contents.runs.values() if run.identity == shown.identity), None
        )
        if viewer.ended and now is not None:
            return {"ended": _ended_run_json(now)}
        ended = now is None or now.status != "running"
        try:
            growing = self._growing.get(shown.key) or LiveRun(
                self.catalogue.root, self.catalogue.path(now or shown)
            )
        except PlimsollError as error:
            return {"trouble": printable(str(error), 500)}
        if not ended:
            self._growing[shown.key] = growing
        found = growing.look(viewer.sent_s)
        viewer.sent_s = max(int(found.t_s) - _RESENT_S, 0)
        viewer.ended = ended and now is not None
        target = growing.facts.target
        return {
            "key": shown.key,
            "name": _name(shown),
            "place": printable(str(shown.place), 200),
            "target": printable(target.url, 200) if target else "",
            **_figures(found),
            "status": self._status(contents.around(now or shown), ended),
            "ended": _ended_run_json(now) if ended and now else None,
        }

    def _status(self, experiment: ExperimentItem | None, ended: bool) -> list[str]:
        """Return what its experiment does, as `plimsoll status` says it."""
        if experiment is None or ended:
            return []
        folder = self.catalogue.path(experiment)
        try:
            if experiment.key not in self._watches:
                if not all(is_inside(self.catalogue.root, path) for path in folder.glob("*.json*")):
                    return []
                self._watches[experiment.key] = StatusReader(ExperimentFolder(folder))
            return lines(self._watches[experiment.key].read())
        except (PlimsollError, OSError) as error:
            return [printable(str(error), 500)]

    def _forget(self, contents: Contents) -> None:
        running = {run.key for run in contents.running()}
        for key in [key for key in self._growing if key not in running]:
            del self._growing[key]
        while len(self._growing) > _MOST_OPEN:
            del self._growing[next(iter(self._growing))]
        if not running:
            self._watches.clear()


def _find_last_ended(contents: Contents) -> RunItem | None:
    """Return the run that began last, of those that have ended."""
    return next((run for run in newest_first(list(contents.runs.values())) if run.status != "running"), None)


def _name(run: RunItem) -> str:
    return printable(f"{run.scenario}: {run.name}", 120)


def _figures(found: RunNow) -> Json:
    latest = found.points[-1] if found.points else None
    minute = found.points[-60:]
    done = sum(point.done for point in minute[-10:])
    lags = [point.lag_ms for point in minute if point.lag_ms is not None]
    return {
        "t_s": round(found.t_s, 1),
        "clock": seconds(found.t_s),
        "kept_s": KEPT_S,
        "p999": _p999(latest, found.timeout_ms),
        "rate": f"{significant(done / len(minute[-10:]))}/s" if minute else "–",
        "lag": milliseconds(max(lags, default=None)),
        "requests": f"{found.requests:,}",
        "failures": "–" if found.failures is None else f"{found.failures:,}",
        "seconds": [_cells(point) for point in found.points],
        "events": [[seconds(event.t_ns / 1e9), event_text(event)] for event in found.events],
        "spans": [
            [round(span.start_s, 1), round(span.stop_s, 1), plotly_text(span.name, 40)]
            for span in found.spans[-20:]
        ],
        "phases": [
            f"{printable(span.name, 60)}: since {seconds(span.start_s)}"
            for span in found.spans
            if span.stop_s >= found.t_s - 0.5 and span.stop_s > span.start_s
        ],
        "host": [[line.subject, line.name, line.now, line.least, line.most] for line in found.host],
    }


def _p999(latest: Point | None, timeout_ms: float | None) -> str:
    """Return the p99.9 of the last minute; one that is a failure's, at its time-out, is longer than that."""
    if latest is None or latest.p999_ms is None:
        return milliseconds(None)
    if timeout_ms is not None and latest.p999_ms >= timeout_ms:
        return at_least(milliseconds(timeout_ms))
    return milliseconds(latest.p999_ms)


def _cells(point: Point) -> list[float | int | None]:
    times = (point.slowest_ms, point.p999_ms, point.lag_ms)
    return [point.t_s, point.done, point.failed, *(None if ms is None else rounded(ms) for ms in times)]


def _ended_run_json(run: RunItem) -> Json:
    sent = f", {counted(run.requests, 'request')}" if run.requests is not None else ""
    return {"key": run.key, "text": f"{_name(run)}: {run.status}{sent}, p99.9 {milliseconds(run.p999_ms)}"}


def run_clock_s(facts: RunFacts, now: datetime | None = None) -> float:
    """Return the second of a run: since it began, until now or its end."""
    if facts.started_at is None:
        return 0.0
    until = facts.ended_at or now or datetime.now(UTC)
    return max((until - facts.started_at).total_seconds(), 0.0)


def event_text(event: Event) -> str:
    """Return an event in one line, harmless. Pure."""
    further = {key: value for key, value in event.further.items() if key != "t_ns"}
    said = json.dumps(further, ensure_ascii=False, default=str) if further else ""
    return printable(" ".join(filter(None, (event.name, event.phase, said))), 400)


@dataclass
class _Second:
    done: int = 0
    failed: int = 0
    slowest_us: int = -1
    lag_us: int = -1
    latencies: Pieces = field(default_factory=list)


class LiveSeconds:
    """Takes the records of a run as they are written. `timeout_us` is what failures count at."""

    def __init__(self, timeout_us: int | None) -> None:
        self._timeout_us = timeout_us
        self._seconds: dict[int, _Second] = {}
        self.requests = self.failures = 0

    def add(self, records: Records, now_s: float) -> None:
        """Take the next records, shape (n,), at second `now_s`: what ended far behind it is damaged."""
        counted = CountedRequests(records, self._timeout_us)
        ended_s, failures = counted.done_ns // _SECOND_NS, counted.failures
        times_us = np.minimum(counted.response_us, NEVER_US).astype(np.uint32)
        self.requests += len(records)
        self.failures += int(failures.sum())
        oldest_s = int(now_s) - KEPT_S - TAIL_S
        for second in np.unique(ended_s[(ended_s >= oldest_s) & (ended_s < now_s + _AHEAD_S)]):
            within = ended_s == second
            self._add(int(second), records[within], times_us[within], failures[within])
        for second in [second for second in self._seconds if second < oldest_s]:
            del self._seconds[second]

    def _add(
        self, second: int, records: Records, times_us: NDArray[np.uint32], failures: NDArray[np.bool_]
    ) -> None:
        there = self._seconds.setdefault(second, _Second())
        there.done += len(records)
        there.failed += int(failures.sum())
        measured = (records["flags"] & WARMUP) == 0
        counted = times_us[measured]
        if len(counted):
            there.slowest_us = max(there.slowest_us, int(counted.max()))
            there.latencies.append(np.unique(bin_of(counted), return_counts=True))
        on_time = (records["flags"] & QUEUED) == 0
        if on_time.any():
            there.lag_us = max(there.lag_us, int(records["lag_us"][on_time].max()))

    def points(self, from_s: int, until_s: int) -> Iterator[Point]:
        """Yield the seconds from `from_s` to before `until_s`; also those in which nothing ended."""
        bins, count = np.zeros(BINS, dtype=np.int64), 0
        first_s = max(from_s, until_s - KEPT_S, 0)
        for second in range(first_s - TAIL_S, until_s):
            count += self._count(bins, second, 1)
            count -= self._count(bins, second - TAIL_S, -1) if second - TAIL_S >= first_s - TAIL_S else 0
            if second >= first_s:
                yield self._point(second, p999_bin(bins, count))

    def _count(self, bins: NDArray[np.int64], second: int, sign: int) -> int:
        added = 0
        if second in self._seconds:
            for numbers, counts in self._seconds[second].latencies:
                bins[numbers] += sign * counts
                added += int(counts.sum())
        return added

    def _point(self, second: int, p999: int | None) -> Point:
        there = self._seconds.get(second, _Second())
        return Point(
            t_s=second,
            done=there.done,
            failed=there.failed,
            slowest_ms=_ms(there.slowest_us),
            p999_ms=None if p999 is None or p999 == NEVER_BIN else upper_us(p999) / 1000,
            lag_ms=_ms(there.lag_us),
        )


def _ms(value_us: int) -> float | None:
    return None if value_us in (-1, NEVER_US) else value_us / 1000


class HostNow:
    """Reads host.csv as it grows. Rows with nothing but zeros are left out."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self._head: list[str] | None = None
        self._columns: list[tuple[str, HostRow, list[int]]] = []
        self._last: deque[list[float]] = deque(maxlen=_OVER)

    def look(self) -> list[HostLine]:
        """Return what is known now; empty if the host is not observed."""
        for line in self._tail.lines():
            row = next(csv.reader([line.decode(errors="replace")]), [])
            if self._head is None:
                self._head, self._columns = row, list(_choose_columns(row))
            elif len(row) == len(self._head):
                self._last.append([_number(cell) for cell in row])
        return [found for chosen in self._columns if (found := self._line(*chosen))]

    def _line(self, subject: str, row: HostRow, places: list[int]) -> HostLine | None:
        values = [_join([sample[place] for place in places], row) for sample in self._last]
        known = [value for value in values if value is not None]
        if not known or max(known) <= 0:
            return None
        shown = [_value_text(value, row.unit) for value in (values[-1], min(known), max(known))]
        return HostLine(subject, row.said, *shown)


def _choose_columns(head: list[str]) -> Iterator[tuple[str, HostRow, list[int]]]:
    for subject in SUBJECTS:
        for row in subject.rows:
            pattern = re.compile(row.column, re.DOTALL)
            if places := [place for place, name in enumerate(head) if pattern.fullmatch(name)]:
                yield subject.title, row, places


def _number(cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        return math.nan
    return value if is_figure(value) and value >= 0 else math.nan


def _join(values: list[float], row: HostRow) -> float | None:
    """Return one value of several devices, as the report joins them. Pure."""
    known = [value / row.scale for value in values if not math.isnan(value)]
    if not known or (row.join == "sum" and len(known) < len(values)):
        return None
    return max(known) if row.join == "max" else sum(known) / (1 if row.join == "sum" else len(known))


def _value_text(value: float | None, unit: str) -> str:
    return ABSENT if value is None else f"{significant(value)} {unit}".strip()


def live_charts() -> list[Chart]:
    """Return the charts. Traces name by `meta` the column of a second that they show."""
    return [
        _chart(
            "tail",
            "Response times",
            f"p99.9 of the last {TAIL_S} seconds, and the slowest request of each second, by when it ended. "
            "There is no p99.9 under 1,000 requests.",
            "ms",
            [
                _trace("slowest of the second", 3, {"color": "var(--muted)", "width": 1}),
                _trace(f"p99.9 of {TAIL_S} s", 4, {"color": "var(--run-1)", "width": 2.5}),
            ],
        ),
        _chart(
            "throughput",
            "Requests per second",
            "Requests that ended in each second, and those of them that failed.",
            "requests/s",
            [
                _trace("done", 1, {"color": "var(--run-1)", "width": 2, "shape": "hvh"}),
                _trace("failed", 2, {"color": "var(--bad)", "width": 1.5, "shape": "hvh"}),
            ],
        ),
        _chart(
            "lag",
            "Lag of the generator",
            "The largest lag of each second: how late the load generator itself was, where a request did not "
            "wait for a connection.",
            "ms",
            [_trace("largest lag", 5, {"color": "var(--run-2)", "width": 1.5})],
        ),
    ]


def _trace(name: str, column: int, line: Json) -> Json:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [],
        "y": [],
        "meta": column,
        "line": line,
        "hoverinfo": "x+y+name",
    }


def _chart(key: str, title: str, caption: str, unit: str, data: list[Json]) -> Chart:
    x_axis = axis("seconds since the start of the run")
    shown = layout(x_axis, axis(unit), showlegend=len(data) > 1, uirevision="kept")
    return Chart(key, title, caption, data, shown)
