"""How often the upper bound of p99.9 of one run holds what it bounds, where requests come in clusters."""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.binomial import WATCHED, design_effect, largest_count_above
from plimsoll.analysis.statistics.percentiles import P999, rank
from tests.verdicts.worlds import SHAPES, STALL_MS, TYPICAL_MS

RATE = 20  # requests a second
_LONG = 4_000_000  # requests whose p99.9 is the true one

Array = NDArray[np.float64]
Process = Callable[[np.random.Generator, int], Array]


def _calm(name: str) -> Process:
    return lambda random, n: np.exp(SHAPES[name](random, (1, n))[0].astype(np.float64)) * TYPICAL_MS


def _carried(random: np.random.Generator, n: int) -> Array:
    """Return AR(0.98), by its filter's impulse response."""
    kernel = 0.98 ** np.arange(1200) * math.sqrt(1 - 0.98**2)
    size = 1 << (n + 2400 - 1).bit_length()
    noise = np.fft.rfft(random.standard_normal(n + 1200), size)
    return np.exp(np.fft.irfft(noise * np.fft.rfft(kernel, size), size)[1200 : 1200 + n]) * TYPICAL_MS


def _stalling(every_s: float, regular: bool = False) -> Process:
    """Return log-normal requests, with stalls of 1 s: at random instants, or one each `every_s` somewhere."""

    def draw(random: np.random.Generator, n: int) -> Array:
        response_ms = np.exp(0.5 * random.standard_normal(n)) * TYPICAL_MS
        slots = np.arange(0, n, every_s * RATE)
        starts = slots + random.random(len(slots)) * every_s * RATE
        if not regular:
            starts = random.random(random.poisson(n / (every_s * RATE))) * n
        for start in starts:
            first = int(start)
            waited = STALL_MS * (1 - np.arange(RATE) / RATE)
            part = response_ms[first : first + RATE]
            np.maximum(part, waited[: len(part)], out=part)
        return response_ms

    return draw


WORLDS: list[tuple[str, Process, int]] = [
    ("independent, log-normal, σ 1", _calm("log-normal, σ 1"), 200),
    ("independent, log-normal, σ 1", _calm("log-normal, σ 1"), 1000),
    ("independent, Pareto, index 1.2", _calm("Pareto, index 1.2"), 1000),
    ("AR(0.98), σ 1", _carried, 1000),
    ("one stall in each 200 s", _stalling(200, regular=True), 200),
    ("one stall in each 200 s", _stalling(200, regular=True), 600),
    ("one stall in each 200 s", _stalling(200, regular=True), 2000),
    ("a stall in 200 s on average", _stalling(200), 200),
    ("a stall in 200 s on average", _stalling(200), 600),
    ("a stall in 200 s on average", _stalling(200), 2000),
    ("a stall in 20 s on average", _stalling(20), 600),
]


def bounds(response_ms: Array) -> tuple[float | None, float | None]:
    """Return the bound as if requests were independent, and the one that is shown: ms."""
    n = len(response_ms)
    ordered = np.sort(response_ms)
    limits = [ordered[(rank(ppm, n) or n) - 1] for ppm in WATCHED]
    width = max(1, -(-n // (RATE * 1000)) * RATE // 10)  # slices of 0.1 s, or as many as a timeline has
    edges = np.arange(0, n, width)
    requests = np.diff(edges, append=n)
    effect = max(
        design_effect(np.add.reduceat((response_ms >= limit).astype(np.int64), edges), requests)
        for limit in limits
    )
    found: list[float | None] = []
    for clustering in (1.0, effect):
        above = largest_count_above(int(n / clustering), P999, 0.025)
        found.append(None if above is None else float(ordered[n - int(above * clustering) - 1]))
    return found[0], found[1]


def coverage(process: Process, lasted_s: int, runs: int, seed: int = 7) -> tuple[float, float, float]:
    """Return (wrong as if independent, shown, shown and wrong), as shares of all runs."""
    random = np.random.default_rng(seed)
    true_ms = float(np.quantile(process(random, _LONG), 0.999))
    wrong = shown = shown_wrong = 0
    for _ in range(runs):
        naive, given = bounds(process(random, lasted_s * RATE))
        wrong += naive is not None and naive < true_ms
        shown += given is not None
        shown_wrong += given is not None and given < true_ms
    return wrong / runs, shown / runs, shown_wrong / runs


def coverage_table(experiments: int) -> Iterator[list[str]]:
    """The bound of p99.9 within one run, at 20 requests a second."""
    yield ["requests", "run lasts", "wrong if taken as independent", "bound is shown", "shown and wrong"]
    for name, process, lasted_s in WORLDS:
        found = coverage(process, lasted_s, experiments)
        yield [name, f"{lasted_s:,} s", *(f"{100 * share:.1f} %" for share in found)]
