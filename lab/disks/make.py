"""Settings become disks."""

from lab.disks.disk import Disk
from lab.disks.emulated import Emulated
from lab.disks.folder import Folder
from lab.disks.settings import DiskSettings, FolderDisk
from lab.labels import Label

WORK = "/var/lib/plimsoll"


def disk(settings: DiskSettings, label: Label, backend: str, work: str = WORK) -> Disk:
    """Return the disk of a backend. `work` is the lab's own folder on its machine."""
    if isinstance(settings, FolderDisk):
        return Folder(settings)
    return Emulated(settings, label.of(backend), backend, work)
