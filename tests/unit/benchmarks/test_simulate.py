"""The simulation against arithmetic by hand, and what holds for every log."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sharing.arrivals import Arrivals, arranged, copied
from benchmarks.sharing.evenness import Crowd, evenness
from benchmarks.sharing.share import even_bounds, owners
from benchmarks.sharing.simulate import simulate
from benchmarks.sharing.waiting import p999_ms, waiting_ns

SECOND = 1_000_000_000


def arrivals(due_s: list[float], clients: list[int]) -> Arrivals:
    due_ns = (np.array(due_s) * SECOND).astype(np.int64)
    return Arrivals(due_ns - due_ns[0], np.array(clients, dtype=np.uint32))


def crowd(requests: int, clients: int, seed: int = 1) -> Arrivals:
    random = np.random.default_rng(seed)
    times = random.integers(0, 600, requests) * SECOND
    return arranged(times, random.integers(0, clients, requests, dtype=np.uint32), seed)


@pytest.mark.parametrize(
    ("says", "due", "cost", "want"),
    [
        ("who comes alone never waits", [0, 100, 200], 50, [0, 0, 0]),
        ("who comes exactly when the last is done does not wait", [0, 50, 100], 50, [0, 0, 0]),
        ("of three at once the second waits for one and the third for two", [7, 7, 7], 50, [0, 50, 100]),
        ("a queue empties in a pause", [0, 10, 1000, 1010], 50, [0, 40, 0, 40]),
        ("who is slower than what comes falls ever further behind", [0, 10, 20, 30], 15, [0, 5, 10, 15]),
    ],
)
def test_waiting(says: str, due: list[int], cost: int, want: list[int]) -> None:
    assert waiting_ns(np.array(due, dtype=np.int64), cost).tolist() == want, says


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.integers(1, 200))
def test_waiting_is_lindleys_recursion(due: list[int], cost: int) -> None:
    due.sort()
    want = [0]
    for earlier, later in pairwise(due):
        want.append(max(0, want[-1] + cost - (later - earlier)))
    assert waiting_ns(np.array(due, dtype=np.int64), cost).tolist() == want


def test_p999_is_not_given_of_fewer_than_a_thousand() -> None:
    assert p999_ms(np.arange(999, dtype=np.int64)) is None
    assert p999_ms(np.arange(1000, dtype=np.int64) * 1_000_000) == 998


@pytest.mark.parametrize(
    ("says", "clients", "largest", "effective"),
    [
        ("four of one size are four", [1, 2, 3, 4], 0.25, 4.0),
        ("one alone is one", [5, 5, 5], 1.0, 1.0),
        ("one of half and two of a quarter", [1, 1, 2, 3], 0.5, 1 / (0.25 + 2 / 16)),
    ],
)
def test_a_crowd(says: str, clients: list[int], largest: float, effective: float) -> None:
    got = Crowd.of(arrivals([float(i) for i in range(len(clients))], clients))
    assert (got.largest, got.clients) == (largest, len(set(clients))), says
    assert got.effective == pytest.approx(effective), says


def test_shares_by_hand() -> None:
    """100 seconds of four requests each: three of instance 0 and one of instance 1."""
    log = arrivals([second + part / 4 for second in range(100) for part in range(4)], [1] * 400)
    owner = np.tile(np.array([0, 0, 0, 1]), 100)
    even = evenness(log, owner, 2)
    assert (even.largest_to_mean, even.busiest_second_p99, even.ideal_second_p99) == (1.5, 0.75, 0.5)


def test_dealt_one_by_one_all_have_the_same() -> None:
    log = crowd(6400, 500)
    even = evenness(log, np.arange(log.n) % 16, 16)
    assert even.largest_to_mean == 1.0


def test_seconds_with_fewer_requests_than_instances_do_not_count() -> None:
    log = arrivals([float(second) for second in range(200)], [1] * 200)
    even = evenness(log, np.zeros(200, dtype=np.int64), 2)
    assert even.largest_to_mean == 2.0
    assert even.busiest_second_p99 is None
    assert even.ideal_second_p99 is None


@given(st.integers(2, 400), st.integers(1, 40), st.sampled_from([1, 2, 4, 8]), st.integers(0, 5))
def test_no_split_is_more_even_than_dealing(requests: int, clients: int, instances: int, seed: int) -> None:
    log = crowd(requests, clients, seed)
    even = evenness(log, owners(log.clients, even_bounds(instances)), instances)
    assert 1.0 <= even.largest_to_mean <= instances
    if even.busiest_second_p99 is not None and even.ideal_second_p99 is not None:
        assert even.busiest_second_p99 >= even.ideal_second_p99
    if instances == 1:
        assert even.largest_to_mean == 1.0


def test_the_busiest_instance_is_later_than_an_even_split_would_be() -> None:
    sharing = simulate(crowd(40_000, 300), (1, 4, 8), (0.3, 0.6, 0.99), 50)
    alone, *splits = sharing.splits
    for lag in alone.lag:
        assert lag.worst_ms == lag.even_ms, "one instance has all, however it is dealt"
    for split in splits:
        for lag in split.lag:
            assert lag.busiest_utilisation == lag.utilisation * split.evenness.largest_to_mean
            assert (lag.worst_ms is None) == (lag.busiest_utilisation >= 1)
            assert lag.even_ms is not None
            assert lag.worst_ms is None or lag.worst_ms >= lag.even_ms
        assert split.lag[-1].worst_ms is None, "at 99 % of an even split the busiest is overloaded"


def test_the_pace_is_that_which_makes_an_even_split_so_busy() -> None:
    """10,000 requests in 100 s, each 1 ms: one instance is busy 10 % of the time at the log's own pace."""
    log = arrivals([i / 100 for i in range(10_001)], [1] * 10_001)
    lag = simulate(log, (1,), (0.5,), 1000).splits[0].lag[0]
    assert lag.speed == pytest.approx(5, rel=1e-3)
    assert lag.worst_ms == 0


def test_requests_of_a_whole_second_are_spread_over_it_and_others_are_left() -> None:
    clients = np.arange(300, dtype=np.uint32)
    spread = arranged(np.repeat(np.array([7, 5, 6]), 100) * SECOND, clients, 1)
    assert spread.clients.tolist() == [*range(100, 200), *range(200, 300), *range(100)]
    assert (np.diff(spread.due_ns) >= 0).all()
    for start in (0, 100, 200):
        second = spread.due_ns[start : start + 100]
        assert SECOND / 2 < second[-1] - second[0] < SECOND, "100 requests fill most of their second"
    exact = arranged(np.array([3, 1, 2], dtype=np.int64), clients[:3], 1)
    assert exact.due_ns.tolist() == [0, 1, 2]
    assert exact.clients.tolist() == [1, 2, 0]


def test_a_site_ten_times_as_busy_has_ten_times_the_clients_and_the_same_span() -> None:
    log = crowd(500, 40)
    more = copied(log, 10, 1)
    assert more.n == 5000
    assert Crowd.of(more).clients == 10 * Crowd.of(log).clients
    assert Crowd.of(more).effective == pytest.approx(10 * Crowd.of(log).effective)
    assert (np.diff(more.due_ns) >= 0).all()
    assert more.span_s <= log.span_s
    assert copied(log, 1, 1) is log
