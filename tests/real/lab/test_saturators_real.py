"""Saturators on disks of files, for real: bytes move, and nothing of theirs is left."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.steps.runner import StepRunner
from tests.support.disks import LABEL, clear, emulated, need_disks, run
from tests.support.programs import need
from tests.support.saturators import (
    FILE_BYTES,
    SETTINGS,
    fill,
    is_whole_story,
    snapshots,
    until_bytes,
    working,
)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        pytest.param({}, "in full, again and again", marks=pytest.mark.slow),
        ({"mode": "incremental"}, "what is new"),
        pytest.param({"rate_bytes_per_s": 8 << 20}, "no faster than asked", marks=pytest.mark.slow),
        pytest.param(
            {"sink": {"to": "ramdisk", "folder": "/dev/shm", "size_bytes": 4 << 20}},
            "to a RAM disk",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_zfs_send(settings: dict[str, Any], says: str, work: Path) -> None:
    need_disks("zfs")
    disk = emulated("zfs", work)
    place = disk.place()
    ram = f"/dev/shm/plimsoll-{LABEL.saturator('zfs')}"

    async def life(machine: LocalMachine) -> None:
        await StepRunner(machine).do(disk.create())
        fill(Path(place.folder) / "file")
        subprocess.run([need("zfs"), "snapshot", f"{place.dataset}@mine"], check=True)
        await send_all(
            machine, {"kind": "zfs-send", "dataset": place.dataset, **settings}, "zfs", place.folder
        )
        assert snapshots(str(place.dataset)) == [f"{place.dataset}@mine"], "somebody else's stays"
        assert not list(Path("/dev/shm").glob(Path(ram).name + "*"))
        await clear(machine, disk.find)

    run(life)


async def send_all(machine: LocalMachine, settings: dict[str, Any], backend: str, folder: str) -> None:
    """Sends until the file was sent once and, where increments are, what came later too."""
    events: list[dict[str, Any]] = []
    validated = SETTINGS.validate_python(settings)
    async with working(machine, validated, events.append, LABEL.saturator(backend)):
        await until_bytes(events, FILE_BYTES * 9 // 10)
        if settings.get("mode") == "incremental":
            fill(Path(folder) / "later")
        await until_bytes(events, FILE_BYTES * 3 // 2)
    is_whole_story(events, settings["kind"])


@pytest.mark.parametrize("mode", ["full", "incremental"])
def test_btrfs_send(mode: str, work: Path) -> None:
    need_disks("btrfs")
    disk = emulated("btrfs", work)
    folder = disk.place().folder

    async def life(machine: LocalMachine) -> None:
        await StepRunner(machine).do(disk.create())
        subvolume = f"{folder}/site"
        await machine.run(["btrfs", "subvolume", "create", subvolume])
        fill(Path(subvolume) / "file")
        settings = {"kind": "btrfs-send", "subvolume": subvolume, "snapshots": folder, "mode": mode}
        await send_all(machine, settings, "btrfs", subvolume)
        assert [path.name for path in Path(folder).iterdir()] == ["site"]
        await clear(machine, disk.find)

    run(life)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"rw": "randrw", "iodepth": 4}, "several requests in flight"),
        ({"rw": "read", "direct": False, "jobs": 2}, "through the page cache"),
    ],
)
def test_fio(settings: dict[str, Any], says: str, work: Path) -> None:
    need("fio")
    need_disks("xfs")
    disk = emulated("xfs", work)
    folder = disk.place().folder

    async def life(machine: LocalMachine) -> None:
        await StepRunner(machine).do(disk.create())
        (Path(folder) / "thesis.txt").touch()
        size = {"kind": "fio", "folder": folder, "size_bytes": FILE_BYTES}
        await send_all(machine, size | settings, "xfs", folder)
        assert [path.name for path in Path(folder).iterdir()] == ["thesis.txt"]
        await clear(machine, disk.find)

    run(life)


@pytest.mark.slow
def test_a_send_is_as_slow_as_the_disk_that_it_reads(work: Path) -> None:
    """A pool on a disk with limits: what the daemon reads for the send counts against them."""
    need_disks("zfs")
    limit = 8_000_000
    disk = emulated("zfs", work, bytes_per_s=limit)
    place = disk.place()

    async def life(machine: LocalMachine) -> None:
        runner = StepRunner(machine)
        await runner.do(disk.create())
        fill(Path(place.folder) / "file")
        await runner.do(place.cold)
        await runner.do(disk.limit())
        events: list[dict[str, Any]] = []
        settings = SETTINGS.validate_python({"kind": "zfs-send", "dataset": place.dataset})
        async with working(machine, settings, events.append):
            await until_bytes(events, FILE_BYTES // 2)
        first = [event["bytes_per_s"] for event in events if event.get("bytes_per_s")]
        assert first[0] <= 2 * limit, "a cold file cannot be read faster"
        await clear(machine, disk.find)

    run(life)
