"""Disks: what may be said of them, the steps that make them, and the scripts in these steps."""

import asyncio
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from plimsoll.lab.disks import AnyDisk, make_disk
from plimsoll.lab.disks.emulated import START_DAEMON
from plimsoll.lab.disks.limits import FIND_GROUP, SET_LIMITS, LimitedMachine, run_in_group
from plimsoll.lab.machine import LocalMachine, Machine
from plimsoll.lab.names import Label
from plimsoll.lab.steps.step import Command, Room, Step, as_shell, fill_step

SETTINGS: TypeAdapter[Any] = TypeAdapter(AnyDisk)
FOLDER = {"kind": "folder", "path": "/tank/lab"}
SLOW = {"kind": "emulated", "filesystem": "ext4", "size_bytes": "8G", "like": "rotating"}
FAST = {**SLOW, "like": "nvme-ssd"}
ZFS = {**SLOW, "filesystem": "zfs"}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (FOLDER, "a folder"),
        ({**FOLDER, "path": "/srv/my disk"}, "with a space: no shell reads it"),
        ({**FOLDER, "dataset": "tank/lab", "devices": ["nvme0n1", "dm-3"]}, "a dataset and its disks"),
        ({**FOLDER, "btrfs": True}, "on Btrfs"),
        (SLOW, "like a disk"),
        ({**SLOW, "size_bytes": 1 << 30}, "a size in bytes"),
        ({"kind": "emulated", "filesystem": "xfs", "size_bytes": "1G"}, "without limits"),
        ({**ZFS, "like": None, "bytes_per_s": "20M", "operations_per_s": 400}, "with limits of its own"),
        ({**ZFS, "recordsize": "16K", "compression": True}, "YAML reads on as true"),
    ],
)
def test_settings_are_accepted(settings: dict[str, Any], says: str) -> None:
    assert SETTINGS.validate_python(settings), says


@pytest.mark.parametrize(
    ("settings", "problem", "says"),
    [
        ({**FOLDER, "path": "tank/lab"}, "absolute path", "relative to what?"),
        ({**FOLDER, "path": "/tank/../etc"}, "absolute path", "a way out"),
        ({**FOLDER, "path": "/"}, "other than /", "everything"),
        ({**FOLDER, "path": "/a/${disk_loop}"}, "without", "a reference"),
        ({**FOLDER, "path": "/a:b"}, "without", "Docker parts folders there"),
        ({**FOLDER, "path": "/a\n/b"}, "control characters", "two lines"),
        ({**FOLDER, "dataset": "tank/a b"}, "dataset's name", "a space in a dataset"),
        ({**FOLDER, "dataset": "tank/lab", "btrfs": True}, "leave one out", "two file systems"),
        ({**FOLDER, "devices": ["../sda"]}, "device's name", "a path for a name"),
        ({**FOLDER, "size_bytes": "1G"}, "Extra inputs", "a folder has no size"),
        ({**SLOW, "size_bytes": "100M"}, "greater than", "too small for XFS"),
        ({**SLOW, "size_bytes": "8 apples"}, "must be a size", "no size"),
        ({**SLOW, "filesystem": "ntfs"}, "ext4", "no file system of ours"),
        ({**SLOW, "bytes_per_s": "20M"}, "one or the other", "like and limits"),
        ({**SLOW, "recordsize": "16K"}, "only zfs", "ext4 has no records"),
        ({**ZFS, "recordsize": "15K"}, "power of two", "no record size"),
        ({**ZFS, "compression": "lz4;reboot"}, "match pattern", "more than a compression"),
        ({**SLOW, "like": None, "operations_per_s": 1}, "greater than", "so slow that nothing ends"),
    ],
)
def test_settings_are_refused(settings: dict[str, Any], problem: str, says: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        SETTINGS.validate_python(settings)


def steps_of(settings: dict[str, Any]) -> list[Step]:
    """All that is ever done to a disk, in order."""
    made = make_disk(SETTINGS.validate_python(settings), Label("bench"), "hdd", "/var/lib/plimsoll")
    place = made.place()
    return [*made.create(), *place.cold, *place.limit, *place.unlimit, *made.destroy()]


@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs", "zfs"])
@pytest.mark.parametrize("like", ["rotating", "nvme-ssd"])
def test_nothing_stands_for_what_no_step_before_captured(filesystem: str, like: str) -> None:
    known: dict[str, str] = {}
    for step in steps_of({**SLOW, "filesystem": filesystem, "like": like}):
        fill_step(step, known)  # KeyError where a script has a ${…} of its own
        if isinstance(step, Command) and step.capture:
            known[step.capture] = "x"
    settings = SETTINGS.validate_python({**SLOW, "filesystem": filesystem, "like": like})
    place = make_disk(settings, Label("bench"), "hdd").place()
    wanted = re.findall(r"\$\{(\w+)\}", f"{place.group} {' '.join(place.devices)}")
    assert set(wanted) <= set(known)


def plain(steps: list[Step]) -> list[str]:
    """The steps as lines, scripts by what they say."""
    return [
        f"[{step.says}]" if isinstance(step, Command) and step.words[0] == "sh" else as_shell(step)
        for step in steps
    ]


def test_a_slow_disk_is_two_loop_devices_and_is_fast_until_it_is_limited() -> None:
    made = make_disk(SETTINGS.validate_python(SLOW), Label("bench"), "hdd")
    own = "/var/lib/plimsoll/plimsoll-bench--hdd"
    assert plain(made.create()) == [
        "mkdir -p -- /var/lib/plimsoll",
        f"room in /var/lib/plimsoll for {8 << 30} bytes",
        f"mkdir -- {own}",
        f"touch -- {own}/.plimsoll-disk",
        f"mkdir -- {own}/mnt {own}/dev",
        f"truncate -s {8 << 30} -- {own}/disk.img",
        "[find the control group that can limit it]",
        f"disk_under=$(losetup --find --show -- {own}/disk.img)",
        'losetup --direct-io=on "${disk_under}" || true',
        'disk_number=$(lsblk -dnro MAJ:MIN "${disk_under}")',
        'disk_loop=$(losetup --find --show -- "${disk_under}")',
        'losetup --direct-io=on "${disk_loop}" || true',
        'disk_device=$(lsblk -dnro KNAME "${disk_loop}")',
        'mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "${disk_loop}"',
        f'mount -t ext4 -- "${{disk_loop}}" {own}/mnt',
    ]
    assert plain(made.limit()) == [
        "sync",
        "[make the disk slow: ext4 on a loop device, 120 MB/s, 200 operations/s (like rotating)]",
    ]
    limit = made.limit()[-1]
    assert isinstance(limit, Command)
    assert limit.words[-4:] == ("${disk_group}", "${disk_number}", "120000000", "200")


def test_a_disk_without_limits_needs_no_control_group_and_one_loop_device() -> None:
    made = make_disk(SETTINGS.validate_python(FAST), Label("bench"), "nvme")
    lines = plain(made.create())
    assert not any("group" in line for line in lines)
    assert sum("losetup --find" in line for line in lines) == 1
    assert (made.limit(), made.place().unlimit, made.place().group) == ([], (), None)


def test_a_pool_is_made_of_the_loop_device_and_forgotten_by_a_machine_that_boots() -> None:
    made = make_disk(
        SETTINGS.validate_python({**ZFS, "recordsize": "16K", "compression": "gzip"}), Label("b"), "z"
    )
    lines = plain(made.create())
    pool = 'zpool create -o cachefile=none -O mountpoint=none plimsoll-b--z "${disk_loop}"'
    mounted = "mountpoint=/var/lib/plimsoll/plimsoll-b--z/mnt"
    assert pool in lines
    assert f"zfs create -o {mounted} -o recordsize=16384 -o compression=gzip plimsoll-b--z/site" in lines
    assert made.place().dataset == "plimsoll-b--z/site"
    assert "[export the pool, which empties its cache]" in plain(list(made.place().cold))


def test_a_folder_is_looked_at_and_never_changed() -> None:
    made = make_disk(SETTINGS.validate_python({**FOLDER, "dataset": "tank/lab"}), Label("b"), "z")
    assert plain(made.create()) == ["test -d /tank/lab", "[see that the dataset is mounted there]"]
    assert (made.limit(), made.destroy(), made.place().unlimit) == ([], [], ())
    assert plain(list(made.place().cold))[0] == "sync"


def test_room_is_asked_for_before_anything_is_made() -> None:
    steps = steps_of(SLOW)
    assert [isinstance(step, Room) for step in steps[:2]] == [False, True]


def script(text: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = ("sh", "-c", text, "sh", *words)
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


class Groups:
    """Control groups made of plain files."""

    def __init__(self, root: Path) -> None:
        self.v1, self.v2, self.mounts = root / "blkio", root / "unified", root / "mounts"
        for group in (self.v1, self.v2):
            group.mkdir()
        self.mounts.write_text("")

    def have_v1(self) -> None:
        (self.v1 / "blkio.throttle.read_bps_device").touch()
        self._mount(f"cgroup {self.v1} cgroup rw,relatime,net_cls,blkio 0 0")

    def have_v2(self, controllers: str) -> None:
        (self.v2 / "cgroup.controllers").write_text(controllers)
        self._mount(f"cgroup2 {self.v2} cgroup2 rw 0 0")

    def _mount(self, line: str) -> None:
        with self.mounts.open("a") as file:
            file.write(line + "\n")


@pytest.fixture
def groups(tmp_path: Path) -> Groups:
    return Groups(tmp_path)


def test_limits_of_v1_are_the_root_groups_also_where_v2_is_there_without_io(groups: Groups) -> None:
    groups.have_v2("hugetlb\n")
    groups.have_v1()
    found = script(FIND_GROUP, "ext4", str(groups.mounts))
    assert found.stdout.strip() == str(groups.v1)
    assert script(SET_LIMITS, found.stdout.strip(), "7:3", "20000000", "400").returncode == 0
    written = {path.name.removeprefix("blkio.throttle."): path.read_text() for path in groups.v1.iterdir()}
    assert written == {
        "read_bps_device": "7:3 20000000\n",
        "write_bps_device": "7:3 20000000\n",
        "read_iops_device": "7:3 400\n",
        "write_iops_device": "7:3 400\n",
    }


@pytest.mark.parametrize(
    ("limits", "written"),
    [
        (("20000000", "0"), "7:3 rbps=20000000 wbps=20000000 riops=max wiops=max\n"),
        (("0", "0"), "7:3 rbps=max wbps=max riops=max wiops=max\n"),
        (("0", "400"), "7:3 rbps=max wbps=max riops=400 wiops=400\n"),
    ],
)
def test_limits_of_v2_are_those_of_a_group_of_the_labs(
    groups: Groups, limits: tuple[str, str], written: str
) -> None:
    groups.have_v2("cpuset cpu io memory pids\n")
    found = script(FIND_GROUP, "ext4", str(groups.mounts))
    assert found.stdout.strip() == str(groups.v2 / "plimsoll")
    assert (groups.v2 / "cgroup.subtree_control").read_text() == "+io +memory\n"
    (groups.v2 / "plimsoll" / "io.max").touch()
    assert script(SET_LIMITS, found.stdout.strip(), "7:3", *limits).returncode == 0
    assert (groups.v2 / "plimsoll" / "io.max").read_text() == written


def test_a_machine_without_such_groups_is_reported_with_the_remedy(groups: Groups) -> None:
    groups.have_v2("hugetlb pids\n")
    found = script(FIND_GROUP, "ext4", str(groups.mounts))
    assert found.returncode == 1
    assert "leave the limits out" in found.stderr


def test_what_is_joined_is_in_the_group_before_it_begins(tmp_path: Path) -> None:
    words = run_in_group(str(tmp_path), ["cat", str(tmp_path / "cgroup.procs")])
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "0\n", "which is itself, to the kernel"
    missing = run_in_group(str(tmp_path / "none"), ["touch", str(tmp_path / "ran")])
    assert subprocess.run(missing, capture_output=True, timeout=20, check=False).returncode
    assert not (tmp_path / "ran").exists(), "a command outside the limits would be no measurement"


def test_a_machine_within_a_group_runs_everything_there(tmp_path: Path) -> None:
    async def both() -> list[str]:
        machine: Machine = LimitedMachine(LocalMachine(), str(tmp_path))
        group = tmp_path / "cgroup.procs"
        said = [(await machine.run(["cat", str(group)], stdin=b"x")).out.strip()]
        group.unlink()
        process = await machine.start(["cat", str(group)])
        said += [line.text async for line in process.lines()]
        assert await process.wait() == 0
        return [*said, await machine.read_text(str(group))]

    assert asyncio.run(both()) == ["0", "0", "0\n"]


def test_zfs_fuse_is_started_again_where_it_gave_up_since_another_was_ending(tmp_path: Path) -> None:
    programs = {
        "modprobe": "exit 1",
        "ps": "exit 1",  # none runs
        "zpool": f"[ -e {tmp_path}/serves ]",
        "zfs-fuse": f"[ -e {tmp_path}/gave-up ] && touch {tmp_path}/serves; touch {tmp_path}/gave-up",
    }
    for name, script in programs.items():
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
    words = ["sh", "-c", START_DAEMON, "sh", str(tmp_path / "pid")]
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(words, env=os.environ | path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
