"""A run directory that grows: what ended in the last minutes, what happened, and how the host does."""

import json
import threading
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from plimsoll.analysis.statistics.failures import timeout_us
from plimsoll.common.hostile import printable
from plimsoll.lab.experiment.status.running import EVENTS_FILE as LAB_EVENTS_FILE
from plimsoll.lab.experiment.status.tail import Tail
from plimsoll.rundir.events import Event, Span, parsed_event, spans
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.names import EVENTS_FILE, HOST_FILE, REQUESTS_FILE
from plimsoll.rundir.read import read_facts
from plimsoll.rundir.records import HEADER_BYTES, RECORD
from plimsoll.serve.hostnow import HostLine, HostNow
from plimsoll.serve.inside import lies_inside
from plimsoll.serve.seconds import KEPT_S, Point, Seconds

_BACK_RECORDS = 2_000_000  # of a long run only these are read, from the end: 136 MB
_FLUSHED_S = 1  # writers hand records over once a second
_MOST_EVENTS = 200
_AGAIN_S = 0.5  # whoever looks sooner, sees the same


@dataclass(frozen=True)
class Look:
    """A run as it is at second `t_s`. `requests` is what it has written in all; texts are hostile."""

    t_s: float
    timeout_ms: float | None
    requests: int
    failures: int | None
    points: list[Point]
    events: list[Event]
    spans: list[Span]
    host: list[HostLine]


class Growing:
    """Reads a run as it grows, each byte once; `root` is the folder out of which no file may lead.

    Raises RunDirectoryError where there is no run.
    """

    def __init__(self, root: Path, path: Path) -> None:
        self.path, self.facts = path, read_facts(path)
        self._lock, self._looked_s = threading.Lock(), float("-inf")
        records = path / REQUESTS_FILE
        offset, self._skipped = _beginning(records)
        self._records = Tail(records, offset) if lies_inside(root, records) else None
        self._timeout_us = timeout_us(self.facts)
        self._seconds = Seconds(self._timeout_us)
        around = [path, path.parent, path.parent.parent]  # an attempt of the lab, or a member of one
        events = [path / EVENTS_FILE, *(folder / LAB_EVENTS_FILE for folder in around[1:])]
        self._event_tails = [Tail(each) for each in events if lies_inside(root, each)]
        self._hosts = [
            HostNow(folder / HOST_FILE) for folder in around if lies_inside(root, folder / HOST_FILE)
        ]
        self._events: deque[Event] = deque(maxlen=10_000)

    def look(self, from_s: int = 0) -> Look:
        """Read what is new, and return the seconds from `from_s` on, as far as they are kept."""
        with self._lock:
            if time.monotonic() - self._looked_s >= _AGAIN_S:
                self._read(run_clock_s(self.facts))
                self._looked_s = time.monotonic()
            t_s = run_clock_s(self.facts)
            host = next((lines for each in self._hosts if (lines := each.look())), [])
            events = sorted(self._events, key=lambda event: event.t_ns)
            return Look(
                t_s=t_s,
                timeout_ms=None if self._timeout_us is None else self._timeout_us / 1000,
                requests=self._skipped + self._seconds.requests,
                failures=None if self._skipped else self._seconds.failures,
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


def _beginning(path: Path) -> tuple[int, int]:
    """Return where to begin to read, and how many records lie before."""
    try:
        count = (path.stat().st_size - HEADER_BYTES) // RECORD.itemsize
    except OSError:
        count = 0
    skipped = max(count - _BACK_RECORDS, 0)
    return HEADER_BYTES + skipped * RECORD.itemsize, skipped
