"""A run cut at the instants at which its saturator started and stopped: before, during, after."""

from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.groups import Groups
from plimsoll.analysis.statistics.timeline import FACTORS, MOST_BINS, NARROWEST_NS
from plimsoll.analysis.statistics.times import Microseconds, Times

PHASES = ("before", "during", "after")
WHOLE = ("whole run",)
NEVER_NS = 1 << 61

_Instants = NDArray[np.int64]


class PhaseSlices:
    """Response times by phase and, within each, by slices of time; four bytes a request.

    A request belongs to the phase in which it was due. Slices are counted from the start backwards before it,
    from the start on during it, and from the stop on after it, so that none lies across an edge. A run
    without a saturator is one phase from its start to its end.
    """

    def __init__(self, start_ns: int | None = None, stop_ns: int | None = None) -> None:
        self.saturated = start_ns is not None
        self.start_ns = start_ns or 0
        self.stop_ns = NEVER_NS if stop_ns is None else max(stop_ns, self.start_ns)
        self.width_ns = NARROWEST_NS
        self.first_due_ns = NEVER_NS
        self.last_due_ns = 0
        self._groups = {name: Groups() for name in self.names}
        self._factors = chain(FACTORS, repeat(2))

    @property
    def names(self) -> tuple[str, ...]:
        """The phases, in order of time."""
        return PHASES if self.saturated else WHOLE

    def add(
        self,
        due_ns: _Instants,
        response_us: Microseconds,
        failures: NDArray[np.bool_] | None = None,
        wrong: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add a block of requests outside the warm-up, times as they count; all have shape (n,), n > 0."""
        self.first_due_ns = min(self.first_due_ns, int(due_ns.min()))
        self.last_due_ns = max(self.last_due_ns, int(due_ns.max()))
        if not self.saturated:
            self._add("whole run", due_ns, response_us, failures, wrong)
            return
        before, after = due_ns < self.start_ns, due_ns >= self.stop_ns
        during = ~before & ~after
        for phase, within, distance_ns in (
            ("before", before, self.start_ns - 1 - due_ns),
            ("during", during, due_ns - self.start_ns),
            ("after", after, due_ns - self.stop_ns),
        ):
            bad, came = (None if each is None else each[within] for each in (failures, wrong))
            self._add(phase, distance_ns[within], response_us[within], bad, came)

    def _add(
        self,
        phase: str,
        distance_ns: _Instants,
        response_us: Microseconds,
        failures: NDArray[np.bool_] | None,
        wrong: NDArray[np.bool_] | None,
    ) -> None:
        if not len(distance_ns):
            return
        while int(distance_ns.max()) // self.width_ns >= MOST_BINS:
            self.fold(next(self._factors))
        self._groups[phase].add(distance_ns // self.width_ns, response_us, failures, wrong)

    def fold(self, factor: int) -> None:
        """Make every slice `factor` times as wide."""
        self.width_ns *= factor
        for groups in self._groups.values():
            groups.fold(factor)

    def all_of(self, phase: str) -> Times:
        """Return all response times of a phase as a new array; none where the run has no such phase."""
        return self._groups[phase].everything() if phase in self._groups else Groups().everything()

    def within(self, phase: str, start: int, stop: int) -> Times:
        """Return the response times in slices `start` … `stop`−1 of a phase as a new array."""
        return self._groups[phase].of(start, stop)

    def counts(self, phase: str) -> list[int]:
        """Return how many requests each slice of a phase has, up to the last that has any."""
        groups = self._groups[phase]
        sizes = groups.sizes()
        return [sizes.get(slot, 0) for slot in range(max(sizes, default=-1) + 1)]

    def lasted_s(self, phase: str) -> float:
        """Return how long a phase lasted, from the first request to the last one due."""
        edges = [self.first_due_ns, self.start_ns, self.stop_ns, self.last_due_ns]
        if not self.saturated:
            edges = [self.first_due_ns, self.last_due_ns]
        at = self.names.index(phase)
        first = max(edges[at], self.first_due_ns)
        return max(min(edges[at + 1], self.last_due_ns) - first, 0) / 1e9

    def span_s(self, phase: str, start: int, stop: int) -> tuple[float, float]:
        """Return where slices `start` … `stop`−1 of a phase lie, in seconds since the saturator's start.

        Before it they are negative. What would lie beyond the phase is cut off.
        """
        near, far = start * self.width_ns, stop * self.width_ns
        if phase == "before":
            return -min(far, self.start_ns) / 1e9, -near / 1e9
        from_ns = self.stop_ns if phase == "after" else self.start_ns
        if phase == "during":
            far = min(far, self.stop_ns - self.start_ns)
        return (from_ns + near - self.start_ns) / 1e9, (from_ns + far - self.start_ns) / 1e9
