"""The volumes that a key of lab.yml is for: those that it names, or all where the lab puts a clone. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.common.validation import Location
from plimsoll.lab.clones import driver_of
from plimsoll.lab.experiment.factors.settings import BACKEND
from plimsoll.lab.experiment.factors.variants import rigs_in

if TYPE_CHECKING:
    from plimsoll.lab.experiment.settings import Backend, Lab


@dataclass(frozen=True)
class VolumeChoice:
    """One such key.

    `does` is what it does to a volume (measure), `leaves` what is said of one that it leaves, `named` are the
    backends in it; `may` is what somebody allows who names a site that exists.
    """

    key: str
    does: str
    leaves: str
    may: str
    named: Sequence[str]

    def is_chosen(self, backend: "Backend") -> bool:
        """Return whether the volume of `backend` is chosen: that of a site that exists if it is named."""
        if backend.disk is None:
            return False
        return backend.name in self.named if self.named else driver_of(backend.clone).is_ours

    def rigs(self, lab: "Lab") -> list[str]:
        """Return the rigs whose volumes are chosen, in the order of the file."""
        return [
            rig
            for rig, variant in rigs_in(lab).items()
            if self.is_chosen(lab.backend(variant.levels.get(BACKEND, rig)))
        ]

    def left_out(self, lab: "Lab") -> list[str]:
        """Return the backends that are not chosen although nobody said so, each with the reason."""
        if self.named:
            return []
        return [
            f"{self.key} {self.leaves.format(backend.name)}: it has no disk in lab.yml"
            if backend.disk is None
            else f"{self.key} {self.leaves.format(backend.name)}, which exists: name it in "
            f"{self.key}.backends if {self.may}"
            for backend in lab.backends
            if not self.is_chosen(backend)
        ]

    def problems(self, lab: "Lab") -> Iterator[tuple[Location, str]]:
        """Yield what is wrong with the choice: where, and what to do."""
        backends = {backend.name: backend for backend in lab.backends}
        for i, name in enumerate(self.named):
            at: Location = (self.key, "backends", i)
            if name not in backends:
                yield at, f"{name} is not one of backends: {', '.join(backends)}"
            elif backends[name].disk is None:
                yield (
                    at,
                    f"{name} has no disk to {self.does}: give it one (see docs/disks.md), or leave it out",
                )
        if not self.named and not any(map(self.is_chosen, lab.backends)):
            yield (
                (self.key,),
                f"has no volume to {self.does}: the lab puts no clone on a disk; name backends that have one "
                f"in {self.key}.backends, or leave {self.key} out",
            )


def left_out(lab: "Lab") -> list[str]:
    """Return what keys of lab.yml leave out although nobody said so, each with the reason."""
    choices = [key.choice for key in (lab.precondition, lab.fileio) if key]
    return [sentence for choice in choices for sentence in choice.left_out(lab)]
