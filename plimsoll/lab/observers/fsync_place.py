"""The file that the fsync probe writes: in the folder of a clone's data, found and removed by its name."""

from dataclasses import dataclass

from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Remains

_REMOVE_S = 60.0  # a disk that stalls may keep it waiting


@dataclass(frozen=True)
class ProbePlace:
    """The place of the file: its folder, and the name of everything that belongs to the backend."""

    folder: str
    backend_name: str

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.backend_name}.fsync"

    @property
    def path(self) -> str:
        """The file's path."""
        return f"{self.folder.rstrip('/')}/{self.name}"

    async def find(self, machine: Machine, backend: str) -> list[Remains]:
        """Return what a crash left of it. Looks only. Raises MachineError."""
        look = ["find", self.path, "-maxdepth", "0", "-type", "f"]
        if not (await machine.run(look, check=False)).out:
            return []
        remove = Command("remove the probe's file", ("rm", "-f", "--", self.path), timeout_s=_REMOVE_S)
        return [Remains(f"the file of the fsync probe {self.path}", backend, (remove,))]


@dataclass(frozen=True)
class Probed:
    """A place, and the machine whose processes may reach its disk: one under the disk's limits."""

    machine: Machine
    place: ProbePlace
