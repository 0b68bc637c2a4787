"""What is read of a host, and what differs between two."""

import asyncio
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.evidence.storage import Value, differing
from plimsoll.lab.facts import facts, read_facts
from plimsoll.lab.facts.facts import DatasetFacts, DiskFacts, HostFacts, PoolFacts, disk_paths
from tests.support.recorded import (
    ARCSTATS,
    CPUINFO,
    HUGEPAGE,
    MEMINFO,
    SCHEDULER,
    ZFS_FUSE_GET,
    ZFS_GET,
    ZPOOL_STATUS,
    ZPOOL_STATUS_FUSE,
    ZPOOL_STATUS_LOOP,
)
from tests.support.scripted import FakeMachine

CHOSEN = [
    ("the word in brackets", SCHEDULER, "mq-deadline"),
    ("huge pages", HUGEPAGE, "madvise"),
    ("a word that stands alone: a disk without a choice", "none\n", "none"),
    ("several words and no choice", "a b", None),
    ("nothing", "", None),
    ("no file", None, None),
]


@pytest.mark.parametrize(("text", "word"), [row[1:] for row in CHOSEN], ids=[row[0] for row in CHOSEN])
def test_which_of_several_words_is_chosen(text: str | None, word: str | None) -> None:
    assert facts.parse_chosen(text) == word


LAYOUTS = [
    (
        "mirrors with a log and a cache",
        ZPOOL_STATUS,
        ("mirror × 2", "mirror × 2", "logs disk", "cache disk"),
        6,
    ),
    ("a pool whose name is that of a class of devices", ZPOOL_STATUS_LOOP, ("disk",), 1),
    ("zfs-fuse's own form, a file for a disk", ZPOOL_STATUS_FUSE, ("disk",), 1),
    ("no pool", "no pools available\n", (), 0),
]


@pytest.mark.parametrize(
    ("status", "layout", "devices"), [row[1:] for row in LAYOUTS], ids=[row[0] for row in LAYOUTS]
)
def test_how_a_pool_is_built(status: str, layout: tuple[str, ...], devices: int) -> None:
    found = facts.pool_layout(status)
    assert found[0] == layout
    assert len(found[1]) == devices


def _machine() -> FakeMachine:
    shown = [
        "",
        "536870912",
        "1",
        "512",
        "4096",
        "write back",
        SCHEDULER,
        "256",
        "8192",
        "4096",
        "0",
        "1",
        "75000",
        "512",
        "2147450880",
    ]
    disk = dict(zip(disk_paths("vda"), shown, strict=True))
    return FakeMachine(
        disk
        | {
            "/proc/sys/kernel/osrelease": "6.18.44\n",
            "/proc/cpuinfo": CPUINFO,
            "/proc/meminfo": MEMINFO,
            "/sys/kernel/mm/transparent_hugepage/enabled": HUGEPAGE,
            "/sys/module/zfs/version": "2.3.4-1\n",
            "/sys/module/zfs/parameters/zfs_arc_max": "0\n",
            "/proc/spl/kstat/zfs/arcstats": ARCSTATS,
        },
        {
            "zfs get": ZFS_GET,
            "zpool status tank": ZPOOL_STATUS,
            "zpool get ashift tank": "NAME  PROPERTY  VALUE   SOURCE\ntank  ashift    12      local\n",
        },
    )


def test_the_facts_of_a_host() -> None:
    facts = asyncio.run(read_facts(_machine(), ["vda", "sdz"], ["tank/site"]))
    assert (facts.kernel, facts.cpu, facts.cpus, facts.governor) == ("6.18.44", "AMD EPYC", 2, None)
    assert (facts.zfs_arc_min_bytes, facts.zfs_arc_max_bytes, facts.arc_c_max_bytes) == (None, 0, 12638257152)
    vda, absent = facts.disks
    assert (vda.model, vda.size_bytes, vda.rotational) == (None, 1 << 38, True)
    assert (vda.scheduler, vda.nr_requests, vda.wbt_lat_us) == ("mq-deadline", 256, 75000)
    assert (vda.discard_granularity_bytes, vda.discard_max_bytes) == (512, 2147450880)
    assert absent == DiskFacts(device="sdz")
    assert facts.pools[0].ashift == "12"
    assert facts.datasets[0].properties["recordsize"] == "128K"
    assert facts.datasets[0].compress_ratio == 1.52
    assert HostFacts.model_validate_json(facts.model_dump_json()) == facts


def test_a_host_that_has_nothing_of_it_is_read_all_the_same() -> None:
    facts = asyncio.run(read_facts(FakeMachine(), ["vda"], ["tank"]))
    assert facts.model_dump(exclude_none=True) == {
        "disks": ({"device": "vda"},),
        "pools": ({"pool": "tank", "layout": (), "devices": ()},),
        "datasets": ({"dataset": "tank", "properties": {}},),
    }


def test_a_zfs_without_some_property_tells_the_others() -> None:
    facts = asyncio.run(read_facts(FakeMachine(answers={"zfs get": ZFS_FUSE_GET}), [], ["tank/site"]))
    assert facts.datasets[0].properties == {
        "compression": "off",
        "recordsize": "128K",
        "primarycache": "all",
        "secondarycache": "all",
        "atime": "off",
        "xattr": "on",
    }


A = HostFacts(
    kernel="6.12",
    disks=(DiskFacts(device="sda", model="one", scheduler="none"),),
    pools=(PoolFacts(pool="fast", layout=("mirror × 2",), devices=("sda", "sdb")),),
    datasets=(DatasetFacts(dataset="fast/site", properties={"sync": "standard"}),),
)
B = HostFacts(
    kernel="6.12",
    disks=(DiskFacts(device="sdb", model="two", scheduler="bfq"),),
    pools=(PoolFacts(pool="slow", layout=("disk",), devices=("sdc",)),),
    datasets=(DatasetFacts(dataset="slow/site", properties={"sync": "disabled"}),),
)


def difference(
    a: HostFacts, b: HostFacts, expected: Collection[str] = ()
) -> list[tuple[str, tuple[Value, ...]]]:
    return differing([a.model_dump(mode="json"), b.model_dump(mode="json")], expected)


EVERYTHING = ["disks.1.model", "disks.1.scheduler", "pools.1.layout.1", "datasets.1.properties.sync"]
DIFFERENCES = [
    ("a host does not differ from itself", A, A, [], []),
    ("names of disks, pools and datasets are no difference", A, B, [], EVERYTHING),
    ("the one thing that should differ", A, B, ["disks.model"], EVERYTHING[1:]),
    ("a whole branch that may", A, B, ["disks", "pools"], EVERYTHING[3:]),
    ("a name that only begins like one is no branch", A, B, ["disk"], EVERYTHING),
    ("one place of several", A, B, ["disks.1"], EVERYTHING[2:]),
    ("a fact that one side has not", A, HostFacts(kernel="6.12"), ["disks", "pools"], EVERYTHING[3:]),
]


@pytest.mark.parametrize(
    ("a", "b", "besides", "keys"), [row[1:] for row in DIFFERENCES], ids=[row[0] for row in DIFFERENCES]
)
def test_what_differs_besides_what_should(
    a: HostFacts, b: HostFacts, besides: list[str], keys: list[str]
) -> None:
    assert [key for key, _ in difference(a, b, besides)] == keys
    assert [key for key, _ in difference(b, a, besides)] == keys


def test_a_difference_has_both_sides() -> None:
    assert difference(A, B)[0] == ("disks.1.model", ("one", "two"))


@given(st.binary())
def test_no_bytes_crash_a_parser(data: bytes) -> None:
    text = data.decode("utf-8", "backslashreplace")
    for read in (
        facts.parse_line,
        facts.parse_whole,
        facts.parse_chosen,
        facts.cpu_model,
        facts.cpu_count,
        facts.parse_ratio,
    ):
        read(text)
    facts.parse_properties(text)
    facts.pool_property(text, "ashift")
    facts.pool_layout(text)
    facts.pool_layout(f"NAME STATE\n{text}")


@given(
    st.lists(
        st.sampled_from([*ZPOOL_STATUS.splitlines(), "\t      raidz1-0  ONLINE", "\t\t  mirror-9  ONLINE"])
    )
)
def test_no_order_of_lines_crashes_the_layout(lines: list[str]) -> None:
    layout, devices = facts.pool_layout("\n".join(["\tNAME STATE", *lines]))
    assert len(layout) <= len(lines)
    assert len(devices) <= len(lines)
