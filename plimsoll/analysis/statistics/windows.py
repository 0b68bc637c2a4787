"""A run in slices of time, a thousand at most, and windows of it with enough requests for a p99.9."""

import math
from dataclasses import asdict, dataclass, field
from itertools import chain, repeat
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
    TimeFigures,
    fewest,
    rank,
)
from plimsoll.analysis.statistics.requests import CountedRequests

Counts = NDArray[np.int64]

MOST_BINS = 1000
HEAT_PER_DECADE = 12
HEAT_ROWS = 10 * HEAT_PER_DECADE  # 1 µs to 10⁴ s
NARROWEST_NS = 100_000_000
# Each width is a multiple of the last, so that slices fold into wider ones without the records:
# 0.1 s, 0.2 s, 1, 2, 10, 20, 60 s, 2 min, 10, 20, 60 min, then twice as wide each time.
FACTORS = (2, 5, 2, 5, 2, 3, 2, 5, 2, 3)
MOST_WINDOWS = 300
_FEWEST_FOR_LINE = 8  # windows
_MINUTE_NS = 60_000_000_000
# Tried in this order: the first of which the whole run has enough requests is what each window shows.
SHOWN = ("p99.9", "p99")
# Slices per window: numbers that make a width which people can read (15 s rather than 13 s).
ROUND = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 100, 120, 150, 200, 250, 300, 400, 500)

_SHOWN = {"p50": PERCENTILES["p50"], "p99": P99, "p99.9": P999}


class Timeline:
    """The run by slices of time. Slices start narrow and fold into wider ones as the run proves longer.

    `due`, `failed` and `done` count requests by their due instant and by the instant of their end, `wrong`
    the wrong answers among `failed` that came in time; `slowest_us` and `latest_us` are the largest response
    time and lag of those due in the slice, `NEVER_US` where a failure has no time-out that is known;
    `heat[slice, row]` counts response times, row r from 10^(r/12) µs, without such failures.
    """

    def __init__(self) -> None:
        self.width_ns = NARROWEST_NS
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
        self._factors = chain(FACTORS, repeat(2))

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
    shown = next((name for name in SHOWN if total >= fewest(PERCENTILES[name])), "max")
    enough = 1 if shown == "max" else fewest(PERCENTILES[shown])
    slices = _slices_per_window(counts, enough)
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

    Empty where its slices of time are no parts of a minute: of a run of many hours.
    """
    slices, rest_ns = divmod(_MINUTE_NS, timeline.width_ns)
    if rest_ns:
        return []
    end = len(np.trim_zeros(timeline.due, "b"))
    return [
        _window(timeline, start, min(start + slices, end), merged=False) for start in range(0, end, slices)
    ]


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


def _slices_per_window(counts: list[int], enough: int) -> int:
    array = np.array(counts, dtype=np.int64)
    fewest_slices = -(-len(counts) // MOST_WINDOWS)
    for slices in (slices for slices in ROUND if fewest_slices <= slices < len(counts)):
        windows = np.add.reduceat(array, np.arange(0, len(array), slices))
        if np.count_nonzero(windows >= enough) * 2 > np.count_nonzero(windows):
            return slices
    return max(len(counts), 1)


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
