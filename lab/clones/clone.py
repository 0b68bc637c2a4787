"""What every driver does: the site on one backend, made, begun anew, described, removed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from lab.machine import Machine
from lab.steps import Step


@dataclass(frozen=True)
class Target:
    """Where load is sent to."""

    url: str
    connect_to: str | None = None


@dataclass(frozen=True)
class Data:
    """What a clone's data lie in, for a saturator to be pointed at; None where there is no such thing."""

    folder: str | None = None  # on the disk under test, where others may make files too
    dataset: str | None = None
    subvolume: str | None = None


@dataclass(frozen=True)
class Found:
    """Something of ours that is there, and how it is removed."""

    what: str  # in words: "the virtual machine plimsoll-bench--hdd (9001)"
    backend: str  # whose it is
    remove: tuple[Step, ...]
    captured: Mapping[str, str] = field(default_factory=dict)


class Clone(Protocol):
    """The site on one backend. Every verb is a list of steps: pure, so it can be shown before it is done.

    `create` may rely on nothing of this clone being there: the lab removes what `find` finds before.
    """

    driver: str  # as lab.yml names it

    def create(self) -> list[Step]:
        """Make the clone, not started."""
        ...

    def reset(self, restore: bool) -> list[Step]:
        """Start it anew with cold caches, and see that it serves; with `restore` as it was when created."""
        ...

    def stop(self) -> list[Step]:
        """Let it rest, so that it takes nothing from the others. It may be at rest already."""
        ...

    def destroy(self) -> list[Step]:
        """Remove it, whether it runs or not."""
        ...

    def target(self, captured: Mapping[str, str]) -> Target:
        """Return where it is reached, after `reset`. Raises KeyError where a step did not capture it."""
        ...

    def data(self) -> Data:
        """Return what its data lie in. Pure; known before anything is made."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return what `run.json` keeps of it: how it was made, of what, where. Without secrets."""
        ...

    async def find(self, machine: Machine) -> list[Found]:
        """Return what is there of this clone, running or half made, in the order of removal.

        Looks only, by name. Raises MachineError where it cannot look; finds nothing where the program that
        would have made it is not even installed.
        """
        ...
