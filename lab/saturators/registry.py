"""The saturators that there are. One more is one more file beside this one, and one more line here."""

from typing import Annotated, Any

from lab.disks.place import DataLocation
from lab.machine import Machine
from lab.names.model import OneOf
from lab.names.snapshots import checked_label
from lab.saturators.backup import BACKUP
from lab.saturators.btrfs import BTRFS_SEND
from lab.saturators.command import COMMAND
from lab.saturators.database_dump import DATABASE_DUMP
from lab.saturators.fio import FIO
from lab.saturators.kind import SaturatorKind, SaturatorSettings
from lab.saturators.resilver import RESILVER
from lab.saturators.rsync import RSYNC
from lab.saturators.runner import OnEvent, Saturator
from lab.saturators.scrub import SCRUB
from lab.saturators.zfs_replicate import ZFS_REPLICATE
from lab.saturators.zfs_send import ZFS_SEND

SATURATORS: list[SaturatorKind[Any]] = [
    ZFS_SEND,
    BTRFS_SEND,
    FIO,
    ZFS_REPLICATE,
    SCRUB,
    RESILVER,
    RSYNC,
    DATABASE_DUMP,
    COMMAND,
    BACKUP,
]

AnySaturator = Annotated[SaturatorSettings, OneOf("kind", lambda: (kind.settings for kind in SATURATORS))]


def kind_of(settings: SaturatorSettings) -> SaturatorKind[Any]:
    """Return the entry that `settings` belong to."""
    return next(kind for kind in SATURATORS if kind.name == settings.kind)


def aimed(settings: SaturatorSettings, at: DataLocation) -> SaturatorSettings:
    """Return `settings` with what they leave open taken from where a clone's data lie. Pure.

    Raises ValueError, which names the key, where the clone has no such thing.
    """
    pointed: SaturatorSettings = kind_of(settings).aim(settings, at)
    return pointed


def saturator(machine: Machine, settings: SaturatorSettings, label: str, on_event: OnEvent) -> Saturator:
    """Return the saturator for the disks of `machine`. Raises ValueError for an unfit label."""
    made: Saturator = kind_of(settings).make(machine, settings, checked_label(label), on_event)
    return made
