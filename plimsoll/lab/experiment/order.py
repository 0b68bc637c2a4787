"""The order of the runs. Pure."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PlannedRun:
    """One scenario on one backend once. Numbers count from 1, in the order of the experiment."""

    number: int
    repeat: int
    backend: str
    scenario: str

    @property
    def name(self) -> str:
        """The name of its run directory: sorts by time, and is unique at a glance."""
        return f"{self.number:04d}-{self.scenario}--{self.backend}--{self.repeat}"


def runs_in_order(
    backends: Sequence[str],
    scenarios: Sequence[str],
    repeats: int,
    order: Literal["abba", "random"],
    seed: int,
    *,
    mixed: bool = False,
) -> list[PlannedRun]:
    """Return all runs. Each repeat goes over all backends, and on each through all scenarios.

    With `abba` every second repeat goes backwards, so that what drifts over the hours hits all backends
    alike; with `random` each repeat is a draw of its own (a randomised block). With `mixed` the way forth is
    drawn anew each time too: else the levels of a factor would follow each other in blocks, and what disturbs
    a few runs in a row would count as one level's.
    """
    draw = random.Random(seed)  # noqa: S311 an order, no secret
    runs: list[PlannedRun] = []
    around = list(backends)
    for repeat in range(1, repeats + 1):
        if order == "abba" and repeat % 2 == 0:
            around = around[::-1]
        else:
            around = list(backends)
            if order == "random" or mixed:
                draw.shuffle(around)
        runs += [
            PlannedRun(len(runs) + i, repeat, backend, scenario)
            for i, (backend, scenario) in enumerate(((b, s) for b in around for s in scenarios), 1)
        ]
    return runs
