"""`events.jsonl`: what happened when, during a run, and the measures that it holds."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from plimsoll.common.errors import DamagedFileError
from plimsoll.common.files import read_regular_lines
from plimsoll.common.hostile import is_figure

_LARGEST_BYTES, _LONGEST_BYTES = 64 << 20, 1 << 20  # of the file, and of a line
_MOST_EVENTS = 1_000_000  # half a GB of memory; a run of many measures has some 100,000
# Measures of what visitors felt beside an upgrade begin so, and end with who they were.
FELT = ("outage: ", "maintenance: ", "longest gap: ", "first good page: ")
# A phase of an upgrade, whose instants are not to be believed where its run has the other.
PHASE, PHASES_UNKNOWN = "phase: ", "phases unknown"
ITERATION_FAILED = "iteration failed"
# What a run leaves on the site, and the name by which it is found there.
CREATED, REMOVED, RUN_NAME = "created", "removed", "run name"
PROBES = "probes"  # who visited which pages meanwhile
# These have tables, or are many, and would cover the figures.
_NO_SPANS = {"run", "measure", "error", ITERATION_FAILED, CREATED, REMOVED, RUN_NAME, PROBES}
MISSING_FILE = "missing_file"  # kind of an error: a file of a page did not load
_BYTES = " bytes"  # a saturator's throughput, once a second
_RETRY = " retry"  # a round of it failed
# Runs of before say only by name that an event is a saturator's start; a new one needs no line here.
_FORMER_SATURATORS = (
    "zfs-send",
    "btrfs-send",
    "fio",
    "zfs-replicate",
    "scrub",
    "resilver",
    "rsync",
    "database-dump",
    "command",
    "backup",
)


@dataclass(frozen=True)
class Event:
    """One event; `t_ns` counts from the start of the run. `phase` is usually `start` or `stop`.

    `further` has the keys that belong to this kind of event, unchecked and hostile.
    """

    t_ns: int
    name: str
    phase: str | None
    further: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Span:
    """A stretch of time, in seconds since the start of the run; both ends are equal for an instant."""

    name: str
    start_s: float
    stop_s: float


@dataclass(frozen=True)
class EventsFile:
    """The events of a run in order of time, and how many whole lines are not events."""

    events: list[Event] = field(default_factory=list)
    unreadable: int = 0


def read_events(path: Path) -> EventsFile:
    """Return what `path` holds; no events if there is no such file.

    A last line that is cut off, as a killed run leaves it, is left out. Raises RunDirectoryError where the
    file cannot be read, or is larger than any run makes it.
    """
    events: list[Event] = []
    unreadable = 0
    try:
        for line in read_regular_lines(path, _LARGEST_BYTES, _LONGEST_BYTES):
            if event := parsed_event(line):
                events.append(event)
            elif line.endswith(b"\n") and line.strip():
                unreadable += 1
            if len(events) > _MOST_EVENTS:
                raise DamagedFileError(
                    f"{path}: holds more than {_MOST_EVENTS:,} events, and no run has so many: put back the "
                    "file that the run wrote, or leave the run out"
                )
    except FileNotFoundError:
        return EventsFile()
    return EventsFile(sorted(events, key=lambda event: event.t_ns), unreadable)


def spans(events: list[Event], end_s: float) -> list[Span]:
    """Pair each `start` with the next `stop` of the same name; what was not stopped lasts until `end_s`.

    The run's own start and stop, measures, failed steps, what it made on the site, and throughputs are left
    out, as are phases whose instants are unknown. Pure.
    """
    found: list[Span] = []
    open_since: dict[str, float] = {}
    unknown = phases_unknown(events) is not None
    for event in events:
        t_s = event.t_ns / 1e9
        if event.name in _NO_SPANS or event.name.endswith(_BYTES) or t_s > end_s:
            continue
        if unknown and event.name.startswith(PHASE):
            continue
        if event.phase == "start":
            open_since.setdefault(event.name, t_s)
        elif event.phase == "stop":
            found.append(Span(event.name, open_since.pop(event.name, 0.0), t_s))
        else:
            found.append(Span(event.name, t_s, t_s))
    found += [Span(name, start_s, end_s) for name, start_s in open_since.items()]
    return sorted(found, key=lambda span: span.start_s)


def phases_unknown(events: Iterable[Event]) -> str | None:
    """Return why the phases of an upgrade are unknown (hostile); None where they are not."""
    return next((str(each.further.get("detail", "")) for each in events if each.name == PHASES_UNKNOWN), None)


@dataclass(frozen=True)
class Saturation:
    """A saturator, which kept the disks busy: its kind, from when to when, and its throughput each second.

    `stop_ns` is None where it was not stopped before the run ended; `error` says why it gave up, if it did,
    `retries` why it had to begin again each time.
    """

    name: str
    start_ns: int
    stop_ns: int | None
    error: str | None
    bytes_per_s: list[tuple[int, float]]
    retries: tuple[str, ...] = ()

    @property
    def idle_s(self) -> float:
        """The seconds in which nothing went through."""
        instants = [self.start_ns, *(t_ns for t_ns, _ in self.bytes_per_s)]
        return sum(
            (t_ns - before_ns) / 1e9
            for before_ns, (t_ns, rate) in zip(instants, self.bytes_per_s, strict=False)
            if rate == 0
        )

    @property
    def length_s(self) -> float:
        """The seconds from its start to its stop, or to the last that is known of it."""
        known = [self.start_ns, *(t_ns for t_ns, _ in self.bytes_per_s)]
        return ((self.stop_ns or known[-1]) - self.start_ns) / 1e9


def saturation(events: list[Event]) -> Saturation | None:
    """Return what saturated the disks, from its first start to its last stop; None if nothing did. Pure.

    A saturator is known by its start, which says so, or by its throughput: where there are events
    `NAME bytes`, NAME is one.
    """
    names = {*_FORMER_SATURATORS, *(e.name.removesuffix(_BYTES) for e in events if e.name.endswith(_BYTES))}
    starts = (e for e in events if e.phase == "start")
    start = next((e for e in starts if e.further.get("saturator") is True or e.name in names), None)
    if start is None:
        return None
    stops = [e for e in events if e.name == start.name and e.phase == "stop" and e.t_ns >= start.t_ns]
    error = stops[-1].further.get("error") if stops else None
    return Saturation(
        name=start.name,
        start_ns=start.t_ns,
        stop_ns=stops[-1].t_ns if stops else None,
        error=error if isinstance(error, str) else None,
        bytes_per_s=[
            (e.t_ns, float(value))
            for e in events
            if e.name == start.name + _BYTES and _is_count(value := e.further.get("bytes_per_s"))
        ],
        retries=tuple(str(e.further.get("error", "")) for e in events if e.name == start.name + _RETRY),
    )


def _is_count(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 62


def parsed_event(line: bytes) -> Event | None:
    """Return the event that a line holds, or None. Pure."""
    try:
        value = json.loads(line)
        t_ns, name, phase = value["t_ns"], value["event"], value.get("phase")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if isinstance(t_ns, bool) or not isinstance(t_ns, int | float) or not isinstance(name, str):
        return None
    if not 0 <= t_ns < 1 << 62:  # neither is NaN
        return None
    further = {key: value[key] for key in value if key not in ("t_ns", "event", "phase")}
    return Event(int(t_ns), name, phase if isinstance(phase, str) else None, further)


class Measures:
    """Collects values by name, as they are measured: `values` and `units` by name."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = {}
        self.units: dict[str, str] = {}

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Measures":
        """Collect what `events` hold; an event that is not a measure, or is damaged, is left out."""
        found = cls()
        for event in events:
            name, value, unit = (event.further.get(key) for key in ("name", "value", "unit"))
            if event.name != "measure" or not is_figure(value):
                continue
            if isinstance(name, str) and isinstance(unit, str):
                try:
                    found.add(name, value, unit)
                except ValueError:
                    continue
        return found

    def add(self, name: str, value: float, unit: str) -> None:
        """Add one value. Raises ValueError if it is not a number, or for a second unit under one name."""
        if not is_figure(value):
            raise ValueError(f"measure {name}: {value} is not a number")
        if self.units.setdefault(name, unit) != unit:
            raise ValueError(f"measure {name}: {unit} after {self.units[name]}")
        self.values.setdefault(name, []).append(float(value))
