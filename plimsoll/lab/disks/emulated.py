"""Disk `emulated`, made of a file: a loop device, slowed down if wanted, with a file system or a pool on it.

A limited disk is a loop device on a loop device. The lower one has the limits; what waits for it is seen
at the upper one, so that the kernel counts that disk's delays as it counts those of any other.
"""

from dataclasses import dataclass

from plimsoll.lab.disks import zfs
from plimsoll.lab.disks.discovery import find
from plimsoll.lab.disks.disk import DiskKind
from plimsoll.lab.disks.emulated_settings import DiskSpeed, EmulatedDisk
from plimsoll.lab.disks.folder import COLD
from plimsoll.lab.disks.limits import CAN_LIMIT, find_group, set_limits
from plimsoll.lab.disks.place import Place
from plimsoll.lab.disks.removal import MARK, destroy_pool, detach, end_shared, remove_files, unmount
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Look, Remains, Room, Step

_MOST_S = 600.0
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
            cold=(COLD[0], *(zfs.import_anew(self.name, self.folder) if is_zfs else ()), COLD[1]),
            limit=tuple(self.limit()),
            unlimit=(set_limits(DiskSpeed(), "${disk_number}", "lift the disk's limits"),) if limits else (),
            group="${disk_group}" if limits else None,
        )

    def create(self) -> list[Step]:
        """Make the file, the loop device, the file system, and mount it. It is fast as yet."""
        is_zfs = self.settings.filesystem == "zfs"
        make = zfs.make_pool(self.settings, self.name, self.folder) if is_zfs else self._make_filesystem()
        return [
            *self._make_file(),
            *([find_group(self.settings.filesystem)] if self.settings.limits else []),
            *([self._start_daemon()] if is_zfs else []),
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
            words = ("sh", "-c", zfs.JOIN_DAEMON, "sh", self._daemon, "${disk_group}")
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
        return await find(machine, self.name, self.backend, self.work)

    @property
    def _daemon(self) -> str:
        return f"{self.work}/zfs-fuse.pid"

    def _start_daemon(self) -> Command:
        words = ("sh", "-c", zfs.START_DAEMON, "sh", self._daemon)
        return Command("see that ZFS runs: the kernel's, or zfs-fuse", words)

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
            return [*_loop("make a loop device of it", image, "disk_loop"), _name_of("${disk_loop}")]
        return [
            *_loop("make a loop device of it, for the limits", image, "disk_under"),
            Command(
                "read its number",
                ("lsblk", "-dnro", "MAJ:MIN", "${disk_under}"),
                capture="disk_number",
            ),
            *_loop("make a loop device of that, for the file system", "${disk_under}", "disk_loop"),
            _name_of("${disk_loop}"),
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


def _name_of(device: str) -> Command:
    return Command(
        "read the kernel's name for it", ("lsblk", "-dnro", "KNAME", device), capture="disk_device"
    )


def _looks(settings: EmulatedDisk, _work: str) -> list[Look]:
    found = [Look("disk: this machine has no loop devices", ("test", "-e", "/dev/loop-control"))]
    if settings.filesystem == "zfs":
        found.append(Look("disk.filesystem: there is no ZFS", ("sh", "-c", zfs.IS_THERE)))
    if settings.limits:
        words = ("sh", "-c", CAN_LIMIT, "sh", settings.filesystem, "/proc/mounts")
        found.append(Look("disk: cannot be made slow", words))
    return found


EMULATED = DiskKind(
    "emulated",
    EmulatedDisk,
    lambda settings, label, backend, work: Emulated(settings, label.of(backend), backend, work),
    looks=_looks,
)
