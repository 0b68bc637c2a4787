"""The key `precondition` of lab.yml: which volumes are filled and overwritten before the runs, and how."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from lab.clones.registry import driver_of
from lab.experiment.factors.settings import BACKEND
from lab.experiment.factors.variants import rigs_in
from lab.names.labels import LabName
from lab.names.model import explained_in
from lab.precondition.settings import Wear
from plimsoll.common.problems import Location

if TYPE_CHECKING:
    from lab.experiment.settings import Backend, Lab


class Precondition(Wear):
    """Volumes that are full and used in the runs."""

    model_config = explained_in("docs/precondition.md")

    backends: tuple[LabName, ...] = Field(
        (), description="Backends whose volumes to fill. Default: all whose clone the lab puts on a disk."
    )


def is_preconditioned(lab: "Lab", backend: "Backend") -> bool:
    """Return whether the volume of `backend` is filled: that of a site that exists if it is named. Pure."""
    if lab.precondition is None or backend.disk is None:
        return False
    if lab.precondition.backends:
        return backend.name in lab.precondition.backends
    return driver_of(backend.clone).is_ours


def preconditioned_rigs(lab: "Lab") -> list[str]:
    """Return the rigs whose volumes are filled, in the order of the file. Pure."""
    if lab.precondition is None:
        return []
    return [
        rig
        for rig, variant in rigs_in(lab).items()
        if is_preconditioned(lab, lab.backend(variant.levels.get(BACKEND, rig)))
    ]


def left_as_they_are(lab: "Lab") -> list[str]:
    """Return the backends that are not filled although nobody said so, each with the reason. Pure."""
    if lab.precondition is None or lab.precondition.backends:
        return []
    return [
        f"precondition leaves {backend.name} as it is: it has no disk in lab.yml"
        if backend.disk is None
        else f"precondition leaves {backend.name} as it is, which exists: name it in precondition.backends "
        "if its volume may be filled"
        for backend in lab.backends
        if not is_preconditioned(lab, backend)
    ]


def precondition_problems(lab: "Lab") -> Iterator[tuple[Location, str]]:
    """Yield what is wrong between `precondition` and the backends: where, and what to do. Pure."""
    if (said := lab.precondition) is None:
        return
    backends = {backend.name: backend for backend in lab.backends}
    for i, name in enumerate(said.backends):
        at: Location = ("precondition", "backends", i)
        if name not in backends:
            yield at, f"{name} is not one of backends: {', '.join(backends)}"
        elif backends[name].disk is None:
            yield at, f"{name} has no disk to fill: give it one (see docs/disks.md), or leave it out"
    if not said.backends and not any(is_preconditioned(lab, backend) for backend in lab.backends):
        yield (
            ("precondition",),
            "has no volume to fill: the lab puts no clone on a disk; name backends that have one in "
            "precondition.backends, or leave precondition out",
        )
    if said.longest_s < said.round_s:
        yield ("precondition", "longest_s"), f"is shorter than one round ({said.round_s} s): give more"
