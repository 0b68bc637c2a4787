"""What factors did, and which backend leads, where the truth is known: noise is called noise."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from plimsoll.analysis.statistics.factors import Distance, Trial, distance, effects, ranking
from tests.support.trials import LEVELS, nothing, tells_an_effect, trials

SWEEP = {"backend": ["nvme"], "rate": ["10", "20", "40", "80"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("levels", "drift"),
    [(LEVELS, 0.0), (LEVELS, 0.01), (SWEEP, 0.0), (SWEEP, 0.02)],
    ids=["three factors", "three factors, with drift", "one factor", "one factor, with drift"],
)
def test_where_nothing_does_anything_five_experiments_in_a_hundred_say_otherwise(
    levels: Mapping[str, Sequence[str]], drift: float
) -> None:
    many = 100
    wrong = apart = 0
    for seed in range(many):
        found = trials(seed, levels, nothing, drift=drift)
        wrong += tells_an_effect(found, levels)
        apart += any(each.against and not each.noise for each in ranking(found))
    assert wrong <= 13  # 5 in 100, and what chance adds to that once in a thousand times
    assert apart <= 13


@pytest.mark.slow
def test_what_does_something_is_found_with_its_size_and_what_does_nothing_is_not() -> None:
    def truth(point: Mapping[str, str]) -> float:
        return (0.6 if point["recordsize"] == "16K" else 1.0) * (1.4 if point["scheduler"] == "bfq" else 1.0)

    many, found_both, covered, wrong = 100, 0, 0, 0
    for seed in range(many):
        changes = {
            (change.factor, change.to): change
            for effect in effects(trials(seed, LEVELS, truth), LEVELS)
            for change in effect.changes
        }
        size, bfq = changes["recordsize", "16K"], changes["scheduler", "bfq"]
        found_both += (size.outcome, bfq.outcome) == ("faster", "slower")
        covered += (size.ratio.lower or 0) <= 0.6 <= (size.ratio.upper or 0)
        wrong += changes["arc", "4G"].outcome != "noise"
    assert found_both >= 90
    assert covered >= 90
    assert wrong <= 9


def test_the_largest_effect_comes_first_and_the_fastest_combination_too() -> None:
    def truth(point: Mapping[str, str]) -> float:
        return (3.0 if point["arc"] == "1G" else 1.0) * (1.5 if point["recordsize"] == "128K" else 1.0)

    found = trials(1, LEVELS, truth)
    assert [effect.factor for effect in effects(found, LEVELS)] == ["arc", "recordsize", "scheduler"]
    ranked = ranking(found)
    assert (ranked[0].levels["arc"], ranked[0].levels["recordsize"]) == ("4G", "16K")
    assert (ranked[-1].levels["arc"], ranked[-1].levels["recordsize"]) == ("1G", "128K")
    assert ranked[0].against is None
    assert not ranked[-1].noise
    assert [each.figure.value for each in ranked] == sorted(each.figure.value for each in ranked)


def test_drift_over_hours_is_no_effect_since_repeats_go_forth_and_back() -> None:
    found = trials(3, {"arc": ["1G", "4G"], "recordsize": ["128K", "16K"]}, nothing, drift=0.1)
    changes = effects(found, {"arc": ["1G", "4G"], "recordsize": ["128K", "16K"]})
    assert {change.outcome for effect in changes for change in effect.changes} == {"noise"}


@pytest.mark.parametrize(
    ("repeats", "outcome"), [(1, "too few"), (2, "too few"), (3, "too few"), (4, "slower"), (6, "slower")]
)
def test_few_runs_are_told_to_be_few(repeats: int, outcome: str) -> None:
    levels = {"arc": ["4G", "1G"]}
    found = trials(1, levels, lambda point: 8.0 if point["arc"] == "1G" else 1.0, repeats)
    (effect,) = effects(found, levels)
    assert effect.changes[0].outcome == outcome
    assert (effect.changes[0].ratio.lower is None) == (outcome == "too few")
    assert ranking(found)[0].runs == repeats


def test_only_runs_that_differ_in_nothing_else_are_held_against_each_other() -> None:
    listed = [
        Trial({"recordsize": size, "arc": arc}, repeat, value)
        for repeat in range(1, 7)
        for size, arc, value in [("128K", "1G", 100.0 + repeat), ("16K", "4G", 50.0 + repeat)]
    ]
    assert effects(listed, {"recordsize": ["128K", "16K"], "arc": ["1G", "4G"]}) == []
    assert len(ranking(listed)) == 2


def test_a_factor_of_one_backend_alone_is_held_against_that_backend_alone() -> None:
    levels = {"backend": ["zfs", "ext4"], "recordsize": ["128K", "16K"]}
    found = [
        Trial(point, repeat, value * (1 + repeat / 100))
        for repeat in range(1, 9)
        for point, value in [
            ({"backend": "zfs", "recordsize": "128K"}, 200.0),
            ({"backend": "zfs", "recordsize": "16K"}, 100.0),
            ({"backend": "ext4"}, 900.0),
        ]
    ]
    (effect,) = effects(found, levels)
    assert (effect.factor, effect.changes[0].pairs) == ("recordsize", 8)
    assert effect.changes[0].ratio.value == pytest.approx(0.5)


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
