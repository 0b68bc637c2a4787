"""Saturators: they keep the disks busy during a run, by a send, a scrub, a copy, fio.

One more is one more file beside this one, and one more line here, in the order of docs and messages.
"""

import pkgutil
from typing import Annotated, Any

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import OneOf, checked_label
from plimsoll.lab.saturators.saturator import OnEvent, Saturator, SaturatorKind, SaturatorSettings

SATURATORS: list[SaturatorKind[Any]] = [
    pkgutil.resolve_name(f"{__name__}.{at}")
    for at in (
        "zfs_send:ZFS_SEND",
        "btrfs_send:BTRFS_SEND",
        "fio:FIO",
        "zfs_replicate:ZFS_REPLICATE",
        "scrub:SCRUB",
        "resilver:RESILVER",
        "rsync:RSYNC",
        "database_dump:DATABASE_DUMP",
        "any_command:COMMAND",
        "backup:BACKUP",
    )
]
AnySaturator = Annotated[SaturatorSettings, OneOf("kind", lambda: (kind.settings for kind in SATURATORS))]


def find_saturator_kind(settings: SaturatorSettings) -> SaturatorKind[Any]:
    """Return the entry that `settings` belong to."""
    return next(kind for kind in SATURATORS if kind.name == settings.kind)


def aim_saturator(settings: SaturatorSettings, at: DataLocation) -> SaturatorSettings:
    """Return `settings` with what they leave open taken from where a clone's data lie. Pure.

    Raises ValueError, which names the key, where the clone has no such thing.
    """
    pointed: SaturatorSettings = find_saturator_kind(settings).aim(settings, at)
    return pointed


def make_saturator(machine: Machine, settings: SaturatorSettings, label: str, on_event: OnEvent) -> Saturator:
    """Return the saturator for the disks of `machine`. Raises ValueError for an unfit label."""
    made: Saturator = find_saturator_kind(settings).make(machine, settings, checked_label(label), on_event)
    return made
