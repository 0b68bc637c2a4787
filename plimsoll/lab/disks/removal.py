"""The removal of an emulated disk: by name, one thing at a time, never a tree of folders. Pure.

Each step checks again that the thing is there and is what it was: a device's name is soon another's.
"""

from plimsoll.lab.disks import zfs
from plimsoll.lab.disks.limits import SET_LIMITS
from plimsoll.lab.disks.propagation import UNMOUNT_COPIES
from plimsoll.lab.steps.step import Command, Step

MARK = ".plimsoll-disk"
MIRROR = "mirror.img"  # a second side, which the saturator `resilver` gives the pool
_BUSY_S = 20.0
_MOST_S = 600.0

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

# $1: the mount point; $2: what must be mounted there.
_UNMOUNT = f"""{UNMOUNT_COPIES}
[ "$(findmnt -n -o SOURCE --mountpoint "$1" | tail -n 1)" != "$2" ] || umount -- "$1" """

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

_END_GROUP = """[ ! -d "$1" ] || rmdir "$1" 2>/dev/null || :"""


def free(number: str) -> Command:
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
    daemon = ("sh", "-c", zfs.END_DAEMON, "sh", f"{work}/zfs-fuse.pid")
    group = ("sh", "-c", _END_GROUP, "sh", "/sys/fs/cgroup/plimsoll")
    return [
        Command("stop zfs-fuse if the lab started it and it serves no pool", daemon),
        Command("remove the lab's control group if it is empty", group),
    ]
