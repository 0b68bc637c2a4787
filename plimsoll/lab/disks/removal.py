"""The removal of an emulated disk: what is there of it is found by name, and removed one thing at a time.

Never a tree of folders. Each step checks again that the thing is there and is what it was: a device's name is
soon another's.
"""

import json
import re
from dataclasses import dataclass, replace

from plimsoll.lab.disks.limits import SET_LIMITS
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Remains, Step

_LOOP = re.compile(r"/dev/loop[0-9]+")
_OCTAL = re.compile(r"\\([0-7]{3})")
MARK = ".plimsoll-disk"
MIRROR = "mirror.img"  # a second side, which the saturator `resilver` gives the pool
_BUSY_S = 20.0
_MOST_S = 600.0

# $1: the mount point. Unmounts the copies of it, and of what is mounted below it, in other namespaces.
UNMOUNT_COPIES = r"""here=$(readlink /proc/self/ns/mnt)
for info in $(grep -ls -e " $1 " -e " $1/" /proc/[0-9]*/mountinfo); do
    pid=${info%/*} pid=${pid##*/}
    [ "$(readlink "/proc/$pid/ns/mnt")" != "$here" ] || continue
    awk -v at="$1" '$5 == at || index($5, at "/") == 1 { print $5 }' "$info" 2>/dev/null | sort -r |
        while read -r copy; do nsenter -t "$pid" -m -- umount -l -- "$copy" || :; done
done"""
# $1: the mount point; $2: what must be mounted there.
_UNMOUNT = f"""{UNMOUNT_COPIES}
[ "$(findmnt -n -o SOURCE --mountpoint "$1" | tail -n 1)" != "$2" ] || umount -- "$1" """
_END_GROUP = """[ ! -d "$1" ] || rmdir "$1" 2>/dev/null || :"""


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


async def find_disk(machine: Machine, name: str, backend: str, work: str) -> list[Remains]:
    """Return the remains of the disk, in the order of removal. Changes nothing. Raises MachineError."""
    real = (await machine.run(["realpath", "-m", "--", work])).out.removesuffix("\n")
    folder = f"{real}/{name}"
    kept = await _entries(machine, folder)
    loops = own_loops((await machine.run(_LOSETUP, check=False)).out, folder)
    devices = {one.name for one in loops} | {f"{one.name}p1" for one in loops} | {f"{folder}/dev/disk"}
    found = []

    freed = tuple(lift_limits(one.number) for one in loops)
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
        Remains(
            f"the loop device {one.name} on {one.file}", backend, (lift_limits(one.number), detach(*one.on))
        )
        for one in loops
    ]
    if kept is not None and (MARK in kept or not kept):
        found.append(Remains(f"the folder {folder}", backend, (remove_files(folder),)))
    if found:
        found[-1] = replace(found[-1], remove=(*found[-1].remove, *end_shared(real)))
        return found
    # The daemon and the control group of the lab, if no disk needs them.
    unused = ["sh", "-c", _UNUSED, "sh", f"{real}/zfs-fuse.pid", "/sys/fs/cgroup/plimsoll"]
    shared = (await machine.run(unused)).out.splitlines()
    return [Remains(what, backend, tuple(end_shared(real))) for what in shared]


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
    listed = _list_mounted(mounts)
    return [(source, where) for source, where in listed if source in devices and where == f"{folder}/mnt"]


def orphaned_mounts(mounts: str, folder: str, pool: str) -> list[tuple[str, str]]:
    """Return the datasets of a pool that is gone which are still mounted there, the last first. Pure.

    Where zfs-fuse was killed, its mounts stay, and answer nothing any more.
    """
    return [
        (source, where)
        for source, where in _list_mounted(mounts)
        if source.startswith(f"{pool}/") and (where == f"{folder}/mnt" or where.startswith(f"{folder}/mnt/"))
    ]


def _list_mounted(mounts: str) -> list[tuple[str, str]]:
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
    """Return the names in the folder; None if it is not a folder (the lab makes no symbolic links)."""
    listed = await machine.run(["find", folder, "-maxdepth", "1", "-printf", "%y %d %f\\n"], check=False)
    lines = listed.out.splitlines()
    if listed.status or not lines or not lines[0].startswith("d 0 "):
        return None
    return [line[4:] for line in lines[1:]]


_UNUSED = """if [ -e "$1" ] && [ -z "$(zpool list -H -o name 2>/dev/null)" ]; then echo "zfs-fuse"; fi
if [ -d "$2" ] && [ -z "$(cat "$2/cgroup.procs")" ]; then echo "the control group $2"; fi"""

# Takes the limits off the device $2 (major:minor) wherever the lab can have set any: pending writes are
# then soon on the disk, and whoever gets that device next finds none. $1: /proc/mounts.
_FREE = f"""limit() {{
{SET_LIMITS}
}}
for root in $(awk '$3 == "cgroup" || $3 == "cgroup2" {{ print $2 }}' "$1"); do
    for group in "$root" "$root/plimsoll"; do
        if [ -e "$group/io.max" ] || [ -e "$group/blkio.throttle.read_bps_device" ]; then
            limit "$group" "$2" 0 0
        fi
    done
done"""

# The same for a dataset whose pool is gone: where it does not even answer any more, nobody can be at work in
# it, though some may still hold it open.
_UNMOUNT_DEAD = f"""{UNMOUNT_COPIES}
[ "$(findmnt -n -o SOURCE --mountpoint "$1" | tail -n 1)" = "$2" ] || exit 0
lazily=$(LC_ALL=C stat -- "$1" 2>&1 | grep -q "endpoint is not connected" && echo -l)
umount $lazily -- "$1" """

# $1: the pool; $2: the mount point.
_DESTROY_POOL = f"""pool=$1 && shift
{UNMOUNT_COPIES}
set -- "$pool"
! zpool status "$1" >/dev/null 2>&1 || zpool destroy "$1" """

# $1: the loop device; $2: what it must stand on.
_DETACH = """on=$(losetup -n -O BACK-FILE "$1" 2>/dev/null) || exit 0
file=$(realpath -m -- "$2")
[ "$on" = "$file" ] || [ "$on" = "$file (deleted)" ] || exit 0
losetup -d "$1" || exit
for _ in $(seq 100); do
    losetup "$1" >/dev/null 2>&1 || exit 0
    sleep 0.1
done
by=$(grep -ls " $1 " /proc/[0-9]*/mountinfo | tr -cd '0-9\\n' | xargs -r ps -o comm= -p | sort -u)
echo "$1 is still in use by these programs, which see it mounted:" $by >&2
exit 1"""

_REMOVE = f"""for one in "$1" "$1/mnt" "$1/dev"; do
    [ ! -L "$one" ] || {{ echo "$one is a symbolic link, which the lab never makes" >&2; exit 1; }}
done
rm -f -- "$1/dev/disk"
for one in "$1/mnt" "$1/dev"; do
    [ ! -d "$one" ] || rmdir -- "$one" || exit
done
rm -f -- "$1/disk.img" "$1/{MIRROR}" "$1/{MARK}"
[ ! -d "$1" ] || rmdir -- "$1" """


def lift_limits(number: str) -> Command:
    """Return the step that takes the limits off a device, whether it has any or not."""
    return Command("take its limits off", ("sh", "-c", _FREE, "sh", "/proc/mounts", number))


def unmount(folder: str, source: str) -> Command:
    """Return the step that unmounts `source` where it is mounted there."""
    words = ("sh", "-c", _UNMOUNT, "sh", folder, source)
    return Command("unmount it", words, timeout_s=_MOST_S, until_s=_BUSY_S)


def unmount_dead(folder: str, source: str) -> Command:
    """Return the step that unmounts a dataset whose pool is gone, with zfs-fuse that was killed."""
    words = ("sh", "-c", _UNMOUNT_DEAD, "sh", folder, source)
    return Command("unmount what no ZFS serves any more", words, timeout_s=_MOST_S, until_s=_BUSY_S)


def destroy_pool(pool: str, mounted: str) -> Command:
    """Return the step that destroys a pool of the lab, whose dataset is mounted there."""
    words = ("sh", "-c", _DESTROY_POOL, "sh", pool, mounted)
    return Command("destroy the pool", words, timeout_s=_MOST_S, until_s=_BUSY_S)


def detach(device: str, file: str) -> Command:
    """Return the step that detaches a loop device from `file`, once nobody has it open any more."""
    return Command("detach the loop device", ("sh", "-c", _DETACH, "sh", device, file), until_s=_BUSY_S)


def remove_files(folder: str) -> Command:
    """Return the step that removes the files of a detached disk, by their names, and nothing else."""
    return Command("remove the file, the mount point and their folder", ("sh", "-c", _REMOVE, "sh", folder))


def end_shared(work: str) -> list[Step]:
    """Return the steps that end what all disks of the lab share, once none needs it."""
    daemon = ("sh", "-c", END_DAEMON, "sh", f"{work}/zfs-fuse.pid")
    group = ("sh", "-c", _END_GROUP, "sh", "/sys/fs/cgroup/plimsoll")
    return [
        Command("stop zfs-fuse if the lab started it and it serves no pool", daemon),
        Command("remove the lab's control group if it is empty", group),
    ]


# Ends the daemon in the file $1, unless it still serves a pool, whoever's.
END_DAEMON = r"""daemon=$(cat "$1") || exit 0
if ps -o stat= -o comm= -p "$daemon" | grep -q '^[^Z].* zfs-fuse$'; then
    pools=$(zpool list -H -o name) || exit 0
    [ -z "$pools" ] || exit 0
    kill "$daemon"
    for _ in $(seq 50); do
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.2
    done
fi
rm -f -- "$1" """
