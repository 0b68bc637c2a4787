"""What drives say of their health: real ones, as published, and those that lie or say nothing."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.lab.facts import read_facts, read_facts_after, smart
from plimsoll.lab.facts.facts import disk_paths, parse_volume
from plimsoll.lab.facts.smart import DriveReading
from tests.support.programs import ROOT
from tests.support.scripted import FakeMachine

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
        "/sys/block/nvme0n1/queue/write_cache": "write back\n"
    }
    machine = FakeMachine(
        device,
        {
            "smartctl --json=o --all /dev/nvme0n1": json.dumps(PUBLISHED[CONSUMER_NVME]),
            "findmnt": "zfs rw,xattr,noacl\n",
            "systemctl is-enabled fstrim.timer": "disabled\n",
            "zpool get autotrim tank": "NAME  PROPERTY  VALUE  SOURCE\ntank  autotrim  off  default\n",
        },
    )
    facts = asyncio.run(read_facts(machine, ["nvme0n1", "vdb"], ["tank/site"], None, "/tank/site"))
    machine.answers["smartctl --json=o --all /dev/nvme0n1"] = json.dumps(
        _changed(CONSUMER_NVME, media_errors=2)
    )
    facts = asyncio.run(read_facts_after(machine, facts))
    nvme, virtual = facts.disks
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
