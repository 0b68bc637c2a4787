"""How often comparisons are right and wrong while a site drifts, simulated: tables of docs/statistics.md.

    nice python -m tests.verdicts.drifts > tables.md

Each comparison goes through the very code that `plimsoll compare` uses. Runs come in blocks of four whose
order is drawn, as the lab does; ABBA, which it did before, shows why.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.compare.decision import Question, Verdict, decide, overall
from tests.verdicts.study import Table, markdown, percent, rare
from tests.verdicts.worlds import fewer_arrangements, without_forecasts

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
_WAVE, _ALIKE = "a wave of 15 % as long as ABBA", "neighbours alike (AR(1), 0.7, 15 %)"
NOISES: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda random, runs: random.normal(0, SPREAD, runs),
    "heavy tails (t, 3)": lambda random, runs: random.standard_t(3, runs) * SPREAD / math.sqrt(3),
    "skewed (exponential)": lambda random, runs: (random.exponential(1, runs) - 1) * SPREAD,
}


@dataclass(frozen=True)
class World:
    """What the runs of a simulated experiment are like, `repeats` of them a side, an even number.

    `gates` have the correlation 0.5 between them.
    """

    repeats: int
    drift: str = "none"
    noise: str = "normal"
    ratio: float = 1.0
    order: Literal["blocks", "abba"] = "blocks"
    noisier: float = 1.0
    scale: float = 1.0
    gates: int = 1

    def comparison(
        self, random: np.random.Generator, limit: float, *, alike: bool = False, others: float = 1.0
    ) -> list[Verdict]:
        """Return the verdicts on one experiment, whose gates but the first are `others` times as slow.

        Runs change sides within their block, or their repeat of ABBA, or if `alike` with any other.
        """
        runs = 2 * self.repeats
        level = DRIFTS[self.drift](random, runs)
        own, common = (
            [NOISES[self.noise](random, runs) * self.scale for _ in range(count)] for count in (self.gates, 1)
        )
        share = 0.5 if self.gates > 1 else 0.0
        block = [False, True, True, False]
        blocks = [random.permutation(block) if self.order == "blocks" else block for _ in range(runs // 4)]
        ours = np.concatenate(blocks)
        asked = []
        for gate, mine in enumerate(own):
            logs = math.sqrt(share) * common[0] + math.sqrt(1 - share) * mine
            logs[ours] = logs[ours] * self.noisier + math.log(self.ratio * (others if gate else 1.0))
            baseline, candidate = (
                np.exp((logs + level)[~ours]).tolist(),
                np.exp((logs + level)[ours]).tolist(),
            )
            in_blocks, paired = ((self.order == which) and not alike for which in ("blocks", "abba"))
            asked.append(
                Question(
                    *("at_most_ratio", limit, baseline, candidate),
                    is_paired=paired,
                    in_blocks=in_blocks,
                    runs_of="replay",
                )
            )
        with without_forecasts():
            return decide(asked, 0.95)


def rates(
    world: World, limit: float, comparisons: int, *, alike: bool = False, seed: int = 7
) -> dict[str, float]:
    """Return how often each verdict of one gate came, and how often the limits held the true ratio."""
    random = np.random.default_rng(seed)
    verdicts = [world.comparison(random, limit, alike=alike)[0] for _ in range(comparisons)]
    held = [v.lower is None or v.lower <= world.ratio * (1 + 1e-9) for v in verdicts]
    held_too = [v.upper is None or v.upper >= world.ratio * (1 - 1e-9) for v in verdicts]
    return {
        **{name: float(np.mean([v.outcome == name for v in verdicts])) for name in ("PASS", "FAIL")},
        "lower": float(np.mean(held)),
        "upper": float(np.mean(held_too)),
    }


def wrong(world: World, comparisons: int, seed: int = 7) -> list[float]:
    """Return how often gates at the limit FAIL, and how often one PASSes beside others that keep theirs."""
    random = np.random.default_rng(seed)
    shares = []
    for others, outcome in ((1.0, "FAIL"), (0.5, "PASS")):
        found = (world.comparison(random, 1.0, others=others) for _ in range(comparisons))
        shares.append(sum(overall([v.outcome for v in each]) == outcome for each in found) / comparisons)
    return shares


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
    yield ["drift", "runs a side", "wrong FAIL", "wrong PASS", "90 % interval holds", "A/A: FAIL at 1.10"]
    for drift in DRIFTS:
        for repeats in (4, 8):
            world = World(repeats, drift)
            at = rates(world, 1.0, comparisons)
            inside = at["lower"] + at["upper"] - 1
            usual = rates(world, 1.1, comparisons)["FAIL"]
            yield [drift, str(repeats), *map(percent, (at["FAIL"], at["PASS"], inside, usual))]


def shapes_table(comparisons: int) -> Iterator[list[str]]:
    yield ["runs", "gates", "runs a side", "wrong FAIL", "wrong PASS"]
    for noise in NOISES:
        for gates in (1, 3):
            for repeats in (4, 8):
                world = World(repeats, noise=noise, gates=gates)
                yield [noise, str(gates), str(repeats), *map(percent, wrong(world, comparisons))]


def apart_table(comparisons: int) -> Iterator[list[str]]:
    yield ["what makes them so", "runs a side", "wrong FAIL", "wrong PASS"]
    for name, world in (
        (f"{_WAVE}, in ABBA", World(0, _WAVE, order="abba")),
        (f"{_ALIKE}, in ABBA", World(0, _ALIKE, order="abba")),
        ("the candidate's runs three times as far apart", World(0, noisier=3)),
    ):
        for repeats in (4, 8):
            yield [name, str(repeats), *map(percent, wrong(replace(world, repeats=repeats), comparisons))]


def power_table(comparisons: int) -> Iterator[list[str]]:
    truths = [("PASS", 1.0), ("PASS", 0.9), ("FAIL", 1.2), ("FAIL", 1.3), ("FAIL", 1.5)]
    heads = [f"{outcome} at ×{ratio:.2f}" for outcome, ratio in truths]
    yield ["drift", "runs a side", *heads]
    for drift in ("none", "steady, 49 % over the experiment", "a random walk, 8 % a run"):
        for repeats in (4, 8):
            found = [rates(World(repeats, drift, ratio=r), 1.1, comparisons)[o] for o, r in truths]
            yield [drift, str(repeats), *(rare(share) for share in found)]


def dealt_table(comparisons: int) -> Iterator[list[str]]:
    yield ["drift", "within blocks", "ABBA, within repeats", "ABBA, all alike"]
    for drift in DRIFTS:
        worlds = [
            (World(8, drift), False),
            *((World(8, drift, order="abba"), alike) for alike in (False, True)),
        ]
        found = [rates(world, 1.1, comparisons, alike=alike)["PASS"] for world, alike in worlds]
        yield [drift, *map(percent, found)]


def pooled_table(comparisons: int) -> Iterator[list[str]]:
    yield ["spread of runs", "requests pooled", "runs compared"]
    for spread in (0.0, 0.05, 0.1, 0.2):
        ours = rates(World(4, scale=spread / SPREAD if spread else 1e-6), 1.0, comparisons)["FAIL"]
        yield [percent(spread), percent(pooled_alarms(spread, comparisons)), percent(ours)]


TABLES: dict[str, Table] = {
    "dealt": dealt_table,
    "errors": errors_table,
    "shapes": shapes_table,
    "not exchangeable": apart_table,
    "power": power_table,
    "pooled": pooled_table,
}

if __name__ == "__main__":
    with fewer_arrangements():
        for name, table in TABLES.items():
            print(f"<!-- {name} -->")
            print("\n".join(markdown(table(COMPARISONS))), end="\n\n", flush=True)
