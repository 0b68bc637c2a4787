"""Simulated experiments, request by request: what their runs are like, and what `compare` makes of them."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.compare.decision import Question, Verdict, decide
from plimsoll.analysis.statistics import permutation, sequential
from plimsoll.analysis.statistics.percentiles import PERCENTILES, rank
from plimsoll.analysis.statistics.permutation import PermutationTest
from plimsoll.analysis.statistics.requests import KeptRequests, cut_alike
from plimsoll.analysis.statistics.stalls import find_far_worse, worst_us

Array = NDArray[np.float32]
Random = np.random.Generator

LIMIT = 1.10
TYPICAL_MS = 20.0
STALL_MS = 1000.0
_GATE_MS = 500.0
STALLED = 20  # requests that a stall catches: one of 1 s, at 20 requests a second
_MOST_US = 4e9  # what a record holds
_ARRANGEMENTS = 4000  # drawn, of more; `compare` draws 200,000


def _log_normal(sigma: float) -> Callable[[Random, tuple[int, int]], Array]:
    return lambda random, shape: sigma * random.standard_normal(shape, dtype=np.float32)


def _pareto(index: float) -> Callable[[Random, tuple[int, int]], Array]:
    return lambda random, shape: random.standard_exponential(shape, dtype=np.float32) / np.float32(index)


def _alike(carried: float) -> Callable[[Random, tuple[int, int]], Array]:
    """Neighbouring requests resemble one another: log-normal, AR(1)."""

    def draw(random: Random, shape: tuple[int, int]) -> Array:
        values = random.standard_normal((shape[1], shape[0]), dtype=np.float32)
        new = np.float32(math.sqrt(1 - carried**2))
        for at in range(1, shape[1]):
            values[at] = carried * values[at - 1] + new * values[at]
        return np.ascontiguousarray(values.T)

    return draw


SHAPES: dict[str, Callable[[Random, tuple[int, int]], Array]] = {
    "log-normal, σ 1": _log_normal(1),
    "log-normal, σ 2": _log_normal(2),
    "Pareto, index 1.2": _pareto(1.2),
    "AR(0.98), σ 1": _alike(0.98),
}


@dataclass(frozen=True)
class World:
    """What the runs of both sides are like when nothing differs between them.

    `spread` is the standard deviation of the logarithm of a run's level; `stalls` the share of the
    candidate's runs that stall once.
    """

    shape: str
    spread: float
    repeats: int
    requests: int = 4000
    stalls: float = 0.0
    metric: str = "p99.9"


@dataclass(frozen=True)
class Figures:
    """Both sides' figures of many experiments, shape (experiments, repeats) each: milliseconds."""

    baseline: NDArray[np.float64]
    candidate: NDArray[np.float64]
    worst_baseline: NDArray[np.float64]
    worst_candidate: NDArray[np.float64]
    stalled: NDArray[np.bool_]

    def verdict(self, at: int, ratio: float = 1.0, look: int | None = 1, runs: int | None = None) -> Verdict:
        """Return the verdict on the first `runs` of an experiment, the candidate `ratio` times as slow."""
        return decide([self._question(at, ratio, runs)], 0.95, look)[0]

    def passes_with_gate(self, at: int) -> bool:
        """Return whether an experiment passes as a whole, where `stalls over 500 ms` are limited to 10 %."""
        stalls = (self.worst_candidate[at] > _GATE_MS).astype(float).tolist()
        gate = Question("at_most_share_of_runs", 0.1, [], stalls)
        return {each.outcome for each in decide([self._question(at), gate], 0.95, 1)} == {"PASS"}

    def _question(self, at: int, ratio: float = 1.0, runs: int | None = None) -> Question:
        base, worst_base = (side[at, :runs].tolist() for side in (self.baseline, self.worst_baseline))
        cand, worst_cand = (
            (side[at, :runs] * ratio).tolist() for side in (self.candidate, self.worst_candidate)
        )
        doubted = find_far_worse(base, cand) or find_far_worse(worst_base, worst_cand)
        doubts = ("It stalled.",) if doubted else ()
        return Question("at_most_ratio", LIMIT, base, cand, is_paired=True, doubts=doubts)


@lru_cache(maxsize=64)
def figures(world: World, experiments: int, seed: int = 7) -> Figures:
    """Simulate `experiments` of a world."""
    random = np.random.default_rng(seed)
    shape = (experiments * 2 * world.repeats, world.requests)
    position = (rank(PERCENTILES[world.metric], world.requests) or 1) - 1
    values, worst, hit = [], [], []
    per_batch = max(1, 4_000_000 // (world.requests * 2 * world.repeats))
    for first in range(0, experiments, per_batch):
        count = min(per_batch, experiments - first) * 2 * world.repeats
        logs = SHAPES[world.shape](random, (count, shape[1]))
        logs += np.float32(world.spread) * random.standard_normal((count, 1), dtype=np.float32)
        response_ms = np.exp(logs, out=logs)
        response_ms *= np.float32(TYPICAL_MS)
        candidate = np.arange(count) % 2 == 1
        stalled = candidate & (random.random(count) < world.stalls)
        if stalled.any():
            _stall(random, response_ms, stalled)
        found = worst_us(response_ms)
        assert found is not None
        worst.append(found)
        values.append(np.partition(response_ms, position, axis=1)[:, position])
        hit.append(stalled)
    runs = np.concatenate(values).astype(np.float64).reshape(experiments, world.repeats, 2)
    worst_runs = np.concatenate(worst).astype(np.float64).reshape(runs.shape)
    return Figures(
        runs[..., 0],
        runs[..., 1],
        worst_runs[..., 0],
        worst_runs[..., 1],
        np.concatenate(hit).reshape(runs.shape)[..., 1],
    )


def _stall(random: Random, response_ms: Array, stalled: NDArray[np.bool_]) -> None:
    """Let the requests that are due in one second wait for its end."""
    waited = np.linspace(STALL_MS, STALL_MS / STALLED, STALLED, dtype=np.float32)
    for run in np.flatnonzero(stalled):
        start = int(random.integers(0, response_ms.shape[1] - STALLED))
        response_ms[run, start : start + STALLED] += waited


@dataclass(frozen=True)
class Unequal:
    """Runs of two lengths: the candidate has `fewer` requests, at the same rate if `shorter`, else rarer."""

    shape: str
    requests: int
    fewer: int
    shorter: bool
    spread: float = 0.1
    repeats: int = 4

    def outcome(self, random: Random) -> tuple[tuple[bool, bool], tuple[bool, bool]]:
        """Return (wrong PASS, wrong FAIL) at the limit: as runs come, and when they are cut alike."""
        logs = SHAPES[self.shape](random, (2 * self.repeats, self.requests))
        logs += np.float32(self.spread) * random.standard_normal((2 * self.repeats, 1), dtype=np.float32)
        micros = np.minimum(np.exp(logs) * TYPICAL_MS * 1000, _MOST_US).astype(np.uint32)
        due_ms = np.arange(self.requests, dtype=np.uint32) * 50
        kept = (
            slice(0, self.fewer)
            if self.shorter
            else np.sort(random.choice(self.requests, self.fewer, replace=False))
        )
        nothing = np.zeros(self.requests, dtype=np.uint16)
        runs = [
            KeptRequests(
                due_ms[which], each[which], nothing[: len(each[which])], nothing[: len(each[which])] > 0
            )
            for at, each in enumerate(micros)
            for which in [slice(None) if at % 2 == 0 else kept]
        ]
        ppm = PERCENTILES["p99.9"]
        return self._judged(runs), self._judged(cut_alike(runs, ppm) or runs)

    def _judged(self, runs: list[KeptRequests]) -> tuple[bool, bool]:
        values = [_p999(run) * (1 if at % 2 == 0 else LIMIT) for at, run in enumerate(runs)]
        question = Question("at_most_ratio", LIMIT, values[::2], values[1::2], is_paired=True)
        outcome = decide([question], 0.95, 1)[0].outcome
        return outcome == "PASS", outcome == "FAIL"


def _p999(run: KeptRequests) -> float:
    position = (rank(PERCENTILES["p99.9"], len(run.response_us)) or 1) - 1
    return float(np.partition(run.response_us, position)[position]) / 1000


@contextmanager
def fewer_arrangements() -> Iterator[None]:
    """Draw fewer arrangements than `compare` does, and keep them: many experiments in little time."""
    with (
        patch.object(permutation, "MOST_EXACT", _ARRANGEMENTS),
        patch.object(sequential, "MOST_REDEALT", _ARRANGEMENTS),
        patch.object(sequential, "_dealings", lru_cache(maxsize=256)(sequential._dealings.__wrapped__)),
        patch.object(permutation, "_exchanges", lru_cache(maxsize=256)(permutation._exchanges.__wrapped__)),
        patch.object(
            permutation,
            "_block_exchanges",
            lru_cache(maxsize=256)(permutation._block_exchanges.__wrapped__),
        ),
        patch.object(permutation, "_flips", lru_cache(maxsize=256)(permutation._flips.__wrapped__)),
    ):
        yield


@contextmanager
def without_forecasts() -> Iterator[None]:
    """Leave out how many more runs would decide: it takes most of the time, and decides nothing."""
    with (
        patch.object(PermutationTest, "runs_to_decide", return_value=None),
        patch.object(PermutationTest, "found_from", return_value=None),
    ):
        yield
