"""The filling of a volume: a folder on a backend's disk beside the clone; its file stays in the runs.

On disks that exist it also outlives a kill -9, so that it need not be written again: `whole` in it holds the
name of the filling, and is written last. A disk that the lab makes is made anew, and with it the filling.
"""

from dataclasses import dataclass

from plimsoll.lab.disks.place import Place
from plimsoll.lab.errors import LabError
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Look, Remains

LEAST_BYTES = 32 << 20  # that are worth being overwritten
_WHOLE_MIB = 1 << 20
_MOST_S = 3600.0  # to remove files from a slow disk
_BUSY_S = 30.0
# Not followed where it is a symbolic link, not left where something is mounted in it.
_REMOVE = '[ -L "$1" ] || [ ! -e "$1" ] || rm -rf --one-file-system -- "$1"'
# A Btrfs that copies on write keeps what is overwritten until all of an extent is: twice the room, and more.
_IN_PLACE = 'mkdir -- "$1" && chattr +C "$1"'
_NAME = 'cat -- "$1/whole" 2>/dev/null && stat -c %s -- "$1/data"'


@dataclass(frozen=True)
class Filling:
    """The folder on `place`. `name` is that of all of the backend."""

    place: Place
    name: str

    @property
    def folder(self) -> str:
        """The folder that holds it."""
        return f"{self.place.folder}/{self.name}.filling"

    @property
    def direct(self) -> bool:
        """Whether it is written past the page cache. ZFS has a cache of its own, and old ones refuse."""
        return self.place.filesystem != "zfs"

    def make(self) -> Command:
        """Make the folder; where there is a link in its place, nothing is made."""
        if self.place.filesystem == "btrfs":
            return Command(
                "make a folder that is overwritten in place", ("sh", "-c", _IN_PLACE, "sh", self.folder)
            )
        return Command("make a folder of the lab's own", ("mkdir", "--", self.folder))

    def mark(self, filling: str) -> Command:
        """Note that it is whole, and that `filling` is its name."""
        return Command("note that it is whole", ("tee", "--", f"{self.folder}/whole"), stdin=f"{filling}\n")

    def remove(self) -> Command:
        """Remove it, whole or in part."""
        words = ("sh", "-c", _REMOVE, "sh", self.folder)
        return Command("remove the filling", words, timeout_s=_MOST_S, until_s=_BUSY_S)

    def room(self) -> list[str]:
        """Return the command that prints two numbers of bytes: those in use, and those that are free."""
        if self.place.pool:
            return ["zfs", "get", "-H", "-p", "-o", "value", "used,available", self.place.pool]
        return ["df", "--output=used,avail", "--block-size=1", "--", self.place.folder]

    def free(self) -> list[str]:
        """Return the command that prints the bytes that are free for it: a quota may leave it less."""
        return ["df", "--output=avail", "--block-size=1", "--", self.place.folder]

    async def whole(self, machine: Machine) -> tuple[str, int] | None:
        """Return the name and the bytes of a filling that is there, and whole. Raises MachineError."""
        said = (await machine.run(["sh", "-c", _NAME, "sh", self.folder], check=False)).out.split()
        return (said[0], int(said[1])) if len(said) == 2 and said[1].isdecimal() else None

    async def find(self, machine: Machine, backend: str) -> list[Remains]:
        """Return what is there of it, on a disk that is not removed with it. Raises MachineError."""
        if self.place.size_bytes is not None:
            return []
        words = ["find", self.folder, "-maxdepth", "0", "-type", "d"]
        if not (await machine.run(words, check=False)).out:
            return []
        return [Remains(f"the filling in {self.folder}", backend, (self.remove(),))]

    def looks(self) -> list[Look]:
        """Return what is to be looked at before it is made; nothing of a disk that is still to be made."""
        if self.place.size_bytes is not None:
            return []
        problem = f"precondition: {self.place.folder} cannot be written into"
        return [Look(problem, ("sh", "-c", '[ ! -d "$1" ] || [ -w "$1" ]', "sh", self.place.folder))]


def numbers(printed: str) -> list[int]:
    """Return the whole numbers in what a command printed. Pure."""
    return [int(word) for word in printed.split() if word.isdecimal()]


def filling_bytes(percent: int, used_bytes: int, free_bytes: int, sharing: int) -> int:
    """Return how much to write so that `percent` of a volume is full, in whole MiB; 0 or less: it is.

    `sharing`: so many fillings are still to be made on it, of which this is one. Pure.
    """
    lacking = percent * (used_bytes + free_bytes) // 100 - used_bytes
    return lacking // sharing // _WHOLE_MIB * _WHOLE_MIB


def check_size(size_bytes: int, free_bytes: int, percent: int) -> None:
    """See that a filling of `size_bytes` is worth it and fits. Raises LabError."""
    if size_bytes < LEAST_BYTES:
        raise LabError(
            f"precondition.fill_percent: the volume is {percent} % full already, or nearly: raise it, or "
            "make room"
        )
    if size_bytes > free_bytes:
        raise LabError(
            f"precondition.fill_percent: {size_bytes >> 20} MiB are to be written and {free_bytes >> 20} MiB "
            "are free for them: lower it, or raise the quota"
        )
