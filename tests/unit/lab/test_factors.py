"""Factors: from lab.yml to variants, their names, the clones that they share, and what can be wrong."""

import re
from typing import Any

import pytest
import yaml

from plimsoll.common.errors import SettingsError
from plimsoll.common.validation import parse_model
from plimsoll.lab.experiment.design import (
    label_of,
    levels_in,
    name_of,
    order_runs,
    plan_runs,
    rigs_in,
    variants,
)
from plimsoll.lab.experiment.labfile import MANUAL, Lab
from plimsoll.lab.experiment.problems import MOST_VARIANTS, key_problems
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
    text = base + yaml.safe_dump({"factors": factors, **more})
    return parse_model(text, "lab.yml", Lab, MANUAL, key_problems)


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
    assert parse_model(text, name, Lab, MANUAL, key_problems).factors


def test_without_factors_each_backend_is_its_own_variant() -> None:
    lab = parse_model(BASE, "lab.yml", Lab, MANUAL, key_problems)
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


WRONG: list[tuple[dict[str, Any], str, str]] = [
    (
        {"name": "recordsise", "values": [1, 2]},
        "factors.0.name: recordsise is not known as a key",
        "did you mean recordsize?",
    ),
    (
        {"name": "a", "key": "tuning.vm.swapines", "values": [1, 2]},
        "factors.0.key",
        "did you mean tuning.vm.swappiness?",
    ),
    ({"name": "swappiness", "values": [1, 900]}, "factors.0.values.1: 900: must be at most 200", ""),
    ({"name": "recordsize", "values": ["16K", "17K"]}, "factors.0.values.1: 17K: must be a power of two", ""),
    ({"name": "atime", "values": [True, "on"]}, "factors.0.values.1: on is already factors.0.values.0", ""),
    ({"name": "atime", "values": ["on"]}, "factors.0.values: ", ""),
    (
        {"name": "backend", "key": "disk.path", "values": ["/a", "/b"]},
        "factors.0.name: backend is already a factor",
        "",
    ),
    (
        {"name": "a", "key": "scenarios.replai.options.speed", "values": [1, 2]},
        "not one of scenarios: replay",
        "",
    ),
    ({"name": "a", "key": "out", "values": ["a", "b"]}, "out cannot be varied", ""),
    ({"name": "a", "key": "site.size", "values": ["small", "large"]}, "site is not varied", ""),
    ({"name": "atime", "values": ["on", "off"], "backends": ["tonk"]}, "tonk is not one of backends", ""),
]


@pytest.mark.parametrize(("factor", "said", "hint"), WRONG)
def test_what_is_wrong_is_said_with_its_place_and_the_remedy(
    factor: dict[str, Any], said: str, hint: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        lab_of([factor])
    assert said in str(caught.value)
    assert hint in str(caught.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    several = [factor for factor, _, _ in WRONG if len(factor["values"]) > 1]  # one alone fits no model
    with pytest.raises(SettingsError) as caught:
        lab_of(several)
    told = [int(number) for number in re.findall(r"factors\.(\d+)\.\w+[.\d]*: ", str(caught.value))]
    assert set(told) == set(range(len(several)))


def test_a_host_that_is_there_has_no_clone_made_anew() -> None:
    static = "backends: [{name: b, clone: {driver: static, target: 'http://x'}}]"
    base = f"name: a\n{static}\nscenarios: [{{scenario: download}}]\n"
    with pytest.raises(SettingsError, match="static does not create clones"):
        lab_of([{"name": "a", "key": "tuning.datasets.tank/x.recordsize", "values": ["16K", "8K"]}], base)
    assert len(variants(lab_of([{"name": "swappiness", "values": [1, 2]}], base))) == 2


def test_too_many_combinations_are_refused_before_they_are_made() -> None:
    names = ("swappiness", "vfs_cache_pressure", "dirty_expire_centisecs")
    many: list[dict[str, Any]] = [{"name": name, "values": list(range(1, 9))} for name in names]
    with pytest.raises(SettingsError, match=rf"512 combinations .* at most {MOST_VARIANTS}"):
        lab_of(many)


def test_levels_that_do_not_fit_together_are_found() -> None:
    both: list[dict[str, Any]] = [
        {"name": "dirty_ratio", "values": [5, 10]},
        {"name": "dirty_bytes", "values": ["1M", "2M"]},
    ]
    with pytest.raises(SettingsError, match=r"do not fit together: .*dirty_ratio and dirty_bytes"):
        lab_of(both)


def test_combinations_name_each_factor_and_known_values() -> None:
    factors: list[dict[str, Any]] = [
        {"name": "recordsize", "values": ["128K", "16K"]},
        {"name": "atime", "values": ["on", "off"]},
    ]
    with pytest.raises(SettingsError) as caught:
        lab_of(
            factors, combinations=[{"recordsice": "128K", "atime": "on"}, {"recordsize": "8K", "atime": "on"}]
        )
    assert "combinations.0.recordsice: is not one of factors: did you mean recordsize?" in str(caught.value)
    assert "combinations.0: has no value for recordsize" in str(caught.value)
    assert "combinations.1.recordsize: 8K is not one of the values of recordsize: 128K, 16K" in str(
        caught.value
    )
    with pytest.raises(SettingsError, match="requires factors to combine"):
        parse_model(ONE + "combinations: [{a: 1}]\n", "lab.yml", Lab, MANUAL, key_problems)
