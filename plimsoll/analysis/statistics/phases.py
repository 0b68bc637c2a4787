"""A run before, during and after its saturator, and windows of several runs from its start on."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import chain, repeat
from math import lcm

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.percentiles import PERCENTILES, Groups, Microseconds, Sample, Times, fewest
from plimsoll.analysis.statistics.windows import (
    FACTORS,
    MOST_BINS,
    NARROWEST_NS,
    ROUND,
    SHOWN,
    AverageLine,
    average_line,
    merged_edges,
)

PHASES = ("before", "during", "after")
WHOLE = ("whole run",)
NEVER_NS = 1 << 61

_Instants = NDArray[np.int64]
_MOST_POINTS = 6000  # of all runs together
_FEWEST_A_RUN = 12
_MOST_OF_SLOWEST = 60  # of one run, where each window shows but its slowest request


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


@dataclass(frozen=True)
class PhaseWindow:
    """One slice of a phase, in seconds since the saturator started, and its `n` requests due in it.

    `value_ms` is None where it is censored: then it is at least `at_least_ms`, None where that is not known.
    `wrong`: it falls on a wrong answer. `widened`: it is wider than the others, since they held too few
    requests there.
    """

    phase: str
    start_s: float
    stop_s: float
    n: int
    widened: bool
    value_ms: float | None
    at_least_ms: float | None = None
    wrong: bool = False

    @property
    def middle_s(self) -> float:
        """The instant at which the window's point is drawn."""
        return (self.start_s + self.stop_s) / 2

    @property
    def drawn_ms(self) -> float | None:
        """Where its point stands: at what is shown, or at the least that it can be."""
        return self.at_least_ms if self.value_ms is None else self.value_ms

    def as_json(self) -> dict[str, object]:
        """Return what `plimsoll report --json` prints of the window."""
        return {name: value for name, value in asdict(self).items() if name != "wrong"}


@dataclass(frozen=True)
class PhaseWindows:
    """The windows of each run, all of one width and showing one statistic: `p99.9`, `p99` or `max`.

    `left_out` counts the phases of runs that have requests, but too few for one window.
    """

    width_s: float
    shown: str
    of_runs: list[list[PhaseWindow]]
    left_out: int


def make_phase_windows(runs: Sequence[PhaseSlices]) -> PhaseWindows:
    """Cut all runs into windows of one width, in each phase apart.

    What is shown is the first of p99.9 and p99 for which more than half of the busiest phases have enough
    requests, else the slowest. The width is the least round number of slices with which more than half of all
    windows have enough; those that have not are merged with the next ones of their phase, and called widened.
    """
    _align(runs)
    counts = [{phase: slices.counts(phase) for phase in slices.names} for slices in runs]
    busiest = sorted(max(sum(each) for each in of_run.values()) for of_run in counts)
    shown = next((name for name in SHOWN if busiest[len(busiest) // 2] >= fewest(PERCENTILES[name])), "max")
    enough = 1 if shown == "max" else fewest(PERCENTILES[shown])
    most = _MOST_OF_SLOWEST if shown == "max" else max(_MOST_POINTS // len(runs), _FEWEST_A_RUN)
    slices = _slices_per_window(
        [each for of_run in counts for each in of_run.values() if each], enough, most * len(runs)
    )
    found, left_out = [], 0
    for run, of_run in zip(runs, counts, strict=True):
        windows = []
        for phase, each in of_run.items():
            edges = merged_edges(each, slices, enough)
            left_out += bool(sum(each)) and not edges
            windows += [
                _window(
                    run, phase, (start, min(stop, len(each))), shown != "max" and stop - start > slices, shown
                )
                for start, stop in edges
            ]
        found.append(sorted(windows, key=lambda window: window.start_s))
    return PhaseWindows(slices * runs[0].width_ns / 1e9, shown, found, left_out)


def line_of(windows: Sequence[PhaseWindow]) -> AverageLine | None:
    """Return the weighted least-squares line through `windows`; level where they are too few for a slope.

    So it is where all lie closer together than one of them is long: a slope would be of noise alone, and the
    line's ends far from any point.

    Failures count at their time-outs; None where one is not known, since a line without them would be lower.
    """
    points = [
        (window.middle_s, value_ms, window.n)
        for window in windows
        if (value_ms := window.drawn_ms) is not None
    ]
    if not points or len(points) < len(windows):
        return None
    line = average_line(points)
    middles = [middle_s for middle_s, *_ in points]
    longest_s = max(window.stop_s - window.start_s for window in windows)
    if line is not None and max(middles) - min(middles) >= longest_s:
        return line
    requests = sum(n for *_, n in points)
    return AverageLine(sum(value_ms * n for _, value_ms, n in points) / requests, 0.0)


def _align(runs: Sequence[PhaseSlices]) -> None:
    """Make the slices of all runs equally wide: those of longer runs are wider."""
    width_ns = reduce(lcm, (slices.width_ns for slices in runs))
    for slices in runs:
        if slices.width_ns != width_ns:
            slices.fold(width_ns // slices.width_ns)


def _slices_per_window(counts: Sequence[Sequence[int]], enough: int, most_windows: int) -> int:
    longest = max(map(len, counts), default=1)
    for slices in (slices for slices in ROUND if slices < longest):
        windows = np.concatenate(
            [np.add.reduceat(np.array(each), np.arange(0, len(each), slices)) for each in counts]
        )
        used = np.count_nonzero(windows)
        if len(windows) <= most_windows and np.count_nonzero(windows >= enough) * 2 > used:
            return slices
    return max(longest, 1)


def _window(run: PhaseSlices, phase: str, edge: tuple[int, int], widened: bool, shown: str) -> PhaseWindow:
    start, stop = edge
    sample = Sample.of_times(run.within(phase, start, stop))
    found = sample.tail()
    start_s, stop_s = run.span_s(phase, start, stop)
    return PhaseWindow(
        phase=phase,
        start_s=start_s,
        stop_s=stop_s,
        n=sample.n,
        widened=widened,
        value_ms=found[shown],
        at_least_ms=found.censored.get(shown),
        wrong=shown in found.wrong,
    )
