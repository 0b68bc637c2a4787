"""The place of a clone: a folder on the disk under test, and what is known of the layers below it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.lab.steps.step import Step


@dataclass(frozen=True)
class Place:
    """A folder on the backend's machine. Clones go below it, each under its own name.

    `filesystem`: `zfs` (then `dataset` is mounted at `folder`), `btrfs`, or `plain`: all without snapshots.
    `devices`: whole disks as the kernel calls them, for observers and facts; may hold `${…}` of a step.
    `emulated`: what the disk is made to look like, in words for the report; None for a real one.
    `size_bytes`: the size of a disk that the lab makes; None for a real one.
    `cold`: what makes caches cold while nothing of a clone runs here.
    `limit`, `unlimit`: what makes an emulated disk slow, and as fast as it can be again: a clone is copied
    and started without limits. May be done twice. Empty where there are none.
    `group`: the control group whose members the limits hold for: what works on this disk must join it (see
    disks.limits). May hold `${…}`; None where there are no limits.
    """

    folder: str
    filesystem: str = "plain"
    dataset: str | None = None
    devices: tuple[str, ...] = ()
    emulated: str | None = None
    size_bytes: int | None = None
    cold: tuple[Step, ...] = ()
    limit: tuple[Step, ...] = ()
    unlimit: tuple[Step, ...] = ()
    group: str | None = None

    @property
    def pool(self) -> str | None:
        """The pool of the dataset."""
        return self.dataset.partition("/")[0] if self.dataset else None


@dataclass(frozen=True)
class DataLocation:
    """The location of a clone's data, for a saturator to aim at; None where there is no such thing.

    `parts`: the datasets below `dataset` that parts of the data are on, by the word for the part (`@web`).
    `own`: the folder of the clone's own database, or of its data.
    `guest`: the number of the clone on Proxmox, where it is known before it is made.
    """

    folder: str | None = None  # on the disk under test; others may make files there too
    dataset: str | None = None
    subvolume: str | None = None
    guest: int | None = None
    own: str | None = None
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def part_of(self) -> dict[str, str]:
        """The word for the part, by the dataset that it is on."""
        return {dataset: part for part, datasets in self.parts.items() for dataset in datasets}
