"""Every iteration is done once, by whoever's share it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from plimsoll.scenarios.running.session import Iterations, session_status


@given(total=some.integers(0, 500), shares=some.integers(1, 12))
def test_the_shares_together_are_all_iterations_each_once(total: int, shares: int) -> None:
    works = [Iterations(total, index, shares) for index in range(shares)]
    done = []
    for work in works:
        while (number := work.next()) is not None:
            done.append(number)
            work.count(True)
    assert sorted(done) == list(range(1, total + 1))
    assert all(work.is_all_done for work in works)


@given(total=some.none() | some.integers(0, 50), shares=some.integers(1, 5), late=some.integers(0, 60))
def test_when_the_time_is_up_no_more_begin_and_what_was_begun_is_all(
    total: int | None, shares: int, late: int
) -> None:
    works = [Iterations(total, index, shares) for index in range(shares)]
    done = []
    for work in works:
        while (number := work.next(may_begin=work.begun < late)) is not None:
            assert not (work.time_is_up and work.is_all_done), "one is in flight"
            done.append(number)
            work.count(True)
        assert work.is_all_done
        assert work.next() is None or total is None or late < (work.share or 0)
    assert len(set(done)) == len(done)
    if total is None:
        assert sorted(done) == list(range(1, shares * late + 1)), "no number is left out"
    else:
        assert set(done) <= set(range(1, total + 1))


def test_an_iteration_that_was_left_half_way_is_not_done_although_the_time_is_up() -> None:
    work = Iterations(None)
    assert work.next() == 1
    assert work.next(may_begin=False) is None
    assert not work.is_all_done
    work.count(True)
    assert work.is_all_done


def test_work_that_was_ended_before_its_time_was_up_is_not_whole() -> None:
    work = Iterations(None)
    work.next()
    work.count(True)
    work.end()
    assert work.next(may_begin=False) is None
    assert not work.is_all_done


def test_work_that_was_ended_hands_out_no_more_and_is_not_whole() -> None:
    work = Iterations(3)
    assert work.next() == 1
    work.count(True)
    work.end()
    assert work.next() is None
    assert not work.is_all_done


def test_failures_are_counted_in_all_and_in_a_row() -> None:
    work = Iterations(9)
    for well in (False, False, True, False):
        work.next()
        work.count(well)
    assert (work.done, work.failed, work.failed_in_a_row) == (4, 3, 1)


def test_a_share_outside_the_shares_is_refused() -> None:
    with pytest.raises(ValueError, match="share 2 of 2"):
        Iterations(1, 2, 2)


def work_of(total: int | None, begun: int, failed: int = 0, *, may_begin: bool = True) -> Iterations:
    work = Iterations(total)
    for number in range(begun):
        work.next()
        work.count(number >= failed)
    if not may_begin:
        work.next(may_begin=False)
    return work


DIED = "the target gave no answer after 5.0 s"
ENDINGS: list[tuple[str, Iterations, str | None, str | None, str, str | None]] = [
    ("all was done", work_of(3, 3), None, None, "complete", None),
    ("some of it failed", work_of(3, 3, failed=2), None, None, "complete", None),
    ("the target died, and some had been done", work_of(30, 30, failed=20), None, DIED, "failed", DIED),
    ("the time was up, and the target dead", work_of(None, 5, may_begin=False), None, DIED, "failed", DIED),
    ("an interrupt is one, whatever the target did", work_of(3, 2), None, DIED, "interrupted", "2 of 3"),
    ("nothing succeeded", work_of(3, 3, failed=3), None, None, "failed", "no iteration succeeded"),
    ("no later step could succeed", work_of(3, 1), "refused", DIED, "failed", "refused"),
    ("none began", work_of(3, 0, may_begin=False), None, None, "failed", "no iteration began within 1 s"),
]


@pytest.mark.parametrize(("why", "work", "hopeless", "died", "status", "said"), ENDINGS)
def test_how_a_run_ended(
    why: str, work: Iterations, hopeless: str | None, died: str | None, status: str, said: str | None
) -> None:
    found, reason = session_status(work, hopeless, 1.0, died)
    assert found == status, why
    assert (reason is None) == (said is None), why
    assert said is None or said in (reason or ""), why
