"""An experiment that is extended: what it takes over of a changed lab.yml, and the runs that come to it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.common.validation import parse_model
from plimsoll.lab.experiment.design import extend_runs, find_key_changes, late_backends, plan_runs
from plimsoll.lab.experiment.labfile import MANUAL, Lab
from plimsoll.lab.experiment.problems import key_problems

BASE = """
name: lab
backends:
  - name: a
    clone: {driver: static, target: "http://127.0.0.1:8080"}
    tuning: {vm: {swappiness: 10}}
  - name: b
    clone: {driver: static, target: "http://127.0.0.1:8081"}
scenarios:
  - scenario: download
    options: {path: /one}
phases: {before_s: 1, during_s: 2, after_s: 1}
repeats: 2
"""
THIRD = """  - name: c
    clone: {driver: static, target: "http://127.0.0.1:8082"}
scenarios:"""


def read(text: str) -> Lab:
    return parse_model(text, "lab.yml", Lab, MANUAL, key_problems)


TAKEN = [
    ("more repeats", BASE.replace("repeats: 2", "repeats: 4"), ["repeats"]),
    ("one backend more", BASE.replace("scenarios:", THIRD), ["backends.c"]),
    ("one scenario more", BASE.replace("phases:", "  - scenario: visitors\nphases:"), ["scenarios.visitors"]),
    ("other limits", BASE + "limits: {failures: 5}\n", ["limits.failures"]),
    ("the backends in another order", BASE.replace("name: a", "name: x"), None),
]
REFUSED = [
    ("fewer repeats", BASE.replace("repeats: 2", "repeats: 1"), "repeats", "give 2 or more"),
    (
        "a tuning",
        BASE.replace("swappiness: 10", "swappiness: 20"),
        "backends.a.tuning.vm.swappiness",
        "put it back",
    ),
    ("phases", BASE.replace("during_s: 2", "during_s: 3"), "phases.during_s", "start a new experiment"),
    (
        "a saturator",
        BASE + "saturator: {kind: zfs-send, dataset: tank/x}\n",
        "saturator",
        "start a new experiment",
    ),
    ("an option", BASE.replace("/one", "/two"), "scenarios.download.options.path", "a name of its own"),
    ("the seed", BASE + "seed: 7\n", "seed", "start a new experiment"),
]


@pytest.mark.parametrize(("text", "keys"), [row[1:] for row in TAKEN], ids=[row[0] for row in TAKEN])
def test_what_leaves_the_runs_comparable_is_taken_over(text: str, keys: list[str] | None) -> None:
    found = find_key_changes(read(BASE), read(text))
    if keys is None:  # a name that is gone is refused, the new one taken
        assert [(change.key, change.refusal is None) for change in found] == [
            ("backends.a", False),
            ("backends.x", True),
        ]
    else:
        assert [change.key for change in found] == keys
        assert not any(change.refusal for change in found)


@pytest.mark.parametrize(
    ("text", "key", "remedy"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_does_not_is_refused_with_key_values_and_remedy(text: str, key: str, remedy: str) -> None:
    (change,) = find_key_changes(read(BASE), read(text))
    assert change.key == key
    assert change.refusal is not None
    assert remedy in change.refusal


FACTORS = BASE + "factors: [{name: vfs_cache_pressure, values: [50, 100]}]\n"
LEVELS = [
    ("one level more", FACTORS.replace("[50, 100]", "[50, 100, 200]"), True),
    ("a factor that was not there: what runs were before has no level of it", None, False),
    ("a level less", FACTORS.replace("[50, 100]", "[50, 200]"), False),
    (
        "another key under the same name",
        FACTORS.replace("name: vfs", "key: tuning.vm.swappiness, name: vfs"),
        False,
    ),
]


@pytest.mark.parametrize(("text", "taken"), [row[1:] for row in LEVELS], ids=[row[0] for row in LEVELS])
def test_levels_may_come_to_a_factor_where_the_others_stay_what_they_were(
    text: str | None, taken: bool
) -> None:
    before, now = (read(FACTORS), read(text)) if text else (read(BASE), read(FACTORS))
    (change,) = find_key_changes(before, now)
    assert (change.refusal is None) == taken
    if taken:
        runs = plan_runs(before)
        further = extend_runs(runs, now)[len(runs) :]
        assert sorted(Counter(run.backend[-4:] for run in further).items()) == [("-200", 4)]


def test_a_change_names_both_values() -> None:
    (change,) = find_key_changes(read(BASE), read(BASE.replace("repeats: 2", "repeats: 4")))
    assert change.sentence == "repeats: 4 in the file, 2 in this experiment"


def _rounds(before: str, now: str) -> tuple[str, list[str]]:
    runs = plan_runs(read(before))
    further = extend_runs(runs, read(now))[len(runs) :]
    return "".join(run.backend for run in further), late_backends(runs, further)


ORDERS = [
    ("more repeats go on, forth and back", BASE.replace("repeats: 2", "repeats: 4"), "abba", []),
    ("a new backend alone comes after the others", BASE.replace("scenarios:", THIRD), "cc", ["c"]),
    (
        "with more repeats it alternates with them",
        BASE.replace("scenarios:", THIRD).replace("repeats: 2", "repeats: 4"),
        "cabcccba",
        [],
    ),
]


@pytest.mark.parametrize(
    ("text", "backends", "late"), [row[1:] for row in ORDERS], ids=[row[0] for row in ORDERS]
)
def test_further_runs_come_in_fair_order(text: str, backends: str, late: list[str]) -> None:
    assert _rounds(BASE, text) == (backends, late)


@given(
    st.integers(1, 4), st.integers(0, 4), st.booleans(), st.booleans(), st.sampled_from(["abba", "random"])
)
def test_each_run_is_planned_once_and_keeps_its_name(
    repeats: int, more: int, backend: bool, scenario: bool, order: str
) -> None:
    first = read(BASE.replace("repeats: 2", f"repeats: {repeats}"))
    text = BASE.replace("repeats: 2", f"repeats: {repeats + more}\norder: {order}")
    text = text.replace("scenarios:", THIRD) if backend else text
    text = text.replace("phases:", "  - scenario: visitors\nphases:") if scenario else text
    second, runs = read(text), plan_runs(first)
    found = extend_runs(runs, second)
    assert found[: len(runs)] == runs
    assert [run.number for run in found] == list(range(1, len(found) + 1))
    assert Counter((run.backend, run.scenario) for run in found) == Counter(
        (run.backend, run.scenario) for run in plan_runs(second)
    )
    assert len({(run.backend, run.scenario, run.repeat) for run in found}) == len(found)
    assert extend_runs(found, second) == found, "a second time there is nothing to add"
