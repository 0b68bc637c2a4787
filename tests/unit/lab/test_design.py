"""What follows from lab.yml: variants of factors, the clones that they share, runs in order, extensions."""

from collections import Counter
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.lab.experiment.design import (
    extend_runs,
    find_half_block,
    find_key_changes,
    label_of,
    late_backends,
    levels_in,
    name_of,
    plan_runs,
    rigs_in,
    variants,
)
from plimsoll.lab.experiment.labfile import Lab
from plimsoll.lab.experiment.order import Order, order_runs
from tests.support.labfile import parse_lab
from tests.support.programs import ROOT

BASE = """
name: sweep
backends:
  - name: tank
    disk: {kind: folder, path: /tank/lab, dataset: tank/lab, devices: [sda, sdb]}
    clone: {driver: compose}
  - name: emu
    disk: {kind: emulated, filesystem: zfs, size_bytes: 8G}
    clone: {driver: compose}
scenarios:
  - scenario: replay
    options: {log: access.log, speed: 2}
saturator: {kind: zfs-send}
"""
ONE = BASE.replace(BASE[BASE.index("  - name: emu") : BASE.index("scenarios:")], "")


def lab_of(factors: list[dict[str, Any]], base: str = ONE, **more: Any) -> Lab:
    return parse_lab(base + yaml.safe_dump({"factors": factors, **more}))


def at(lab: Lab, *path: str) -> list[Any]:
    """The value at `path` of each variant's backend."""
    found = []
    for variant in variants(lab):
        node: Any = variant.backend.model_dump()
        for part in path:
            node = node[part]
        found.append(node)
    return found


@pytest.mark.parametrize("name", ["recordsize-sweep.yml", "send-rate-sweep.yml"])
def test_the_sweeps_among_the_examples_have_factors(name: str) -> None:
    text = (ROOT / "examples" / name).read_text(encoding="utf-8")
    assert parse_lab(text).factors


def test_without_factors_each_backend_is_its_own_variant() -> None:
    lab = parse_lab(BASE)
    assert [(each.name, each.rig, each.levels, each.all_levels) for each in variants(lab)] == [
        ("tank", "tank", {}, {}),
        ("emu", "emu", {}, {}),
    ]
    assert all(each.lab is lab for each in variants(lab))


def test_crossed_factors_make_every_combination_on_each_backend() -> None:
    lab = lab_of(
        [{"name": "recordsize", "values": ["128K", "16K"]}, {"name": "send-rate", "values": ["50M", None]}],
        BASE,
    )
    assert [each.name for each in variants(lab)] == [
        "tank-128k-50-mib-s",
        "tank-128k-send-rate-no-limit",
        "tank-16k-50-mib-s",
        "tank-16k-send-rate-no-limit",
        "emu-128k-50-mib-s",
        "emu-128k-send-rate-no-limit",
        "emu-16k-50-mib-s",
        "emu-16k-send-rate-no-limit",
    ]
    assert variants(lab)[2].levels == {"backend": "tank", "recordsize": "16K", "send-rate": "50 MiB/s"}
    assert levels_in(lab) == variants(lab)[0].all_levels
    assert levels_in(lab)["send-rate"] == ["50 MiB/s", "no limit"]
    assert [run.backend for run in plan_runs(lab)].count("emu-16k-50-mib-s") == lab.repeats


# name or key, values, whether each level needs a clone of its own, where it is set, what is set
SET = [
    ("recordsize", ["128K", "16K"], True, ("tuning", "datasets", "tank/lab", "recordsize"), [131072, 16384]),
    ("atime", ["on", "off"], False, ("tuning", "datasets", "tank/lab", "atime"), ["on", "off"]),
    ("scheduler", ["none", "bfq"], False, ("tuning", "disks", "sdb", "scheduler"), ["none", "bfq"]),
    ("arc", ["1G", "2G"], False, ("tuning", "zfs", "zfs_arc_max"), [1 << 30, 2 << 30]),
    ("swappiness", [1, 60], False, ("tuning", "vm", "swappiness"), [1, 60]),
    ("buffer-pool", ["16M", "1G"], False, ("clone", "buffer_pool"), ["16M", "1G"]),
    ("tuning.disks.sda.scheduler", ["none", "bfq"], False, ("tuning", "disks", "sda", "scheduler"), None),
    (
        "tuning.datasets.a/b.c.sync",
        ["always", "disabled"],
        False,
        ("tuning", "datasets", "a/b.c", "sync"),
        None,
    ),
    (
        "tuning.datasets.@database.recordsize",
        ["16K", None],
        True,
        ("tuning", "datasets", "@database", "recordsize"),
        [16384, None],
    ),
    (
        "tuning.datasets.@database.logbias",
        ["latency", None],
        False,
        ("tuning", "datasets", "@database", "logbias"),
        ["latency", None],
    ),
    ("disk.path", ["/a", "/b"], True, ("disk", "path"), ["/a", "/b"]),
]


@pytest.mark.parametrize(("key", "values", "anew", "where", "found"), SET)
def test_a_level_is_set_where_it_belongs_and_shares_the_clone_where_it_can(
    key: str, values: list[Any], anew: bool, where: tuple[str, ...], found: list[Any] | None
) -> None:
    said = {"name": "it", "key": key} if "." in key else {"name": key}
    lab = lab_of([{**said, "values": values}])
    assert at(lab, *where) == (values if found is None else found)
    assert len(rigs_in(lab)) == (2 if anew else 1)
    assert len({each.rig for each in variants(lab)}) == (2 if anew else 1)
    assert anew or list(rigs_in(lab)) == ["tank"]


def test_an_emulated_pool_is_made_with_its_record_size() -> None:
    lab = lab_of([{"name": "recordsize", "values": ["128K", "16K"], "backends": ["emu"]}], BASE)
    assert [(each.name, each.rig) for each in variants(lab)] == [
        ("tank", "tank"),
        ("emu-128k", "emu-128k"),
        ("emu-16k", "emu-16k"),
    ]
    assert [getattr(each.backend.disk, "recordsize", None) for each in variants(lab)] == [
        None,
        131072,
        16384,
    ]
    assert variants(lab)[0].levels == {"backend": "tank"}


def test_a_record_size_is_that_of_the_parts_that_the_tuning_names() -> None:
    """Set on the pool, it would be overruled by what they have of their own."""
    base = BASE.replace("size_bytes: 8G}\n", "size_bytes: 8G}\n    tuning: {datasets: {'@database': {}}}\n")
    lab = lab_of([{"name": "recordsize", "values": ["128K", "16K"], "backends": ["emu"]}], base)
    found = [each.backend for each in variants(lab) if each.levels["backend"] == "emu"]
    assert [each.tuning.datasets["@database"].recordsize for each in found] == [131072, 16384]
    assert [getattr(each.disk, "recordsize", None) for each in found] == [None, None]


def test_an_emulated_disk_is_tuned_before_it_has_a_name() -> None:
    factors = [
        {"name": "scheduler", "values": ["none", "bfq"], "backends": ["emu"]},
        {"name": "sync", "values": ["always", "disabled"], "backends": ["emu"]},
    ]
    tunings = [each.backend.tuning for each in variants(lab_of(factors, BASE)) if each.rig == "emu"]
    assert [(each.disks["@disk"].scheduler, each.datasets["@disk"].sync) for each in tunings] == [
        ("none", "always"),
        ("none", "disabled"),
        ("bfq", "always"),
        ("bfq", "disabled"),
    ]


def test_options_of_a_scenario_and_of_the_saturator_are_those_of_the_variant() -> None:
    lab = lab_of(
        [
            {"name": "speed", "key": "scenarios.replay.options.speed", "values": [1, 4]},
            {"name": "mode", "key": "saturator.mode", "values": ["full", "incremental"]},
        ]
    )
    assert [(each.lab.scenarios[0].options["speed"], each.lab.saturator.mode) for each in variants(lab)] == [  # type: ignore[union-attr]
        (1, "full"),
        (1, "incremental"),
        (4, "full"),
        (4, "incremental"),
    ]
    assert not any(each.lab.factors for each in variants(lab))


def test_an_option_of_a_member_is_set_where_several_run_together() -> None:
    base = ONE[: ONE.index("scenarios:")] + (
        "scenarios:\n  - name: rush-hour\n    together:\n"
        "      - {scenario: replay, options: {log: access.log}}\n      - {scenario: save-article}\n"
    )
    key = "scenarios.rush-hour/replay.options.speed"
    lab = lab_of([{"name": "speed", "key": key, "values": [1, 4]}], base)
    assert [each.lab.scenarios[0].together[0].options["speed"] for each in variants(lab)] == [1, 4]


def test_listed_combinations_are_all_that_is_tried() -> None:
    lab = lab_of(
        [{"name": "recordsize", "values": ["128K", "16K"]}, {"name": "atime", "values": ["on", "off"]}],
        combinations=[{"recordsize": "128K", "atime": "on"}, {"recordsize": "16K", "atime": "off"}],
    )
    assert [each.name for each in variants(lab)] == ["tank-128k-atime-on", "tank-16k-atime-off"]


def test_names_of_rigs_stay_short_and_apart() -> None:
    base = ONE.replace("name: tank", "name: a-long-one-here")
    lab = lab_of([{"name": "compression", "values": ["zstd-fast-100", "zstd-fast-200", "off"]}], base)
    rigs = list(rigs_in(lab))
    assert rigs == ["a-long-one-he", "a-long-one-he-2", "a-long-one-he-3"]
    assert len({each.name for each in variants(lab)}) == 3


def test_what_was_planned_is_planned_again_from_what_is_kept() -> None:
    lab = lab_of([{"name": "recordsize", "values": ["128K", "16K"]}, {"name": "arc", "values": ["1G", None]}])
    again = Lab.model_validate_json(lab.model_dump_json())
    assert plan_runs(again) == plan_runs(lab)
    assert [each.backend for each in variants(again)] == [each.backend for each in variants(lab)]


def test_each_second_repeat_goes_back_and_the_way_forth_is_drawn_anew() -> None:
    names = [f"v{i}" for i in range(6)]
    runs = [run.backend for run in order_runs(names, ["s"], 6, "abba", 3, mixed=True)]
    blocks = [runs[i : i + 6] for i in range(0, 36, 6)]
    assert all(sorted(block) == names for block in blocks)
    assert [blocks[i + 1] == blocks[i][::-1] for i in (0, 2, 4)] == [True] * 3
    assert len({tuple(blocks[i]) for i in (0, 2, 4)}) == 3


LABELS = [
    ("saturator.rate_bytes_per_s", "50M", "50 MiB/s", "50-mib-s"),
    ("saturator.rate_bytes_per_s", 180_000_000, "180 MB/s", "180-mb-s"),
    ("saturator.rate_bytes_per_s", None, "no limit", "it-no-limit"),
    ("tuning.datasets.*.recordsize", "16K", "16K", "16k"),
    ("tuning.vm.swappiness", 10, "10", "it-10"),
    ("saturator.direct", True, "on", "it-on"),
    ("tuning.zfs.zfs_arc_max", None, "default", "it-default"),
    ("scenarios.replay.options.log", "/a/ü&--b.log", "/a/ü&--b.log", "a-b-log"),
]


@pytest.mark.parametrize(("key", "value", "label", "name"), LABELS)
def test_levels_have_a_label_for_figures_and_a_name_for_folders(
    key: str, value: Any, label: str, name: str
) -> None:
    assert label_of(key, value) == label
    assert name_of("it", label) == name


def test_settings_that_need_no_clone_made_anew_vary_on_a_host_that_is_there() -> None:
    static = "backends: [{name: b, clone: {driver: static, target: 'http://x'}}]"
    base = f"name: a\n{static}\nscenarios: [{{scenario: download}}]\n"
    assert len(variants(lab_of([{"name": "swappiness", "values": [1, 2]}], base))) == 2


# The order of runs.

FIRST_ODD = BASE + "repeats: 3\n"
ORDERS: list[Order] = ["blocks", "abba", "random"]


def ordered(repeats: int, order: Order, seed: int = 1) -> str:
    runs = order_runs(["a", "b", "c"], ["s"], repeats, order, seed)
    return "".join(run.backend for run in runs)


def test_blocks_hold_each_backend_twice_and_all_arrangements_are_drawn() -> None:
    drawn = Counter[str]()
    for seed in range(300):
        runs = order_runs(["a", "b"], ["s", "t"], 5, "blocks", seed)
        assert Counter((run.block, run.backend, run.scenario) for run in runs) == {
            (block, backend, scenario): 1 if block == 3 else 2
            for block in (1, 2, 3)
            for backend in "ab"
            for scenario in "st"
        }
        assert all(run.block == (run.repeat + 1) // 2 for run in runs)
        for block in (1, 2):
            drawn["".join(run.backend for run in runs if run.block == block and run.scenario == "s")] += 1
    assert not any(run.block for run in order_runs(["a"], ["s"], 4, "blocks", 1)), "nothing to draw"
    assert len(drawn) == 6
    assert all(70 <= count <= 130 for count in drawn.values()), "about a sixth of 600 each"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (FIRST_ODD, "repeats: 3 is odd"),
        (FIRST_ODD.replace("repeats: 3", "repeats: 4"), None),
        (FIRST_ODD + "order: abba\n", None),
    ],
)
def test_an_odd_number_of_repeats_is_named(text: str, says: str | None) -> None:
    found = find_half_block(parse_lab(text))
    assert (found is None) == (says is None)
    assert (found or "").startswith(says or "")


def test_abba_goes_forth_and_back() -> None:
    assert ordered(4, "abba") == "abccbaabccba"


def test_random_is_drawn_by_its_seed_and_each_repeat_has_allordered() -> None:
    assert ordered(6, "random", 3) == ordered(6, "random", 3)
    assert ordered(6, "random", 3) != ordered(6, "random", 4)
    drawn = ordered(6, "random", 3)
    assert all(sorted(drawn[i : i + 3]) == ["a", "b", "c"] for i in range(0, 18, 3))


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from(ORDERS),
    st.integers(0, 99),
)
def test_each_run_is_there_once_and_has_a_name_of_its_own(
    backends: int, scenarios: int, repeats: int, order: Order, seed: int
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


# An experiment that is extended: what it takes over of a changed lab.yml, and the runs that come to it.

FIRST = """
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
TAKEN = [
    ("more repeats", FIRST.replace("repeats: 2", "repeats: 4"), ["repeats"]),
    ("one backend more", FIRST.replace("scenarios:", THIRD), ["backends.c"]),
    (
        "one scenario more",
        FIRST.replace("phases:", "  - scenario: visitors\nphases:"),
        ["scenarios.visitors"],
    ),
    ("other limits", FIRST + "limits: {failures: 5}\n", ["limits.failures"]),
    ("the backends in another order", FIRST.replace("name: a", "name: x"), None),
]
REFUSED = [
    ("fewer repeats", FIRST.replace("repeats: 2", "repeats: 1"), "repeats", "give 2 or more"),
    (
        "a tuning",
        FIRST.replace("swappiness: 10", "swappiness: 20"),
        "backends.a.tuning.vm.swappiness",
        "put it back",
    ),
    ("phases", FIRST.replace("during_s: 2", "during_s: 3"), "phases.during_s", "start a new experiment"),
    (
        "a saturator",
        FIRST + "saturator: {kind: zfs-send, dataset: tank/x}\n",
        "saturator",
        "start a new experiment",
    ),
    ("an option", FIRST.replace("/one", "/two"), "scenarios.download.options.path", "a name of its own"),
    ("the seed", FIRST + "seed: 7\n", "seed", "start a new experiment"),
]


@pytest.mark.parametrize(("text", "keys"), [row[1:] for row in TAKEN], ids=[row[0] for row in TAKEN])
def test_what_leaves_the_runs_comparable_is_taken_over(text: str, keys: list[str] | None) -> None:
    found = find_key_changes(parse_lab(FIRST), parse_lab(text))
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
    (change,) = find_key_changes(parse_lab(FIRST), parse_lab(text))
    assert change.key == key
    assert change.refusal is not None
    assert remedy in change.refusal


FACTOR = FIRST + "factors: [{name: vfs_cache_pressure, values: [50, 100]}]\n"
LEVELS = [
    ("one level more", FACTOR.replace("[50, 100]", "[50, 100, 200]"), True),
    ("a factor that was not there: what runs were before has no level of it", None, False),
    ("a level less", FACTOR.replace("[50, 100]", "[50, 200]"), False),
    (
        "another key under the same name",
        FACTOR.replace("name: vfs", "key: tuning.vm.swappiness, name: vfs"),
        False,
    ),
]


@pytest.mark.parametrize(("text", "taken"), [row[1:] for row in LEVELS], ids=[row[0] for row in LEVELS])
def test_levels_may_come_to_a_factor_where_the_others_stay_what_they_were(
    text: str | None, taken: bool
) -> None:
    before, now = (parse_lab(FACTOR), parse_lab(text)) if text else (parse_lab(FIRST), parse_lab(FACTOR))
    (change,) = find_key_changes(before, now)
    assert (change.refusal is None) == taken
    if taken:
        runs = plan_runs(before)
        further = extend_runs(runs, now)[len(runs) :]
        assert sorted(Counter(run.backend[-4:] for run in further).items()) == [("-200", 4)]


def test_a_change_names_both_values() -> None:
    (change,) = find_key_changes(parse_lab(FIRST), parse_lab(FIRST.replace("repeats: 2", "repeats: 4")))
    assert change.sentence == "repeats: 4 in the file, 2 in this experiment"


def _rounds(before: str, now: str) -> tuple[str, list[str]]:
    runs = plan_runs(parse_lab(before))
    further = extend_runs(runs, parse_lab(now))[len(runs) :]
    return "".join(run.backend for run in further), late_backends(runs, further)


ABBA = FIRST.replace("repeats: 2", "repeats: 2\norder: abba")
FURTHER = [
    ("more repeats go on, forth and back", ABBA.replace("repeats: 2", "repeats: 4"), "abba", []),
    ("a new backend alone comes after the others", FIRST.replace("scenarios:", THIRD), "cc", ["c"]),
    (
        "with more repeats it alternates with them",
        ABBA.replace("scenarios:", THIRD).replace("repeats: 2", "repeats: 4"),
        "cabcccba",
        [],
    ),
]


@pytest.mark.parametrize(
    ("text", "backends", "late"), [row[1:] for row in FURTHER], ids=[row[0] for row in FURTHER]
)
def test_further_runs_come_in_fair_order(text: str, backends: str, late: list[str]) -> None:
    assert _rounds(FIRST, text) == (backends, late)


@given(st.integers(1, 4), st.integers(0, 4), st.booleans(), st.booleans(), st.sampled_from(ORDERS))
def test_each_run_is_planned_once_and_keeps_its_name(
    repeats: int, more: int, backend: bool, scenario: bool, order: str
) -> None:
    first = parse_lab(FIRST.replace("repeats: 2", f"repeats: {repeats}"))
    text = FIRST.replace("repeats: 2", f"repeats: {repeats + more}\norder: {order}")
    text = text.replace("scenarios:", THIRD) if backend else text
    text = text.replace("phases:", "  - scenario: visitors\nphases:") if scenario else text
    second, runs = parse_lab(text), plan_runs(first)
    found = extend_runs(runs, second)
    assert found[: len(runs)] == runs
    assert [run.number for run in found] == list(range(1, len(found) + 1))
    assert Counter((run.backend, run.scenario) for run in found) == Counter(
        (run.backend, run.scenario) for run in plan_runs(second)
    )
    assert len({(run.backend, run.scenario, run.repeat) for run in found}) == len(found)
    assert extend_runs(found, second) == found, "a second time nothing is left to add"
