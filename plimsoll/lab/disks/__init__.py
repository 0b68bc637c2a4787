"""The kinds of disks that clones are put on. One more is a file beside this one, and a line here."""

import pkgutil
from typing import Annotated, Any

from plimsoll.lab.disks.disk import Disk, DiskKind, DiskSettings
from plimsoll.lab.names import Label, OneOf

DISKS: list[DiskKind[Any]] = [
    pkgutil.resolve_name(f"{__name__}.{at}")
    for at in (
        "folder:FOLDER",
        "emulated:EMULATED",
    )
]
AnyDisk = Annotated[DiskSettings, OneOf("kind", lambda: (kind.settings for kind in DISKS))]
WORK = "/var/lib/plimsoll"


def find_disk_kind(settings: DiskSettings) -> DiskKind[Any]:
    """Return the entry that `settings` belong to."""
    return next(kind for kind in DISKS if kind.name == settings.kind)


def make_disk(settings: DiskSettings, label: Label, backend: str, work: str = WORK) -> Disk:
    """Return the disk of a backend. `work` is the lab's own folder on its machine."""
    made: Disk = find_disk_kind(settings).make(settings, label, backend, work)
    return made
