"""Disk `emulated`, made of a file: a loop device, slowed down if wanted, with a file system or a pool on it.

A limited disk is a loop device on a loop device. The lower one has the limits; what waits for it is seen
at the upper one, so that the kernel counts that disk's delays as it counts those of any other. A pool is of
the kernel's ZFS where the machine has it, else of Debian's zfs-fuse.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from plimsoll.common.units import significant
from plimsoll.common.validation import Size
from plimsoll.lab.disks.caches import COLD
from plimsoll.lab.disks.disk import DiskKind, DiskSettings, Place
from plimsoll.lab.disks.limits import CAN_LIMIT, DiskSpeed, find_group, set_limits
from plimsoll.lab.disks.removal import (
    MARK,
    UNMOUNT_COPIES,
    destroy_pool,
    detach,
    end_shared,
    find_disk,
    remove_files,
    unmount,
)
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import Compression, RecordSize
from plimsoll.lab.steps.step import Check, Command, Remains, Room, Step

_SMALLEST_BYTES = 512 << 20  # XFS wants 300 MiB
_MOST_S = 600.0
# Links $2 to the device $1, or to the partition that the kernel's ZFS made of it.
LINK = r"""ln -sfn "$(test -e "$1p1" && echo "$1p1" || echo "$1")" "$2" """

LIKE = {
    "rotating": DiskSpeed(bytes_per_s=120_000_000, operations_per_s=200),
    "sata-ssd": DiskSpeed(bytes_per_s=500_000_000, operations_per_s=20_000),
    "nvme-ssd": DiskSpeed(),
}


class EmulatedDisk(DiskSettings):
    """A disk made of a file: a loop device with limits, and a file system or pool on it."""

    kind: Literal["emulated"] = Field(description="`emulated`: a slow disk made from a file.")
    filesystem: Literal["ext4", "xfs", "btrfs", "zfs"] = Field(
        description="File system: ext4, xfs, btrfs or zfs."
    )
    size_bytes: Annotated[Size, Field(ge=_SMALLEST_BYTES)] = Field(
        description="Size of the disk: 8G. Its file grows as the disk fills up."
    )
    like: Literal["rotating", "sata-ssd", "nvme-ssd"] | None = Field(
        None, description="Kind of disk whose limits apply: rotating, sata-ssd, or nvme-ssd, which has none."
    )
    bytes_per_s: Annotated[Size, Field(ge=1 << 16)] | None = Field(
        None,
        description="Your own limit in bytes a second, for reads and writes each: 50M. Not together "
        "with like.",
    )
    operations_per_s: int | None = Field(
        None,
        ge=10,
        le=10_000_000,
        description="Your own limit in operations a second, for reads and writes each: 400. Not together "
        "with like.",
    )
    recordsize: RecordSize | None = Field(None, description="zfs: size of a file's largest block: 16K.")
    compression: Compression | None = Field(None, description="zfs: lz4, gzip, off, …; zfs-fuse has no lz4.")

    @model_validator(mode="after")
    def _fits(self) -> "EmulatedDisk":
        if self.filesystem != "zfs" and (self.recordsize or self.compression):
            raise ValueError("recordsize and compression: only zfs has these; leave them out")
        if self.like and (self.bytes_per_s or self.operations_per_s):
            raise ValueError("like and limits of your own: give one or the other")
        return self

    @property
    def limits(self) -> DiskSpeed:
        """The limits of this disk: its own, or those of the disk that it is `like`."""
        own = DiskSpeed(bytes_per_s=self.bytes_per_s, operations_per_s=self.operations_per_s)
        return LIKE[self.like] if self.like else own

    @property
    def words(self) -> str:
        """A description of the emulated disk, for the report."""
        parts = [f"{self.filesystem} on a loop device"]
        if self.limits.bytes_per_s:
            parts.append(f"{significant(self.limits.bytes_per_s / 1e6)} MB/s")
        if self.limits.operations_per_s:
            parts.append(f"{self.limits.operations_per_s} operations/s")
        return ", ".join([*parts, *([] if self.limits else ["no limit"])]) + (
            f" (like {self.like})" if self.like else ""
        )


_MKFS = {
    # Nothing is left to be written in the background, while something is measured.
    "ext4": ("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}


@dataclass(frozen=True)
class Emulated:
    """A Disk. `name` is what everything of it is called, `work` the lab's own folder."""

    settings: EmulatedDisk
    name: str
    backend: str
    work: str

    @property
    def folder(self) -> str:
        """The folder that holds all of it."""
        return f"{self.work}/{self.name}"

    def place(self) -> Place:
        """Return the place where it is mounted."""
        is_zfs = self.settings.filesystem == "zfs"
        limits = self.settings.limits
        return Place(
            f"{self.folder}/mnt",
            filesystem={"zfs": "zfs", "btrfs": "btrfs"}.get(self.settings.filesystem, "plain"),
            dataset=f"{self.name}/site" if is_zfs else None,
            devices=("${disk_device}",),
            emulated=self.settings.words,
            size_bytes=self.settings.size_bytes,
            cold=(COLD[0], *(reimport_pool(self.name, self.folder) if is_zfs else ()), COLD[1]),
            limit=tuple(self.limit()),
            unlimit=(set_limits(DiskSpeed(), "${disk_number}", "lift the disk's limits"),) if limits else (),
            group="${disk_group}" if limits else None,
        )

    def create(self) -> list[Step]:
        """Make the file, the loop device, the file system, and mount it. It is fast as yet."""
        is_zfs = self.settings.filesystem == "zfs"
        make = make_pool(self.settings, self.name, self.folder) if is_zfs else self._make_filesystem()
        start = ("sh", "-c", START_DAEMON, "sh", self._daemon)
        return [
            *self._make_file(),
            *([find_group(self.settings.filesystem)] if self.settings.limits else []),
            *([Command("see that ZFS runs: the kernel's, or zfs-fuse", start)] if is_zfs else []),
            *self._attach(),
            *make,
        ]

    def limit(self) -> list[Step]:
        """Make it slow."""
        if not self.settings.limits:
            return []
        steps: list[Step] = [
            Command("write everything out", ("sync",), timeout_s=_MOST_S),
            set_limits(self.settings.limits, "${disk_number}", f"make the disk slow: {self.settings.words}"),
        ]
        if self.settings.filesystem == "zfs":
            words = ("sh", "-c", JOIN_DAEMON, "sh", self._daemon, "${disk_group}")
            steps.append(Command("put zfs-fuse under these limits if it serves the pool", words))
        return steps

    def destroy(self) -> list[Step]:
        """Remove it."""
        is_zfs = self.settings.filesystem == "zfs"
        image, mounted = f"{self.folder}/disk.img", f"{self.folder}/mnt"
        if self.settings.limits:
            loops = [detach("${disk_loop}", "${disk_under}"), detach("${disk_under}", image)]
        else:
            loops = [detach("${disk_loop}", image)]
        return [
            *self.place().unlimit,
            destroy_pool(self.name, mounted) if is_zfs else unmount(mounted, "${disk_loop}"),
            *loops,
            remove_files(self.folder),
            *end_shared(self.work),
        ]

    async def find(self, machine: Machine) -> list[Remains]:
        """Look for the pool, mounts, loop devices, files and the daemon."""
        return await find_disk(machine, self.name, self.backend, self.work)

    @property
    def _daemon(self) -> str:
        return f"{self.work}/zfs-fuse.pid"

    def _make_file(self) -> list[Step]:
        folder, size = self.folder, self.settings.size_bytes
        return [
            Command("make the lab's own folder", ("mkdir", "-p", "--", self.work)),
            Room("see that the file has room to grow", self.work, size),
            Command("make the disk's folder", ("mkdir", "--", folder)),
            Command("mark it as the lab's", ("touch", "--", f"{folder}/{MARK}")),
            Command("make the mount point", ("mkdir", "--", f"{folder}/mnt", f"{folder}/dev")),
            Command("make the file", ("truncate", "-s", str(size), "--", f"{folder}/disk.img")),
        ]

    def _attach(self) -> list[Step]:
        """A file system without direct I/O, such as a tmpfs, may refuse it."""
        image = f"{self.folder}/disk.img"
        if not self.settings.limits:
            return [*_loop("make a loop device of it", image, "disk_loop"), _capture_name("${disk_loop}")]
        return [
            *_loop("make a loop device of it, for the limits", image, "disk_under"),
            Command("read its number", ("lsblk", "-dnro", "MAJ:MIN", "${disk_under}"), capture="disk_number"),
            *_loop("make a loop device of that, for the file system", "${disk_under}", "disk_loop"),
            _capture_name("${disk_loop}"),
        ]

    def _make_filesystem(self) -> list[Step]:
        kind = self.settings.filesystem
        mount = ("mount", "-t", kind, "--", "${disk_loop}", f"{self.folder}/mnt")
        return [
            Command(f"make {kind}", (*_MKFS[kind], "${disk_loop}"), timeout_s=_MOST_S),
            Command("mount it", mount),
        ]


def _loop(says: str, file: str, capture: str) -> list[Step]:
    return [
        Command(says, ("losetup", "--find", "--show", "--", file), capture=capture),
        Command("bypass the page cache", ("losetup", "--direct-io=on", f"${{{capture}}}"), may_fail=True),
    ]


def _capture_name(device: str) -> Command:
    return Command(
        "read the kernel's name for it", ("lsblk", "-dnro", "KNAME", device), capture="disk_device"
    )


def _checks(settings: EmulatedDisk, _work: str) -> list[Check]:
    found = [Check("disk: this machine has no loop devices", ("test", "-e", "/dev/loop-control"))]
    if settings.filesystem == "zfs":
        found.append(Check("disk.filesystem: zfs is not available", ("sh", "-c", IS_THERE)))
    if settings.limits:
        words = ("sh", "-c", CAN_LIMIT, "sh", settings.filesystem, "/proc/mounts")
        found.append(Check("disk: cannot be made slow", words))
    return found


EMULATED = DiskKind(
    "emulated",
    EmulatedDisk,
    lambda settings, label, backend, work: Emulated(settings, label.of(backend), backend, work),
    checks=_checks,
)

# $1: the file of zfs-fuse's process number; it marks that process as the lab's.
START_DAEMON = r"""[ -d /sys/module/zfs ] || modprobe -q zfs 2>/dev/null || :
zpool list >/dev/null 2>&1 && exit
command -v zfs-fuse >/dev/null || {
    echo "this machine has neither the kernel's ZFS nor zfs-fuse: apt install zfs-fuse" >&2
    exit 1
}
runs() { ps -C zfs-fuse -o stat= | grep -qv '^Z'; }
for _ in $(seq 50); do
    runs || setsid zfs-fuse --pidfile "$1" </dev/null >/dev/null 2>&1
    zpool list >/dev/null 2>&1 && exit
    sleep 0.2
done
echo "zfs-fuse does not answer: is the kernel's module fuse loaded?" >&2
exit 1"""

# Ends well where ZFS runs, or could be started.
IS_THERE = """[ -d /sys/module/zfs ] || modprobe -nq zfs 2>/dev/null || command -v zfs-fuse >/dev/null || {
    echo "this machine has neither the kernel's ZFS nor zfs-fuse: apt install zfs-fuse" >&2
    exit 1
}"""

# $1: that file; $2: the group with the limits. One that is not the lab's is not moved. One that was killed
# counts no more, although it may wait for init to take notice (Z).
JOIN_DAEMON = r"""daemon=$(ps -C zfs-fuse -o pid= -o stat= | awk '$2 !~ /^Z/ { print $1 }')
[ -n "$daemon" ] || exit 0
! grep -qx "$daemon" "$2/cgroup.procs" || exit 0
[ "$(cat "$1" 2>/dev/null)" = "$daemon" ] || {
    echo "zfs-fuse already runs in another control group: stop it, so that the lab can start its own" >&2
    exit 1
}
echo "$daemon" >"$2/cgroup.procs" """


def make_pool(settings: EmulatedDisk, pool: str, folder: str) -> list[Step]:
    """Return the steps that make the pool on `${disk_loop}`, with the dataset `site` at `folder`/mnt."""
    properties = [
        *(["-o", f"recordsize={settings.recordsize}"] if settings.recordsize else []),
        *(["-o", f"compression={settings.compression}"] if settings.compression else []),
    ]
    make = ("zpool", "create", "-o", "cachefile=none", "-O", "mountpoint=none", pool, "${disk_loop}")
    dataset = ("zfs", "create", "-o", f"mountpoint={folder}/mnt", *properties, f"{pool}/site")
    return [
        Command("make the pool", make, timeout_s=_MOST_S),
        Command(
            "link the device, so that an import finds it",
            ("sh", "-c", LINK, "sh", "${disk_loop}", f"{folder}/dev/disk"),
        ),
        Command("make the dataset", dataset, timeout_s=_MOST_S),
    ]


def reimport_pool(pool: str, folder: str) -> list[Step]:
    """Return the steps that empty ZFS's cache: the pool is exported and imported."""
    away = ("sh", "-c", _EXPORT, "sh", f"{folder}/mnt", pool)
    again = ("zpool", "import", "-d", f"{folder}/dev", "-o", "cachefile=none", pool)
    return [
        Command("export the pool, which empties its cache", away, timeout_s=_MOST_S, until_s=20),
        Command("import it", again, timeout_s=_MOST_S),
    ]


# $1: the mount point; $2: the pool.
_EXPORT = f"""{UNMOUNT_COPIES}
zpool export "$2" """
