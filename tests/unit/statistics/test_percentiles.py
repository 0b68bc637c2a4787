"""Percentiles are order statistics, to the microsecond, with bounds that hold; numpy agrees."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from plimsoll.analysis.statistics.binomial import (
    BinomialTest,
    design_effect,
    largest_count_above,
    upper_bound_ms,
)
from plimsoll.analysis.statistics.percentiles import P999, PERCENTILES, Sample, fewest, narrow, rank
from plimsoll.analysis.statistics.requests import KeptRequests, cut_alike

times = st.lists(st.integers(0, 2**33), min_size=1, max_size=300)


@given(times)
def test_percentiles_are_numpys_inverted_cdf(values: list[int]) -> None:
    sample = Sample.of(narrow(np.array(values)))
    for ppm in PERCENTILES.values():
        found = sample.percentile_ms(ppm)
        if len(values) * (1_000_000 - ppm) < 1_000_000:
            assert found is None
        else:
            assert found == np.quantile(values, ppm / 1_000_000, method="inverted_cdf") / 1000


@given(st.sampled_from(sorted(PERCENTILES.values())), st.integers(0, 10**12))
def test_the_rank_is_the_ceiling_of_q_n_in_exact_arithmetic(ppm: int, n: int) -> None:
    quotient = Fraction(ppm, 1_000_000) * n
    expected = ceil(quotient) if n and n >= 1 / (1 - Fraction(ppm, 1_000_000)) else None
    assert rank(ppm, n) == expected


@given(times)
def test_the_other_figures_agree_with_numpy(values: list[int]) -> None:
    figures = Sample.of(narrow(np.array(values))).figures_ms()
    assert figures["mean"] == pytest.approx(np.mean(values) / 1000)
    assert figures["stddev"] == pytest.approx(np.std(values) / 1000, rel=1e-9, abs=1e-6)
    assert (figures["min"], figures["max"]) == (min(values) / 1000, max(values) / 1000)


def test_a_figure_that_cannot_be_given_is_none() -> None:
    assert set(Sample.of(np.empty(0, dtype=np.uint32)).figures_ms().values()) == {None}
    few = Sample.of(np.arange(999, dtype=np.uint32)).figures_ms()
    assert few["p99"] is not None
    assert few["p99.9"] is None
    assert Sample.of(np.arange(1000, dtype=np.uint32)).figures_ms()["p99.9"] == 0.998
    assert [fewest(ppm) for ppm in PERCENTILES.values()] == [2, 10, 20, 100, 1000, 10_000]


@given(times)
def test_the_curve_is_made_of_order_statistics_and_never_falls(values: list[int]) -> None:
    sample = Sample.of(narrow(np.array(values)))
    curve = sample.curve()
    assert len(curve) <= 240
    assert curve[0] == (1.0, min(values) / 1000)
    assert curve[-1] == (len(values), max(values) / 1000)
    assert [value for _, value in curve] == sorted(value for _, value in curve)
    assert {value for _, value in curve} <= {value / 1000 for value in values}
    assert sample.condensed().curve() == curve


@given(times)
def test_a_condensed_sample_has_the_same_figures(values: list[int]) -> None:
    sample = Sample.of(narrow(np.array(values, dtype=np.uint64)))
    condensed = sample.condensed()
    assert condensed.figures_ms() == sample.figures_ms()
    assert condensed.n == len(values)


def test_times_over_71_minutes_keep_their_microseconds() -> None:
    values = np.array([2**32 + 1, 5], dtype=np.uint64)
    assert Sample.of(narrow(values)).max_ms == (2**32 + 1) / 1000


@pytest.mark.parametrize(
    ("n", "given"), [(0, False), (1000, False), (3687, False), (3688, True), (100_000, True)]
)
def test_an_upper_bound_of_p999_takes_3688_requests(n: int, given: bool) -> None:
    sample = Sample.of(np.arange(n, dtype=np.uint32))
    bound = upper_bound_ms(sample, P999, 1.0)
    assert (bound is not None) is given
    if bound is not None:
        assert bound > (sample.percentile_ms(P999) or 0)


CLUSTERS: list[tuple[str, list[int], float, float]] = [
    ("alone, here and there", list(range(0, 20_000, 1000)), 1.0, 1.5),
    ("all in one stall", list(range(7000, 7020)), 15.0, 25.0),
    ("in two stalls", [*range(3000, 3010), *range(15_000, 15_010)], 8.0, 12.0),
    ("none at all", [], 1.0, 1.0),
]


@pytest.mark.parametrize(("what", "slow", "least", "greatest"), CLUSTERS, ids=[row[0] for row in CLUSTERS])
def test_slow_requests_that_came_together_count_as_fewer(
    what: str, slow: list[int], least: float, greatest: float
) -> None:
    counts = np.bincount(np.array(slow, dtype=np.int64) // 20, minlength=1000)
    assert least <= design_effect(counts, np.full(1000, 20)) <= greatest, what


def test_a_single_stall_bounds_nothing() -> None:
    sample = Sample.of(np.arange(20_000, dtype=np.uint32))
    assert upper_bound_ms(sample, P999, 1.0) is not None
    assert upper_bound_ms(sample, P999, 5.0) is not None
    assert upper_bound_ms(sample, P999, 20.0) is None, "twenty requests of one stall are one"


@pytest.mark.parametrize("n", [3688, 10_000, 250_000])
def test_the_bound_is_the_first_that_is_sure_enough(n: int) -> None:
    above = largest_count_above(n, P999, 0.025)
    assert above is not None
    pmf = [0.999**n]
    for k in range(above + 1):
        pmf.append(pmf[-1] * (n - k) / (k + 1) * 0.001 / 0.999)
    assert sum(pmf[: above + 1]) <= 0.025 < sum(pmf)


def test_the_bound_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    true_ms = -np.log(0.001)
    covered = sum(
        (upper_bound_ms(Sample.of((random.exponential(1e3, 5000)).astype(np.uint32)), P999, 1.0) or 0)
        >= true_ms - 1e-3
        for _ in range(400)
    )
    assert covered / 400 > 0.95


@pytest.mark.parametrize(("hit", "runs"), [(0, 5), (1, 30), (3, 10), (10, 10)])
def test_the_share_of_runs_is_held_to_its_limit_by_the_binomial_test(hit: int, runs: int) -> None:
    found = BinomialTest(hit, runs, 0.1, 0.05)
    above, below = (binomtest(hit, runs, 0.1, alternative=each) for each in ("greater", "less"))
    assert found.p_above(0.1) == pytest.approx(above.pvalue)
    assert found.p_below(0.1) == pytest.approx(below.pvalue)
    assert found.least_p == pytest.approx(above.pvalue if hit else below.pvalue)
    assert found.lower(0.05) == pytest.approx(above.proportion_ci(0.95).low)
    assert found.upper(0.05) == pytest.approx(below.proportion_ci(0.95).high)


@pytest.mark.parametrize(("hit", "runs", "decide"), [(0, 5, 29), (0, 28, 29), (1, 5, 33), (3, 3, 4)])
def test_the_runs_that_decide_are_the_fewest(hit: int, runs: int, decide: int) -> None:
    assert BinomialTest(hit, runs, 0.1, 0.05).runs_to_decide(0.0, 0.05) == decide


def _times(count: int, length_ms: int) -> KeptRequests:
    due_ms = np.linspace(0, length_ms, count).astype(np.uint32)
    nothing = np.zeros(count, dtype=np.uint16)
    return KeptRequests(due_ms, np.arange(count, dtype=np.uint32), nothing, nothing.astype(np.bool_))


ALIKE: list[tuple[str, tuple[int, int], tuple[int, int], tuple[int, int] | None]] = [
    ("one request fewer is another rank", (2000, 9000), (1999, 9000), (1999, 9000)),
    ("one fewer of very many is none", (200_500, 9000), (200_501, 9000), None),
    ("a shorter run cuts the longer one", (4000, 40_000), (1000, 10_000), (1000, 10_000)),
    ("a rarer load is thinned over all its time", (4000, 10_000), (1000, 10_000), (1000, 10_000)),
]


@pytest.mark.parametrize(("what", "one", "other", "both"), ALIKE, ids=[row[0] for row in ALIKE])
def test_runs_are_cut_alike(
    what: str, one: tuple[int, int], other: tuple[int, int], both: tuple[int, int] | None
) -> None:
    cut = cut_alike([_times(*one), _times(*other)], P999)
    if both is None:
        assert cut is None, what
        return
    assert cut is not None
    for each in cut:
        assert len(each) == both[0], what
        assert each.lasted_ms == pytest.approx(both[1], rel=0.02), what
