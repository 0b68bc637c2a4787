"""The disk of a virtual machine below a place: a file or a ZFS volume, and as it was when created."""

from dataclasses import dataclass

from plimsoll.lab.clones.qemu import scripts
from plimsoll.lab.clones.qemu.settings import QemuSettings
from plimsoll.lab.clones.sitedata import SiteData
from plimsoll.lab.disks.disk import Place
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Remains, Room, Step

_SLACK_BYTES = 256 << 20
_MOST_S = 600.0
_SNAPSHOT = "plimsoll-pristine"


@dataclass(frozen=True)
class QemuDisk(SiteData):
    """Does for a disk's image what SiteData does for folders: places, restores, finds and removes it."""

    settings: QemuSettings

    @classmethod
    def of(cls, settings: QemuSettings, place: Place, name: str) -> "QemuDisk":
        """Return the disk of the clone called `name`."""
        if settings.format == "zvol" and not place.dataset:
            raise ValueError(
                "format: a zvol needs a disk with a dataset; use qcow2 or raw, or set the disk's dataset"
            )
        return cls(place, name, settings.image, settings)

    @property
    def path(self) -> str:
        """The path of the file or device that QEMU opens."""
        if self._zvol:
            return f"/dev/zvol/{self._dataset}"
        return f"{self.folder}/disk.{self.settings.format}"

    @property
    def format(self) -> str:
        """The format that QEMU reads it in."""
        return "raw" if self._zvol else self.settings.format

    def make(self) -> list[Step]:
        """Copy the image, or lay a file over it, and take a snapshot where the file system can."""
        full = self.settings.full
        room = Room(
            "see that there is room for it",
            self.place.folder,
            _SLACK_BYTES,
            like=self.settings.image if full else None,
        )
        remember = ("zfs", "snapshot", f"{self._dataset}@{_SNAPSHOT}")
        if self._zvol:
            return [room, *self._volume(), self._convert("-n"), _do("take a snapshot", *remember)]
        fill = self._convert() if full else self._overlay()
        if self.place.dataset:
            return [
                room,
                _do("make a dataset", "zfs", "create", self._dataset),
                _do("see that it is mounted", "mountpoint", "-q", "--", self.folder),
                fill,
                _do("take a snapshot", *remember),
            ]
        if self.place.filesystem == "btrfs":
            keep = ("btrfs", "subvolume", "snapshot", "-r", self.folder, self._pristine)
            return [
                room,
                _do("make a subvolume", "btrfs", "subvolume", "create", self.folder),
                fill,
                _do("take a snapshot", *keep),
            ]
        return [room, _do("make its folder", "mkdir", "-m", "0711", "--", self.folder), fill]

    def remove(self, pristine: bool = True) -> list[Step]:
        """Remove whatever there is of it; for a volume, the folder of its monitor too."""
        return [*super().remove(pristine), *(self._beside.remove() if self._zvol else [])]

    async def find(self, machine: Machine, backend: str) -> list[Remains]:
        """Return its remains."""
        found = await super().find(machine, backend)
        return [*found, *(await self._beside.find(machine, backend) if self._zvol else [])]

    @property
    def _zvol(self) -> bool:
        return self.settings.format == "zvol"

    @property
    def _beside(self) -> SiteData:
        """A volume holds no files: what QEMU has of them is in a folder."""
        return SiteData(Place(self.place.folder), self.name, self.golden)

    def _volume(self) -> list[Step]:
        of = self.settings.volblocksize
        block = ("-o", f"volblocksize={of}") if of else ()
        return [
            _do("make a folder for its monitor", "mkdir", "-m", "0711", "--", self.folder),
            scripts.size(self.settings.image_format, self.settings.image),
            _do("make a volume", "zfs", "create", "-s", *block, "-V", "${disk_size}", self._dataset),
            Command("see that it is there", ("test", "-b", self.path), until_s=30),
        ]

    def _convert(self, *more: str) -> Command:
        """Copy the image, and have it on the disk at the end: QEMU's own default does not wait for that."""
        said = self.settings
        formats = ("-f", said.image_format, "-O", self.format)
        words = ("qemu-img", "convert", "-t", "writeback", *more, *formats, said.image, self.path)
        return Command("copy the image", words, timeout_s=said.copy_timeout_s)

    def _overlay(self) -> Command:
        said = self.settings
        backing = ("-F", said.image_format, "-b", said.image)
        return _do(
            "make a disk on top of the image", "qemu-img", "create", "-q", "-f", "qcow2", *backing, self.path
        )


def _do(says: str, *words: str) -> Command:
    return Command(says, words, timeout_s=_MOST_S)
