"""Finds what is there of an emulated disk, by name: its pool, mounts, loop devices, files, the daemon."""

import json
import re
from dataclasses import dataclass, replace

from plimsoll.lab.disks.removal import (
    MARK,
    destroy_pool,
    detach,
    end_shared,
    free,
    remove_files,
    unmount,
    unmount_dead,
)
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Remains

_LOOP = re.compile(r"/dev/loop[0-9]+")
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Loop:
    """A loop device."""

    name: str  # /dev/loop3
    number: str  # 7:3
    file: str

    @property
    def on(self) -> tuple[str, str]:
        """Its name, and the file it stands on."""
        return self.name, self.file.removesuffix(" (deleted)")


async def find(machine: Machine, name: str, backend: str, work: str) -> list[Remains]:
    """Return the remains of the disk, in the order of removal. Changes nothing. Raises MachineError."""
    real = (await machine.run(["realpath", "-m", "--", work])).out.removesuffix("\n")
    folder = f"{real}/{name}"
    kept = await _entries(machine, folder)
    loops = own_loops((await machine.run(_LOSETUP, check=False)).out, folder)
    devices = {one.name for one in loops} | {f"{one.name}p1" for one in loops} | {f"{folder}/dev/disk"}
    found = []

    freed = tuple(free(one.number) for one in loops)
    pool = await machine.run(["zpool", "status", name], check=False)
    if pool.status == 0 and is_on(pool.out, devices):
        found.append(Remains(f"the pool {name}", backend, (*freed, destroy_pool(name, f"{folder}/mnt"))))
    listed = await machine.read_text("/proc/self/mounts")
    if pool.status:
        orphans = orphaned_mounts(listed, folder, name)
        found += [
            Remains(
                f"{source}, which no ZFS serves any more, at {where}", backend, (unmount_dead(where, source),)
            )
            for source, where in orphans
        ]
    mounts = own_mounts(listed, folder, devices)
    found += [
        Remains(f"{source}, mounted at {where}", backend, (*freed, unmount(where, source)))
        for source, where in mounts
    ]
    found += [
        Remains(f"the loop device {one.name} on {one.file}", backend, (free(one.number), detach(*one.on)))
        for one in loops
    ]
    if kept is not None and (MARK in kept or not kept):
        found.append(Remains(f"the folder {folder}", backend, (remove_files(folder),)))
    if found:
        found[-1] = replace(found[-1], remove=(*found[-1].remove, *end_shared(real)))
        return found
    return await _shared(machine, backend, real)


_LOSETUP = ["losetup", "--list", "--json", "--output", "NAME,MAJ:MIN,BACK-FILE"]


def own_loops(listing: str, folder: str) -> list[Loop]:
    """Return the loop devices on the disk's file, the one that stands on another first. Pure."""
    listed = json.loads(listing)["loopdevices"] if listing.strip() else []
    loops = [
        Loop(one["name"], str(one["maj:min"]).strip(), str(one["back-file"] or ""))
        for one in listed
        if _LOOP.fullmatch(one["name"])
    ]
    image = f"{folder}/disk.img"
    lower = [one for one in loops if one.file in (image, f"{image} (deleted)")]
    names = {one.name for one in lower}
    return [*(one for one in loops if one.file in names), *lower]


def own_mounts(mounts: str, folder: str, devices: set[str]) -> list[tuple[str, str]]:
    """Return those of `devices` that are mounted at the disk's mount point, the last first. Pure."""
    listed = _mounted(mounts)
    return [(source, where) for source, where in listed if source in devices and where == f"{folder}/mnt"]


def orphaned_mounts(mounts: str, folder: str, pool: str) -> list[tuple[str, str]]:
    """Return the datasets of a pool that is gone which are still mounted there, the last first. Pure.

    Where zfs-fuse was killed, its mounts stay, and answer nothing any more.
    """
    return [
        (source, where)
        for source, where in _mounted(mounts)
        if source.startswith(f"{pool}/") and (where == f"{folder}/mnt" or where.startswith(f"{folder}/mnt/"))
    ]


def _mounted(mounts: str) -> list[tuple[str, str]]:
    """Return what is mounted and where, the last first."""
    found = []
    for line in mounts.splitlines():
        source, _, rest = line.partition(" ")
        where = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), rest.partition(" ")[0])
        found.append((source, where))
    return found[::-1]


def is_on(status: str, devices: set[str]) -> bool:
    """Return whether `status`, of `zpool status`, shows a pool on one of `devices`. Pure."""
    return any(word in devices or f"/dev/{word}" in devices for word in status.split())


async def _entries(machine: Machine, folder: str) -> list[str] | None:
    """Return the names in the folder; None if it is no folder: the lab makes no symbolic links."""
    listed = await machine.run(["find", folder, "-maxdepth", "1", "-printf", "%y %d %f\\n"], check=False)
    lines = listed.out.splitlines()
    if listed.status or not lines or not lines[0].startswith("d 0 "):
        return None
    return [line[4:] for line in lines[1:]]


async def _shared(machine: Machine, backend: str, work: str) -> list[Remains]:
    """Return the daemon and the control group of the lab, if no disk needs them."""
    done = await machine.run(["sh", "-c", _UNUSED, "sh", f"{work}/zfs-fuse.pid", "/sys/fs/cgroup/plimsoll"])
    return [Remains(what, backend, tuple(end_shared(work))) for what in done.out.splitlines()]


_UNUSED = """if [ -e "$1" ] && [ -z "$(zpool list -H -o name 2>/dev/null)" ]; then echo "zfs-fuse"; fi
if [ -d "$2" ] && [ -z "$(cat "$2/cgroup.procs")" ]; then echo "the control group $2"; fi"""
