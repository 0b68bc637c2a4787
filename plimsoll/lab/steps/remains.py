"""The remains of the lab's clones and disks, and the steps that remove them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.lab.steps.step import Step


@dataclass(frozen=True)
class Remains:
    """A remnant of a clone or a disk, and the steps that remove it."""

    what: str  # in words: "the virtual machine plimsoll-bench--hdd (9001)"
    backend: str  # whose it is
    remove: tuple[Step, ...]
    captured: Mapping[str, str] = field(default_factory=dict)
