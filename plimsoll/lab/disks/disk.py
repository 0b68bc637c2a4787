"""A backend's disk, the place that it gives a clone, and what a kind of disk is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Generic, Protocol, TypeVar

from pydantic import AfterValidator

from plimsoll.lab.machine import Machine
from plimsoll.lab.names import Folder, Label, StrictModel, explained_in
from plimsoll.lab.steps.step import Check, Remains, Step, no_reference

_REFUSED = set(':"$`\\')  # Docker cannot mount such folders


def _plain(value: str) -> str:
    if _REFUSED & set(value) or not value.isprintable() or value == "/":
        raise ValueError('must be a folder other than /, without : " $ ` \\ and control characters')
    return value


PlainFolder = Annotated[Folder, AfterValidator(_plain), AfterValidator(no_reference)]


class DiskSettings(StrictModel):
    """The settings that every disk has. A field's description is its help text."""

    model_config = explained_in("docs/disks.md")

    kind: str


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


class Disk(Protocol):
    """The storage of one backend. Verbs are lists of steps, as those of clones are."""

    def place(self) -> Place:
        """Return the place of the clones. Pure; known before anything is made."""
        ...

    def create(self) -> list[Step]:
        """Create it. May assume that nothing of it exists."""
        ...

    def limit(self) -> list[Step]:
        """Make it as slow as it is to look; `create` leaves it fast, so that a site is soon copied."""
        ...

    def destroy(self) -> list[Step]:
        """Remove it. No clone is on it any more."""
        ...

    async def find(self, machine: Machine) -> list[Remains]:
        """Return its remains, whole or half made, in the order of removal. Looks only, by name."""
        ...


Settings = TypeVar("Settings", bound=DiskSettings)


@dataclass(frozen=True)
class DiskKind(Generic[Settings]):
    """An entry of the registry.

    `name`: the value of `kind` in lab.yml.
    `settings`: the model of its keys.
    `make`: returns the disk for settings, the experiment's label, the backend, and the lab's own folder.
    `is_made`: the lab makes its devices, which are not there before.
    `checks`: what must hold before anything is made, for settings and the lab's own folder.
    """

    name: str
    settings: type[Settings]
    make: Callable[[Settings, Label, str, str], Disk]
    is_made: bool = True
    checks: Callable[[Settings, str], list[Check]] = lambda *_: []


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
