"""What is read of a host and of its drives' health, and what differs between two hosts."""

import asyncio
import json
from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.analysis.evidence.storage import Value, differing
from plimsoll.lab.facts import facts, read_facts, read_facts_after, smart
from plimsoll.lab.facts.facts import DatasetFacts, DiskFacts, HostFacts, PoolFacts, disk_paths, parse_volume
from plimsoll.lab.facts.smart import DriveReading
from tests.support.programs import ROOT
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
        "",
        "vol-0a1b\n",
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
    assert (vda.model, vda.serial, vda.size_bytes, vda.rotational) == (None, "vol-0a1b", 1 << 38, True)
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


def test_a_zfs_without_some_property_reports_the_others() -> None:
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


# Excerpts of real outputs; the file names its source.
PUBLISHED: dict[str, Any] = json.loads((ROOT / "tests/fixtures/smart/published.json").read_text())["drives"]


CONSUMER_NVME = "nvme-null-Samsung_SSD_970_EVO_Plus_250GB-nvme0"
DEAD_CAPACITOR = "nvme-null-SAMSUNG_MZWLL3T2HAJQ-00005-nvme0"
SERVER_SATA = "sat-Dell_Certified_Intel_S3520_Series_SSDs-SSDSCKJB240G7R-sdm"
WORN_SATA = "SAMSUNG_MZ7WD240HAFV-00003_21"
RUST = "sat-HGST_Ultrastar_7K6000-HGST_HUS726020ALE614-sda"
SAS = "HITACHI_H109060SESUN600G_10"


# drive, the kernel's write_cache → protocol, wear, protection, warning temperature, temperature, passed
DRIVES = [
    ("NVMe with a volatile cache", CONSUMER_NVME, "write back", ("NVMe", 0, False, None, 35, True)),
    ("NVMe without one", CONSUMER_NVME, "write through", ("NVMe", 0, True, None, 35, True)),
    ("NVMe, and the kernel says nothing", CONSUMER_NVME, None, ("NVMe", 0, None, None, 35, True)),
    ("one whose capacitor is dead", DEAD_CAPACITOR, "write through", ("NVMe", 0, False, None, 40, False)),
    ("SATA that tests its capacitor", SERVER_SATA, "write back", ("ATA", 0, True, None, 47, True)),
    ("SATA that is a little worn", WORN_SATA, "write back", ("ATA", 9, None, None, 27, True)),
    ("a rotating disk", RUST, "write back", ("ATA", None, None, None, 27, True)),
    ("a SAS disk", SAS, "write back", ("SCSI", None, None, 85, 26, True)),
]


@pytest.mark.parametrize(
    ("drive", "write_cache", "expected"), [row[1:] for row in DRIVES], ids=[row[0] for row in DRIVES]
)
def test_what_real_drives_say(drive: str, write_cache: str | None, expected: tuple[object, ...]) -> None:
    facts = smart.drive_facts(PUBLISHED[drive], write_cache)
    assert facts is not None
    assert facts.before is not None
    assert facts.after is None
    reading = facts.before
    assert expected == (
        facts.protocol,
        facts.wear_percent,
        facts.power_loss_protection,
        facts.warning_temperature_c,
        reading.temperature_c,
        reading.passed,
    )
    assert reading.warnings == (("backup",) if drive == DEAD_CAPACITOR else ())
    assert reading.media_errors == 0


def _changed(drive: str, **log: object) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(json.dumps(PUBLISHED[drive]))
    said["nvme_smart_health_information_log"] |= log
    return said


# In the columns of smartctl 7.3.
TEXT = [
    "Warning  Comp. Temp. Threshold:     85 Celsius",
    "Critical Comp. Temp. Threshold:     85 Celsius",
    "Warning  Comp. Temperature Time:    2",
    "Thermal Temp. 1 Transition Count:   3",
    "Thermal Temp. 2 Transition Count:   1",
    "Thermal Temp. 1 Total Time:         584",
]


SAID = [
    ("the text has what the JSON of 7.3 lacks", {"smartctl": {"output": TEXT}}, (85, 4)),
    ("its JSON has it from 7.4 on", {"nvme_composite_temperature_threshold": {"warning": 70}}, (70, None)),
    ("counters that are 0 are left out of the text", {"smartctl": {"output": TEXT[:2]}}, (85, 0)),
    ("an output that is none", {"smartctl": {"output": [1, None, {}]}}, (None, None)),
]


@pytest.mark.parametrize(("said", "expected"), [row[1:] for row in SAID], ids=[row[0] for row in SAID])
def test_limits_and_throttling_of_nvme(said: dict[str, Any], expected: tuple[int | None, int | None]) -> None:
    facts = smart.drive_facts(PUBLISHED[CONSUMER_NVME] | said, None)
    assert facts is not None
    assert facts.before is not None
    assert (facts.warning_temperature_c, facts.before.throttles) == expected


def test_every_critical_warning_of_nvme_has_a_word() -> None:
    reading = smart.parse_reading(_changed(CONSUMER_NVME, critical_warning=0b111111))
    assert reading is not None
    assert reading.warnings == (
        "spare",
        "temperature",
        "reliability",
        "read-only",
        "backup",
        "persistent-memory",
    )


NOTHING = [
    ("a virtual disk", '{"smartctl": {"exit_status": 1}, "local_time": {"time_t": 1}}'),
    ("no smartctl", ""),
    ("no JSON", "Smartctl open device failed"),
    ("a list", "[]"),
    ("nested beyond reason", "[" * 100_000),
    (
        "other types than there should be",
        '{"temperature": {"current": "hot"}, "smart_status": {"passed": 1}}',
    ),
    ("a number beyond any counter", '{"temperature": {"current": 1e400}}'),
    ("a table that is none", '{"ata_smart_attributes": {"table": {"id": 5}}}'),
]


@pytest.mark.parametrize("printed", [row[1] for row in NOTHING], ids=[row[0] for row in NOTHING])
def test_a_drive_that_says_nothing_has_no_facts(printed: str) -> None:
    assert smart.drive_facts(smart.parse(printed), "write back") is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("smart_status", "passed", "temperature", "current", "ata_smart_attributes", "table"),
                    *("raw", "value", "name", "nvme_smart_health_information_log", "media_errors"),
                    *("smartctl", "output"),
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(_JSON)
def test_no_json_crashes_it(said: object) -> None:
    smart.drive_facts(smart.parse(json.dumps(said)), None)


VOLUMES = [
    ("ext4 that discards at once", "ext4 rw,relatime,discard\n", ("ext4", True)),
    ("ext4 that does not", "ext4 rw,relatime\n", ("ext4", False)),
    ("Btrfs' own way", "btrfs rw,ssd,discard=async,space_cache=v2\n", ("btrfs", True)),
    ("Btrfs that was told not to", "btrfs rw,ssd,nodiscard\n", ("btrfs", False)),
    ("an option that only begins like it", "xfs rw,discarded\n", ("xfs", False)),
    ("nothing", "", None),
]


@pytest.mark.parametrize(("text", "found"), [row[1:] for row in VOLUMES], ids=[row[0] for row in VOLUMES])
def test_whether_a_file_system_discards(text: str, found: tuple[str, bool] | None) -> None:
    read = parse_volume(text)
    assert (read and (read.type, read.discard)) == found


def test_drives_are_read_before_a_run_and_after_it() -> None:
    device = dict.fromkeys(disk_paths("nvme0n1"), "0\n") | {
        "/sys/block/nvme0n1/queue/write_cache": "write back\n",
        "/sys/block/nvme0n1/device/serial": "S64DNX0T\n",
    }
    machine = FakeMachine(
        device,
        {
            "smartctl --json=o --all /dev/nvme0n1": json.dumps(PUBLISHED[CONSUMER_NVME]),
            "smartctl --json=o --all /dev/sda": json.dumps({"serial_number": "ZA1B<2C3" + "x" * 200}),
            "findmnt": "zfs rw,xattr,noacl\n",
            "systemctl is-enabled fstrim.timer": "disabled\n",
            "zpool get autotrim tank": "NAME  PROPERTY  VALUE  SOURCE\ntank  autotrim  off  default\n",
        },
    )
    disks = ["nvme0n1", "vdb", "sda"]
    facts = asyncio.run(read_facts(machine, disks, ["tank/site"], None, "/tank/site"))
    machine.answers["smartctl --json=o --all /dev/nvme0n1"] = json.dumps(
        _changed(CONSUMER_NVME, media_errors=2)
    )
    facts = asyncio.run(read_facts_after(machine, facts))
    nvme, virtual, sata = facts.disks
    assert (nvme.serial, virtual.serial, sata.serial) == ("S64DNX0T", None, "ZA1B<2C3" + "x" * 56)
    assert nvme.drive is not None
    assert nvme.drive.before is not None
    assert nvme.drive.after is not None
    assert (nvme.drive.before.media_errors, nvme.drive.after.media_errors) == (0, 2)
    assert nvme.discard_max_bytes == 0
    assert virtual.drive is None
    assert (facts.pools[0].autotrim, facts.fstrim_timer) == ("off", "disabled")
    assert facts.volume is not None
    assert facts.volume.type == "zfs"


def test_a_drive_that_went_away_during_a_run_has_no_second_reading() -> None:
    machine = FakeMachine(answers={"smartctl": json.dumps(PUBLISHED[WORN_SATA])})
    facts = asyncio.run(read_facts(machine, ["sda"]))
    facts = asyncio.run(read_facts_after(FakeMachine(), facts))
    [disk] = facts.disks
    assert disk.drive is not None
    assert isinstance(disk.drive.before, DriveReading)
    assert disk.drive.after is None
