"""The load of a run that is being done: its requests so far, read from its run directory as it grows."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from plimsoll.analysis.statistics.requests import counted_us, failed, timeout_us
from plimsoll.common.errors import RunDirectoryError
from plimsoll.lab.experiment.status.latencies import Latencies
from plimsoll.lab.experiment.status.model import LoadFigures
from plimsoll.lab.experiment.status.tail import Tail
from plimsoll.rundir.facts import RunFacts
from plimsoll.rundir.names import REQUESTS_FILE
from plimsoll.rundir.read import read_facts
from plimsoll.rundir.records import WARMUP, Records

_OVER_S = 10  # seconds that requests a second are a mean of
_FLUSHED_S = 1  # writers hand records over once a second


class Load:
    """A run directory that grows. `edges_s`: the instants at which phases end, since its start."""

    def __init__(self, path: Path, edges_s: Sequence[float]) -> None:
        self._path, self._tail = path, Tail(path / REQUESTS_FILE)
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

    def look(self, t_s: float) -> LoadFigures:
        """Read what is new at second `t_s` of the run, and return the figures so far."""
        limit_us = timeout_us(self._facts) if self._facts else None
        for records in self._tail.records():
            self._add(records, limit_us)
        whole_s = int(t_s) - _FLUSHED_S
        first_s = max(whole_s - _OVER_S, 0)
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
        due_ns = records["due_ns"]
        took_us = np.minimum(records["lag_us"].astype(np.uint64) + records["total_us"], 0xFFFF_FFFF)
        ended_s = (due_ns + took_us.astype(np.int64) * 1000) // 10**9
        for second, count in zip(*np.unique(ended_s, return_counts=True), strict=True):
            self._done_in[int(second)] += int(count)
        self._requests += len(records)
        measured = (records["flags"] & WARMUP) == 0
        failures = failed(records)[measured]
        self._failures += int(failures.sum())
        times_us = counted_us(took_us.astype(np.uint32)[measured], failures, limit_us)
        self._all.add(times_us)
        phases = np.searchsorted(self._edges_ns, due_ns[measured], side="right")
        for phase in np.unique(phases):
            self._by_phase[int(phase)].add(times_us[phases == phase])
