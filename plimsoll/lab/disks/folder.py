"""Disk `folder`: a folder on existing disks."""

from typing import Literal

from pydantic import Field, model_validator

from plimsoll.lab.disks.caches import COLD, find_lowered_limits
from plimsoll.lab.disks.disk import DiskKind, DiskSettings, Place, PlainFolder
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import DatasetName, DeviceName
from plimsoll.lab.steps.step import Check, Command, Remains, Step, is_dataset, is_device, is_folder


class FolderDisk(DiskSettings):
    """A folder on disks that exist."""

    kind: Literal["folder"] = Field(description="`folder`: a folder on existing disks.")
    path: PlainFolder = Field(description="Path of the folder on the backend's machine: /tank/lab.")
    dataset: DatasetName | None = Field(
        None, description="ZFS dataset that is mounted there. Clones become datasets below it."
    )
    btrfs: bool = Field(False, description="true if the folder is on Btrfs. Clones become subvolumes.")
    devices: tuple[DeviceName, ...] = Field(
        (),
        description="Disks under the folder, by their kernel names: [nvme0n1]. Observers and facts use them.",
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> "FolderDisk":
        if self.dataset and self.btrfs:
            raise ValueError("dataset and btrfs: a folder is on one file system; leave one out")
        return self


class ExistingFolder:
    """A Disk: nothing is made, and nothing removed."""

    def __init__(self, settings: FolderDisk, backend: str) -> None:
        self._settings, self._backend = settings, backend

    def place(self) -> Place:
        """Return the place that lab.yml names. The pool may hold other things, so it is not re-imported."""
        said = self._settings
        filesystem = "zfs" if said.dataset else "btrfs" if said.btrfs else "plain"
        return Place(said.path, filesystem, said.dataset, said.devices, cold=COLD)

    def create(self) -> list[Step]:
        """See that it is there, and that it is what lab.yml says."""
        said = self._settings
        steps: list[Step] = [Command("see that the folder is there", ("test", "-d", said.path))]
        if said.dataset:
            mounted = ("sh", "-c", _IS_MOUNTED, "sh", said.dataset, said.path)
            steps.append(Command("see that the dataset is mounted there", mounted))
        if said.btrfs:
            subvolume = ("btrfs", "filesystem", "df", said.path)
            steps.append(Command("see that it is on Btrfs", subvolume))
        return steps

    def limit(self) -> list[Step]:
        """Leave it as it is."""
        return []

    def destroy(self) -> list[Step]:
        """Leave it as it is."""
        return []

    async def find(self, machine: Machine) -> list[Remains]:
        """Find nothing but what `cache: cold` changes meanwhile: the lab made none of it."""
        return await find_lowered_limits(machine, self._backend) if self._settings.dataset else []


_IS_MOUNTED = """[ "$(zfs get mountpoint "$1" | awk 'NR == 2 { print $3 }')" = "$2" ] || {
    echo "the dataset $1 is not mounted at $2: set path to its mount point" >&2; exit 1
}"""


def _checks(settings: FolderDisk, _work: str) -> list[Check]:
    devices = [is_device("disk.devices", name) for name in settings.devices]
    found = [is_folder("disk.path", settings.path), *devices]
    if settings.dataset:
        found.append(is_dataset("disk.dataset", settings.dataset))
        words = ("sh", "-c", _IS_MOUNTED, "sh", settings.dataset, settings.path)
        found.append(Check("disk.dataset: is not mounted there", words))
    if settings.btrfs:
        problem = "disk.btrfs: the folder is not on Btrfs: leave btrfs out"
        found.append(Check(problem, ("btrfs", "filesystem", "df", settings.path)))
    return found


FOLDER = DiskKind(
    "folder",
    FolderDisk,
    lambda settings, _label, backend, _work: ExistingFolder(settings, backend),
    is_made=False,
    checks=_checks,
)
