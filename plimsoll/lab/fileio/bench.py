"""What measures a volume, cell by cell: a program, and its files in a folder of its own below a directory."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import AfterValidator, Field

from plimsoll.lab.disks.disk import Place
from plimsoll.lab.errors import LabError
from plimsoll.lab.machine import CommandResult, Machine
from plimsoll.lab.names import StrictModel
from plimsoll.lab.steps.step import Check, Command, Remains
from plimsoll.rundir.volumes import AnyCell

SLOWEST_BYTES_PER_S = 1 << 20  # the slowest that files may be written


class Case(Protocol):
    """A cell that is to be measured."""

    @property
    def says(self) -> str:
        """What is measured, in words."""


C = TypeVar("C", bound=Case)


class Bench(ABC, Generic[C]):
    """A program with its settings. All commands are lists of arguments, and all methods are pure."""

    program: str  # also the name of its package
    folder: str  # holds no other files, so nobody else's file is touched
    directory: str  # the folder on the volume, which `folder` lies in
    needed_bytes: int

    @abstractmethod
    def most_s(self, case: C) -> float:
        """Return the seconds that a cell takes at most, files that it writes itself included."""

    @abstractmethod
    def files(self) -> list[str] | None:
        """Return the command that writes files before the first cell; None: each cell writes its own."""

    def cuts_off(self, case: C) -> bool:
        """Return whether a cell leaves files that are shorter than the next one expects."""
        return False

    @abstractmethod
    def run(self, case: C) -> list[str]:
        """Return the command that measures a cell."""

    @abstractmethod
    def cell(self, case: C, printed: str) -> AnyCell:
        """Return the cell that the command printed. Raises FileioError."""

    @abstractmethod
    def complaint(self, done: CommandResult) -> str:
        """Return the program's own error; empty where it gave none."""

    @abstractmethod
    def clean_up(self) -> list[list[str]]:
        """Return the commands that remove the files and then the folder, unless it holds something else."""

    def make_folder(self) -> list[str]:
        """Return the command that makes the folder, and fails where there is one."""
        return ["mkdir", "--", self.folder]

    def is_folder(self) -> list[str]:
        """Return the command that prints something only if it is one, and no symbolic link to one."""
        return ["find", self.folder, "-maxdepth", "0", "-type", "d"]

    def free_bytes(self) -> list[str]:
        """Return the command that prints the space left."""
        return ["df", "--output=avail", "--block-size=1", "--", self.directory]


def is_read_only(command: Sequence[str]) -> bool:
    """Return whether a command of fileio, also of one that joins a control group first, changes nothing."""
    return not {"find", "df"}.isdisjoint(command)


class FileioError(LabError):
    """A cell could not be measured, or where it should be measured is not fit for it."""


def _absolute(value: str) -> str:
    if not value.startswith("/") or "\0" in value:
        raise ValueError("must be an absolute path, such as /srv/data")
    return value


AbsolutePath = Annotated[str, AfterValidator(_absolute)]


class OnVolume(StrictModel):
    """The volume that is measured."""

    directory: AbsolutePath = Field(description="Folder on the volume to be measured.")
    volume: str = Field(
        "", max_length=200, description="Name of the volume in the table. Default: the folder."
    )

    @property
    def name(self) -> str:
        """The volume's name in the table."""
        return self.volume or self.directory


def refuse_repeats(value: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `value` if it names nothing twice. Raises ValueError."""
    if len(set(value)) != len(value):
        raise ValueError("must not name anything twice")
    return value


_MOST_S = 3600.0  # to remove files from a slow disk
_BUSY_S = 30.0
# Not followed where it is a symbolic link, not left where something is mounted in it.
_REMOVE = '[ -L "$1" ] || [ ! -e "$1" ] || rm -rf --one-file-system -- "$1"'


@dataclass(frozen=True)
class VolumeFolder:
    """A folder of the lab's own on `place`, beside the clone. `name` is that of all of the backend.

    `key` of lab.yml is what it is for; `holds` says what is in it.
    """

    key: ClassVar[str]
    suffix: ClassVar[str]
    holds: ClassVar[str]

    place: Place
    name: str

    @property
    def folder(self) -> str:
        """The folder's path."""
        return f"{self.place.folder}/{self.name}.{self.suffix}"

    def make(self) -> Command:
        """Make it; where there is a link in its place, nothing is made."""
        return Command("make a folder of the lab's own", ("mkdir", "--", self.folder))

    def remove(self) -> Command:
        """Remove it, with whatever is in it."""
        words = ("sh", "-c", _REMOVE, "sh", self.folder)
        return Command(f"remove {self.holds}", words, timeout_s=_MOST_S, until_s=_BUSY_S)

    async def find(self, machine: Machine, backend: str) -> list[Remains]:
        """Return what a crash left of it. Looks only. Raises MachineError."""
        words = ["find", self.folder, "-maxdepth", "0", "-type", "d"]
        if not (await machine.run(words, check=False)).out:
            return []
        return [Remains(f"{self.holds} in {self.folder}", backend, (self.remove(),))]

    def checks(self) -> list[Check]:
        """Return what must hold before it is made; nothing of a disk that is still to be made."""
        if self.place.size_bytes is not None:
            return []
        problem = f"{self.key}: {self.place.folder} cannot be written into"
        return [Check(problem, ("sh", "-c", '[ ! -d "$1" ] || [ -w "$1" ]', "sh", self.place.folder))]
