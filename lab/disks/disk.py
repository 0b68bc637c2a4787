"""What a backend's `disk` does: a place for clones, made and removed."""

from typing import Protocol

from lab.clones.clone import Found
from lab.machine import Machine
from lab.place import Place
from lab.steps import Step


class Disk(Protocol):
    """The storage of one backend. Verbs are lists of steps, as those of clones are."""

    def place(self) -> Place:
        """Return where clones go. Pure; known before anything is made."""
        ...

    def create(self) -> list[Step]:
        """Make it. May rely on nothing of it being there."""
        ...

    def limit(self) -> list[Step]:
        """Make it as slow as it is to look; `create` leaves it fast, so that a site is soon copied."""
        ...

    def destroy(self) -> list[Step]:
        """Remove it. No clone is on it any more."""
        ...

    async def find(self, machine: Machine) -> list[Found]:
        """Return what is there of it, whole or half made, in the order of removal. Looks only, by name."""
        ...
