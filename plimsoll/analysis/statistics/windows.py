"""A run in slices of time, and windows of it with enough requests for a p99.9.

Of one run from its start, and of several runs before, during and after their saturator.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from itertools import chain, repeat
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.percentiles import (
    NEVER_US,
    P99,
    P999,
    PERCENTILES,
    Groups,
    Microseconds,
    Sample,
    TimeFigures,
    Times,
    fewest,
    rank,
)
from plimsoll.analysis.statistics.requests import CountedRequests

Counts = NDArray[np.int64]

PHASES = ("before", "during", "after")
WHOLE_RUN = "whole run"  # the one phase of a run without a saturator
NEVER_NS = 1 << 61
MOST_BINS = 1000
HEAT_PER_DECADE = 12
HEAT_ROWS = 10 * HEAT_PER_DECADE  # 1 µs to 10⁴ s
_NARROWEST_NS = 100_000_000
# Each width is a multiple of the last, so that slices fold into wider ones without the records:
# 0.1 s, 0.2 s, 1, 2, 10, 20, 60 s, 2 min, 10, 20, 60 min, then twice as wide each time.
_FACTORS = (2, 5, 2, 5, 2, 3, 2, 5, 2, 3)
_MOST_WINDOWS = 300
_FEWEST_FOR_LINE = 8  # windows
_MINUTE_NS = 60_000_000_000
# Tried in this order: the first of which the whole run has enough requests is what each window shows.
_TAILS = ("p99.9", "p99")
# Slices per window: numbers that make a width which people can read (15 s rather than 13 s).
_ROUND = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 100, 120, 150, 200, 250, 300, 400, 500)

_SHOWN = {"p50": PERCENTILES["p50"], "p99": P99, "p99.9": P999}
_MOST_POINTS = 6000  # of all runs together
_FEWEST_A_RUN = 12
_MOST_OF_SLOWEST = 60  # of one run, where each window shows but its slowest request


class Timeline:
    """The run by slices of time. Slices start narrow and fold into wider ones as the run proves longer.

    `due`, `failed` and `done` count requests by their due instant and by the instant of their end, `wrong`
    the wrong answers among `failed` that came in time; `slowest_us` and `latest_us` are the largest response
    time and lag of those due in the slice, `NEVER_US` where a failure has no time-out that is known;
    `heat[slice, row]` counts response times, row r from 10^(r/12) µs, without such failures.
    """

    def __init__(self) -> None:
        self.width_ns = _NARROWEST_NS
        self.used = 0
        self.due: Counts = np.zeros(MOST_BINS, dtype=np.int64)
        self.done: Counts = np.zeros(MOST_BINS, dtype=np.int64)
        self.failed: Counts = np.zeros(MOST_BINS, dtype=np.int64)
        self.wrong: Counts = np.zeros(MOST_BINS, dtype=np.int64)
        self.slowest_us: NDArray[np.uint64] = np.zeros(MOST_BINS, dtype=np.uint64)
        self.latest_us: NDArray[np.uint64] = np.zeros(MOST_BINS, dtype=np.uint64)
        self.heat: Counts = np.zeros((MOST_BINS, HEAT_ROWS), dtype=np.int64)
        self.response = Groups()
        self.lag = Groups()
        self._factors = chain(_FACTORS, repeat(2))

    @property
    def width_s(self) -> float:
        """Seconds that one slice lasts."""
        return self.width_ns / 1e9

    def add(self, counted: CountedRequests) -> None:
        """Add more requests, one at least. Lag counts of those that were not queued."""
        due_ns, done_ns, response_us = counted.due_ns, counted.done_ns, counted.response_us
        failed, wrong, lag_us, queued = counted.failures, counted.wrong, counted.lag_us, counted.queued
        last_ns = int(done_ns.max())
        while last_ns // self.width_ns >= MOST_BINS:
            self._fold(next(self._factors))
        self.used = max(self.used, last_ns // self.width_ns + 1)
        slot = due_ns // self.width_ns
        self.due += np.bincount(slot, minlength=MOST_BINS)
        self.done += np.bincount(done_ns // self.width_ns, minlength=MOST_BINS)
        self.failed += np.bincount(slot[failed], minlength=MOST_BINS)
        if wrong.any():
            self.wrong += np.bincount(slot[wrong], minlength=MOST_BINS)
        np.maximum.at(self.slowest_us, slot, response_us.astype(np.uint64))
        cells = slot * HEAT_ROWS + _heat_row(response_us)
        if failed.any():
            cells = cells[~failed | (response_us != NEVER_US)]
        self.heat += np.bincount(cells, minlength=MOST_BINS * HEAT_ROWS).reshape(self.heat.shape)
        self.response.add(slot, response_us, failed, wrong)
        if queued.any():
            slot, lag_us = slot[~queued], lag_us[~queued]
        np.maximum.at(self.latest_us, slot, lag_us.astype(np.uint64))
        self.lag.add(slot, lag_us)

    def forget_times(self) -> None:
        """Give up the single response times and lags, which take eight bytes a request; counts stay."""
        self.response, self.lag = Groups(), Groups()

    def _fold(self, factor: int) -> None:
        self.width_ns *= factor
        self.used = -(-self.used // factor)
        self.due, self.done, self.failed, self.wrong, self.heat = (
            _folded(values, factor, np.add)
            for values in (self.due, self.done, self.failed, self.wrong, self.heat)
        )
        self.slowest_us = _folded(self.slowest_us, factor, np.maximum)
        self.latest_us = _folded(self.latest_us, factor, np.maximum)
        self.response.fold(factor)
        self.lag.fold(factor)


def heat_edge_ms(row: int) -> float:
    """Return where row `row` of the heat map begins: 10^(row/12) µs, in milliseconds."""
    return math.pow(10, row / HEAT_PER_DECADE) / 1000


def _heat_row(response_us: Microseconds) -> NDArray[np.int64]:
    # 32-bit floats are precise to a thousandth of a row, and twice as fast
    rows = np.log10(np.maximum(response_us, 1).astype(np.float32)) * np.float32(HEAT_PER_DECADE)
    return np.minimum(rows.astype(np.int64), HEAT_ROWS - 1)


def _folded(values: NDArray[Any], factor: int, join: np.ufunc) -> NDArray[Any]:
    folded = join.reduceat(values, np.arange(0, len(values), factor), axis=0)
    result = np.zeros_like(values)
    result[: len(folded)] = folded
    return result


@dataclass(frozen=True)
class Window:
    """One slice, from `start_s` to `stop_s` after the start of the run, and its `n` requests due in it.

    `merged`: it is wider than the others, since they held too few requests there. A statistic is None where n
    is too small for it, and where it is censored: then `censored` has its lower bound, by `p50`, `p99`,
    `p99.9` or `max`, None where that is not known, and `wrong` those that fall on a wrong answer.
    """

    start_s: float
    stop_s: float
    n: int
    merged: bool
    p50_ms: float | None
    p99_ms: float | None
    p999_ms: float | None
    max_ms: float | None
    censored: dict[str, float | None] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()

    @property
    def middle_s(self) -> float:
        """The instant at which the window's point is drawn."""
        return (self.start_s + self.stop_s) / 2

    @property
    def figures(self) -> TimeFigures:
        """Its statistics by name."""
        named = {"p50": self.p50_ms, "p99": self.p99_ms, "p99.9": self.p999_ms, "max": self.max_ms}
        return TimeFigures(named, self.censored, self.wrong)

    def as_json(self) -> dict[str, object]:
        """Return what `plimsoll report --json` prints of the window."""
        return {name: value for name, value in asdict(self).items() if name != "wrong"}


@dataclass(frozen=True)
class AverageLine:
    """`ms = at_zero_ms + slope_ms_per_s · seconds`."""

    at_zero_ms: float
    slope_ms_per_s: float

    def at_ms(self, t_s: float) -> float:
        """Return the line's value at `t_s`."""
        return self.at_zero_ms + self.slope_ms_per_s * t_s


@dataclass(frozen=True)
class Windows:
    """All windows of a run, and which statistic (`p99.9`, `p99` or `max`) they have enough requests for."""

    width_s: float
    shown: str
    windows: list[Window]
    line: AverageLine | None

    def value_ms(self, window: Window) -> float | None:
        """Return the statistic that is shown; None where it is censored."""
        return window.figures[self.shown]

    def is_censored(self, window: Window) -> bool:
        """Return whether only a lower bound of what is shown is known, or not even that."""
        return self.shown in window.censored

    def drawn_ms(self, window: Window) -> float | None:
        """Return where a window's point stands: at what is shown, or at the least that it can be."""
        return window.figures.least_ms(self.shown)


def make_windows(timeline: Timeline) -> Windows:
    """Cut the run into windows: of one width, wherever that holds enough requests, else merged.

    Enough for the statistic shown: 1,000 for p99.9. A run with fewer in all shows p99 of at least 100, or the
    slowest request of each window, under its own name. The width is the least round number of the
    timeline's slices with which more than half of the windows have enough, and that
    makes at most 300 windows.
    """
    counts = np.trim_zeros(timeline.due, "b").tolist()  # after the last due instant there is only waiting
    total = sum(counts)
    shown = next((name for name in _TAILS if total >= fewest(PERCENTILES[name])), "max")
    enough = 1 if shown == "max" else fewest(PERCENTILES[shown])
    slices = _slices_per_window([counts], enough, _MOST_WINDOWS)
    edges = merged_edges(counts, slices, enough)
    windows = [
        _window(timeline, start, min(stop, len(counts)), merged=stop - start > slices)
        for start, stop in edges
    ]
    found = Windows(slices * timeline.width_s, shown, windows, None)
    points = [(w.middle_s, value, w.n) for w in windows if (value := found.drawn_ms(w)) is not None]
    # without failures whose time-out is not known a line would be lower than what was seen
    unknown = any(found.is_censored(w) and found.drawn_ms(w) is None for w in windows)
    return Windows(found.width_s, shown, windows, None if unknown else average_line(points))


def minutes_of(timeline: Timeline) -> list[Window]:
    """Return the run minute by minute since its start, the last one as long as it was; statistics are exact.

    Empty where its slices of time are not parts of a minute: of a run of many hours.
    """
    slices, rest_ns = divmod(_MINUTE_NS, timeline.width_ns)
    if rest_ns:
        return []
    end = len(np.trim_zeros(timeline.due, "b"))
    return [
        _window(timeline, start, min(start + slices, end), merged=False) for start in range(0, end, slices)
    ]


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
        self.width_ns = _NARROWEST_NS
        self.first_due_ns = NEVER_NS
        self.last_due_ns = 0
        self._groups = {name: Groups() for name in self.names}
        self._factors = chain(_FACTORS, repeat(2))

    @property
    def names(self) -> tuple[str, ...]:
        """The phases, in order of time."""
        return PHASES if self.saturated else (WHOLE_RUN,)

    def add(
        self,
        due_ns: NDArray[np.int64],
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
        distance_ns: NDArray[np.int64],
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
    shown = next((name for name in _TAILS if busiest[len(busiest) // 2] >= fewest(PERCENTILES[name])), "max")
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
                _phase_window(
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


def merged_edges(counts: list[int], slices: int, enough: int) -> list[tuple[int, int]]:
    """Return (start, stop) slice numbers of windows of `slices` each, merged until all have `enough`.

    Windows merge with the next ones; what is left at the end merges with the last window. Pure.
    """
    edges: list[tuple[int, int]] = []
    start, gathered = 0, 0
    for stop in range(slices, len(counts) + slices, slices):
        gathered += sum(counts[stop - slices : stop])
        if gathered >= enough:
            edges.append((start, stop))
            start, gathered = stop, 0
    if gathered and edges:
        edges[-1] = (edges[-1][0], max(start, len(counts)))
    return edges


def average_line(points: list[tuple[float, float, int]]) -> AverageLine | None:
    """Return the least-squares line through (seconds, milliseconds, requests), each weighted by its requests.

    None with fewer than eight points: the slope through so few is one of chance. Weighted, because the
    variance of a window's percentile falls as its requests grow.
    """
    if len(points) < _FEWEST_FOR_LINE:
        return None
    t_s, value_ms, n = (np.array(column, dtype=np.float64) for column in zip(*points, strict=True))
    weight = n / n.sum()
    t_mean, value_mean = float(weight @ t_s), float(weight @ value_ms)
    if np.ptp(t_s) == 0:
        return None
    spread = float(weight @ np.square(t_s - t_mean))
    slope = float(weight @ ((t_s - t_mean) * (value_ms - value_mean))) / spread
    return AverageLine(value_mean - slope * t_mean, slope)


def _slices_per_window(counts: Sequence[Sequence[int]], enough: int, most_windows: int) -> int:
    longest = max(map(len, counts), default=1)
    for slices in (slices for slices in _ROUND if slices < longest):
        windows = np.concatenate(
            [np.add.reduceat(np.array(each), np.arange(0, len(each), slices)) for each in counts]
        )
        used = np.count_nonzero(windows)
        if len(windows) <= most_windows and np.count_nonzero(windows >= enough) * 2 > used:
            return slices
    return max(longest, 1)


def _window(timeline: Timeline, start: int, stop: int, *, merged: bool) -> Window:
    times = timeline.response.of(start, stop)
    values_us = times.values_us
    wanted = {name: rank(ppm, len(values_us)) for name, ppm in _SHOWN.items()} | {
        "max": len(values_us) or None
    }
    if len(values_us):
        values_us.partition([position - 1 for position in wanted.values() if position is not None])
    figures = TimeFigures.of_ranks(wanted, lambda at: int(values_us[at - 1]), len(values_us), times.failed)
    return Window(
        start_s=start * timeline.width_s,
        stop_s=stop * timeline.width_s,
        n=len(values_us),
        merged=merged,
        p50_ms=figures["p50"],
        p99_ms=figures["p99"],
        p999_ms=figures["p99.9"],
        max_ms=figures["max"],
        censored=figures.censored,
        wrong=figures.wrong,
    )


def _phase_window(
    run: PhaseSlices, phase: str, edge: tuple[int, int], widened: bool, shown: str
) -> PhaseWindow:
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
