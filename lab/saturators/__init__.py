"""What keeps the disks busy during a run: `zfs send`, `btrfs send` or fio, until it is stopped."""

from lab.saturators.make import saturator
from lab.saturators.runner import Saturator
from lab.saturators.settings import BtrfsSend, Fio, SaturatorSettings, ZfsSend

__all__ = ["BtrfsSend", "Fio", "Saturator", "SaturatorSettings", "ZfsSend", "saturator"]
