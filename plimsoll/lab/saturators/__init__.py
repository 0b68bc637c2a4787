"""Saturators: they keep the disks busy during a run, by a send, a scrub, a copy, fio; one kind a file."""

from plimsoll.lab.saturators.kind import SaturatorSettings
from plimsoll.lab.saturators.registry import SATURATORS, AnySaturator, aimed, kind_of, saturator
from plimsoll.lab.saturators.runner import Saturator

__all__ = [
    "SATURATORS",
    "AnySaturator",
    "Saturator",
    "SaturatorSettings",
    "aimed",
    "kind_of",
    "saturator",
]
