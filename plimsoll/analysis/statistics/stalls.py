"""Slow rows of requests, runs far worse than expected, and what moved meanwhile.

Rare stalls: what a few runs may not show, and what a single run among them does. Pure.
A stall is looked for where many requests in a row are slow at once, which chance does not do to requests that
have nothing to do with one another: the slowest ten in a row, by their median.

What moves at the same time as slow windows: ranks, held against circular shifts of the runs. Pure.
Slow windows come in rows, and so do the extremes of whatever a host counts: a test that took windows for
independent of one another would find something in every run. A circular shift of the slow windows against the
sources leaves both as they were, rows and all, and breaks only what they have to do with one another
(Besag and Clifford, Biometrika 76, 1989). The largest statistic of all sources is compared, so that one error
rate holds for all of them together (Westfall and Young, Resampling-Based Multiple Testing, 1993).
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.permutation import t_quantile

IN_A_ROW = 10
_HALF = IN_A_ROW // 2
_WORSE = 2.0  # times the baseline's worst run; less is a matter for the gates themselves
_FELT_MS = 100.0  # what people notice (Nielsen, Usability Engineering, 1993, chapter 5)
FEWEST_SLOW = 5  # windows: a share of fewer says nothing
LEAST_SLOW_MS = 50.0  # half of what people take for instantaneous (Nielsen, Usability Engineering, 1993)
_SHIFTS = 1999  # drawn, where several runs are shifted by each other's side
_SEED = 20_161_123
_TIE = 1e-9  # statistics that are equal but for rounding
_NICE = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Name = TypeVar("Name", bound=Hashable)


def worst_us(response_us: NDArray[Any]) -> NDArray[Any] | None:
    """Return the median of the slowest ten requests in a row; they are in order along the last axis.

    Rows of ten overlap by half. None of fewer than ten requests.
    """
    halves = response_us.shape[-1] // _HALF
    if halves < 2:
        return None
    parts = response_us[..., : halves * _HALF].reshape(*response_us.shape[:-1], halves, _HALF)
    rows = np.concatenate([parts[..., :-1, :], parts[..., 1:, :]], axis=-1)
    worst: NDArray[Any] = np.partition(rows, _HALF - 1, axis=-1)[..., _HALF - 1].max(axis=-1)
    return worst


def find_far_worse(
    baseline_ms: Sequence[float], candidate_ms: Sequence[float], error: float = 0.05
) -> list[int]:
    """Return which of the candidate's runs are far worse than the baseline's runs lead to expect.

    Such a run is twice as slow as the baseline's worst one, is felt, and lies above the prediction limit for
    the slowest of so many further runs of the baseline: one-sided, on logarithms, `error` over all of them
    (Hahn, Meeker and Escobar, Statistical Intervals, 2nd edition, 4.8). Of equal sides with log-normal runs
    it names one in at most that share of comparisons.
    """
    if len(baseline_ms) < 2 or not candidate_ms or min(*baseline_ms, *candidate_ms) <= 0:
        return []
    logs = [math.log(each) for each in baseline_ms]
    t = t_quantile(1 - error / len(candidate_ms), len(logs) - 1)
    expected = fmean(logs) + t * stdev(logs) * math.sqrt(1 + 1 / len(logs))
    worst_ms = max(_WORSE * max(baseline_ms), _FELT_MS)
    return [at for at, ms in enumerate(candidate_ms) if ms > worst_ms and math.log(ms) > expected]


def excluded_share(runs: int, confidence: float) -> float:
    """Return the share of runs in which something happens that so many runs without it exclude.

    Were it a larger share, one of n would have had it with probability `confidence`: it is
    1 − (1 − confidence)^(1/n).
    """
    return float(1 - (1 - confidence) ** (1 / runs))


@dataclass(frozen=True)
class Aligned(Generic[Name]):
    """One run as a grid of windows: which were slow, which quiet (neither: no requests), and its sources.

    All arrays have shape (windows,). A source's values are higher where they are worse, NaN where unknown.
    """

    slow: Bools
    quiet: Bools
    sources: Mapping[Name, Floats]


@dataclass(frozen=True)
class Coincidence:
    """How far a source is from what quiet windows show, and how often chance does that.

    `superiority` is the share of all pairs of a slow and a quiet window of one run in which it is worse in
    the slow one, ties counting half: 0.5 where nothing is to be seen, 1 at most. Chance does as much to any
    of the sources with probability `p`, to this one with `own_p`.
    """

    superiority: float
    p: float
    own_p: float


def slow_limit_ms(windows_ms: Floats) -> float | None:
    """Return from what on a window is slow, half way from the usual to the slowest; None where none is.

    Half way is on a log scale, from the median to the slowest hundredth (of five windows at least), rounded
    down to a figure that people can read. Slow windows are about twice as slow as usual, and LEAST_SLOW_MS at
    least: nobody notices less.
    """
    if len(windows_ms) < 2 * FEWEST_SLOW:
        return None
    usual = float(np.median(windows_ms))
    slowest = float(np.sort(windows_ms)[-max(FEWEST_SLOW, len(windows_ms) // 100)])
    middle = math.sqrt(usual * slowest)
    return nice_below(middle) if usual > 0 and middle >= max(2 * usual, LEAST_SLOW_MS) else None


def nice_below(value: float) -> float:
    """Return the next figure below `value` > 0 that people can read: 1.2, 30, 5000."""
    power = 10.0 ** math.floor(math.log10(value) + _TIE)
    return max(each for each in _NICE if each * power <= value * (1 + _TIE)) * power


def least_p(runs: Sequence[Aligned[Name]]) -> float:
    """Return the smallest p that so many windows can give."""
    lengths = [len(run.slow) for run in runs if run.slow.any()]
    if len(lengths) <= 1:
        return 1 / max(sum(lengths), 1)
    return max(1 / (1 + _SHIFTS), math.exp(-sum(math.log(each) for each in lengths)))


def coincidences(runs: Sequence[Aligned[Name]]) -> dict[Name, Coincidence]:
    """Return each source that has more than one value; none where no run has slow windows and quiet ones."""
    chosen = [run for run in runs if run.slow.any() and run.quiet.any()]
    names = list(dict.fromkeys(name for run in chosen for name in run.sources))
    if not chosen or not names:
        return {}
    statistic = _statistics(chosen, names)
    moved = np.ptp(statistic, axis=1) > _TIE
    highest = statistic.max(axis=0)
    return {
        name: Coincidence(
            _superiority(chosen, name),
            p=float((highest >= own[0] - _TIE).mean()),
            own_p=float((own >= own[0] - _TIE).mean()),
        )
        for name, own, moves in zip(names, statistic, moved, strict=True)
        if moves
    }


def _statistics(runs: Sequence[Aligned[Name]], names: Sequence[Name]) -> Floats:
    """Return the sum of the ranks in slow windows, shape (sources, shifts); the first is the unshifted one.

    Of one run these are all shifts, of several so many that are drawn, each run by its own.
    """
    if len(runs) == 1:
        return _by_shift(runs[0], names)
    random = np.random.default_rng(_SEED)
    total = np.zeros((len(names), 1 + _SHIFTS))
    for run in runs:
        shift = np.concatenate([[0], random.integers(0, len(run.slow), _SHIFTS)])
        total += _by_shift(run, names)[:, shift]
    return total


def _by_shift(run: Aligned[Name], names: Sequence[Name]) -> Floats:
    size = len(run.slow)
    ranks = np.array([_ranks(run.sources[name]) if name in run.sources else np.zeros(size) for name in names])
    slow = np.fft.rfft(run.slow.astype(np.float64))
    return np.fft.irfft(np.conj(slow) * np.fft.rfft(ranks, axis=1), n=size, axis=1)


def _ranks(values: Floats) -> Floats:
    """Return ranks from −½ to ½, ties at their middle, 0 where a value is not known."""
    known = ~np.isnan(values)
    found = np.zeros(len(values))
    if known.any():
        _, place, count = np.unique(values[known], return_inverse=True, return_counts=True)
        middle = np.cumsum(count) - count / 2
        found[known] = middle[place] / known.sum() - 0.5
    return found


def _superiority(runs: Sequence[Aligned[Name]], name: Name) -> float:
    won = pairs = 0.0
    for run in runs:
        values = run.sources.get(name)
        if values is None:
            continue
        slow, quiet = (values[which & ~np.isnan(values)] for which in (run.slow, run.quiet))
        quiet = np.sort(quiet)
        below, upto = (np.searchsorted(quiet, slow, side=side) for side in ("left", "right"))
        won += float((below + upto).sum()) / 2
        pairs += len(slow) * len(quiet)
    return won / pairs if pairs else 0.5
