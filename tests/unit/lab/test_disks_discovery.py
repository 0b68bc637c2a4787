"""What is found of a disk, and what is somebody else's although it looks alike."""

import asyncio
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from plimsoll.lab.disks.removal import (
    Loop,
    find_disk,
    is_on,
    orphaned_mounts,
    own_loops,
    own_mounts,
    remove_files,
)
from plimsoll.lab.machine import CommandResult, LocalMachine
from tests.support.scripted import FakeMachine

NAME = "plimsoll-bench--hdd"
OWN = f"/var/lib/plimsoll/{NAME}"


def losetup(*rows: tuple[str, str | None]) -> str:
    devices = [
        {"name": name, "maj:min": f"  7:{name.removeprefix('/dev/loop')}  ", "back-file": file}
        for name, file in rows
    ]
    return json.dumps({"loopdevices": devices})


@pytest.mark.parametrize(
    ("rows", "found", "says"),
    [
        ([("/dev/loop0", f"{OWN}/disk.img")], ["/dev/loop0"], "one"),
        (
            [("/dev/loop0", f"{OWN}/disk.img"), ("/dev/loop1", "/dev/loop0")],
            ["/dev/loop1", "/dev/loop0"],
            "the upper one is detached first",
        ),
        ([("/dev/loop0", f"{OWN}/disk.img (deleted)")], ["/dev/loop0"], "its file was deleted"),
        ([("/dev/loop0", f"{OWN}-2/disk.img")], [], "another backend whose name begins alike"),
        ([("/dev/loop0", f"{OWN}/disk.img.old")], [], "another file"),
        ([("/dev/loop0", f"/mnt{OWN}/disk.img")], [], "elsewhere"),
        ([("/dev/loop0", f"{OWN}/mnt/disk.img")], [], "a file on the disk itself"),
        ([("/dev/loop10", f"{OWN}/disk.img"), ("/dev/loop2", "/dev/loop1")], ["/dev/loop10"], "on another's"),
        ([("/dev/loop0", None)], [], "on nothing"),
        ([("/dev/../sda", f"{OWN}/disk.img")], [], "no name of a loop device"),
        ([], [], "none"),
    ],
)
def test_loop_devices(rows: list[tuple[str, str | None]], found: list[str], says: str) -> None:
    assert [one.name for one in own_loops(losetup(*rows), OWN)] == found, says


def test_no_losetup_no_loop_devices() -> None:
    assert own_loops("", OWN) == []


def test_a_loop_device_says_what_it_stands_on() -> None:
    assert Loop("/dev/loop0", "7:0", f"{OWN}/disk.img (deleted)").on == ("/dev/loop0", f"{OWN}/disk.img")


@pytest.mark.parametrize(
    ("line", "own", "says"),
    [
        (f"/dev/loop1 {OWN}/mnt ext4 rw 0 0", True, "ours"),
        (f"/dev/sda1 {OWN}/mnt ext4 rw 0 0", False, "somebody's disk at our mount point"),
        (f"/dev/loop1 {OWN}/mnt/below ext4 rw 0 0", False, "mounted below it"),
        ("/dev/loop1 /srv ext4 rw 0 0", False, "mounted elsewhere by somebody"),
        (f"/dev/loop1 {OWN}-2/mnt ext4 rw 0 0", False, "another backend's"),
        (f"/dev/loop1 {OWN}/mnt\\0402 ext4 rw 0 0", False, "a name with a space"),
        ("", False, "an empty line"),
    ],
)
def test_mounts(line: str, own: bool, says: str) -> None:
    assert own_mounts(line, OWN, {"/dev/loop1"}) == ([("/dev/loop1", f"{OWN}/mnt")] if own else []), says


STATUS = """  pool: {pool}
 state: ONLINE
config:

\tNAME        STATE     READ WRITE CKSUM
\t{pool}  ONLINE       0     0     0
\t  {device}  ONLINE       0     0     0

errors: No known data errors
"""


@pytest.mark.parametrize(
    ("device", "own", "says"),
    [
        ("/dev/loop1", True, "as zfs-fuse says it"),
        ("loop1", True, "as the kernel's ZFS says it"),
        ("loop1p1", True, "the partition that it made"),
        (f"{OWN}/dev/disk", True, "imported again"),
        ("sda", False, "a pool that somebody gave our name"),
        ("loop12", False, "another loop device"),
    ],
)
def test_pools(device: str, own: bool, says: str) -> None:
    devices = {"/dev/loop1", "/dev/loop1p1", f"{OWN}/dev/disk"}
    assert is_on(STATUS.format(pool=NAME, device=device), devices) is own, says


class Machine(FakeMachine):
    """Has nothing that all disks share."""

    def result_of(self, command: Sequence[str], stdin: bytes | None) -> CommandResult:
        if command[0] == "sh":
            return CommandResult(tuple(command), 0, "", "")
        return super().result_of(command, stdin)


def found(answers: dict[str, str], mounts: str = "") -> list[str]:
    machine = Machine(
        {"/proc/self/mounts": mounts},
        {"realpath": "/var/lib/plimsoll\n", "losetup": losetup(), **answers},
    )
    return [one.what for one in asyncio.run(find_disk(machine, NAME, "hdd", "/var/lib/plimsoll"))]


def test_all_of_it_is_found_in_the_order_of_removal() -> None:
    answers = {
        "find": "d 0 plimsoll-bench--hdd\nf 1 .plimsoll-disk\nf 1 disk.img\nd 1 mnt\n",
        "losetup": losetup(("/dev/loop0", f"{OWN}/disk.img"), ("/dev/loop1", "/dev/loop0")),
        "zpool status plimsoll-bench--hdd": STATUS.format(pool=NAME, device="/dev/loop1"),
    }
    assert found(answers, f"/dev/loop1 {OWN}/mnt ext4 rw 0 0\n") == [
        "the pool plimsoll-bench--hdd",
        f"/dev/loop1, mounted at {OWN}/mnt",
        "the loop device /dev/loop1 on /dev/loop0",
        f"the loop device /dev/loop0 on {OWN}/disk.img",
        f"the folder {OWN}",
    ]


@pytest.mark.parametrize(
    ("listing", "says"),
    [
        ("l 0 plimsoll-bench--hdd\n", "a symbolic link to somewhere"),
        ("d 0 plimsoll-bench--hdd\nf 1 thesis.txt\n", "a folder without our mark that holds something"),
        ("f 0 plimsoll-bench--hdd\n", "a file"),
        ("", "nothing"),
    ],
)
def test_what_only_has_the_name_is_not_found(listing: str, says: str) -> None:
    assert found({"find": listing}) == [], says


def test_a_folder_that_was_made_and_not_yet_marked_is_found() -> None:
    assert found({"find": "d 0 plimsoll-bench--hdd\n"}) == [f"the folder {OWN}"]


def test_a_pool_of_our_name_on_other_disks_is_not_found() -> None:
    assert found({"zpool status": STATUS.format(pool=NAME, device="sda")}) == []


def removed(folder: Path) -> str:
    step = remove_files(str(folder))
    done = subprocess.run(step.words, capture_output=True, text=True, timeout=20, check=False)
    return "" if done.returncode == 0 else done.stderr


def own_folder(at: Path) -> Path:
    at.mkdir()
    for folder in ("mnt", "dev"):
        (at / folder).mkdir()
    (at / ".plimsoll-disk").touch()
    (at / "disk.img").touch()
    return at


def test_files_are_removed_by_name_and_once_more_does_no_harm(tmp_path: Path) -> None:
    folder = own_folder(tmp_path / "it's; $(own)")
    assert (removed(folder), removed(folder)) == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["", "mnt", "dev"])
def test_what_somebody_put_there_stays_and_is_named(tmp_path: Path, place: str) -> None:
    folder = own_folder(tmp_path / NAME)
    (folder / place / "thesis.txt").write_text("mine")
    assert "not empty" in removed(folder)
    assert (folder / place / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("place", ["", "mnt", "dev"])
def test_no_symbolic_link_is_followed(tmp_path: Path, place: str) -> None:
    elsewhere = own_folder(tmp_path / "elsewhere")
    (elsewhere / "disk").write_text("mine")
    folder = tmp_path / NAME
    if place:
        own_folder(folder)
        (folder / place).rmdir()
    (folder / place if place else folder).symlink_to(elsewhere)
    assert "symbolic link" in removed(folder)
    assert (elsewhere / "disk").read_text() == "mine"
    assert (elsewhere / "disk.img").exists()


def test_a_real_machine_is_only_looked_at(tmp_path: Path) -> None:
    own_folder(tmp_path / NAME)
    (tmp_path / "plimsoll-bench--ssd").symlink_to(tmp_path / NAME)

    async def look() -> list[str]:
        machine = LocalMachine()
        try:
            both = [
                await find_disk(machine, name, "x", str(tmp_path)) for name in (NAME, "plimsoll-bench--ssd")
            ]
        finally:
            await machine.close()
        return [one.what for one in both[0] + both[1]]

    assert asyncio.run(look()) == [f"the folder {tmp_path / NAME}"]
    assert (tmp_path / NAME / "disk.img").exists()


def test_datasets_of_a_pool_that_is_gone_are_found_where_they_are_still_mounted() -> None:
    """As zfs-fuse leaves them when it is killed: the innermost is unmounted first."""
    mounts = f"""{NAME}/site {OWN}/mnt fuse rw 0 0
{NAME}/site/{NAME} {OWN}/mnt/{NAME} fuse rw 0 0
tank/site {OWN}/mnt/other fuse rw 0 0
{NAME}-2/site {OWN}/mnt/another fuse rw 0 0
{NAME}-2/site {OWN}-2/mnt fuse rw 0 0
{NAME}/site /srv/elsewhere fuse rw 0 0
"""
    assert [where for _, where in orphaned_mounts(mounts, OWN, NAME)] == [f"{OWN}/mnt/{NAME}", f"{OWN}/mnt"]
