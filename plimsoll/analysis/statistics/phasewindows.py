"""Windows of several runs on one time axis, which begins when each run's saturator started."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from math import lcm

import numpy as np

from plimsoll.analysis.statistics.phases import PhaseSlices
from plimsoll.analysis.statistics.sample import PERCENTILES, Sample, fewest
from plimsoll.analysis.statistics.windows import ROUND, SHOWN, AverageLine, average_line, merged_edges

_MOST_POINTS = 6000  # of all runs together
_FEWEST_A_RUN = 12
_MOST_OF_SLOWEST = 60  # of one run, where each window shows but its slowest request


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
