"""The run that is being measured: its phase, load, saturator and disks so far."""

import csv
import json
import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from plimsoll.analysis.statistics.percentiles import NEVER_US, Microseconds
from plimsoll.analysis.statistics.requests import CountedRequests
from plimsoll.common.errors import RunDirectoryError
from plimsoll.lab.experiment.design import Variant
from plimsoll.lab.experiment.order import PlannedRun
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.find import is_run, subfolders
from plimsoll.rundir.names import HOST_FILE, REQUESTS_FILE
from plimsoll.rundir.read import read_facts
from plimsoll.rundir.records import WARMUP, Records, RecordTail, Tail

LAB_EVENTS_FILE = "lab-events.jsonl"  # of the lab, beside the run directories of an attempt
OVER = "over"  # the scenario goes on after its phases
_RATE_OVER_S = 10  # seconds that requests a second are a mean of
_FLUSHED_S = 1  # writers hand records over once a second
_LATENCY_OVER = 5  # samples, one a second, that a latency is a mean of
_BYTES = " bytes"
_STALE_S = 4.0
_ENDS = ("_read_latency_ms", "_write_latency_ms")
_PREFIX = "diskstats."
FEWEST = 1000  # requests for a p99.9
_FINE = 10  # bits that are kept of a time: it is shown at most 0.2 % too long
BINS = (33 - _FINE + 1) << (_FINE - 1)


class LoadFigures(BaseModel):
    """The requests of a run, or of one member of it, so far."""

    scenario: str | None = Field(description="what sends them")
    directory: str = Field(description="the run directory")
    requests: int = Field(description="how many so far")
    failures: int = Field(description="how many of them failed")
    requests_per_s: float | None = Field(description="mean of the last 10 s")
    p999_ms: float | None = Field(
        serialization_alias="p99.9_ms", description="p99.9 so far, without the warm-up"
    )
    phase_p999_ms: float | None = Field(
        serialization_alias="phase_p99.9_ms", description="p99.9 in the present phase"
    )
    waits_s: float | None = Field(
        None, description="until a member begins that begins later; null where it has, or began with the run"
    )


class SendFigures(BaseModel):
    """What a saturator does."""

    kind: str = Field(description="its kind")
    works: bool = Field(description="whether it works now")
    bytes_per_s: float | None = Field(description="throughput of its last second")
    retries: int = Field(description="how often it began again")


class DiskFigures(BaseModel):
    """The mean latencies of a disk in the last seconds."""

    device: str = Field(description="the disk, without /dev/")
    read_ms: float | None = Field(description="mean time of a read in the last 5 s")
    write_ms: float | None = Field(description="mean time of a write in the last 5 s")


class Activity(BaseModel):
    """What is being done: a backend is made, its volume filled or measured, a run prepared or measured."""

    what: Literal[
        "starting",
        "making",
        "preconditioning",
        "fileio",
        "preparing",
        "measuring",
        "ending",
        "waiting",
        "removing",
    ] = Field(
        description="`starting`, `making`, `preconditioning` (a volume is filled and overwritten), `fileio` "
        "(it is measured), `preparing`, `measuring`, `ending`, `waiting` (before another try), `removing`"
    )
    since_s: float = Field(description="for how long")
    backend: str | None = Field(None, description="on which backend")
    step: str | None = Field(None, description="the heading of the present steps, as in `check --plan`")
    run: str | None = Field(None, description="the name of the run")
    number: int | None = Field(None, description="its number, from 1")
    scenario: str | None = Field(None, description="its scenario")
    repeat: int | None = Field(None, description="which repeat it is")
    try_: int | None = Field(None, serialization_alias="try", description="which try it is")
    phase: str | None = Field(
        None,
        description="`warm-up`, `before`, `during`, `after`; `load` without a saturator; `over`: the "
        "scenario outlives its phases",
    )
    phase_s: float | None = Field(None, description="seconds of the phase")
    phase_of_s: float | None = Field(None, description="its planned length")
    run_s: float | None = Field(None, description="seconds of the run")
    run_of_s: float | None = Field(None, description="its planned length")
    load: list[LoadFigures] = Field([], description="the requests, an entry a run directory")
    send: SendFigures | None = Field(None, description="the saturator")
    disks: list[DiskFigures] = Field([], description="the disks")


@dataclass(frozen=True)
class PlannedPhase:
    """A phase of a run, from `start_s` to `stop_s`, None where it has no planned end."""

    name: str
    start_s: float
    stop_s: float | None


class AttemptReader:
    """Reads the folder of an attempt as it grows."""

    def __init__(
        self,
        attempt: Path,
        phases: Sequence[PlannedPhase],
        begins_s: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """`begins_s`: the second at which a member begins, by its name, if not with the run."""
        self.attempt, self._phases, self._begins_s = attempt, phases, begins_s
        self._loads: dict[Path, GrowingRun] = {}
        self._send = SaturatorProgress(attempt / LAB_EVENTS_FILE)
        self._disks = DiskLatencies(attempt / HOST_FILE)

    def read(self, now: datetime, doing: Activity) -> None:
        """Put into `doing` what is known of the run at the instant `now`."""
        edges_s = [one.stop_s for one in self._phases if one.stop_s is not None]
        for path in run_directories(self.attempt):
            if path not in self._loads:
                self._loads[path] = GrowingRun(path, edges_s)
        started = [at for load in self._loads.values() if (at := load.started_at)]
        doing.disks = self._disks.read()
        if not started:
            return
        t_s = max((now - min(started)).total_seconds(), 0.0)
        phase = next(one for one in self._phases if one.stop_s is None or t_s < one.stop_s)
        doing.phase, doing.phase_s = phase.name, t_s - phase.start_s
        doing.phase_of_s = None if phase.stop_s is None else phase.stop_s - phase.start_s
        doing.run_s = t_s
        doing.run_of_s = self._phases[-1].start_s if self._phases[-1].name == OVER else None
        for path, load in self._loads.items():
            figures = load.read(t_s)
            if t_s < (begins_s := self._begins_s.get(path.parent.name, 0.0)):
                figures.waits_s = begins_s - t_s
            doing.load.append(figures)
        doing.send = self._send.read(t_s)


def run_directories(attempt: Path) -> Iterator[Path]:
    """Yield the run directories of an attempt: of one run, or of the members of one."""
    try:
        for path in subfolders(attempt):
            if is_run(path):
                yield path
            else:
                yield from (member for member in subfolders(path) if is_run(member))
    except RunDirectoryError:  # it was moved away meanwhile
        return


def plan_phases(variant: Variant, run: PlannedRun) -> list[PlannedPhase]:
    """Return the phases of `run` in order; one is called `load` where nothing saturates the disks."""
    lab = variant.lab
    phases = lab.phases_of(lab.scenario(run.scenario))
    saturated = (variant.backend.saturator or lab.saturator) is not None
    during_s = phases.during_s
    lengths: list[tuple[str, float | None]] = [("warm-up", lab.warmup_s)]
    if saturated:
        lengths += [("before", phases.before_s), ("during", during_s), ("after", phases.after_s)]
    else:
        whole_s = None if during_s is None else phases.before_s + during_s + phases.after_s
        lengths.append(("load", whole_s))
    found: list[PlannedPhase] = []
    at_s = 0.0
    for name, length_s in lengths:
        if length_s is None:
            return [*found, PlannedPhase(name, at_s, None)]
        if length_s > 0:
            found.append(PlannedPhase(name, at_s, at_s + length_s))
            at_s += length_s
    return [*found, PlannedPhase(OVER, at_s, None)]


class GrowingRun:
    """A run directory that grows. `edges_s`: the instants at which phases end, since its start."""

    def __init__(self, path: Path, edges_s: Sequence[float]) -> None:
        self._path, self._tail = path, RecordTail(path / REQUESTS_FILE)
        self._edges_ns = np.array([edge_s * 1e9 for edge_s in edges_s])
        self._facts: RunFacts | None = None
        self._requests = self._failures = 0
        self._done_in: Counter[int] = Counter()  # requests by the second in which they ended
        self._all, self._by_phase = Latencies(), defaultdict[int, Latencies](Latencies)

    @property
    def started_at(self) -> datetime | None:
        """When it began, None where it has not."""
        if self._facts is None or self._facts.started_at is None:
            try:
                self._facts = read_facts(self._path)
            except RunDirectoryError:
                return None
        started_at = self._facts.started_at
        return started_at.astimezone(UTC) if started_at else None

    def read(self, t_s: float) -> LoadFigures:
        """Read what is new at second `t_s` of the run, and return the figures so far."""
        limit_us = self._facts.timeout_us if self._facts else None
        for records in self._tail.records():
            self._add(records, limit_us)
        whole_s = int(t_s) - _FLUSHED_S
        first_s = max(whole_s - _RATE_OVER_S, 0)
        for second in [second for second in self._done_in if second < first_s]:
            del self._done_in[second]
        lasted_s = whole_s - first_s
        done = sum(count for second, count in self._done_in.items() if second < whole_s)
        phase = int(np.searchsorted(self._edges_ns, t_s * 1e9, side="right"))
        return LoadFigures(
            scenario=self._facts.scenario if self._facts else None,
            directory=str(self._path),
            requests=self._requests,
            failures=self._failures,
            requests_per_s=done / lasted_s if lasted_s > 0 else None,
            p999_ms=self._all.p999_ms(),
            phase_p999_ms=self._by_phase[phase].p999_ms(),
        )

    def _add(self, records: Records, limit_us: int | None) -> None:
        counted = CountedRequests(records, limit_us)
        for second, count in zip(*np.unique(counted.done_ns // 10**9, return_counts=True), strict=True):
            self._done_in[int(second)] += int(count)
        self._requests += len(records)
        measured = (records["flags"] & WARMUP) == 0
        self._failures += int(counted.failures[measured].sum())
        times_us = np.minimum(counted.response_us[measured], NEVER_US).astype(np.uint32)
        self._all.add(times_us)
        phases = np.searchsorted(self._edges_ns, counted.due_ns[measured], side="right")
        for phase in np.unique(phases):
            self._by_phase[int(phase)].add(times_us[phases == phase])


class SaturatorProgress:
    """The saturator's events, as the lab notes them beside a run."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self._kind: str | None = None
        self._works, self._at_s, self._retries = False, 0.0, 0
        self._bytes_per_s: float | None = None

    def read(self, t_s: float) -> SendFigures | None:
        """Return what it does at second `t_s` of the run; None before it started."""
        for line in self._tail.lines():
            try:
                event = json.loads(line)
                self._note(float(event["t_ns"]) / 1e9, str(event["event"]), event)
            except (ValueError, TypeError, KeyError):
                continue
        if self._kind is None:
            return None
        fresh = self._works and t_s - self._at_s <= _STALE_S
        return SendFigures(
            kind=self._kind,
            works=self._works,
            bytes_per_s=self._bytes_per_s if fresh else None,
            retries=self._retries,
        )

    def _note(self, at_s: float, name: str, event: dict[str, object]) -> None:
        if event.get("phase") in ("start", "stop"):
            self._kind, self._works = name, event["phase"] == "start"
        elif self._kind and name == self._kind + _BYTES and isinstance(event.get("bytes_per_s"), int | float):
            self._bytes_per_s, self._at_s = float(str(event["bytes_per_s"])), at_s
        elif self._kind and name.startswith(self._kind) and name.endswith(" retry"):
            self._retries += 1


class DiskLatencies:
    """The latencies of the disks, as the observers sample them."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self._head: list[str] | None = None
        self._last: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_LATENCY_OVER))

    def read(self) -> list[DiskFigures]:
        """Return the latencies of the last seconds, by device; empty where none is sampled."""
        for line in self._tail.lines():
            row = next(csv.reader([line.decode(errors="replace")]), [])
            if self._head is None:
                self._head = row
            elif len(row) == len(self._head):
                self._note(dict(zip(self._head, row, strict=True)))
        wanted = [name.removeprefix(_PREFIX) for name in self._head or [] if name.startswith(_PREFIX)]
        devices = dict.fromkeys(
            name.removesuffix(end) for name in wanted for end in _ENDS if name.endswith(end)
        )
        return [
            DiskFigures(device=device, read_ms=self._mean(device, 0), write_ms=self._mean(device, 1))
            for device in devices
        ]

    def _note(self, row: dict[str, str]) -> None:
        for name, value in row.items():
            if name.startswith(_PREFIX) and name.endswith(_ENDS):
                try:
                    self._last[name].append(float(value) if value else math.nan)
                except ValueError:
                    self._last[name].append(math.nan)

    def _mean(self, device: str, end: int) -> float | None:
        there = [ms for ms in self._last[f"{_PREFIX}{device}{_ENDS[end]}"] if math.isfinite(ms)]
        return sum(there) / len(there) if there else None


class Latencies:
    """Counts response times in bins whose widths grow with the times."""

    def __init__(self) -> None:
        self.count = 0
        self._bins: NDArray[np.int64] = np.zeros(BINS, dtype=np.int64)

    def add(self, times_us: Microseconds) -> None:
        """Add times as they count, shape (n,)."""
        self.count += len(times_us)
        self._bins += np.bincount(bin_of(times_us), minlength=BINS)

    def p999_ms(self) -> float | None:
        """Return the p99.9; None of too few requests, or where it is a failure that has no time."""
        found = p999_bin(self._bins, self.count)
        return None if found is None or found == NEVER_BIN else upper_us(found) / 1000


def p999_bin(bins: NDArray[np.int64], count: int) -> int | None:
    """Return the bin of the p99.9 of `count` times; None of too few. Pure."""
    if count < FEWEST:
        return None
    return int(np.searchsorted(np.cumsum(bins), math.ceil(count * 0.999 - 1e-9)))


def bin_of(times_us: Microseconds) -> NDArray[np.int64]:
    """Return the number of the bin of each time; the times below 1024 µs have one each. Pure."""
    whole = times_us.astype(np.int64)
    shift = np.maximum(np.frexp(whole.astype(np.float64))[1].astype(np.int64) - _FINE, 0)
    return (shift << (_FINE - 1)) + (whole >> shift)


def upper_us(number: int) -> int:
    """Return the longest time that bin `number` holds. Pure."""
    shift = max((number >> (_FINE - 1)) - 1, 0)
    return ((number - (shift << (_FINE - 1)) + 1) << shift) - 1


NEVER_BIN = int(bin_of(np.array([NEVER_US], dtype=np.uint32))[0])
