"""The key `fileio` of lab.yml: which volumes are measured before the runs, and how."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from plimsoll.common.units import size_text
from plimsoll.common.validation import Location
from plimsoll.lab.disks.emulated import EmulatedDisk
from plimsoll.lab.experiment.volume_choice import VolumeChoice
from plimsoll.lab.fileio.fio import FsyncMatrix
from plimsoll.lab.fileio.measure import Cells
from plimsoll.lab.fileio.sysbench import Matrix
from plimsoll.lab.names import LabName, explained_in

if TYPE_CHECKING:
    from plimsoll.lab.experiment.settings import Lab


class Fileio(Matrix):
    """A measurement of each backend's volume, once, before the first run."""

    model_config = explained_in("docs/fileio.md")

    backends: tuple[LabName, ...] = Field(
        (),
        description="Backends whose volumes to measure. Default: all whose clone the lab puts on a disk.",
    )
    fsync: FsyncMatrix | None = Field(
        None, description="What of fsyncs to measure with fio, after sysbench: see docs/fileio.md."
    )

    @property
    def parts(self) -> list[Matrix | FsyncMatrix]:
        """What is measured, one after the other."""
        return [self, *([self.fsync] if self.fsync else [])]

    @property
    def all_cells(self) -> Cells:
        """The cells of all parts."""
        return [cell for part in self.parts for cell in part.cells]

    @property
    def most_bytes(self) -> int:
        """The room that the test files need, of which each part removes its own."""
        return max(part.needed_bytes for part in self.parts)

    @property
    def programs(self) -> set[str]:
        """The programs that measure."""
        return {"sysbench", *(["fio"] if self.fsync else [])}

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
        for part in said.parts:
            if disk.size_bytes < part.needed_bytes:
                yield (
                    ("fileio", "file_size") if part is said else ("fileio", "fsync", "file_size"),
                    f"{size_text(part.file_size)} does not fit onto the disk of {backend.name} "
                    f"({size_text(disk.size_bytes)}): take less, or a larger disk",
                )
