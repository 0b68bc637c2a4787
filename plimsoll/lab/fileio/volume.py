"""The folder on a backend's disk in which its volume is measured: made, found by its name, and removed."""

from dataclasses import dataclass

from plimsoll.lab.disks.disk import Place
from plimsoll.lab.fileio.fsync.settings import FsyncMatrix, FsyncSettings
from plimsoll.lab.fileio.settings import FileioSettings, Matrix
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Look, Remains

_MOST_S = 3600.0  # to remove files from a slow disk
_BUSY_S = 30.0
# Not followed where it is a symbolic link, not left where something is mounted in it.
_REMOVE = '[ -L "$1" ] || [ ! -e "$1" ] || rm -rf --one-file-system -- "$1"'


@dataclass(frozen=True)
class VolumeFiles:
    """The folder of the test files on `place`, beside the clone. `name` is that of all of the backend."""

    place: Place
    name: str

    @property
    def folder(self) -> str:
        """The folder that holds them."""
        return f"{self.place.folder}/{self.name}.fileio"

    def settings(self, part: Matrix | FsyncMatrix, volume: str) -> FileioSettings | FsyncSettings:
        """Return the settings with which `volume` is measured here."""
        here = {"directory": self.folder, "volume": volume}
        if isinstance(part, FsyncMatrix):
            return FsyncSettings.model_validate(part.model_dump() | here)
        return FileioSettings.model_validate(part.model_dump(include=set(Matrix.model_fields)) | here)

    def make(self) -> Command:
        """Make it; where there is a link in its place, nothing is made."""
        return Command("make a folder of the lab's own", ("mkdir", "--", self.folder))

    def remove(self) -> Command:
        """Remove it, with whatever is in it."""
        words = ("sh", "-c", _REMOVE, "sh", self.folder)
        return Command("remove that folder", words, timeout_s=_MOST_S, until_s=_BUSY_S)

    async def find(self, machine: Machine, backend: str) -> list[Remains]:
        """Return what a crash left of them. Looks only. Raises MachineError."""
        words = ["find", self.folder, "-maxdepth", "0", "-type", "d"]
        if not (await machine.run(words, check=False)).out:
            return []
        return [Remains(f"the test files in {self.folder}", backend, (self.remove(),))]

    def looks(self) -> list[Look]:
        """Return what is to be looked at before they are made; nothing of a disk that is still to be made."""
        if self.place.size_bytes is not None:
            return []
        problem = f"fileio: {self.place.folder} cannot be written into"
        return [Look(problem, ("sh", "-c", '[ ! -d "$1" ] || [ -w "$1" ]', "sh", self.place.folder))]
