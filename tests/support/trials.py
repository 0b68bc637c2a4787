"""Experiments with factors whose truth is known, made up."""

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence

from plimsoll.analysis.statistics.factors import Trial, effects

LEVELS = {
    "backend": ["nvme"],
    "recordsize": ["128K", "16K"],
    "scheduler": ["none", "bfq", "kyber"],
    "arc": ["1G", "4G"],
}
NOISE = 0.15  # of the logarithm, from run to run

Truth = Callable[[Mapping[str, str]], float]


def nothing(_: Mapping[str, str]) -> float:
    """The truth where no level does anything."""
    return 1.0


def trials(
    seed: int,
    levels: Mapping[str, Sequence[str]],
    truth: Truth,
    repeats: int = 4,
    drift: float = 0.0,
    lasting: float = 0.5,
    mirrored: bool = True,
) -> list[Trial]:
    """One experiment: each repeat in an order of its own, every second one back if `mirrored`.

    There is noise, of which the next run has a share that is `lasting`, as where a disk is busy with
    something else; one run in twenty stalls; and from run to run all becomes slower by `drift`.
    """
    draw = random.Random(seed)
    every = [dict(zip(levels, each, strict=True)) for each in itertools.product(*levels.values())]
    found, at, hangover = list[Trial](), 0, 0.0
    for repeat in range(1, repeats + 1):
        every = every[::-1] if mirrored and repeat % 2 == 0 else draw.sample(every, len(every))
        for point in every:
            hangover = lasting * hangover + draw.gauss(0, NOISE)
            stall = draw.random() < 0.05
            log = math.log(500 * truth(point)) + hangover + drift * at + stall * draw.uniform(0, 4 * NOISE)
            found.append(Trial(point, repeat, math.exp(log)))
            at += 1
    return found


def tells_an_effect(found: Sequence[Trial], levels: Mapping[str, Sequence[str]]) -> bool:
    """Return whether any change of a level is found to be one."""
    return any(change.outcome != "noise" for effect in effects(found, levels) for change in effect.changes)
