"""Saturators: they keep the disks busy during a run, by a send, a scrub, a copy, fio; one kind a file."""

from plimsoll.lab.saturators.btrfs import BtrfsSend
from plimsoll.lab.saturators.fio import Fio
from plimsoll.lab.saturators.kind import SaturatorSettings
from plimsoll.lab.saturators.registry import SATURATORS, AnySaturator, aimed, kind_of, saturator
from plimsoll.lab.saturators.runner import Saturator
from plimsoll.lab.saturators.zfs_send import ZfsSend

__all__ = [
    "SATURATORS",
    "AnySaturator",
    "BtrfsSend",
    "Fio",
    "Saturator",
    "SaturatorSettings",
    "ZfsSend",
    "aimed",
    "kind_of",
    "saturator",
]
