"""The order of runs, and what an experiment's folder remembers."""

from collections import Counter
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.lab.experiment.design import order_runs
from plimsoll.lab.experiment.folder import Journal
from plimsoll.lab.experiment.labfile import Limits

_ORDERS: list[Literal["abba", "random"]] = ["abba", "random"]


def _backends(repeats: int, order: Literal["abba", "random"], seed: int = 1) -> str:
    runs = order_runs(["a", "b", "c"], ["s"], repeats, order, seed)
    return "".join(run.backend for run in runs)


def test_abba_goes_forth_and_back() -> None:
    assert _backends(4, "abba") == "abccbaabccba"


def test_random_is_drawn_by_its_seed_and_each_repeat_has_all_backends() -> None:
    assert _backends(6, "random", 3) == _backends(6, "random", 3)
    assert _backends(6, "random", 3) != _backends(6, "random", 4)
    drawn = _backends(6, "random", 3)
    assert all(sorted(drawn[i : i + 3]) == ["a", "b", "c"] for i in range(0, 18, 3))


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from(_ORDERS),
    st.integers(0, 99),
)
def test_each_run_is_there_once_and_has_a_name_of_its_own(
    backends: int, scenarios: int, repeats: int, order: Literal["abba", "random"], seed: int
) -> None:
    runs = order_runs(
        [f"b{i}" for i in range(backends)],
        [f"s{i}" for i in range(scenarios)],
        repeats,
        order,
        seed,
    )
    assert [run.number for run in runs] == list(range(1, len(runs) + 1))
    assert len({run.name for run in runs}) == len(runs) == backends * scenarios * repeats
    assert set(Counter((run.backend, run.scenario) for run in runs).values()) == {repeats}
    assert [run.name for run in runs] == sorted(run.name for run in runs)


def test_failures_count_in_a_row_and_for_each_backend(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    for what, backend in [
        ("run failed", "a"),
        ("run failed", "a"),
        ("run finished", "b"),
        ("run failed", "b"),
    ]:
        journal.note(what, backend=backend)
    assert (journal.failures("a"), journal.failures("b"), journal.failures("c")) == (2, 1, 0)
    journal.note("run finished", backend="a")
    assert journal.failures("a") == 0


def test_failures_count_by_scenario_on_each_backend_and_apart_from_the_backend_s_own(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.note("run failed", backend="a", scenario=None)
    journal.note("run failed", backend="a", scenario="upgrade")
    journal.note("run finished", backend="a", scenario="replay")
    journal.note("run failed", backend="a", scenario="upgrade")
    journal.note("run failed", backend="b", scenario="upgrade")
    assert journal.failures("a", "upgrade") == 2, "the other scenario's success changes nothing"
    assert journal.failures("a", "replay") == 0
    assert journal.failures("a") == 0, "it stood since, or no scenario would have begun"
    assert journal.failures("b", "upgrade") == 1
    journal.note("run finished", backend="a", scenario="upgrade")
    assert journal.failures("a", "upgrade") == 0


def test_what_was_set_aside_can_be_tried_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.note("run failed", backend="a", scenario="upgrade")
    journal.note("set aside", backend="a", scenario="upgrade", why="no mirror")
    journal.note("set aside", backend="b", scenario=None, why="no disk")
    assert journal.set_aside == {"upgrade on a": "no mirror", "b": "no disk"}
    journal.try_again()
    assert journal.set_aside == {}
    assert journal.failures("a", "upgrade") == 0
    journal.note("set aside", backend="b", scenario=None, why="still no disk")
    assert journal.set_aside == {"b": "still no disk"}


PAUSES = [
    ("the first is as the key says, and each is twice as long", {"retry_s": 10}, [10, 20, 40, 80]),
    ("it is bounded", {"retry_s": 200}, [200, 400, 600, 600]),
    ("a longer one stays", {"retry_s": 3000}, [3000, 3000, 3000, 3000]),
    ("none is none", {"retry_s": 0}, [0, 0, 0, 0]),
]


@pytest.mark.parametrize(("limits", "expected"), [row[1:] for row in PAUSES], ids=[row[0] for row in PAUSES])
def test_the_wait_between_tries_grows(limits: dict[str, float], expected: list[float]) -> None:
    assert [Limits.model_validate(limits).pause_s(failures) for failures in (1, 2, 3, 4)] == expected


def test_a_journal_whose_last_line_was_cut_off_is_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.note("begun")
    journal.note("set aside", backend="a", why="it broke")
    with journal.path.open("ab") as file:
        file.write(b'{"what": "ended"')
    assert journal.set_aside == {"a": "it broke"}
    assert not journal.has_ended
    journal.note("run failed", backend="a")
    assert journal.failures("a") == 1
