"""The key `fileio` of lab.yml: which volumes are measured with sysbench before the runs, and how."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from lab.clones.registry import driver_of
from lab.disks.emulated_settings import EmulatedDisk
from lab.fileio.settings import Matrix
from lab.names.labels import LabName
from lab.names.model import explained_in
from plimsoll.common.problems import Location
from plimsoll.common.sizes import size_text

if TYPE_CHECKING:
    from lab.experiment.settings import Backend, Lab


class Fileio(Matrix):
    """A measurement of each backend's volume, once, before the first run."""

    model_config = explained_in("docs/fileio.md")

    backends: tuple[LabName, ...] = Field(
        (),
        description="Backends whose volumes to measure. Default: all whose clone the lab puts on a disk.",
    )


def is_measured(lab: "Lab", backend: "Backend") -> bool:
    """Return whether the volume of `backend` is measured: a site that exists only where it is named. Pure."""
    if lab.fileio is None or backend.disk is None:
        return False
    if lab.fileio.backends:
        return backend.name in lab.fileio.backends
    return driver_of(backend.clone).is_ours


def left_out(lab: "Lab") -> list[str]:
    """Return the backends that are not measured although nobody said so, each with the reason. Pure."""
    if lab.fileio is None or lab.fileio.backends:
        return []
    return [
        f"fileio does not measure {backend.name}: it has no disk in lab.yml"
        if backend.disk is None
        else f"fileio does not measure {backend.name}, which exists: name it in fileio.backends if test "
        "files may be written there"
        for backend in lab.backends
        if not is_measured(lab, backend)
    ]


def fileio_problems(lab: "Lab") -> Iterator[tuple[Location, str]]:
    """Yield what is wrong between `fileio` and the backends: where, and what to do. Pure."""
    if (said := lab.fileio) is None:
        return
    backends = {backend.name: backend for backend in lab.backends}
    for i, name in enumerate(said.backends):
        at: Location = ("fileio", "backends", i)
        if name not in backends:
            yield at, f"{name} is not one of backends: {', '.join(backends)}"
        elif backends[name].disk is None:
            yield at, f"{name} has no disk to measure: give it one (see docs/disks.md), or leave it out"
    if not said.backends and not any(is_measured(lab, backend) for backend in lab.backends):
        yield (
            ("fileio",),
            "has no volume to measure: the lab puts no clone on a disk; name backends that have one in "
            "fileio.backends, or leave fileio out",
        )
    for backend in lab.backends:
        disk = backend.disk
        if not isinstance(disk, EmulatedDisk) or not is_measured(lab, backend):
            continue
        if disk.size_bytes < said.needed_bytes:
            yield (
                ("fileio", "file_size"),
                f"{size_text(said.file_size)} does not fit onto the disk of {backend.name} "
                f"({size_text(disk.size_bytes)}): take less, or a larger disk",
            )
