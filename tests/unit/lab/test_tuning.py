"""What tuning sets, how it is put back, and what cannot be reached through it."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plimsoll.lab.tuning import Tuning
from plimsoll.lab.tuning.apply import plan_for_host
from plimsoll.lab.tuning.keys import SCHEDULERS_OWN, PropertyValue, QueueValue, Value
from plimsoll.lab.tuning.plan import (
    TunedValue,
    TuningError,
    asked_values,
    creation_properties,
    drop_own,
    label_parts,
    own_disk_commands,
    plan_tuning,
    resolve_own,
    run_commands,
    touched_values,
)
from tests.support.scripted import host_to_tune

BACK = [
    "disks.vda.scheduler=mq-deadline",
    "disks.vda.nr_requests=256",
    "disks.vda.wbt_lat_usec=75000",
    "disks.vda.fifo_batch=16",
]

# What is wanted, then the settings that are applied and those that are put back, in order.
PLANS = [
    ("what is so already is left alone", {"disks": {"vda": {"scheduler": "mq-deadline"}}}, [], []),
    (
        "a simple setting",
        {"vm": {"swappiness": 1}},
        ["vm.swappiness=1"],
        ["vm.swappiness=60"],
    ),
    (
        "a scheduler takes its settings with it, so all are put back after it",
        {"disks": {"vda": {"scheduler": "none"}}},
        ["disks.vda.scheduler=none"],
        BACK,
    ),
    (
        "a scheduler's own setting, which stays",
        {"disks": {"vda": {"fifo_batch": 32}}},
        ["disks.vda.fifo_batch=32"],
        ["disks.vda.fifo_batch=16"],
    ),
    (
        "settings of a scheduler that is chosen with them, and that the host does not show before",
        {"disks": {"vdb": {"scheduler": "mq-deadline", "read_expire": 100}}},
        ["disks.vdb.scheduler=mq-deadline", "disks.vdb.read_expire=100"],
        ["disks.vdb.scheduler=none"],
    ),
    (
        "when room is made for huge pages",
        {"transparent_hugepage_defrag": "defer+madvise"},
        ["transparent_hugepage_defrag=defer+madvise"],
        ["transparent_hugepage_defrag=madvise"],
    ),
    (
        "a setting that the new scheduler would reset is set after it, though it is right now",
        {"disks": {"vda": {"nr_requests": 256, "scheduler": "none"}}},
        ["disks.vda.scheduler=none", "disks.vda.nr_requests=256"],
        BACK,
    ),
    (
        "huge pages",
        {"transparent_hugepage": "never"},
        ["transparent_hugepage=never"],
        ["transparent_hugepage=madvise"],
    ),
    (
        "the ARC's limits, least first where the most shrinks; 0 is put back as what it came to",
        {"zfs": {"zfs_arc_min": "128M", "zfs_arc_max": "1G"}},
        ["zfs.zfs_arc_min=134217728", "zfs.zfs_arc_max=1073741824"],
        ["zfs.zfs_arc_max=12638257152", "zfs.zfs_arc_min=789891072"],
    ),
    (
        "and most first where it grows",
        {"zfs": {"zfs_arc_min": "1G", "zfs_arc_max": "16G"}},
        ["zfs.zfs_arc_max=17179869184", "zfs.zfs_arc_min=1073741824"],
        ["zfs.zfs_arc_min=789891072", "zfs.zfs_arc_max=12638257152"],
    ),
    (
        "of two settings of which one counts, that one is put back",
        {"vm": {"dirty_bytes": "64M"}},
        ["vm.dirty_bytes=67108864"],
        ["vm.dirty_ratio=20"],
    ),
    (
        "a ratio of the two",
        {"vm": {"dirty_ratio": 5}},
        ["vm.dirty_ratio=5"],
        ["vm.dirty_ratio=20"],
    ),
    (
        "properties",
        {"datasets": {"tank/site": {"recordsize": "16K", "atime": True, "sync": "disabled"}}},
        [
            "datasets.tank/site.recordsize=16384",
            "datasets.tank/site.atime=on",
            "datasets.tank/site.sync=disabled",
        ],
        [
            "datasets.tank/site.recordsize=131072",
            "datasets.tank/site.atime=off",
            "datasets.tank/site.sync=standard",
        ],
    ),
    (
        "a size in another spelling is no change",
        {"datasets": {"tank/site": {"recordsize": "128 KiB"}}},
        [],
        [],
    ),
]


@pytest.mark.parametrize(
    ("given_", "set_", "back"), [row[1:] for row in PLANS], ids=[row[0] for row in PLANS]
)
def test_what_is_set_and_what_is_put_back(
    given_: dict[str, object], set_: list[str], back: list[str]
) -> None:
    found = asyncio.run(plan_for_host(host_to_tune(), Tuning.model_validate(given_)))
    assert [f"{value.key}={value.value}" for value in found.apply] == set_
    assert [f"{value.key}={value.value}" for value in found.put_back] == back


STEPS: list[tuple[str, Value, tuple[str, ...], str | None]] = [
    (
        "a file",
        QueueValue(device="nvme0n1", name="read_ahead_kb", value="128"),
        ("tee", "/sys/block/nvme0n1/queue/read_ahead_kb"),
        "128\n",
    ),
    (
        "a property",
        PropertyValue(dataset="tank/site", name="sync", value="always"),
        ("zfs", "set", "sync=always", "tank/site"),
        None,
    ),
    (
        "one that was inherited is inherited again",
        PropertyValue(dataset="tank", name="sync", value="always", source="inherited"),
        ("zfs", "inherit", "sync", "tank"),
        None,
    ),
    (
        "one that came with a receive comes back from there",
        PropertyValue(dataset="tank", name="sync", value="always", source="received"),
        ("zfs", "inherit", "-S", "sync", "tank"),
        None,
    ),
]


@pytest.mark.parametrize(
    ("value", "command", "stdin"), [row[1:] for row in STEPS], ids=[row[0] for row in STEPS]
)
def test_the_command_of_a_value(value: Value, command: tuple[str, ...], stdin: str | None) -> None:
    assert (value.step.words, value.step.stdin) == (command, stdin)


def test_a_property_that_is_right_by_inheriting_what_changes_is_set() -> None:
    tuning = Tuning.model_validate(
        {"datasets": {"tank": {"sync": "disabled"}, "tank/db": {"sync": "standard"}}}
    )
    now: dict[str, Value] = {
        value.key: value
        for value in (
            PropertyValue(dataset="tank", name="sync", value="standard", source="local"),
            PropertyValue(dataset="tank/db", name="sync", value="standard", source="inherited"),
        )
    }
    found = plan_tuning(now, tuning)
    assert [step.words[-1] for step in found.apply_steps] == ["tank", "tank/db"]
    assert found.put_back_steps[1].words == ("zfs", "inherit", "sync", "tank/db")


def test_all_that_a_host_has_not_is_reported_at_once() -> None:
    tuning = Tuning.model_validate(
        {"disks": {"sdz": {"nr_requests": 1}}, "datasets": {"tank/site": {"logbias": "latency"}}}
    )
    with pytest.raises(TuningError) as caught:
        asyncio.run(plan_for_host(host_to_tune(), tuning))
    assert str(caught.value).splitlines() == [
        "disks.sdz: this host has no disk sdz: lsblk -d shows all",
        "datasets.tank/site.logbias: this host has no such setting; leave it out",
    ]


HOSTILE = [
    "sda;reboot",
    "sda sdb",
    "../../etc",
    "sda'",
    'sd"a',
    "$(id)",
    "sda/queue",
    "-rf",
    "",
    "sda\n",
    "sdä",
    "a" * 300,
]
REFUSED = [
    *((f"the device {name!r}", {"disks": {name: {"nr_requests": 1}}}) for name in HOSTILE),
    *(
        (f"the dataset {name!r}", {"datasets": {name: {"sync": "always"}}})
        for name in HOSTILE
        if "/" not in name and name != "sda"
    ),
    ("a device with a slash", {"disks": {"sda/queue": {"nr_requests": 1}}}),
    ("a dataset that climbs", {"datasets": {"tank/../other": {"sync": "always"}}}),
    ("a dataset with a slash in front", {"datasets": {"/tank": {"sync": "always"}}}),
    ("a snapshot, which is no dataset to tune", {"datasets": {"tank@a": {"sync": "always"}}}),
    ("a property that is not listed", {"datasets": {"tank": {"mountpoint": "/"}}}),
    ("a compression with more behind it", {"datasets": {"tank": {"compression": "lz4 tank2"}}}),
    ("a record size that is no power of two", {"datasets": {"tank": {"recordsize": "100K"}}}),
    ("a scheduler that does not exist", {"disks": {"sda": {"scheduler": "cfq; id"}}}),
    ("a sysctl that is not listed", {"vm": {"drop_caches": 3}}),
    ("a module parameter that is not listed", {"zfs": {"zfs_recover": 1}}),
    ("two settings of which one counts", {"vm": {"dirty_ratio": 5, "dirty_bytes": "1M"}}),
    ("a size that is none", {"zfs": {"zfs_arc_min": "lots"}}),
    ("an ARC of nothing", {"zfs": {"zfs_arc_max": 0}}),
]


@pytest.mark.parametrize("given_", [row[1] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_not_listed_or_hostile_is_refused(given_: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Tuning.model_validate(given_)


@given(st.text())
def test_no_name_leads_out_of_its_folder(name: str) -> None:
    try:
        path = QueueValue(device=name, name="scheduler", value="none").path
    except ValidationError:
        return
    assert Path(path).parent.parent.parent == Path("/sys/block")
    assert ".." not in path
    assert path.isascii()


def test_what_changes_along_is_read_too() -> None:
    tuning = Tuning.model_validate({"disks": {"sda": {"scheduler": "none"}}, "vm": {"dirty_ratio": 5}})
    assert [value.key for value in asked_values(tuning)] == ["disks.sda.scheduler", "vm.dirty_ratio"]
    assert {value.key for value in touched_values(tuning)} == {
        *("disks.sda.scheduler", "disks.sda.nr_requests", "disks.sda.wbt_lat_usec"),
        *(f"disks.sda.{name}" for name in SCHEDULERS_OWN),
        *("vm.dirty_ratio", "vm.dirty_bytes"),
    }


LACKS = [
    (
        "a disk",
        {"disks": {"sdz": {"nr_requests": 4, "nomerges": 1}}},
        ["disks.sdz: this host has no disk sdz"],
    ),
    (
        "a dataset",
        {"datasets": {"no/such": {"sync": "always"}}},
        ["datasets.no/such: this host has no dataset"],
    ),
    ("a setting", {"disks": {"vda": {"nomerges": 1}}}, ["disks.vda.nomerges: this host has no such setting"]),
    (
        "a setting of another scheduler",
        {"disks": {"vdb": {"read_expire": 1}}},
        ["disks.vdb.read_expire: the disk's scheduler has no such setting: add scheduler: mq-deadline"],
    ),
]


@pytest.mark.parametrize(("what", "tuning", "said"), LACKS, ids=[row[0] for row in LACKS])
def test_what_is_missing_is_called_by_what_it_is(
    what: str, tuning: dict[str, object], said: list[str]
) -> None:
    with pytest.raises(TuningError) as caught:
        asyncio.run(plan_for_host(host_to_tune(), Tuning.model_validate(tuning)))
    lines = str(caught.value).splitlines()
    assert len(lines) == len(said), what
    assert all(line.startswith(part) for line, part in zip(lines, said, strict=True)), lines


def test_the_own_disk_gets_its_names() -> None:
    tuning = Tuning.model_validate(
        {
            "disks": {"@disk": {"nr_requests": 4, "nomerges": 1}, "sda": {"nr_requests": 8}},
            "datasets": {"@disk": {"recordsize": "16K"}},
        }
    )
    found = resolve_own(tuning, ["sda", "sdb"], "tank/lab", {})
    assert [f"{value.key}={value.value}" for value in asked_values(found)] == [
        "disks.sda.nr_requests=8",
        "disks.sda.nomerges=1",
        "disks.sdb.nr_requests=4",
        "disks.sdb.nomerges=1",
        "datasets.tank/lab.recordsize=16384",
    ]
    assert [value.key for value in asked_values(drop_own(tuning))] == ["disks.sda.nr_requests"]


def test_a_disk_that_is_not_made_is_shown_as_what_it_will_be() -> None:
    tuning = Tuning.model_validate(
        {"disks": {"@disk": {"read_expire": 9}}, "datasets": {"@disk": {"sync": "always"}}}
    )
    steps = own_disk_commands(tuning, ["${disk_device}"], "plimsoll-x--a/site")
    assert [step.words for step in steps] == [
        ("tee", "/sys/block/${disk_device}/queue/iosched/read_expire"),
        ("zfs", "set", "sync=always", "plimsoll-x--a/site"),
    ]


DATASETS = {"@database": ("tank/x/mysql",), "@web": ("tank/x/wordpress", "tank/x/static")}


def test_parts_of_a_clone_are_created_with_what_is_kept_and_tuned_in_runs_with_what_holds_at_once() -> None:
    said = {
        "@web": {"recordsize": "1M", "sync": "disabled"},
        "@database": {"recordsize": "16K", "logbias": "throughput", "compression": "lz4"},
        "@disk": {"atime": "off"},
        "tank/x/static": {"recordsize": "128K"},
    }
    tuning = Tuning.model_validate({"datasets": said})
    assert creation_properties(tuning) == {
        "@database": {"compression": "lz4", "recordsize": "16384"},
        "@web": {"recordsize": "1048576"},
    }
    before = resolve_own(tuning, [], "tank", {})
    assert [value.key for value in asked_values(before)] == [
        "datasets.tank/x/static.recordsize",
        "datasets.tank.atime",
    ], "while the clone is made, none of its datasets is there to be tuned"
    assert [step.words[2:] for step in run_commands(tuning, DATASETS)] == [
        ("logbias=throughput", "tank/x/mysql"),
        ("sync=disabled", "tank/x/wordpress"),
        ("sync=disabled", "tank/x/static"),
    ]
    found = [
        f"{value.key}={value.value}" for value in asked_values(resolve_own(tuning, [], "tank", DATASETS))
    ]
    assert set(found) == {
        "datasets.tank.atime=off",
        "datasets.tank/x/mysql.compression=lz4",
        "datasets.tank/x/mysql.recordsize=16384",
        "datasets.tank/x/mysql.logbias=throughput",
        "datasets.tank/x/wordpress.recordsize=1048576",
        "datasets.tank/x/wordpress.sync=disabled",
        "datasets.tank/x/static.recordsize=131072",  # what is said by its name counts more
        "datasets.tank/x/static.sync=disabled",
    }
    assert creation_properties(Tuning.model_validate({"datasets": {"@web": {}}})) == {"@web": {}}, (
        "a dataset, untuned"
    )
    assert asked_values(drop_own(tuning)) == asked_values(
        drop_own(Tuning.model_validate({"datasets": {"tank/x/static": said["tank/x/static"]}}))
    )


def test_a_record_says_parts_by_their_word_once() -> None:
    part_of = {name: part for part, names in DATASETS.items() for name in names}
    asked = [
        TunedValue("vm.swappiness", "60", "1"),
        TunedValue("datasets.tank.atime", "on", "off"),
        TunedValue("datasets.tank/x/mysql.logbias", "latency", "throughput"),
        TunedValue("datasets.tank/x/wordpress.recordsize", "65536", "65536"),
        TunedValue("datasets.tank/x/static.recordsize", "65536", "65536"),
    ]
    assert label_parts(asked, part_of) == [
        *asked[:2],
        TunedValue("datasets.@database.logbias", "latency", "throughput"),
        TunedValue("datasets.@web.recordsize", "65536", "65536"),
    ]
