"""Whether a rehearsal keeps its promise: what it says is found in 4 of 5 cases, in fresh experiments.

    .venv/bin/python -m tests.verdicts.rehearsals 200 --fresh 60

Each simulated rehearsal is followed by fresh experiments of the same world, of as many runs, with a candidate
that is slower by what was promised, and by as many with one that is just within the limit.
"""

import argparse
import math
import statistics
from collections.abc import Callable

import numpy as np

from plimsoll.ab.rehearsal import Rehearsal
from plimsoll.analysis.compare.by_blocks import outcomes_by_blocks
from plimsoll.analysis.compare.decision import Question, decide
from plimsoll.analysis.compare.gates import Gate, Gates
from plimsoll.analysis.statistics.permutation import Values

LIMIT = 1.1
GATE = Gate(scenario="replay", metric="p99.9", at_most_ratio=LIMIT)
GATES = Gates(gates=[GATE])
RUNS_APART = 0.1  # the spread of a run's p99.9, as a logarithm
DEALINGS = 100

World = Callable[[np.random.Generator, int], Values]


def even(draw: np.random.Generator, blocks: int) -> Values:
    """Runs that lie normally around blocks that differ."""
    return draw.normal(0, RUNS_APART, (blocks, 4)) + draw.normal(0, 2 * RUNS_APART, (blocks, 1))


def skewed(draw: np.random.Generator, blocks: int) -> Values:
    """Runs of which some are far slower, as p99.9 of a busy disk has them."""
    return even(draw, blocks) / 2 + draw.exponential(RUNS_APART, (blocks, 4))


def restless(draw: np.random.Generator, blocks: int) -> Values:
    """Runs whose machine is quieter in one block than in the next."""
    return even(draw, blocks) * np.exp(draw.normal(0, 0.5, (blocks, 1)))


WORLDS: dict[str, World] = {"even": even, "skewed": skewed, "restless": restless}


def rehearse(world: World, draw: np.random.Generator, blocks: int, looks: str, dealings: int) -> Rehearsal:
    """Return a rehearsal of so many blocks of that world."""
    values = np.exp(world(draw, blocks))
    return Rehearsal(GATES, ((GATE, "at_most_ratio"),), (values[None],), 60, looks, dealings=dealings)


def fails(world: World, draw: np.random.Generator, blocks: int, looks: str, ratio: float) -> bool:
    """Return whether a fresh experiment fails a candidate that is so many times slower."""
    values = np.exp(world(draw, blocks))
    question = Question(
        "at_most_ratio",
        LIMIT,
        values[:, :2].ravel().tolist(),
        (ratio * values[:, 2:]).ravel().tolist(),
        runs_of="replay",
        in_blocks=True,
    )
    if looks == "blocks":
        return outcomes_by_blocks([question], GATES.confidence, blocks) == ["FAIL"]
    return decide([question], GATES.confidence, is_last=True)[0].outcome == "FAIL"


def study(world: str, blocks: int, looks: str, tries: int, fresh: int, seed: int = 1) -> dict[str, float]:
    """Return how often what was promised was found, in the mean, and how often an alarm was false."""
    draw, kind = np.random.default_rng([seed, blocks]), WORLDS[world]
    found, alarms, twice, promised, ranges = [], [], [], [], []
    for _ in range(tries):
        rehearsal = rehearse(kind, draw, blocks, looks, DEALINGS)
        ratio, double = rehearsal.finds_from, rehearsal.foretold(4 * blocks)
        between = rehearsal.finds_range()
        assert ratio is not None
        assert double is not None
        assert between is not None
        promised.append(ratio)
        ranges.append(between)
        found.append(statistics.fmean(fails(kind, draw, blocks, looks, ratio) for _ in range(fresh)))
        alarms.append(statistics.fmean(fails(kind, draw, blocks, looks, LIMIT) for _ in range(fresh)))
        if looks == "blocks" and blocks <= 3:
            twice.append(statistics.fmean(fails(kind, draw, 2 * blocks, looks, double) for _ in range(fresh)))
    true = truly_found(kind, draw, blocks, looks)
    return {
        "found": statistics.fmean(found),
        "error": statistics.stdev(found) / math.sqrt(tries),
        "least": float(np.quantile(found, 0.05)),
        "most": float(np.quantile(found, 0.95)),
        "alarms": statistics.fmean(alarms),
        "with_twice_the_runs": statistics.fmean(twice) if twice else math.nan,
        "promised": statistics.median(promised),
        "true": true,
        "range_holds_it": statistics.fmean(low <= true <= high for low, high in ranges),
    }


def truly_found(world: World, draw: np.random.Generator, blocks: int, looks: str) -> float:
    """Return what is truly found in 4 of 5 cases, by fresh experiments alone."""
    low, high = math.log(LIMIT), math.log(LIMIT) + 40 * RUNS_APART
    for _ in range(9):
        middle = (low + high) / 2
        share = statistics.fmean(fails(world, draw, blocks, looks, math.exp(middle)) for _ in range(400))
        low, high = (low, middle) if share >= 0.8 else (middle, high)
    return math.exp(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tries", type=int)
    parser.add_argument("--fresh", type=int, default=60)
    parser.add_argument("--worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--blocks", nargs="*", type=int, default=[2, 4, 8])
    parser.add_argument("--looks", nargs="*", default=["blocks", "end"])
    asked = parser.parse_args()
    for world in asked.worlds:
        for blocks in asked.blocks:
            for looks in asked.looks:
                result = study(world, blocks, looks, asked.tries, asked.fresh)
                told = " ".join(f"{name} {value:.3f}" for name, value in result.items())
                print(f"{world}, {2 * blocks} runs a side, {looks}: {told}", flush=True)


if __name__ == "__main__":
    main()
