"""The key `fileio` of lab.yml: which volumes are measured with sysbench before the runs, and how."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from lab.disks.emulated_settings import EmulatedDisk
from lab.experiment.volume_choice import VolumeChoice
from lab.fileio.settings import Matrix
from lab.names.labels import LabName
from lab.names.model import explained_in
from plimsoll.common.problems import Location
from plimsoll.common.sizes import size_text

if TYPE_CHECKING:
    from lab.experiment.settings import Lab


class Fileio(Matrix):
    """A measurement of each backend's volume, once, before the first run."""

    model_config = explained_in("docs/fileio.md")

    backends: tuple[LabName, ...] = Field(
        (),
        description="Backends whose volumes to measure. Default: all whose clone the lab puts on a disk.",
    )

    @property
    def choice(self) -> VolumeChoice:
        """The volumes that are measured."""
        may = "test files may be written there"
        return VolumeChoice("fileio", "measure", "does not measure {}", may, self.backends)


def fileio_problems(lab: "Lab") -> Iterator[tuple[Location, str]]:
    """Yield what is wrong between `fileio` and the backends: where, and what to do. Pure."""
    if (said := lab.fileio) is None:
        return
    yield from said.choice.problems(lab)
    for backend in lab.backends:
        disk = backend.disk
        if not isinstance(disk, EmulatedDisk) or not said.choice.is_chosen(backend):
            continue
        if disk.size_bytes < said.needed_bytes:
            yield (
                ("fileio", "file_size"),
                f"{size_text(said.file_size)} does not fit onto the disk of {backend.name} "
                f"({size_text(disk.size_bytes)}): take less, or a larger disk",
            )
