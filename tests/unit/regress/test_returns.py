"""A regression that is mended is told to be, once; and when it comes back, that is news again."""

import numpy as np
import pytest

from tests.unit.regress.regress_study import alike, episodes, nightly, normal

HISTORIES = 20
RETURNS = [
    ("it is mended for a week", 6, 7, False),
    ("it lasted three weeks, and is mended for five nights", 21, 5, False),
    ("it was accepted, and then it was mended for a week", 6, 7, True),
    ("it was accepted three weeks long, and then it was mended for three weeks", 21, 21, True),
]


@pytest.mark.slow
@pytest.mark.parametrize(("what", "lasts", "gap", "accepts"), RETURNS, ids=[row[0] for row in RETURNS])
def test_a_step_that_comes_back_is_told_every_time(what: str, lasts: int, gap: int, accepts: bool) -> None:
    found = episodes(normal(0.1), 1.5, lasts, gap, HISTORIES, accepts)
    assert sum(one.told is not None for one in found) == HISTORIES, what
    assert sum(one.mended is not None for one in found) == HISTORIES, "the mend is told"
    assert sum(one.told_again is not None for one in found) == HISTORIES, "the return is news"
    assert sum(one.false_mends for one in found) == 0
    assert np.median([one.mended for one in found if one.mended]) <= 4


@pytest.mark.slow
def test_a_regression_that_lasts_is_not_taken_for_mended() -> None:
    found = [*episodes(normal(0.2), 1.5, 60, 10, 5), *episodes(alike(0.5, 0.1), 1.5, 60, 10, 5)]
    assert sum(one.false_mends for one in found) == 0


def test_every_state_of_a_history() -> None:
    logs = np.random.default_rng(8).normal(0, 0.05, 70)
    logs[40:50] += np.log(1.5)
    logs[60:] += np.log(1.5)
    states = list(nightly(logs, 36))
    assert [state for at, state in enumerate(states) if not at or state != states[at - 1]] == [
        "steady",
        "news",
        "known",
        "recovered",
        "steady",
        "news",
        "known",
    ]
    assert (states.count("news"), states.count("recovered")) == (2, 1), "each is told once"
