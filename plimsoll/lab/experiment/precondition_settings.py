"""The key `precondition` of lab.yml: which volumes are filled and overwritten before the runs, and how."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from plimsoll.common.validation import Location
from plimsoll.lab.experiment.volume_choice import VolumeChoice
from plimsoll.lab.fileio.precondition import PreconditionSettings
from plimsoll.lab.names import LabName, explained_in

if TYPE_CHECKING:
    from plimsoll.lab.experiment.settings import Lab


class Precondition(PreconditionSettings):
    """Volumes that are full and used in the runs."""

    model_config = explained_in("docs/precondition.md")

    backends: tuple[LabName, ...] = Field(
        (), description="Backends whose volumes to fill. Default: all whose clone the lab puts on a disk."
    )

    @property
    def choice(self) -> VolumeChoice:
        """The volumes that are filled."""
        may = "its volume may be filled"
        return VolumeChoice("precondition", "fill", "leaves {} as it is", may, self.backends)


def precondition_problems(lab: "Lab") -> Iterator[tuple[Location, str]]:
    """Yield what is wrong between `precondition` and the backends: where, and what to do. Pure."""
    if (said := lab.precondition) is None:
        return
    yield from said.choice.problems(lab)
    if said.longest_s < said.round_s:
        yield ("precondition", "longest_s"), f"is shorter than one round ({said.round_s} s): give more"


def preconditioned_rigs(lab: "Lab") -> list[str]:
    """Return the rigs whose volumes are filled, in the order of the file. Pure."""
    return lab.precondition.choice.rigs(lab) if lab.precondition else []
