"""Slow windows and far worse runs: what moves with them is found, and hardly ever what does not."""

import numpy as np
import pytest

from plimsoll.analysis.statistics.stalls import (
    Aligned,
    Floats,
    coincidences,
    excluded_share,
    find_far_worse,
    least_p,
    nice_below,
    slow_limit_ms,
    worst_us,
)


def _drifting(random: np.random.Generator, size: int, memory: float) -> Floats:
    values = np.zeros(size)
    for at in range(1, size):
        values[at] = memory * values[at - 1] + random.normal()
    return values


def _quiet(seed: int, size: int, sources: int, memory: float) -> Aligned[int]:
    """Slow windows in rows, and sources that drift: nothing has to do with anything."""
    random = np.random.default_rng(seed)
    slow = _drifting(random, size, 0.9)
    chosen = slow > np.quantile(slow, 0.9)
    return Aligned(chosen, ~chosen, {n: _drifting(random, size, memory) for n in range(sources)})


NICE = [
    ("one that is a figure already", 3.0, 3.0),
    ("one between two", 3.7, 3.0),
    ("a large one", 6712.0, 6000.0),
    ("a small one", 0.0149, 0.012),
    ("a power of ten by its own rounding", 1000.0, 1000.0),
]


@pytest.mark.parametrize(("what", "value", "below"), NICE, ids=[row[0] for row in NICE])
def test_limits_can_be_read(what: str, value: float, below: float) -> None:
    assert nice_below(value) == pytest.approx(below), what


LIMITS: list[tuple[str, list[float], float | None]] = [
    ("ten stalls of 2 s among windows of 20 ms", [20.0] * 90 + [2000.0] * 10, 200.0),
    ("windows that are all alike", [20.0] * 100, None),
    ("one stall says nothing", [20.0] * 99 + [9000.0], None),
    ("twice as slow is not slow", [20.0] * 90 + [40.0] * 10, None),
    ("ten times as slow, and nobody notices", [3.0] * 90 + [30.0] * 10, None),
    ("as slow as somebody may notice", [3.0] * 90 + [834.0] * 10, 50.0),
    ("no windows at all", [], None),
    ("windows that took no time", [0.0] * 100, None),
]


@pytest.mark.parametrize(("what", "windows", "limit"), LIMITS, ids=[row[0] for row in LIMITS])
def test_from_when_on_a_window_is_slow(what: str, windows: list[float], limit: float | None) -> None:
    assert slow_limit_ms(np.array(windows)) == limit, what


def test_what_moves_with_them_is_found_among_others() -> None:
    run = _quiet(1, 300, 20, 0.9)
    cause = run.slow * 5.0 + np.random.default_rng(2).normal(0, 0.5, 300)
    found = coincidences([Aligned(run.slow, run.quiet, {**run.sources, 99: cause})])
    assert found[99].p <= 0.01
    assert found[99].superiority > 0.95
    assert min(each.p for n, each in found.items() if n != 99) > 0.05


def test_one_coincidence_proves_nothing() -> None:
    """A single stall, and a burst at the same time: at any other time it would be there as well."""
    slow = np.zeros(100, dtype=np.bool_)
    slow[50:58] = True
    found = coincidences([Aligned(slow, ~slow, {"burst": np.where(np.roll(slow, 2), 9.0, 0.0)})])
    assert found["burst"].p > 0.03


def test_repeats_prove_what_one_run_cannot() -> None:
    runs = []
    for start in (10, 50, 33):
        slow = np.zeros(80, dtype=np.bool_)
        slow[start : start + 8] = True
        runs.append(Aligned(slow, ~slow, {"burst": np.where(slow, 9.0, 0.0)}))
    assert coincidences(runs[:1])["burst"].p >= 1 / 80
    assert coincidences(runs)["burst"].p < 0.005
    assert least_p(runs[:1]) == 1 / 80
    assert least_p(runs) < 0.001


ABSENT = [
    ("a source that nobody knows", np.full(60, np.nan)),
    ("a source that is always the same", np.full(60, 3.0)),
]


@pytest.mark.parametrize(("what", "values"), ABSENT, ids=[row[0] for row in ABSENT])
def test_what_never_moves_is_no_source(what: str, values: Floats) -> None:
    slow = np.arange(60) % 10 == 0
    assert coincidences([Aligned(slow, ~slow, {"it": values})]) == {}, what


def test_without_slow_windows_there_is_nothing_to_find() -> None:
    nothing = np.zeros(60, dtype=np.bool_)
    assert coincidences([Aligned(nothing, ~nothing, {"it": np.arange(60.0)})]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("memory", [0.0, 0.9, 0.98])
def test_chance_finds_something_no_more_often_than_it_says(memory: float) -> None:
    """200 quiet runs of 30 sources, in rows of all lengths: p of 5 % comes in 5 % of them."""
    runs = (_quiet(seed, 200, 30, memory) for seed in range(200))
    found = [min(each.p for each in coincidences([run]).values()) for run in runs]
    share = float(np.mean(np.array(found) <= 0.05))
    assert share <= 0.05 + 2 * (0.05 * 0.95 / 200) ** 0.5


WORST: list[tuple[str, list[float], list[float], list[int]]] = [
    ("all alike", [200, 210, 190, 205], [195, 205, 200, 210], []),
    ("one far off", [200, 210, 190, 205], [195, 1000, 200, 210], [1]),
    ("two far off do not hide one another", [200, 210, 190, 205], [1000, 1100, 200, 210], [0, 1]),
    ("the baseline is as bad", [200, 1000, 190, 205], [195, 1000, 200, 210], []),
    ("nobody feels it", [2, 2.1, 1.9, 2.05], [1.95, 10, 2, 2.1], []),
    ("less than twice as slow", [200, 210, 190, 205], [195, 400, 200, 210], []),
    ("one run shows no spread", [200], [1000], []),
]


@pytest.mark.parametrize(("what", "baseline", "candidate", "which"), WORST, ids=[row[0] for row in WORST])
def test_runs_that_are_far_worse(
    what: str, baseline: list[float], candidate: list[float], which: list[int]
) -> None:
    assert find_far_worse(baseline, candidate) == which, what


def test_the_slowest_ten_in_a_row_are_no_single_requests() -> None:
    times = np.ones(1000)
    times[::50] = 900
    assert worst_us(times) == 1
    times[300:312] = 900
    assert worst_us(times) == 900
    assert worst_us(np.ones(9)) is None


@pytest.mark.parametrize(("runs", "percent"), [(1, 95), (4, 53), (5, 45), (28, 10.1), (29, 9.8)])
def test_so_many_clean_runs_exclude_what_would_happen_in_more_of_them(runs: int, percent: float) -> None:
    share = excluded_share(runs, 0.95)
    assert (1 - share) ** runs == pytest.approx(0.05)
    assert 100 * share == pytest.approx(percent, abs=0.5)
