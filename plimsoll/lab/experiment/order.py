"""The order of runs: in blocks that are drawn; or, where lab.yml says so, ABBA or random repeats. Pure."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Order = Literal["blocks", "abba", "random"]
Looks = Literal["end", "blocks"]


@dataclass(frozen=True)
class PlannedRun:
    """One scenario on one backend once. Numbers count from 1, in the order of the experiment.

    `block` is None where runs do not come in blocks.
    """

    number: int
    repeat: int
    backend: str
    scenario: str
    block: int | None = None

    @property
    def name(self) -> str:
        """The name of its run directory: sorts by time, and is unique at a glance."""
        return f"{self.number:04d}-{self.scenario}--{self.backend}--{self.repeat}"


def draw_block(places: Sequence[str], draw: random.Random) -> list[str]:
    """Return the sides of one block in an order that is drawn from all arrangements, each as likely.

    `places` names a side as often as it has runs in the block: of two sides with two runs each there are six
    arrangements. What drifts, or comes in waves of any length, favours a side by chance only, and a
    re-dealing of the sides within blocks knows how much. A fixed ABBA has no such chance.
    """
    return draw.sample(places, len(places))


def order_runs(
    backends: Sequence[str],
    scenarios: Sequence[str],
    repeats: int,
    order: Order,
    seed: int,
    *,
    mixed: bool = False,
) -> list[PlannedRun]:
    """Return all runs, which go on each backend through all scenarios.

    With `blocks` every two repeats are a block, with each backend twice; of an odd number, the last is a half
    block, and a single backend has none. With `abba` every second repeat goes backwards; with `random` each
    repeat is a draw of its own.
    With `mixed` the way forth of ABBA is redrawn each time too: else the levels of a factor would follow each
    other, and what disturbs a few runs in a row would count as one level's.
    """
    draw = random.Random(seed)  # noqa: S311 an order, no secret
    in_blocks = order == "blocks" and len(backends) > 1
    sequence: list[tuple[str, int | None]] = []
    around = list(backends)
    for repeat in range(1, repeats + 1, 2 if in_blocks else 1):
        if in_blocks:
            places = [*backends, *(backends if repeat < repeats else ())]
            sequence += [(backend, repeat // 2 + 1) for backend in draw_block(places, draw)]
            continue
        if order == "abba" and repeat % 2 == 0:
            around = around[::-1]
        else:
            around = list(backends)
            if order == "random" or mixed:
                draw.shuffle(around)
        sequence += [(backend, None) for backend in around]
    runs: list[PlannedRun] = []
    done = dict.fromkeys(backends, 0)
    for backend, block in sequence:
        done[backend] += 1
        for scenario in scenarios:
            runs.append(PlannedRun(len(runs) + 1, done[backend], backend, scenario, block))
    return runs
