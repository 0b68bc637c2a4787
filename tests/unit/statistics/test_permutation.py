"""Permutation tests and the error they may spend: against all arrangements, scipy and printed tables."""

import math
from collections.abc import Callable
from itertools import combinations, product
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test

from plimsoll.analysis.statistics import permutation
from plimsoll.analysis.statistics.permutation import (
    Evidence,
    PermutationTest,
    adjust_by_holm,
    error_of_look,
    in_blocks,
    levels_of_each,
    paired,
    step_down,
    t_cdf,
    t_quantile,
    unpaired,
)

# scipy 1.17.1, scipy.stats.permutation_test, n_resamples=inf, of the difference of means, the shift taken off
# the candidate's values: (test, baseline, candidate, shift, p of "greater", p of "less").
SCIPY = [
    ("independent", [1, 2, 3, 4], [5, 6, 7, 8], 0, 0.0142857143, 1.0),
    ("independent", [1, 2, 3, 4], [5, 6, 7, 8], 1.5, 0.0285714286, 0.9857142857),
    ("independent", [1, 4, 2, 9], [3, 8, 5, 7], 0, 0.2428571429, 0.8285714286),
    ("independent", [1, 4, 2, 9], [3, 8, 5, 7], 1.5, 0.4857142857, 0.5571428571),
    ("independent", [10.5, 11, 9.7, 10.2, 10.9], [10.1, 9.9, 12.4, 11.6], 0, 0.2142857143, 0.8253968254),
    ("independent", [10.5, 11, 9.7, 10.2, 10.9], [10.1, 9.9, 12.4, 11.6], 1.5, 0.9285714286, 0.0873015873),
    ("independent", [2, 2, 2, 3], [2, 3, 3, 3], 0, 0.2428571429, 0.9857142857),
    ("independent", [2, 2, 2, 3], [2, 3, 3, 3], 1.5, 1.0, 0.0142857143),
    ("samples", [1, 2, 3, 4, 5, 6], [2, 3.5, 2.5, 6, 7, 5.5], 0, 0.078125, 0.953125),
    ("samples", [1, 2, 3, 4, 5, 6], [2, 3.5, 2.5, 6, 7, 5.5], 0.4, 0.171875, 0.84375),
    ("samples", [5, 5, 5, 5, 5], [6, 7, 8, 9, 10], 0, 0.03125, 1.0),
    ("samples", [5, 5, 5, 5, 5], [6, 7, 8, 9, 10], 0.4, 0.03125, 1.0),
]


# Eighths are exact in binary, so that ties are ties.
VALUES = st.lists(st.integers(-40, 40).map(lambda n: n / 8), min_size=2, max_size=4)
SHIFTS = st.integers(-40, 40).map(lambda n: n / 8 + 1 / 16)


def by_scipy(
    kind: str, data: tuple[list[float], ...], statistic: Callable[..., float]
) -> tuple[float, float]:
    """scipy's p of "greater" and of "less", of all arrangements."""
    alternatives = ("greater", "less")
    found = [
        permutation_test(
            data,
            statistic,
            permutation_type=kind,
            n_resamples=math.inf,
            alternative=alternative,
            vectorized=False,
        ).pvalue
        for alternative in alternatives
    ]
    return float(found[0]), float(found[1])


@given(VALUES, VALUES)
def test_any_two_sides_give_what_scipy_gives(x: list[float], y: list[float]) -> None:
    evidence = unpaired(x, y)
    expected = by_scipy("independent", (y, x), lambda b, a: fmean(b) - fmean(a))
    assert (evidence.p_above(0), evidence.p_below(0)) == pytest.approx(expected)


@given(VALUES)
def test_any_pairs_give_what_scipy_gives(differences: list[float]) -> None:
    evidence = paired(differences)
    expected = by_scipy("samples", (differences,), fmean)
    assert (evidence.p_above(0), evidence.p_below(0)) == pytest.approx(expected)


def counted_unpaired(x: list[float], y: list[float], shift: float) -> tuple[float, float]:
    """p of "the shift is `shift` or less" and of "… or more", by going through all arrangements."""
    pool = [*x, *(value - shift for value in y)]
    seen = fmean(pool[len(x) :]) - fmean(x)
    found = []
    for chosen in combinations(range(len(pool)), len(y)):
        ours = [pool[at] for at in chosen]
        theirs = [pool[at] for at in range(len(pool)) if at not in chosen]
        found.append(fmean(ours) - fmean(theirs))
    return _shares(found, seen)


def counted_paired(d: list[float], shift: float) -> tuple[float, float]:
    moved = [value - shift for value in d]
    signs = product((1, -1), repeat=len(d))
    found = [fmean(sign * value for sign, value in zip(each, moved, strict=True)) for each in signs]
    return _shares(found, fmean(moved))


def _shares(found: list[float], seen: float) -> tuple[float, float]:
    above = sum(value >= seen - 1e-12 for value in found) / len(found)
    below = sum(value <= seen + 1e-12 for value in found) / len(found)
    return above, below


@pytest.mark.parametrize(("kind", "x", "y", "shift", "greater", "less"), SCIPY)
def test_p_is_as_scipy_has_it(
    kind: str, x: list[float], y: list[float], shift: float, greater: float, less: float
) -> None:
    found = unpaired(x, y) if kind == "independent" else paired([b - a for a, b in zip(x, y, strict=True)])
    assert found.exact
    assert found.p_above(shift) == pytest.approx(greater, abs=1e-9)
    assert found.p_below(shift) == pytest.approx(less, abs=1e-9)


@given(VALUES, VALUES, SHIFTS)
def test_p_is_the_share_of_all_arrangements(x: list[float], y: list[float], shift: float) -> None:
    found = unpaired(x, y)
    assert found.arrangements == math.comb(len(x) + len(y), len(y))
    assert (found.p_above(shift), found.p_below(shift)) == pytest.approx(counted_unpaired(x, y, shift))


@given(VALUES, SHIFTS)
def test_p_of_pairs_is_the_share_of_all_signs(d: list[float], shift: float) -> None:
    found = paired(d)
    assert found.arrangements == 2 ** len(d)
    assert (found.p_above(shift), found.p_below(shift)) == pytest.approx(counted_paired(d, shift))


@given(VALUES, VALUES, st.sampled_from([0.05, 0.1, 0.2, 0.3]))
def test_a_confidence_limit_is_where_the_test_begins_to_reject(
    x: list[float], y: list[float], alpha: float
) -> None:
    found = unpaired(x, y)
    lower, upper = found.lower(alpha), found.upper(alpha)
    if found.least_p > alpha:
        assert lower is None
        assert upper is None
        return
    assert lower is not None
    assert upper is not None
    assert found.p_above(lower - 1e-6) <= alpha < found.p_above(lower + 1e-6)
    assert found.p_below(upper + 1e-6) <= alpha < found.p_below(upper - 1e-6)


def test_four_runs_a_side_have_seventy_arrangements() -> None:
    found = unpaired([1, 2, 3, 4], [5, 6, 7, 8])
    assert found.arrangements == 70
    assert found.least_p == pytest.approx(1 / 70)
    assert found.estimate == 4
    assert paired([1.0, 2, 3, 4]).least_p == 1 / 16


@pytest.mark.parametrize("make", [unpaired, lambda x, y: paired(np.subtract(y, x).tolist())])
def test_many_arrangements_are_drawn_and_agree_with_all(
    make: Callable[[list[float], list[float]], Evidence], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(5)
    x, y = random.normal(0, 1, 9).tolist(), random.normal(0.4, 1, 9).tolist()
    whole = make(x, y)
    monkeypatch.setattr(permutation, "MOST_EXACT", 500)
    drawn = make(x, y)
    assert whole.exact
    assert not drawn.exact
    assert drawn.arrangements == 500
    for shift in (-0.5, 0.0, 0.4, 1.0):
        assert drawn.p_above(shift) == pytest.approx(whole.p_above(shift), abs=0.08)
        assert drawn.p_above(shift) > 0
    assert make(x, y).thresholds.tolist() == drawn.thresholds.tolist(), "the same draw each time"


HOLM = [
    ("one is as it is", [0.03], [0.03]),
    ("the smallest counts for all", [0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
    ("none falls below one that was smaller", [0.02, 0.021], [0.04, 0.04]),
    ("none exceeds 1", [0.9, 0.8], [1.0, 1.0]),
    ("none", [], []),
]


@pytest.mark.parametrize(("what", "p_values", "adjusted"), HOLM, ids=[row[0] for row in HOLM])
def test_holm(what: str, p_values: list[float], adjusted: list[float]) -> None:
    assert adjust_by_holm(p_values) == pytest.approx(adjusted), what


CLEAR = [10.0, 10.2, 9.9, 10.1]
FEWEST = [(1, False, 3), (3, False, 4), (4, False, 5), (12, False, 5), (13, False, 6), (46, False, 6)]
FEWEST += [(1, True, 5), (3, True, 6), (12, True, 8)]


@pytest.mark.parametrize(("gates", "alone", "runs"), FEWEST)
def test_how_many_runs_so_many_gates_take(gates: int, alone: bool, runs: int) -> None:
    assert PermutationTest([] if alone else CLEAR, CLEAR, False, 0.05 / gates).fewest_runs() == runs


def test_what_is_found_agrees_with_the_sample_size_of_a_t_test() -> None:
    """A one-sided t test at 0.05 with 14 a side finds 0.965 standard deviations with power 0.8.

    Of four degrees of freedom the median spread is 0.92 of the true one, and that is allowed for.
    """
    root = 1 / math.sqrt(0.5)
    compared = PermutationTest([-root, 0.0, root], [-root, 0.0, root], False, 0.05)
    assert compared.spread(False) == pytest.approx(math.sqrt(2))
    assert compared.found_from(14, 0.05) == pytest.approx(1.3651 / 0.9178, abs=0.001)
    assert PermutationTest([0.0, 1.0], [0.0, 1.0], False, 0.05).found_from(2, 0.05) is None, (
        "p cannot get there"
    )


def test_further_runs_are_foretold_by_what_these_leave_open() -> None:
    few = PermutationTest([-1.0, 0.0, 1.0, 0.0], [-1.0, 0.0, 1.0, 0.0], False, 0.05)
    assert few.runs_to_decide(100.0, 0.05) == 5
    clear, harder, near = (few.runs_to_decide(*asked) for asked in [(1.5, 0.05), (1.5, 0.01), (0.01, 0.05)])
    assert clear is not None
    assert harder is not None
    assert clear < harder
    assert near is None


BLOCKS = st.lists(
    st.lists(st.integers(-40, 40).map(lambda n: n / 8), min_size=4, max_size=4), min_size=1, max_size=3
)


@given(BLOCKS, SHIFTS)
def test_p_in_blocks_is_the_share_of_all_dealings_within_them(
    blocks: list[list[float]], shift: float
) -> None:
    x, y = ([value for block in blocks for value in block[at : at + 2]] for at in (0, 2))
    found = in_blocks(x, y)
    assert found.arrangements == 6 ** len(blocks)
    effects = [_effect(dealt) for dealt in _dealt([[*b[:2], b[2] - shift, b[3] - shift] for b in blocks])]
    assert (found.p_above(shift), found.p_below(shift)) == pytest.approx(_shares(effects, effects[0]))


def _dealt(blocks: list[list[float]]) -> list[list[list[float]]]:
    """All dealings within blocks, the observed one first."""
    ours = [[2, 3], *([a, b] for a, b in combinations(range(4), 2) if (a, b) != (2, 3))]
    each = [
        [[*(b[i] for i in range(4) if i not in pick), *(b[i] for i in pick)] for pick in ours] for b in blocks
    ]
    return [list(one) for one in product(*each)]


def _effect(blocks: list[list[float]]) -> float:
    return fmean(v for b in blocks for v in b[2:]) - fmean(v for b in blocks for v in b[:2])


GATES = st.lists(
    st.lists(st.integers(-40, 40).map(lambda n: n / 8), min_size=8, max_size=8), min_size=1, max_size=3
)


@given(GATES)
def test_the_step_down_is_that_of_westfall_and_young(gates: list[list[float]]) -> None:
    """By their algorithm 4.1, over all arrangements of four values a side."""
    statistics = []
    for gate in gates:
        picks = sorted(combinations(range(8), 4), reverse=True)  # the last four, as observed, come first
        dealt = [2 * fmean(gate[at] for at in pick) - 2 * fmean(gate) for pick in picks]
        spread = math.sqrt(fmean(each**2 for each in dealt))
        statistics.append([each / spread if spread > 1e-9 else 0.0 for each in dealt])
    order = sorted(range(len(gates)), key=lambda at: -statistics[at][0])
    expected, highest = {}, 0.0
    for step, at in enumerate(order):
        left = [max(statistics[other][n] for other in order[step:]) for n in range(70)]
        highest = max(highest, sum(each >= statistics[at][0] - 1e-9 for each in left) / 70)
        expected[at] = highest
    evidence = [unpaired(gate[:4], gate[4:]) for gate in gates]
    found = step_down(evidence, [0.0] * len(gates))
    assert found == pytest.approx([expected[at] for at in range(len(gates))])
    assert max(levels_of_each(evidence, [0.0] * len(gates), 3 / 70)) <= 3 / 70 + 1e-12
    if len(gates) == 1:
        assert found[0] == pytest.approx(evidence[0].p_above(0.0))


def test_all_looks_together_spend_no_more_than_there_is() -> None:
    shares = [error_of_look(0.05, look) for look in range(1, 30)]
    assert sum(shares) == pytest.approx(0.05)
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(3 / 70), "what four runs a side take for three gates"


STUDENT = [(6.314, 1, 0.95), (2.353, 3, 0.95), (1.943, 6, 0.95), (2.571, 5, 0.975), (-2.353, 3, 0.05)]


@pytest.mark.parametrize(("t", "df", "share"), STUDENT)
def test_students_t_is_that_of_the_tables(t: float, df: int, share: float) -> None:
    assert t_cdf(t, df) == pytest.approx(share, abs=1e-4)
    assert t_quantile(share, df) == pytest.approx(t, abs=1e-3)
