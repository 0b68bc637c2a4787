"""Where a clone is put: a folder on the disk under test, and what is known of what lies below."""

from dataclasses import dataclass

from lab.steps import Step


@dataclass(frozen=True)
class Place:
    """A folder on the backend's machine. Clones go below it, each under its own name.

    `filesystem`: `zfs` (then `dataset` is mounted at `folder`), `btrfs`, or `plain`: all without snapshots.
    `devices`: whole disks as the kernel calls them, for observers and facts; may hold `${…}` of lab.steps.
    `emulated`: what the disk is made to look like, in words for the report; None for a real one.
    `throttle`: limits that the processes on this disk must be put under; see lab.disks.
    `cold`: what makes caches cold while nothing of a clone runs here.
    """

    folder: str
    filesystem: str = "plain"
    dataset: str | None = None
    devices: tuple[str, ...] = ()
    emulated: str | None = None
    throttle: "Throttle | None" = None
    cold: tuple[Step, ...] = ()

    @property
    def pool(self) -> str | None:
        """The pool of the dataset."""
        return self.dataset.partition("/")[0] if self.dataset else None


@dataclass(frozen=True)
class Throttle:
    """Limits of one block device, for reads and for writes each; None is no limit.

    `device` is `major:minor`, and may hold `${…}` of lab.steps. `group` is the control group that has them.
    """

    group: str
    device: str
    bytes_per_s: int | None
    operations_per_s: int | None
