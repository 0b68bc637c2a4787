"""The saturators that there are. One more is one more file beside this one, and one more line here."""

from typing import Annotated, Any

from plimsoll.lab.disks.place import DataLocation
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import OneOf, checked_label
from plimsoll.lab.saturators.any_command import COMMAND
from plimsoll.lab.saturators.backup import BACKUP
from plimsoll.lab.saturators.btrfs_send import BTRFS_SEND
from plimsoll.lab.saturators.database_dump import DATABASE_DUMP
from plimsoll.lab.saturators.fio import FIO
from plimsoll.lab.saturators.kind import SaturatorKind, SaturatorSettings
from plimsoll.lab.saturators.resilver import RESILVER
from plimsoll.lab.saturators.rsync import RSYNC
from plimsoll.lab.saturators.runner import OnEvent, Saturator
from plimsoll.lab.saturators.scrub import SCRUB
from plimsoll.lab.saturators.zfs_replicate import ZFS_REPLICATE
from plimsoll.lab.saturators.zfs_send import ZFS_SEND

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
