"""Every iteration is done once, by whoever's share it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from scenarios.running.work import Work


@given(total=some.integers(0, 500), shares=some.integers(1, 12))
def test_the_shares_together_are_all_iterations_each_once(total: int, shares: int) -> None:
    works = [Work(total, index, shares) for index in range(shares)]
    done = []
    for work in works:
        while (number := work.next()) is not None:
            done.append(number)
            work.count(True)
    assert sorted(done) == list(range(1, total + 1))
    assert all(work.whole for work in works)


@given(total=some.none() | some.integers(0, 50), shares=some.integers(1, 5), late=some.integers(0, 60))
def test_when_the_time_is_up_no_more_begin_and_what_was_begun_is_all(
    total: int | None, shares: int, late: int
) -> None:
    works = [Work(total, index, shares) for index in range(shares)]
    done = []
    for work in works:
        while (number := work.next(in_time=work.begun < late)) is not None:
            assert not (work.time_is_up and work.whole), "one is in flight"
            done.append(number)
            work.count(True)
        assert work.whole
        assert work.next() is None or total is None or late < (work.mine or 0)
    assert len(set(done)) == len(done)
    if total is None:
        assert sorted(done) == list(range(1, shares * late + 1)), "no number is left out"
    else:
        assert set(done) <= set(range(1, total + 1))


def test_an_iteration_that_was_left_half_way_is_not_done_although_the_time_is_up() -> None:
    work = Work(None)
    assert work.next() == 1
    assert work.next(in_time=False) is None
    assert not work.whole
    work.count(True)
    assert work.whole


def test_work_that_was_ended_before_its_time_was_up_is_not_whole() -> None:
    work = Work(None)
    work.next()
    work.count(True)
    work.end()
    assert work.next(in_time=False) is None
    assert not work.whole


def test_work_that_was_ended_hands_out_no_more_and_is_not_whole() -> None:
    work = Work(3)
    assert work.next() == 1
    work.count(True)
    work.end()
    assert work.next() is None
    assert not work.whole


def test_failures_are_counted_in_all_and_in_a_row() -> None:
    work = Work(9)
    for well in (False, False, True, False):
        work.next()
        work.count(well)
    assert (work.done, work.failed, work.failed_in_a_row) == (4, 3, 1)


def test_a_share_outside_the_shares_is_refused() -> None:
    with pytest.raises(ValueError, match="share 2 of 2"):
        Work(1, 2, 2)
