"""What tuning sets, how it is put back, and what cannot be reached through it."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lab.tuning import Tuning, TuningError, apply, plan, put_back
from lab.tuning.apply import planned
from lab.tuning.journal import Journal, read_journal
from lab.tuning.plan import touched, wanted
from lab.tuning.values import PropertyValue, QueueValue, Value, VmValue, ZfsValue
from tests.labkit.fakemachine import FakeMachine
from tests.labkit.recorded import ARCSTATS, HUGEPAGE, SCHEDULER

QUEUE = "/sys/block/vda/queue"
PARAMETERS = "/sys/module/zfs/parameters"
PROPERTIES = """\
tank/site\tcompression\tlz4\tinherited from tank
tank/site\trecordsize\t131072\tdefault
tank/site\tatime\toff\tlocal
tank/site\tsync\tstandard\treceived
tank/site\tlogbias\t-\t-
"""


def _host() -> FakeMachine:
    return FakeMachine(
        {
            f"{QUEUE}/scheduler": SCHEDULER,
            f"{QUEUE}/nr_requests": "256\n",
            f"{QUEUE}/read_ahead_kb": "8192\n",
            f"{QUEUE}/wbt_lat_usec": "75000\n",
            "/sys/kernel/mm/transparent_hugepage/enabled": HUGEPAGE,
            f"{PARAMETERS}/zfs_arc_max": "0\n",
            f"{PARAMETERS}/zfs_arc_min": "0\n",
            f"{PARAMETERS}/zfs_txg_timeout": "5\n",
            "/proc/spl/kstat/zfs/arcstats": ARCSTATS,
            "/proc/sys/vm/swappiness": "60\n",
            "/proc/sys/vm/dirty_ratio": "20\n",
            "/proc/sys/vm/dirty_bytes": "0\n",
        },
        {"zfs get": PROPERTIES, "zfs set": "", "zfs inherit": "", "zpool list": "tank\n"},
    )


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
        ["disks.vda.scheduler=mq-deadline", "disks.vda.nr_requests=256", "disks.vda.wbt_lat_usec=75000"],
    ),
    (
        "a setting that the new scheduler would reset is set after it, though it is right now",
        {"disks": {"vda": {"nr_requests": 256, "scheduler": "none"}}},
        ["disks.vda.scheduler=none", "disks.vda.nr_requests=256"],
        ["disks.vda.scheduler=mq-deadline", "disks.vda.nr_requests=256", "disks.vda.wbt_lat_usec=75000"],
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
    found = asyncio.run(planned(_host(), Tuning.model_validate(given_)))
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
    assert (value.step.command, value.step.stdin) == (command, stdin)


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
    found = plan(now, tuning)
    assert [step.command[-1] for step in found.apply_steps] == ["tank", "tank/db"]
    assert found.put_back_steps[1].command == ("zfs", "inherit", "sync", "tank/db")


def test_all_that_a_host_has_not_is_said_at_once() -> None:
    tuning = Tuning.model_validate(
        {"disks": {"sdz": {"nr_requests": 1}}, "datasets": {"tank/site": {"logbias": "latency"}}}
    )
    with pytest.raises(TuningError) as caught:
        asyncio.run(planned(_host(), tuning))
    assert str(caught.value).splitlines() == [
        "disks.sdz.nr_requests: this host has no such setting; leave it out",
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
    ("a scheduler that there is not", {"disks": {"sda": {"scheduler": "cfq; id"}}}),
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


FULL = {
    "disks": {"vda": {"scheduler": "none", "read_ahead_kb": 128}},
    "transparent_hugepage": "never",
    "datasets": {"tank/site": {"compression": "off", "sync": "disabled", "atime": "on"}},
    "zfs": {"zfs_txg_timeout": 1},
    "vm": {"dirty_bytes": "64M"},
}


def test_a_tuning_is_applied_and_put_back(tmp_path: Path) -> None:
    async def run() -> tuple[FakeMachine, list[str], list[str]]:
        host, journal = _host(), tmp_path / "tuning.json"
        await apply(host, Tuning.model_validate(FULL), journal)
        applied = host.changes
        assert journal.stat().st_mode & 0o777 == 0o600
        host.ran.clear()
        await put_back(host, journal)
        assert not journal.exists()
        back = host.changes
        host.ran.clear()
        await put_back(host, journal)
        assert host.ran == [], "a second time there is nothing to do"
        return host, applied, back

    host, applied, back = asyncio.run(run())
    assert applied == [
        f"tee {QUEUE}/scheduler",
        f"tee {QUEUE}/read_ahead_kb",
        "tee /sys/kernel/mm/transparent_hugepage/enabled",
        "zfs set compression=off tank/site",
        "zfs set atime=on tank/site",
        "zfs set sync=disabled tank/site",
        f"tee {PARAMETERS}/zfs_txg_timeout",
        "tee /proc/sys/vm/dirty_bytes",
    ]
    assert "zfs inherit compression tank/site" in back
    assert "zfs set atime=off tank/site" in back
    assert "zfs inherit -S sync tank/site" in back
    assert host.files[f"{QUEUE}/scheduler"] == "mq-deadline\n"
    assert host.files["/proc/sys/vm/dirty_ratio"] == "20\n"


def test_the_journal_is_there_before_anything_changes_and_no_second_one_replaces_it(tmp_path: Path) -> None:
    journal = tmp_path / "tuning.json"
    host = _host()
    seen: list[bool] = []

    def look(command: tuple[str, ...], _stdin: bytes | None) -> bool:
        if command[0] == "tee":
            seen.append(journal.exists())
        return False

    host.refuses = look
    asyncio.run(apply(host, Tuning.model_validate(FULL), journal))
    assert seen
    assert all(seen)
    kept = journal.read_bytes()
    with pytest.raises(TuningError, match="an earlier tuning was not put back"):
        asyncio.run(apply(_host(), Tuning.model_validate(FULL), journal))
    assert journal.read_bytes() == kept
    assert [path.name for path in tmp_path.iterdir()] == ["tuning.json"]


def test_a_setting_that_is_refused_puts_all_back(tmp_path: Path) -> None:
    host = _host()
    host.refuses = lambda command, stdin: stdin == b"never\n"
    with pytest.raises(
        TuningError, match=r"^transparent_hugepage: cannot be set to never, and nothing is tuned"
    ):
        asyncio.run(apply(host, Tuning.model_validate(FULL), tmp_path / "tuning.json"))
    assert host.files[f"{QUEUE}/scheduler"] == "mq-deadline\n"
    assert list(tmp_path.iterdir()) == []


def test_a_crash_at_any_step_can_be_undone(tmp_path: Path) -> None:
    """The journal alone is enough, wherever the program died."""
    tuning = Tuning.model_validate(FULL)
    whole = asyncio.run(planned(_host(), tuning))
    for died_after in range(len(whole.apply) + 1):
        host, journal = _host(), tmp_path / f"{died_after}.json"
        before = dict(host.files)
        journal.write_text(Journal(machine="far", put_back=whole.put_back).model_dump_json())
        for step in whole.apply_steps[:died_after]:
            asyncio.run(host.run(step.command, stdin=None if step.stdin is None else step.stdin.encode()))
        asyncio.run(put_back(host, journal))
        for path in (f"{QUEUE}/nr_requests", f"{PARAMETERS}/zfs_txg_timeout", "/proc/sys/vm/dirty_ratio"):
            assert host.files[path] == before[path]
        assert not journal.exists()


def test_what_went_away_is_no_problem_and_what_fails_keeps_the_journal(tmp_path: Path) -> None:
    host, journal = _host(), tmp_path / "tuning.json"
    asyncio.run(apply(host, Tuning.model_validate(FULL), journal))
    del host.files[f"{QUEUE}/scheduler"], host.files[f"{QUEUE}/read_ahead_kb"]
    host.refuses = lambda command, stdin: stdin == b"madvise\n"
    with pytest.raises(TuningError) as caught:
        asyncio.run(put_back(host, journal))
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()[1:]] == ["transparent_hugepage"]
    assert host.files["/proc/sys/vm/dirty_ratio"] == "20\n", "it goes on after a failure"
    host.refuses = lambda _command, _stdin: False
    asyncio.run(put_back(host, journal))
    assert not journal.exists()


DATASETS_GONE = [
    ("a dataset that was destroyed needs nothing", {"zpool list": "tank\n"}, True),
    ("a pool that is exported keeps what was set: say so", {}, False),
]


@pytest.mark.parametrize(
    ("answers", "well"), [row[1:] for row in DATASETS_GONE], ids=[row[0] for row in DATASETS_GONE]
)
def test_a_dataset_that_is_not_there(answers: dict[str, str], well: bool, tmp_path: Path) -> None:
    journal = tmp_path / "tuning.json"
    value = PropertyValue(dataset="tank/site", name="sync", value="standard", source="inherited")
    journal.write_text(Journal(machine="far", put_back=(value,)).model_dump_json())
    host = FakeMachine({}, answers)
    if well:
        asyncio.run(put_back(host, journal))
    else:
        with pytest.raises(TuningError, match="its pool is not imported"):
            asyncio.run(put_back(host, journal))
    assert journal.exists() != well


JOURNALS = [
    ("no JSON", "{"),
    ("of another format", json.dumps({"format": 2, "machine": "far", "put_back": []})),
    (
        "with a path that somebody put there",
        json.dumps(
            {
                "format": 1,
                "machine": "far",
                "put_back": [{"kind": "queue", "device": "../../etc", "name": "scheduler", "value": "none"}],
            }
        ),
    ),
    (
        "with a name that may not be tuned",
        json.dumps(
            {"format": 1, "machine": "far", "put_back": [{"kind": "vm", "name": "panic", "value": "1"}]}
        ),
    ),
    (
        "with a value of several lines",
        json.dumps({"format": 1, "machine": "far", "put_back": [{"kind": "hugepage", "value": "a\nb"}]}),
    ),
    ("of another machine", json.dumps({"format": 1, "machine": "near", "put_back": []})),
]


@pytest.mark.parametrize("text", [row[1] for row in JOURNALS], ids=[row[0] for row in JOURNALS])
def test_a_journal_that_was_tampered_with_does_nothing(text: str, tmp_path: Path) -> None:
    journal = tmp_path / "tuning.json"
    journal.write_text(text)
    host = _host()
    with pytest.raises(TuningError):
        asyncio.run(put_back(host, journal))
    assert host.ran == []
    assert journal.exists()


@given(data=st.binary())
def test_no_bytes_in_a_journal_crash(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    journal = tmp_path_factory.getbasetemp() / "journal.json"
    journal.write_bytes(data)
    with pytest.raises(TuningError):
        read_journal(journal)


def test_a_journal_that_cannot_be_written_leaves_all_as_it_was(tmp_path: Path) -> None:
    host = _host()
    with pytest.raises(TuningError, match="nothing was tuned"):
        asyncio.run(apply(host, Tuning.model_validate(FULL), tmp_path / "absent" / "tuning.json"))
    assert host.changes == []


def test_what_changes_along_is_read_too() -> None:
    tuning = Tuning.model_validate({"disks": {"sda": {"scheduler": "none"}}, "vm": {"dirty_ratio": 5}})
    assert [value.key for value in wanted(tuning)] == ["disks.sda.scheduler", "vm.dirty_ratio"]
    assert {value.key for value in touched(tuning)} == {
        *("disks.sda.scheduler", "disks.sda.nr_requests", "disks.sda.wbt_lat_usec"),
        *("vm.dirty_ratio", "vm.dirty_bytes"),
    }


def test_nothing_is_done_where_nothing_is_wanted(tmp_path: Path) -> None:
    host = _host()
    asyncio.run(apply(host, Tuning(), tmp_path / "tuning.json"))
    assert host.changes == []
    assert list(tmp_path.iterdir()) == []


def test_values_are_told_apart_by_kind() -> None:
    journal = Journal(
        machine="far",
        put_back=(ZfsValue(name="zfs_txg_timeout", value="5"), VmValue(name="swappiness", value="5")),
    )
    assert Journal.model_validate_json(journal.model_dump_json()) == journal
