"""How often comparisons are right and wrong while a site drifts, simulated: tables of docs/statistics.md.

    nice python -m tests.verdicts.drifts > tables.md

Each comparison goes through the very code that `plimsoll compare` uses. Runs are in the order ABBA.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.compare.decision import Question, Verdict, decide
from tests.verdicts.study import Table, markdown, percent, rare

Array = NDArray[np.float64]
Drift = Callable[[np.random.Generator, int], Array]

SPREAD = 0.08  # standard deviation of the log of a run's p99.9, without drift
COMPARISONS = 2000


def _still(random: np.random.Generator, runs: int) -> Array:
    return np.zeros(runs)


def _steady(random: np.random.Generator, runs: int) -> Array:
    return np.linspace(0, 0.4, runs)


def _step(random: np.random.Generator, runs: int) -> Array:
    return np.where(np.arange(runs) >= random.integers(1, runs), 0.3, 0.0)


def _walk(random: np.random.Generator, runs: int) -> Array:
    return np.cumsum(random.normal(0, 0.08, runs))


def _alike(random: np.random.Generator, runs: int) -> Array:
    values = random.normal(0, 0.15, runs)
    for at in range(1, runs):
        values[at] = 0.7 * values[at - 1] + math.sqrt(1 - 0.49) * values[at]
    return values


def _wave(random: np.random.Generator, runs: int) -> Array:
    return 0.15 * np.sin(2 * np.pi * (np.arange(runs) / 4 + random.random()))


DRIFTS: dict[str, Drift] = {
    "none": _still,
    "steady, 49 % over the experiment": _steady,
    "a step of 35 % at some run": _step,
    "a random walk, 8 % a run": _walk,
    "neighbours alike (AR(1), 0.7, 15 %)": _alike,
    "a wave of 15 % as long as ABBA": _wave,
}
_WAVE = "a wave of 15 % as long as ABBA"
NOISES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda random, runs: random.normal(0, SPREAD, runs),
    "heavy tails (t, 3)": lambda random, runs: random.standard_t(3, runs) * SPREAD / math.sqrt(3),
    "skewed (exponential)": lambda random, runs: (random.exponential(1, runs) - 1) * SPREAD,
}


@dataclass(frozen=True)
class World:
    """What the runs of a simulated experiment are like."""

    repeats: int
    drift: str = "none"
    noise: str = "normal"
    ratio: float = 1.0
    order: str = "abba"
    noisier: float = 1.0
    scale: float = 1.0

    def comparison(self, random: np.random.Generator, limit: float, is_paired: bool = True) -> Verdict:
        """Return the verdict on one experiment."""
        runs = 2 * self.repeats
        level = DRIFTS[self.drift](random, runs)
        noise = NOISES[self.noise](random, runs) * self.scale
        places = np.arange(runs).reshape(self.repeats, 2)
        later = np.arange(self.repeats) % 2 == 0  # whether the candidate is the second of its repeat
        if self.order == "random":
            later = random.random(self.repeats) < 0.5
        first, second = np.where(later, places.T, places.T[::-1])
        noise[second] *= self.noisier
        logs = level + noise
        logs[second] += math.log(self.ratio)
        baseline, candidate = np.exp(logs[first]).tolist(), np.exp(logs[second]).tolist()
        return decide([Question("at_most_ratio", limit, baseline, candidate, is_paired)], 0.95)[0]


def rates(
    world: World, limit: float, comparisons: int, is_paired: bool = True, seed: int = 7
) -> dict[str, float]:
    """Return how often each verdict came, and how often the limits held the true ratio."""
    random = np.random.default_rng(seed)
    verdicts = [world.comparison(random, limit, is_paired) for _ in range(comparisons)]
    held = [v.lower is None or v.lower <= world.ratio * (1 + 1e-9) for v in verdicts]
    held_too = [v.upper is None or v.upper >= world.ratio * (1 - 1e-9) for v in verdicts]
    return {
        **{name: float(np.mean([v.outcome == name for v in verdicts])) for name in ("PASS", "FAIL")},
        "lower": float(np.mean(held)),
        "upper": float(np.mean(held_too)),
    }


def pooled_alarms(spread: float, comparisons: int, requests: int = 60_000, seed: int = 7) -> float:
    """Return how often two sides that are alike differ at 5 % where the requests of 4 runs are pooled.

    Of each side those are counted that are slower than the p99.9 of all, and the two shares are compared.
    """
    random = np.random.default_rng(seed)
    alarms = 0
    for _ in range(comparisons):
        # a tail in which 1 in 1,000 becomes 1 in 500 where all is 41 % slower, as a Pareto one of index 2
        slower = np.minimum(0.001 * np.exp(2 * random.normal(0, spread, 8)), 1)
        counts = random.binomial(requests, slower)
        ours, theirs = int(counts[:4].sum()), int(counts[4:].sum())
        alarms += (ours - theirs) / math.sqrt(max(ours + theirs, 1)) > 1.645
    return alarms / comparisons


def errors_table(comparisons: int) -> Iterator[list[str]]:
    yield ["drift", "repeats", "wrong FAIL", "wrong PASS", "90 % interval holds", "A/A: FAIL at 1.10"]
    for drift, order in [*((drift, "abba") for drift in DRIFTS), (_WAVE, "random")]:
        for repeats in (4, 6, 8):
            world = World(repeats, drift, order=order)
            at = rates(world, 1.0, comparisons)
            usual = rates(world, 1.1, comparisons)
            inside = at["lower"] + at["upper"] - 1
            cells = [percent(at["FAIL"]), percent(at["PASS"]), percent(inside), percent(usual["FAIL"])]
            named = drift if order == "abba" else f"{drift}, `order: random`"
            yield [named, str(repeats), *cells]


def shapes_table(comparisons: int) -> Iterator[list[str]]:
    yield ["runs", "repeats", "wrong FAIL", "wrong PASS"]
    worlds = [(noise, World(0, noise=noise)) for noise in NOISES if noise != "normal"]
    worlds.append(("candidate's runs three times as far apart", World(0, noisier=3)))
    for name, world in worlds:
        for repeats in (4, 8):
            at = rates(World(repeats, noise=world.noise, noisier=world.noisier), 1.0, comparisons)
            yield [name, str(repeats), percent(at["FAIL"]), percent(at["PASS"])]


def power_table(comparisons: int) -> Iterator[list[str]]:
    truths = [("PASS", 1.0), ("PASS", 0.9), ("FAIL", 1.2), ("FAIL", 1.3), ("FAIL", 1.5)]
    heads = [f"{outcome} at ×{ratio:.2f}" for outcome, ratio in truths]
    yield ["drift", "repeats", *heads]
    for drift in ("none", "steady, 49 % over the experiment", "a random walk, 8 % a run"):
        for repeats in (4, 5, 6, 8, 12):
            found = [rates(World(repeats, drift, ratio=r), 1.1, comparisons)[o] for o, r in truths]
            yield [drift, str(repeats), *(rare(share) for share in found)]


def pairs_table(comparisons: int) -> Iterator[list[str]]:
    yield ["drift", "repeats", "within repeats", "all alike"]
    for drift in DRIFTS:
        for repeats in (6, 8):
            cells = [
                percent(rates(World(repeats, drift), 1.1, comparisons, pairs)["PASS"])
                for pairs in (True, False)
            ]
            yield [drift, str(repeats), *cells]


def pooled_table(comparisons: int) -> Iterator[list[str]]:
    yield ["spread of runs", "requests pooled", "runs compared"]
    for spread in (0.0, 0.05, 0.1, 0.2):
        ours = rates(World(4, scale=spread / SPREAD if spread else 1e-6), 1.0, comparisons)["FAIL"]
        yield [percent(spread), percent(pooled_alarms(spread, comparisons)), percent(ours)]


TABLES: dict[str, Table] = {
    "errors": errors_table,
    "shapes": shapes_table,
    "power": power_table,
    "pairs": pairs_table,
    "pooled": pooled_table,
}

if __name__ == "__main__":
    for name, table in TABLES.items():
        print(f"<!-- {name} -->")
        print("\n".join(markdown(table(COMPARISONS))), end="\n\n", flush=True)
