"""Disks of files, for real: made, as slow as they are to be, cold, and gone without a trace."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from plimsoll.lab.disks.limits import run_in_group
from plimsoll.lab.machine import LocalMachine
from plimsoll.lab.steps.runner import StepRunner
from tests.support.disks import (
    BLKIO,
    LABEL,
    clear,
    emulated,
    first,
    left_of_tests,
    limits_of,
    need_disks,
    run,
    slow_but,
)
from tests.support.programs import LONGEST_S, need, wait_for

LIMIT = 8_000_000
BYTES = 16_000_000
LEAST_S = 0.8 * BYTES / LIMIT  # of what is limited; what is not takes a tenth of it


def zfs_runs() -> bool:
    return subprocess.run([need("zpool"), "list"], capture_output=True, check=False).returncode == 0


@pytest.fixture
def pool_daemon(filesystem: str) -> Iterator[None]:
    """ZFS that runs already, so that pools need not start it each time."""
    started = None
    if filesystem == "zfs" and not zfs_runs():
        started = subprocess.Popen([need("zfs-fuse"), "--no-daemon"], stderr=subprocess.DEVNULL)
        wait_for("ZFS runs", zfs_runs)
    yield
    if started:
        started.terminate()
        started.wait(LONGEST_S)


def seconds(command: list[str]) -> float:
    began = time.monotonic()
    subprocess.run(command, capture_output=True, timeout=LONGEST_S, check=True)
    return time.monotonic() - began


def limits(captured: Mapping[str, str]) -> list[str]:
    """The limits that a disk has for reading: how fast it is without them, the machine decides."""
    files = (Path(captured["disk_group"]) / name for name in ("io.max", "blkio.throttle.read_bps_device"))
    lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
    return [line for line in lines if line.startswith(f"{captured['disk_number']} ")]


def write(file: str, *options: str) -> list[str]:
    return ["dd", "if=/dev/urandom", f"of={file}", "bs=1M", f"count={BYTES}", "iflag=count_bytes", *options]


def read(file: str) -> list[str]:
    return ["dd", f"if={file}", "of=/dev/null", "bs=1M"]


@pytest.mark.parametrize("filesystem", slow_but("ext4", "zfs"))
def test_a_limited_disk_is_as_slow_as_it_is_to_be(filesystem: str, work: Path) -> None:
    need_disks(filesystem)
    made = emulated(filesystem, work, bytes_per_s=LIMIT)
    place = made.place()

    async def life(machine: LocalMachine) -> None:
        runner = StepRunner(machine)
        await runner.do(made.create())
        file = f"{place.folder}/file"
        subprocess.run(write(file), capture_output=True, check=True)
        await runner.do(made.limit())
        assert limits(runner.captured)
        await runner.do(place.cold)
        slow = {
            "a cold read": seconds(read(file)),
            "a write until it is on the disk": seconds(write(f"{place.folder}/synced", "conv=fsync")),
            "a write back by the kernel": seconds(write(f"{place.folder}/lazy")) + seconds(["sync"]),
        }
        if filesystem == "zfs":
            del slow["a write back by the kernel"]  # zfs-fuse's sync does not wait
        await runner.do(place.unlimit)
        assert not limits(runner.captured), "it is as fast as it was"
        await runner.do(made.destroy())
        for what, took in slow.items():
            assert took >= LEAST_S, f"{what}: faster than the disk can be"

    run(life)


def test_others_are_as_slow_once_they_joined_the_group(work: Path) -> None:
    need_disks("ext4")
    if not (BLKIO / "blkio.throttle.read_bps_device").exists():
        pytest.skip("cgroup v2: only members of the lab's group are limited, and this is about v1")
    made = emulated("ext4", work, bytes_per_s=LIMIT)
    place = made.place()
    other = BLKIO / LABEL.experiment

    async def life(machine: LocalMachine) -> None:
        runner = StepRunner(machine)
        await runner.do(made.create())
        await runner.do(made.limit())
        group = runner.captured["disk_group"]
        other.mkdir()
        try:
            wanted = write(f"{place.folder}/file", "oflag=direct")
            inside = seconds(run_in_group(str(other), run_in_group(group, wanted)))
        finally:
            other.rmdir()
            await runner.do(made.destroy())
        assert inside >= LEAST_S

    run(life)


def test_operations_are_counted_too_and_waiting_is_seen_at_the_upper_device(work: Path) -> None:
    need_disks("ext4")
    made = emulated("ext4", work, operations_per_s=100)
    place = made.place()

    async def life(machine: LocalMachine) -> None:
        runner = StepRunner(machine)
        await runner.do(made.create())
        file = f"{place.folder}/file"
        subprocess.run(write(file, "conv=fsync"), capture_output=True, check=True)
        await runner.do(made.limit())
        before = milliseconds(runner.captured["disk_device"])
        took = seconds(["dd", f"if={file}", "of=/dev/null", "bs=4k", "count=200", "iflag=direct"])
        waited = milliseconds(runner.captured["disk_device"]) - before
        await runner.do(made.destroy())
        assert took >= 0.8 * 200 / 100
        assert waited >= 0.5 * took * 1000, "diskstats of the disk say how long was waited for it"

    run(life)


def milliseconds(device: str) -> int:
    """How long reads of a device took so far, as the kernel counts."""
    return int(Path(f"/sys/class/block/{device}/stat").read_text().split()[3])


@pytest.mark.parametrize("filesystem", slow_but("ext4"))
def test_cut_off_after_any_step_nothing_is_left(filesystem: str, work: Path, pool_daemon: None) -> None:
    need_disks(filesystem)
    made = emulated(filesystem, work, bytes_per_s=LIMIT)
    cold = made.place().cold if filesystem == "zfs" else ()  # it exports the pool
    steps = [*made.create(), *made.limit(), *cold]

    async def cut_off(machine: LocalMachine) -> None:
        for count in range(len(steps) + 1):
            await first(machine, steps, count)
            found = await made.find(machine)
            await clear(machine, made.find)
            assert left_of_tests(work) == [], f"cut off after {count} steps: {steps[count - 1].says}"
            for one in found:
                await StepRunner(machine).do(one.remove)  # once more does no harm
            assert await made.find(machine) == []

    run(cut_off)


@pytest.mark.slow
def test_its_removal_may_be_cut_off_too(work: Path) -> None:
    need_disks("btrfs")
    made = emulated("btrfs", work, bytes_per_s=LIMIT)

    async def cut_off(machine: LocalMachine) -> None:
        for count in range(len(made.destroy())):
            runner = StepRunner(machine)
            await runner.do([*made.create(), *made.limit()])
            await runner.do(made.destroy()[:count])
            await clear(machine, made.find)
            assert left_of_tests(work) == []

    run(cut_off)


def test_zfs_fuse_runs_as_long_as_it_is_needed(work: Path, tmp_path: Path) -> None:
    need_disks("zfs")
    if Path("/sys/module/zfs").exists():
        pytest.skip("this machine has the kernel's ZFS")
    need("zfs-fuse")
    if zfs_runs():
        pytest.skip("zfs-fuse runs here already")
    ours, others = emulated("zfs", work), tmp_path / "others.img"

    async def life(machine: LocalMachine) -> None:
        runner = StepRunner(machine)
        await runner.do(ours.create())
        await machine.run(["truncate", "-s", "128M", str(others)])
        await machine.run(["zpool", "create", "-O", "mountpoint=none", f"x{os.getpid()}", str(others)])
        await runner.do(ours.destroy())
        assert (work / "zfs-fuse.pid").exists(), "it serves a pool that is somebody else's"
        assert await ours.find(machine) == []
        await machine.run(["zpool", "destroy", f"x{os.getpid()}"])
        assert [one.what for one in await ours.find(machine)] == ["zfs-fuse"]
        await clear(machine, ours.find)
        assert not zfs_runs()

    run(life)


@pytest.mark.slow
def test_what_a_killed_zfs_fuse_served_is_removed(work: Path) -> None:
    need_disks("zfs")
    if Path("/sys/module/zfs").exists():
        pytest.skip("this machine has the kernel's ZFS")
    need("zfs-fuse")
    if zfs_runs():
        pytest.skip("zfs-fuse runs here already")
    made = emulated("zfs", work, bytes_per_s=LIMIT)
    folder = made.place().folder

    async def killed(machine: LocalMachine) -> None:
        await StepRunner(machine).do([*made.create(), *made.limit()])
        await machine.run(["zfs", "create", f"{made.place().dataset}/below"])
        with subprocess.Popen([need("sleep"), "3600"], cwd=f"{folder}/below") as still_there:
            os.kill(int((work / "zfs-fuse.pid").read_text()), signal.SIGKILL)
            while (await machine.run(["stat", folder], check=False)).status == 0:
                await asyncio.sleep(0.1)
            found = [one.what for one in await made.find(machine)]
            await clear(machine, made.find)
            assert left_of_tests(work) == []
            still_there.kill()
        dead = [what for what in found if "which no ZFS serves any more" in what]
        assert [what.rpartition("/")[2] for what in dead] == ["below", "mnt"]
        assert await made.find(machine) == []

    run(killed)


@pytest.mark.parametrize("filesystem", ["ext4", pytest.param("zfs", marks=pytest.mark.slow)])
def test_a_machine_that_began_meanwhile_does_not_keep_the_disk(filesystem: str, work: Path) -> None:
    """What has a mount namespace of its own, as libvirt's machines have, has copies of all mounts."""
    need_disks(filesystem)
    made = emulated(filesystem, work)

    async def life(machine: LocalMachine) -> None:
        runner = StepRunner(machine)
        await runner.do(made.create())
        command = [need("unshare"), "--mount", "--propagation", "private", "sleep", "600"]
        with subprocess.Popen(command) as keeper:
            mounted = f" {made.place().folder} "
            own, ours = Path(f"/proc/{keeper.pid}/ns/mnt"), Path("/proc/self/ns/mnt")
            wait_for("it has a namespace of its own", lambda: own.readlink() != ours.readlink())
            assert mounted in Path(f"/proc/{keeper.pid}/mountinfo").read_text()
            await runner.do(made.place().cold)
            await runner.do(made.destroy())
            assert left_of_tests(work) == []
            assert keeper.poll() is None, "it runs on"
            keeper.kill()

    run(life)


def test_what_is_somebody_elses_stays(work: Path, tmp_path: Path) -> None:
    """A loop device, a mount and folders that look alike."""
    need_disks("ext4")
    made = emulated("ext4", work, like="nvme-ssd")
    own = Path(made.place().folder).parent

    async def life(machine: LocalMachine) -> None:
        await StepRunner(machine).do(made.create())
        alike = [work / f"{own.name}-2", work / f"x{own.name}", work / own.name.replace("--", "-")]
        for folder in alike:
            folder.mkdir()
            (folder / ".plimsoll-disk").touch()
        image = tmp_path / "disk.img"
        await machine.run(["truncate", "-s", "64M", str(image)])
        loop = (await machine.run(["losetup", "--find", "--show", str(image)])).out.strip()
        below = own / "mnt" / "below"
        below.mkdir()
        await machine.run(["mount", "-t", "tmpfs", "none", str(below)])
        try:
            found = await made.find(machine)
            assert not [one.what for one in found if "below" in one.what or loop in one.what]
            assert not limits_of((await machine.run(["lsblk", "-dnro", "MAJ:MIN", loop])).out.strip())
        finally:
            await machine.run(["umount", str(below)])
            await machine.run(["losetup", "-d", loop])
        await clear(machine, made.find)
        assert all((folder / ".plimsoll-disk").exists() for folder in alike)
        for folder in alike:
            (folder / ".plimsoll-disk").unlink()
            folder.rmdir()

    run(life)


@pytest.mark.parametrize("trick", ["link", "full"])
def test_a_folder_that_is_not_ours_is_neither_used_nor_removed(
    trick: str, work: Path, tmp_path: Path
) -> None:
    need_disks("ext4")
    made = emulated("ext4", work, like="nvme-ssd")
    own = Path(made.place().folder).parent
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "disk.img").write_text("mine")
    work.mkdir()
    if trick == "link":
        own.symlink_to(elsewhere)
    else:
        elsewhere.rename(own)

    async def life(machine: LocalMachine) -> None:
        assert await made.find(machine) == []
        with pytest.raises(Exception, match="File exists"):
            await StepRunner(machine).do(made.create())
        assert (own / "disk.img").read_text() == "mine"

    run(life)
    if trick == "link":
        own.unlink()
    else:
        own.rename(elsewhere)
