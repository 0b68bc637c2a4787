"""The test of a stated plan: exact through all looks, faithful to its decisions, inverted by its interval."""

import math
from collections.abc import Iterator
from itertools import combinations, product
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

from plimsoll.analysis.statistics import sequential
from plimsoll.analysis.statistics.sequential import (
    BlockEvidence,
    first_deciding_block,
    of_blocks,
    of_candidate,
    spent,
    step_down,
)

Sides = NDArray[np.float64]  # of both sides' values: (2, runs)


def deals(blocks: NDArray[np.float64]) -> Iterator[Sides]:
    """Yield both sides' values for every dealing of each block's four values, two to each side."""
    for chosen in product(combinations(range(4), 2), repeat=len(blocks)):
        sides = [
            [block[[at for at in range(4) if (at in places) == mine]] for mine in (False, True)]
            for block, places in zip(blocks, chosen, strict=True)
        ]
        yield np.array(sides).transpose(1, 0, 2).reshape(2, -1)


def draw(blocks: int, seed: int = 3, *, even: bool = False) -> NDArray[np.float64]:
    values = np.random.default_rng(seed).normal(size=(blocks, 4))
    return np.round(values) if even else values


def first(sides: Sides, blocks: int, planned: int) -> BlockEvidence:
    return of_blocks(sides[0, : 2 * blocks], sides[1, : 2 * blocks], planned)


@pytest.mark.parametrize("even", [False, True], ids=["all apart", "with equal values"])
@pytest.mark.parametrize(("planned", "error"), [(2, 0.2), (3, 0.05), (3, 0.13)])
def test_of_all_dealings_no_more_are_rejected_by_any_look_than_may_be(
    planned: int, error: float, even: bool
) -> None:
    every = list(deals(draw(planned, even=even)))
    evidence = [first(each, planned, planned) for each in every]
    for found in (
        [each.look_above(0.0, error) for each in evidence],
        [each.look_below(0.0, error) for each in evidence],
    ):
        for look in range(1, planned + 1):
            rejected = sum(at is not None and at <= look for at in found)
            assert rejected <= spent(error, look / planned) * len(every) + 1e-9
        if not even:  # and nothing that can be spent is left
            assert sum(at is not None for at in found) == math.floor(error * len(every) + 1e-9)


def test_mirrored_values_are_tested_exactly_too() -> None:
    values = draw(4)[:, :2]
    every = [(values * signs).ravel() for signs in product(*[list(product((1, -1), repeat=2))] * 4)]
    found = [of_candidate(each, 4).look_above(0.0, 0.05) for each in every]
    assert sum(at is not None for at in found) == math.floor(0.05 * len(every))


@pytest.mark.parametrize("most", [50_000, 500], ids=["enumerated", "drawn"])
def test_what_a_look_decided_stays_decided(most: int) -> None:
    random = np.random.default_rng(5)
    decided = 0
    with patch.object(sequential, "MOST_REDEALT", most):
        sequential._dealings.cache_clear()
        for shift in np.linspace(-3, 3, 20):
            sides = random.normal(size=(2, 10))
            sides[1] += shift
            at_last = first(sides, 5, 5).look_above(0.0, 0.05)
            by_now = [first(sides, blocks, 5).look_above(0.0, 0.05) for blocks in range(1, 6)]
            assert by_now == [at_last if at_last and at_last <= blocks else None for blocks in range(1, 6)]
            decided += at_last is not None and at_last < 5
    sequential._dealings.cache_clear()
    assert decided > 3


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alone", [False, True])
def test_the_interval_is_what_the_test_does_not_reject(seed: int, alone: bool) -> None:
    values = draw(4, seed)
    evidence = (
        of_candidate(values[:, :2].ravel(), 4)
        if alone
        else of_blocks(values[:, :2].ravel(), values[:, 2:].ravel(), 4)
    )
    for limit, rejected, out in (
        (evidence.lower(0.05), evidence.look_above, -1e-5),
        (evidence.upper(0.05), evidence.look_below, 1e-5),
    ):
        assert limit is not None
        assert rejected(limit + out, 0.05) is not None
        assert rejected(limit - out, 0.05) is None


def test_no_interval_before_a_look_can_decide() -> None:
    sides = draw(4).reshape(2, 8)
    assert first_deciding_block(4, 0.05) == 2
    assert first(sides, 1, 4).lower(0.05) is first(sides, 1, 4).upper(0.05) is None
    assert first(sides, 2, 4).lower(0.05) is not None


@pytest.mark.parametrize(
    ("runs", "error", "arrangements", "decides_from"),
    [
        (8, 0.05, 6, 4),  # of 36 dealings the one is 2.8 %, and half of the plan may spend 3.1 %
        (12, 0.05, 6, 6),
        (4, 0.05, 6, 4),
        (4, 0.02, 6, None),
        (8, 0.05, 4, 6),
        (24, 0.05, 6, 6),
    ],
)
def test_from_which_runs_on_a_plan_can_decide(
    runs: int, error: float, arrangements: int, decides_from: int | None
) -> None:
    block = first_deciding_block(runs // 2, error, arrangements)
    assert (block and 2 * block) == decides_from
    if block is not None:
        far = np.arange(2.0 * runs).reshape(2, runs)
        two_sides = arrangements == 6
        evidence = of_blocks(far[0], far[1], runs // 2) if two_sides else of_candidate(far[1], runs // 2)
        assert evidence.look_above(0.0, error) == block


def test_several_gates_share_one_error_and_the_rest_is_tested_by_itself() -> None:
    blocks = np.stack([draw(3, 1), 0.6 * draw(3, 1) + 0.8 * draw(3, 2)])
    dealt = zip(*(deals(each) for each in blocks), strict=True)
    found = [step_down([first(each, 3, 3) for each in both], [0.0, 0.0], 0.1) for both in dealt]
    assert sum(any(gates) for gates in found) == math.floor(0.1 * len(found)), "of two that are kept"
    one_broken = [
        step_down([first(each, 3, 3), first(each, 3, 3)], [0.0, -100.0], 0.1) for each in deals(blocks[0])
    ]
    assert all(broken for _, broken in one_broken)
    alone = [first(each, 3, 3).look_above(0.0, 0.1) for each in deals(blocks[0])]
    assert [kept for kept, _ in one_broken] == alone, "the broken one costs the other nothing"
