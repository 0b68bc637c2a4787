"""How sure a lead is: equals are seldom told apart, though the best of them was chosen by its figures."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from plimsoll.analysis.statistics.factors import Distance, distance


def distances(sides: Sequence[Sequence[float]], in_pairs: bool) -> list[Distance]:
    best, *others = sorted(sides, key=lambda side: sum(side) / len(side))
    return [distance(best, other, in_pairs, len(sides)) for other in others]


@pytest.mark.parametrize(
    ("sides", "runs", "in_pairs"), [(2, 4, False), (2, 7, True), (3, 5, False), (4, 6, False), (3, 9, True)]
)
def test_equals_are_seldom_told_apart(sides: int, runs: int, in_pairs: bool) -> None:
    """At most 5 % of experiments may call the best of equals faster; three standard errors over 600."""
    random = np.random.default_rng(sides * 100 + runs)
    wrong = 0
    for _ in range(600):
        values = [list(random.normal(4, 0.3, runs)) for _ in range(sides)]
        wrong += any(each.outcome == "clear" for each in distances(values, in_pairs))
    assert wrong / 600 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 600)


def test_the_interval_holds_what_is_true() -> None:
    """Of 400 experiments at most 5 % may have the true ratio, 2, outside; three standard errors."""
    random = np.random.default_rng(7)
    outside = 0
    for _ in range(400):
        sides = [list(random.normal(level, 0.2, 6)) for level in (1, 1 + math.log(2))]
        found = distance(sides[0], sides[1], False, 2)
        assert found.lower is not None
        assert found.upper is not None
        outside += not found.lower <= 2 <= found.upper
    assert outside / 400 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize(
    ("runs", "sides", "outcome", "needs"),
    [
        (1, 2, "too few runs", 4),
        (3, 2, "too few runs", 4),
        (4, 2, "clear", 4),
        (4, 3, "too few runs", 5),
        (5, 3, "clear", 5),
    ],
)
def test_more_sides_ask_for_more_runs(runs: int, sides: int, outcome: str, needs: int) -> None:
    found = distance([at / 10 for at in range(runs)], [9 + at / 10 for at in range(runs)], False, sides)
    assert (found.outcome, found.needs) == (outcome, needs)
