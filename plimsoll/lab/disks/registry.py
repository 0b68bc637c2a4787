"""The kinds of disks that there are. One more is one more file beside this one, and one more line here."""

from typing import Annotated, Any

from plimsoll.lab.disks.disk import Disk, DiskKind, DiskSettings
from plimsoll.lab.disks.emulated import EMULATED
from plimsoll.lab.disks.folder import FOLDER
from plimsoll.lab.names import Label, OneOf

DISKS: list[DiskKind[Any]] = [
    FOLDER,
    EMULATED,
]

AnyDisk = Annotated[DiskSettings, OneOf("kind", lambda: (kind.settings for kind in DISKS))]

WORK = "/var/lib/plimsoll"


def kind_of(settings: DiskSettings) -> DiskKind[Any]:
    """Return the entry that `settings` belong to."""
    return next(kind for kind in DISKS if kind.name == settings.kind)


def disk(settings: DiskSettings, label: Label, backend: str, work: str = WORK) -> Disk:
    """Return the disk of a backend. `work` is the lab's own folder on its machine."""
    made: Disk = kind_of(settings).make(settings, label, backend, work)
    return made
