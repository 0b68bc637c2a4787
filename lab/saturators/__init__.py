"""Saturators: they keep the disks busy during a run, by a send, a scrub, a copy, fio; one kind a file."""

from lab.saturators.btrfs import BtrfsSend
from lab.saturators.fio import Fio
from lab.saturators.kind import SaturatorSettings
from lab.saturators.registry import SATURATORS, AnySaturator, aimed, kind_of, saturator
from lab.saturators.runner import Saturator
from lab.saturators.zfs_send import ZfsSend

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
