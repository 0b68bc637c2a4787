"""What measures a volume, cell by cell: a program, and its files in a folder of its own below a directory."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, Generic, Protocol, TypeVar

from pydantic import AfterValidator, Field

from plimsoll.lab.errors import LabError
from plimsoll.lab.machine import CommandResult
from plimsoll.lab.names import StrictModel
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
