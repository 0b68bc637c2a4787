"""A backend's disk, a place for clones, and what a kind of disk is made of: a line in `registry` each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Generic, Protocol, TypeVar

from pydantic import AfterValidator

from plimsoll.lab.disks.place import Place
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import Folder, Label, StrictModel, explained_in
from plimsoll.lab.steps.step import Look, Remains, Step, no_reference

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


class Disk(Protocol):
    """The storage of one backend. Verbs are lists of steps, as those of clones are."""

    def place(self) -> Place:
        """Return the place of the clones. Pure; known before anything is made."""
        ...

    def create(self) -> list[Step]:
        """Make it. May assume that nothing of it exists."""
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
    `looks`: what is to be looked at before anything is made, for settings and the lab's own folder.
    """

    name: str
    settings: type[Settings]
    make: Callable[[Settings, Label, str, str], Disk]
    is_made: bool = True
    looks: Callable[[Settings, str], list[Look]] = lambda *_: []
