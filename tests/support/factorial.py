"""Run directories as an experiment with factors leaves them: each repeat in an order of its own."""

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.experiment import FAST, rewrite, write_one

Ms = Callable[[Mapping[str, str]], float]


def write_factorial(
    folder: Path,
    levels: Mapping[str, Sequence[str]],
    stall_ms: Ms,
    *,
    repeats: int = 4,
    goal_ms: float | None = None,
    send_mb_s: Ms = lambda _: 90.0,
    noise: float = 0.05,
    scenario: str = "replay",
    per_s: float = 60.0,
) -> list[Path]:
    """Write a run a combination and repeat; `stall_ms` is how long slow requests take at its levels."""
    draw = random.Random(5)
    every = [dict(zip(levels, each, strict=True)) for each in itertools.product(*levels.values())]
    found: list[Path] = []
    for repeat in range(1, repeats + 1):
        for point in draw.sample(every, len(every)):
            number = len(found) + 1
            backend = "-".join(point.values()).lower().replace(" ", "-").replace("/", "-")
            kind = FAST | {
                "stall_ms": stall_ms(point) * math.exp(draw.gauss(0, noise)),
                "share": 0.02,
                "send_mb_s": send_mb_s(point),
                "per_s": per_s,
            }
            path = write_one(
                folder / f"{number:04d}-{scenario}--{backend}--{repeat}",
                backend,
                repeat,
                number=(number, repeats * len(every)),
                experiment="sweep",
                scenario=scenario,
                **kind,
            )
            goal = {} if goal_ms is None else {"goal_ms": goal_ms}
            experiment = {"name": "sweep", "run": number, "of": repeats * len(every), "levels": levels} | goal
            rewrite(path, factors=point, experiment=experiment)
            found.append(path)
    return found
