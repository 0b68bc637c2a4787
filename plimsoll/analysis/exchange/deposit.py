"""Puts what the samples make into a run directory."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain

from plimsoll.analysis.exchange.k6_assembler import K6Assembler
from plimsoll.analysis.exchange.k6_sample import K6Definition, K6Sample
from plimsoll.analysis.exchange.product import (
    CachedRequest,
    DroppedIterations,
    FailedCheck,
    ImportedItem,
    MeasureValue,
)
from plimsoll.analysis.statistics.run import measure
from plimsoll.analysis.statistics.summary import is_late
from plimsoll.common.errors import NoRequestsError
from plimsoll.rundir.events import MISSING_FILE
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import Request
from plimsoll.rundir.write import RunWriter

_MOST_EVENTS = 10_000  # of one measure, of failed checks, of missing files: events.jsonl is read whole
_MOST_VALUES = 1_000_000  # of one measure: they are kept in memory until the end
_MOST_MEASURES = 64
_OTHER = "other"


class ImportWriter:
    """Puts requests, measures and failed checks into `run`, in bounded memory."""

    def __init__(self, run: RunWriter) -> None:
        self._run = run
        self._values: Counter[str] = Counter()
        self._names: set[tuple[str, str]] = set()
        self.failed_checks = self.missing_files = self.uncounted = self.last_ns = 0
        self.good_requests = 0  # without an error, warm-up apart
        self.first_failure: str | None = None
        self.first_missing: str | None = None

    def all_of(self, items: Iterable[K6Sample | K6Definition], assembler: K6Assembler) -> None:
        """Take all samples there are; raises OutputError when the disk takes no more."""
        for item in items:
            if isinstance(item, K6Definition):
                assembler.define(item)
                continue
            self.last_ns = max(self.last_ns, item.time_ns)
            for found in assembler.feed(item):
                self._put(found)
        for found in assembler.end():
            self._put(found)

    def _put(self, found: ImportedItem) -> None:
        match found:
            case Request():
                self._run.request(found)
                self.good_requests += found.error == "none" and not found.warmup
            case MeasureValue():
                self.measure(found)
            case DroppedIterations():
                self._run.skip("dropped_iterations", found.count)
            case CachedRequest():
                self._run.skip("from_cache")
            case FailedCheck():
                self._failed(found)

    def _failed(self, found: FailedCheck) -> None:
        if found.kind == MISSING_FILE:
            self.missing_files += 1
            self.first_missing = self.first_missing or found.name
            events = self.missing_files
        else:
            self.failed_checks += 1
            self.first_failure = self.first_failure or f"{found.step}: {found.name}"
            events = self.failed_checks
        if events <= _MOST_EVENTS:
            about = {"step": found.step, "kind": found.kind[:40], "detail": found.name[:300]}
            self._run.event("error", t_ns=found.t_ns, **about, iteration=found.iteration, client=found.client)

    def measure(self, figure: MeasureValue) -> None:
        """Take a value of a measure; of very many, not every one becomes an event."""
        name = figure.name
        if (name, figure.unit) not in self._names:
            if len(self._names) >= _MOST_MEASURES:
                name = f"{_OTHER} ({figure.unit})"
            self._names.add((name, figure.unit))
        self._values[name] += 1
        if self._values[name] <= _MOST_EVENTS:
            iteration = figure.iteration or None
            self._run.measure(name, figure.value, figure.unit, iteration=iteration, t_ns=figure.t_ns)
        elif self._values[name] <= _MOST_VALUES:
            self._run.measures.add(name, figure.value, figure.unit)
        else:
            self.uncounted += 1

    def ended_at(self) -> datetime | None:
        """Return when the last sample was taken."""
        return datetime.fromtimestamp(self.last_ns / 1e9, UTC) if self.last_ns else None


def find_k6_limit(run: RunWriter, assembler: K6Assembler, remedy: str) -> str | None:
    """Return why the generator was the limit of what was recorded, and what to do; None if it was not."""
    if assembler.dropped:
        return (
            f"k6 had no free visitor for {assembler.dropped} iterations when they were due, "
            f"and dropped them: {remedy}"
        )
    if not assembler.knows_lag:
        return None
    run.flush()
    try:
        samples = measure(RunDirectory.open(run.directory)).samples
    except NoRequestsError:
        return None
    lag_ms, response_ms = (samples[name].tail().least_ms("p99.9") for name in ("lag", "response"))
    if lag_ms is None or response_ms is None or not is_late(lag_ms, response_ms):
        return None
    return (
        f"visits started late: lag p99.9 is {lag_ms:.1f} ms of a response p99.9 of {response_ms:.1f} ms: "
        "lower the rate, or run k6 on a machine with more free processors"
    )


def peek(
    items: Iterable[K6Sample | K6Definition],
) -> tuple[K6Sample | None, Iterable[K6Sample | K6Definition]]:
    """Return the first sample of `items`, and all of them from the first on; None if there is none."""
    iterator = iter(items)
    before: list[K6Sample | K6Definition] = []
    for item in iterator:
        before.append(item)
        if isinstance(item, K6Sample):
            return item, chain(before, iterator)
        if len(before) > 10_000:
            break
    return None, before
