"""Kinds of requests that moved against a verdict: slower by more than the margin.

A slow kind hides in the whole behind what there is more of (Simpson's paradox).
"""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.compare.gates import Gate, ResponseTime
from plimsoll.analysis.evidence.finding import Finding, FindingKind
from plimsoll.analysis.evidence.run import MeasuredRun
from plimsoll.analysis.statistics.percentiles import MILLION, PERCENTILES, rank
from plimsoll.common.units import milliseconds, significant

_LEAST_REQUESTS = 100  # of a kind, in each run
_LEAST_ABOVE = 5  # requests above the percentile that is compared
_LEAST_RUNS = 4
_LEAST_MS = 1.0
_LEVEL = 0.03  # 2 of 70: four runs as dealt, and the mirror, where what became faster is slower
_MOST_DEALT = 13_000  # eight runs a side are enumerated
_MOST_NAMED = 3
_SEED = 19_510_401

_Values = NDArray[np.float64]


def find_slower_routes(
    runs: tuple[Sequence[MeasuredRun], Sequence[MeasuredRun]], gate: Gate
) -> Finding | None:
    """Return which kinds of requests are slower on the candidate by more than a gate's ratio, and by 1 ms.

    Looked at are kinds with 100 requests in every run, at the gate's percentile, or the highest below it that
    has five requests above it in every run. Each run gives one figure. All kinds are tested at once: the runs
    are dealt to the sides in all other ways, and a kind counts where its standardised difference, less the
    margin, is reached by that of any kind in at most 3 % of all dealings (Westfall and Young's max-T). So
    noise of all kinds together names one in 3 of 100 experiments at most, and seldom one beyond the margin.
    """
    if not isinstance(gate.metric_type, ResponseTime) or gate.at_most_ratio is None:
        return None
    if min(map(len, runs)) < _LEAST_RUNS:
        return None
    every = [*runs[0], *runs[1]]
    kinds = [_times_by_route(run, gate) for run in every]
    names = [name for name in kinds[0] if all(len(each.get(name, ())) >= _LEAST_REQUESTS for each in kinds)]
    if not names:
        return None
    highest = PERCENTILES.get(gate.metric, PERCENTILES["p50"])
    chosen = [_percentile(min(len(each[name]) for each in kinds), highest) for name in names]
    ms = np.array(
        [
            [
                max(float(each[name][(rank(PERCENTILES[at], len(each[name])) or 1) - 1]), 1.0) / 1000
                for each in kinds
            ]
            for name, at in zip(names, chosen, strict=True)
        ]
    )
    logs, n = np.log(ms), len(runs[0])
    before_ms, after_ms = (np.exp(part.mean(axis=1)) for part in (logs[:, :n], logs[:, n:]))
    logs[:, n:] -= math.log(gate.at_most_ratio)
    far = _adjusted_p(logs, n) <= _LEVEL
    against = [at for at in np.flatnonzero(far) if after_ms[at] - before_ms[at] >= _LEAST_MS]
    if not against:
        return None
    against.sort(key=lambda at: before_ms[at] / after_ms[at])
    shown = "; ".join(
        f"{names[at]} × {significant(after_ms[at] / before_ms[at])} ({chosen[at]}: "
        f"{milliseconds(before_ms[at])} and {milliseconds(after_ms[at])})"
        for at in against[:_MOST_NAMED]
    )
    more = f"; and {len(against) - _MOST_NAMED} more" if len(against) > _MOST_NAMED else ""
    text = (
        f"{gate.name}: kinds of requests are slower by more than × {gate.at_most_ratio:.2f}: {shown}{more}."
    )
    return Finding(FindingKind.SLOWER_ROUTES, text, tuple(run.name for run in runs[1]), gate.scenario)


def _times_by_route(run: MeasuredRun, gate: Gate) -> dict[str, NDArray[np.uint32]]:
    """Return the sorted response times of each kind of requests, by name."""
    phase = run.phases.get(gate.phase)
    if phase is None or phase.kept is None:
        return {}
    order = np.lexsort((phase.kept.response_us, phase.kept.route))
    route, times = phase.kept.route[order], phase.kept.response_us[order]
    edges = np.flatnonzero(np.diff(route)) + 1
    return {
        run.directory.route_name(int(route[first])): part
        for first, part in zip((0, *edges), np.split(times, edges), strict=True)
        if len(part)
    }


def _percentile(requests: int, highest: int) -> str:
    enough = (
        name
        for name, ppm in sorted(PERCENTILES.items(), key=lambda each: -each[1])
        if ppm <= highest and requests * (MILLION - ppm) >= _LEAST_ABOVE * MILLION
    )
    return next(enough, "p50")


def _adjusted_p(values: _Values, n: int) -> _Values:
    """Return for each row of `values` the share of dealings in which any row is as far apart as it is.

    Columns are runs, the first `n` the baseline's.
    """
    runs = values.shape[1]
    dealt = math.comb(runs, runs - n)
    if dealt <= _MOST_DEALT:
        taken = np.zeros((dealt, runs), dtype=np.bool_)
        for row, pick in zip(taken, combinations(range(runs - 1, -1, -1), runs - n), strict=True):
            row[list(pick)] = True
    else:
        draws = np.random.default_rng(_SEED).random((_MOST_DEALT, runs)).argsort(axis=1)
        taken = draws >= n
        taken[0] = np.arange(runs) >= n
    spread = values.std(axis=1, keepdims=True)
    scores = (values - values.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, np.inf)
    apart = scores @ (taken / (runs - n) - ~taken / n).T
    found: _Values = (apart.max(axis=0) >= apart[:, :1] - 1e-9).mean(axis=1)
    return found
