"""`backup`: held against what Proxmox's programs printed, and run with programs that stand in for them."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from plimsoll.lab.clones.proxmox import Proxmox, ProxmoxSettings
from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Line
from plimsoll.lab.saturators import AnySaturator
from plimsoll.lab.saturators.backup import (
    BACKUP,
    command,
    find_own_backups,
    own_snapshots,
    reader,
    release_command,
)
from plimsoll.lab.saturators.saturator import Runner
from tests.support.disks import here, remove_leftovers
from tests.support.programs import awaited
from tests.support.scripted import ScriptedMachine, at_work
from tests.support.stand_ins import RECORDED, ProxmoxNode

settings_of = TypeAdapter[Any](AnySaturator).validate_python
MIB, GIB = 1 << 20, 1 << 30
SERVER = {"to": "repository", "repository": "lab@pbs!t@backup:store", "password_file": "/root/pbs.secret"}
STORAGE: dict[str, Any] = {"kind": "backup", "guest": 9001, "sink": {"to": "storage", "storage": "pbs"}}
REPOSITORY: dict[str, Any] = {"kind": "backup", "folder": "/srv", "sink": SERVER}
BY = "move--ssd"


@pytest.mark.parametrize(
    ("recorded", "said", "says"),
    [
        ("vzdump-9-stdout", [4.2 * GIB, 8.8 * GIB, 18.3 * GIB, 20 * GIB], "a virtual machine"),
        ("vzdump-9-storage", [1.1 * GIB, 2.6 * GIB, 5.3 * GIB, 7.9 * GIB], "one onto a backup server"),
        ("vzdump-6-log", [558.5 * MIB, 941.1 * MIB, 1.2 * GIB], "the words of before 6.3"),
        (
            "vzdump-8-container",
            [7.805 * GIB, 12.65 * GIB, 16.308 * GIB],
            "a container: once a minute, and at the end",
        ),
        ("client-3", [6.831 * GIB], "the client by itself, in less than a minute"),
    ],
)
def test_progress_as_it_was_printed(recorded: str, said: list[float], says: str) -> None:
    read = reader(settings_of(STORAGE))
    lines = (RECORDED / f"{recorded}.txt").read_text(encoding="utf-8").splitlines()
    found = [bytes_ for line in lines if (bytes_ := read(Line("out", line, 0)))]
    assert found == [round(one) for one in said], says


def test_what_is_copied_is_counted_by_the_copier_alone() -> None:
    read = reader(settings_of({"kind": "backup", "guest": 9001}))
    assert read(Line("out", "bytes 5", 0)) == 5
    assert read(Line("err", "INFO:  20% (4.2 GiB of 20.0 GiB) in 3s, read: 1.4 GiB/s", 0)) == 0
    assert read(Line("err", "ERROR: Backup of VM 9001 failed - no space", 0)) is None, (
        "the reason of a failure"
    )


def test_the_commands_of_vzdump() -> None:
    words = command(settings_of(STORAGE | {"rate_bytes_per_s": "100M"}), BY)
    assert words[3:] == [
        "sh", "9001", f"/var/tmp/plimsoll-{BY}.backup", "",
        "--bwlimit", "102400", "--mode", "snapshot", "--storage", "pbs", "--notes-template", f"plimsoll-{BY}",
    ]  # fmt: skip
    words = command(
        settings_of({"kind": "backup", "guest": 9001, "sink": {"to": "folder", "folder": "/srv"}}), BY
    )
    assert f"--to=/srv/plimsoll-{BY}.vzdump" in words
    assert words[-6:] == ["--mode", "snapshot", "--compress", "0", "--stdout", "1"]
    assert words[-7] == "setsid", "out of the copier's process group"


def test_no_password_is_on_a_command_line() -> None:
    words = command(settings_of(REPOSITORY), BY)
    assert words[:4] == [
        "env",
        "PBS_PASSWORD_FILE=/root/pbs.secret",
        "PBS_REPOSITORY=lab@pbs!t@backup:store",
        "proxmox-backup-client",
    ]
    assert words[4:] == [
        "backup",
        "clone.pxar:/srv",
        "--backup-type",
        "host",
        "--backup-id",
        f"plimsoll-{BY}",
    ]


def test_only_backups_with_the_labels_own_note_are_removed() -> None:
    stored = (RECORDED / "stored.json").read_text()
    assert find_own_backups(stored, "pbs", BY) == ["pbs:backup/vm/9001/2026-11-22T02:00:00Z"]
    assert find_own_backups(stored, "other", BY) == []
    listed = (RECORDED / "snapshots.json").read_text()
    assert own_snapshots(listed, BY) == [f"host/plimsoll-{BY}/2026-11-22T00:00:00Z"]
    for text in ("", "null", "{}", "[1]", '[{"volid": 1}]', "[" * 100_000):
        assert find_own_backups(text, "pbs", BY) == own_snapshots(text, BY) == []


@pytest.mark.parametrize(("numbers", "guest"), [("9001-9001", 9001), ("9001-9002", None), (None, None)])
def test_a_clone_on_proxmox_whose_number_is_known_before(numbers: str | None, guest: int | None) -> None:
    given_ = {
        "driver": "proxmox",
        "api": "pve",
        "node": "pve",
        "template": 900,
        "storage": "nvme",
        "target": "http://www.example.org",
    }
    clone = Proxmox(ProxmoxSettings.model_validate(given_ | {"vmid_range": numbers}), "plimsoll-a--b")
    assert clone.data() == DataLocation(guest=guest)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProxmoxNode:
    made = ProxmoxNode(tmp_path)
    monkeypatch.setenv("PATH", made.path)
    (tmp_path / "own").mkdir()
    monkeypatch.setattr("plimsoll.lab.saturators.backup._TEMPORARY", str(tmp_path / "own"))
    return made


def drive(
    given_: dict[str, Any], holds: Callable[[list[dict[str, Any]]], object]
) -> tuple[Runner[Any], list[dict[str, Any]]]:
    """Let a saturator work on this machine until `holds` for what it reported, or it failed."""
    events: list[dict[str, Any]] = []

    async def work() -> Runner[Any]:
        async with here() as machine, at_work(machine, settings_of(given_), BY, events) as one:
            await awaited("what it is to do", lambda: holds(events) or one.failure)
        return one

    return asyncio.run(work()), events


def test_a_guest_is_backed_up_into_a_file_until_it_is_stopped(node: ProxmoxNode, tmp_path: Path) -> None:
    node.has("endless")
    sink = {"to": "folder", "folder": str(tmp_path / "own")}
    one, events = drive(
        {"kind": "backup", "guest": 9001, "sink": sink},
        lambda events: sum(event.get("bytes_per_s", 0) for event in events) > 100_000,
    )
    assert one.failure is None
    assert not node.is_there("lock"), "vzdump was told to end, and put things in order"
    assert node.asked("ended") == ["ended"], "told once"
    assert list((tmp_path / "own").iterdir()) == []
    started = node.asked("vzdump")[0]
    assert "--notification-mode legacy-sendmail" in started, "no mail each round"
    assert "--remove 0" in started, "older backups of somebody are not pruned"
    assert events[-1]["bytes"] > 100_000


def test_rounds_follow_each_other(node: ProxmoxNode) -> None:
    one, events = drive({"kind": "backup", "guest": 9001}, lambda _: len(node.asked("vzdump")) > 1)
    assert one.failure is None
    assert not [event for event in events if "retry" in event["event"]]


def test_a_failure_is_reported_in_vzdumps_own_words(node: ProxmoxNode) -> None:
    program = node.folder / "bin" / "vzdump"
    failing = (
        '[ "$1" = help ] && exit\ncat "$here/recorded" >&2\necho "INFO: Failed at 2026-11-22" >&2\nexit 255\n'
    )
    program.write_text(f"#!/bin/sh\nhere={node.folder}\n{failing}")
    node.has(
        "recorded", "INFO: status = running\nERROR: Backup of VM 9001 failed - no space left on device\n"
    )
    one, _ = drive({"kind": "backup", "guest": 9001, "retries": 0}, lambda reported: False)
    assert one.failure and "Backup of VM 9001 failed - no space left on device" in one.failure


def test_backups_on_a_server_are_removed_after_each_round(node: ProxmoxNode) -> None:
    node.prints("vzdump-9-storage")
    node.has("stored", (RECORDED / "stored.json").read_text())
    drive(STORAGE, lambda reported: len(node.asked("vzdump")) >= 2)
    assert node.asked("pvesm")[0] == "pvesm free pbs:backup/vm/9001/2026-11-22T02:00:00Z"
    assert "--content backup --vmid 9001" in node.asked("pvesh")[0]


def test_a_folder_goes_to_a_server_with_its_password_in_a_file(node: ProxmoxNode) -> None:
    node.prints("client-3")
    node.has("snapshots", (RECORDED / "snapshots.json").read_text())
    drive(
        REPOSITORY,
        lambda reported: sum(" backup clone" in line for line in node.asked("proxmox-backup-client")) >= 2,
    )
    asked = node.asked("proxmox-backup-client")
    assert f"proxmox-backup-client snapshot forget host/plimsoll-{BY}/2026-11-22T00:00:00Z" in asked
    assert "PBS_PASSWORD_FILE=/root/pbs.secret" in (node.folder / "environment").read_text()


@pytest.mark.parametrize(
    ("lock", "after", "says"),
    [
        ("backup", False, "what it locked"),
        ("migrate", True, "somebody else's lock stays"),
        (None, False, "no lock"),
    ],
)
def test_a_guest_that_a_killed_backup_left_locked(
    lock: str | None, after: bool, says: str, node: ProxmoxNode
) -> None:
    own = node.folder / "own" / "plimsoll.backup"
    (own / "vzdumptmp1_9001").mkdir(parents=True)
    if lock:
        node.has("lock", lock)
    for _ in range(2):
        done = node.run(release_command(9001, str(own)))
        assert done.returncode == 0, done.stderr
    assert node.is_there("lock") == after, says
    assert not own.exists()
    node.has("lock", "backup")
    node.run(release_command(9001, str(own)))
    assert node.is_there("lock"), "without the lab's folder it is somebody else's backup"


def test_what_a_kill_left_is_found_and_removed(node: ProxmoxNode, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    (folder / f"plimsoll-{BY}.backup").mkdir()
    (folder / f"plimsoll-{BY}.vzdump").touch()
    (folder / f"plimsoll-{BY}2.vzdump").touch()
    node.has("lock", "backup")
    settings = settings_of({"kind": "backup", "guest": 9001, "sink": {"to": "folder", "folder": str(folder)}})

    assert remove_leftovers(settings, BY) == [
        f"a backup of the guest 9001, marked by {folder}/plimsoll-{BY}.backup",
        f"{folder}/plimsoll-{BY}.vzdump",
    ]
    assert [path.name for path in folder.iterdir()] == [f"plimsoll-{BY}2.vzdump"]
    assert not node.is_there("lock")


@pytest.mark.parametrize(
    ("status", "found", "says"),
    [
        (0, ["the backup pbs:backup/vm/9001/2026-11-22T02:00:00Z"], "its own"),
        (127, [], "no Proxmox on this machine"),
        (2, ["backups on a server, or not: it cannot be asked"], "a server that is down counts as not clean"),
    ],
)
def test_backups_on_a_server_are_found(status: int, found: list[str], says: str) -> None:
    listed = (RECORDED / "stored.json").read_text()
    machine = ScriptedMachine(lambda words: (status, listed, "") if words[0] == "pvesh" else (1, "", ""))
    remains = asyncio.run(BACKUP.find(machine, settings_of(STORAGE), BY, "ssd"))
    assert [one.what for one in remains] == found, says


def test_lab_check_looks_at_the_node(node: ProxmoxNode) -> None:
    def wrong(given_: dict[str, Any]) -> list[str]:
        checks = BACKUP.checks(settings_of(given_))
        return [one.problem.partition(": ")[0] for one in checks if node.run(one.words).returncode]

    assert wrong(STORAGE) == []
    (node.folder / "guest").unlink()
    assert wrong(STORAGE) == ["saturator.guest"]
    node.has("storages", "Name Type Status\nlocal dir active 1 1 1 1%\n")
    assert wrong(STORAGE) == ["saturator.sink.storage", "saturator.guest"]
    node.has("storages")
    assert wrong(STORAGE)[0] == "saturator.sink.storage", "no storage of that name"
    assert wrong({"kind": "backup"}) == []
    assert "saturator.sink.password_file" in wrong(json.loads(json.dumps(REPOSITORY)))
