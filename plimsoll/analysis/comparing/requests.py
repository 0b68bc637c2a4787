"""The requests of one phase, and how runs are cut until they are alike in length and in number. Pure.

A percentile of few requests is not that of many: p99.9 is the 2nd largest of 1,000 requests and the 11th of
10,000, and the first lies lower more often than higher. So percentiles are compared at equal length (the
first so many seconds of the phase) and at equal counts (drawn without replacement, the same draw each time).
One draw, and not the mean over many: the mean of many lies less far apart than a single figure and is less
skewed, so runs that were cut and runs that were not could no longer change sides (docs/statistics.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.comparing.stalls import worst_us
from plimsoll.analysis.statistics.phases import PHASES
from plimsoll.analysis.statistics.sample import rank
from plimsoll.analysis.statistics.times import Microseconds, Times

_SEED = 19_641_102
_SAME = 1.01  # shares above a percentile, and counts, that differ by less are the same
_SAME_LENGTH = 1.05  # of phases whose saturator was stopped by one clock and began by another


@dataclass(frozen=True)
class PhaseRequests:
    """Requests in the order in which they were due, shape (n,) each; `due_ms` counts from the first one.

    `response_us` are as they count: failures at their time-out.
    """

    due_ms: NDArray[np.uint32]
    response_us: Microseconds
    route: NDArray[np.uint16]
    failed: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.due_ms)

    @property
    def lasted_ms(self) -> int:
        """From the first to the last instant at which one was due."""
        return int(self.due_ms[-1]) if len(self) else 0

    @property
    def times(self) -> Times:
        """Their response times, as a new array."""
        return Times.of(self.response_us.copy(), self.failed)

    @cached_property
    def worst_ms(self) -> float | None:
        """The median of the slowest ten requests in a row."""
        worst = worst_us(self.response_us)
        return None if worst is None else float(worst) / 1000

    def of_route(self, number: int) -> "PhaseRequests":
        """Return those of one route."""
        return self._at(self.route == number)

    def of_phase(self, phase: NDArray[np.uint8], name: str) -> "PhaseRequests":
        """Return those of one phase, or all; `phase` has the number of each, ascending."""
        first, last = 0, len(self)
        if name in PHASES:
            first, last = np.searchsorted(phase, [PHASES.index(name), PHASES.index(name) + 1]).tolist()
        found = self._at(slice(first, last))
        return replace(found, due_ms=found.due_ms - found.due_ms[:1])

    def first_ms(self, length_ms: int) -> "PhaseRequests":
        """Return those that were due in so many milliseconds from the first on."""
        return self._at(slice(0, int(np.searchsorted(self.due_ms, length_ms, side="right"))))

    def thinned(self, count: int) -> "PhaseRequests":
        """Return `count` of them."""
        return self._at(drawn(len(self), count))

    def _at(self, which: Any) -> "PhaseRequests":
        return PhaseRequests(
            self.due_ms[which], self.response_us[which], self.route[which], self.failed[which]
        )


def drawn(size: int, count: int) -> NDArray[np.int64]:
    """Return `count` places out of `size`, in their order: the same ones each time."""
    return np.sort(np.random.default_rng(_SEED).choice(size, count, replace=False))


def cut_alike(runs: Sequence[PhaseRequests], ppm: int) -> list[PhaseRequests] | None:
    """Return `runs` cut to one length and one count, for percentile q = `ppm`/10⁶.

    None where they can stay as they are: what the percentile means at each of their counts differs by 1 % at
    most.
    """
    lengths = [run.lasted_ms for run in runs]
    counts = [len(run) for run in runs]
    longer = max(lengths) > _SAME_LENGTH * min(lengths) and _differ(counts, ppm)
    cut = [run.first_ms(min(lengths)) for run in runs] if longer else list(runs)
    counts = [len(run) for run in cut]
    if not _differ(counts, ppm):
        return cut if longer else None
    return [run.thinned(min(counts)) for run in cut]


def _differ(counts: Sequence[int], ppm: int) -> bool:
    """Return whether a percentile says another thing at some of `counts` than at others."""
    above = [(count - (rank(ppm, count) or count) + 1) / (count + 1) for count in counts]
    return max(above) > _SAME * min(above) or max(counts) > _SAME * min(counts)
