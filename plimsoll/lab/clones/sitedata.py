"""A clone's data: a folder, a Btrfs subvolume or ZFS datasets below a place, and as it was when created."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from plimsoll.lab.disks.disk import DataLocation, Place
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import DATABASE, WEB
from plimsoll.lab.steps.step import Command, Remains, Room, Step

_COPY_S = 6 * 3600.0
_BUSY_S = 30.0
_SNAPSHOT = "plimsoll-pristine"
# The folders of a site that each part is in; a dataset is mounted at one folder, so each has its own.
_FOLDERS = {DATABASE: ("mysql",), WEB: ("wordpress", "static", "forum")}

# $1: the folder. Not followed where it is a symbolic link, not left where something is mounted in it.
_REMOVE = '[ -L "$1" ] || [ ! -e "$1" ] || rm -rf --one-file-system -- "$1"'
_DELETE = '[ -L "$1" ] || [ ! -e "$1" ] || btrfs subvolume delete "$1"'
_DESTROY = '! zfs list -H -o name "$1" >/dev/null 2>&1 || zfs destroy -r "$1"'


@dataclass(frozen=True)
class SiteData:
    """The data of the clone called `name`, copied of the folder `golden`.

    On ZFS, `parts` of them are on datasets of their own below the clone's: properties by the part's word.
    """

    place: Place
    name: str
    golden: str
    parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict, kw_only=True)

    @property
    def folder(self) -> str:
        """The folder that holds them."""
        return f"{self.place.folder}/{self.name}"

    @property
    def data(self) -> DataLocation:
        """The location that a saturator is aimed at."""
        return DataLocation(
            self.place.folder,
            dataset=self._dataset if self.place.dataset else None,
            subvolume=self.folder if self.place.filesystem == "btrfs" else None,
            # The database may have a dataset of its own, whose sync and logbias are what it waits for.
            own=f"{self.folder}/{_FOLDERS[DATABASE][0]}" if DATABASE in self.parts else self.folder,
            parts=self._datasets_of_parts if self.place.dataset else {},
        )

    def make(self) -> list[Step]:
        """Copy them, and remember how they were where the file system can."""
        room = Room("see that there is room for the copy", self.place.folder, like=self.golden)
        copy = _command("copy the site", "cp", "-a", "--reflink=auto", "--", f"{self.golden}/.", self.folder)
        if self.place.dataset:
            recursive = ["-r"] if self.parts else []
            return [
                room,
                _command("make a dataset", "zfs", "create", self._dataset),
                _command("see that it is mounted", "mountpoint", "-q", "--", self.folder),
                *self._make_parts(),
                copy,
                _command("take a snapshot", "zfs", "snapshot", *recursive, f"{self._dataset}@{_SNAPSHOT}"),
            ]
        if self.place.filesystem == "btrfs":
            return [
                room,
                _command("make a subvolume", "btrfs", "subvolume", "create", self.folder),
                copy,
                _command(
                    "take a snapshot", "btrfs", "subvolume", "snapshot", "-r", self.folder, self._pristine
                ),
            ]
        return [room, _command("make its folder", "mkdir", "--", self.folder), copy]

    def restore(self) -> list[Step]:
        """Restore the data as they were; nothing of the clone may be running."""
        if self.place.dataset:
            rollback = ("zfs", "rollback", "-r")
            return [
                Command("roll it back", (*rollback, f"{one}@{_SNAPSHOT}"), timeout_s=_COPY_S, until_s=_BUSY_S)
                for one in (self._dataset, *self.data.part_of)
            ]
        if self.place.filesystem == "btrfs":
            return [
                *self.remove(pristine=False),
                _command(
                    "take it from the snapshot", "btrfs", "subvolume", "snapshot", self._pristine, self.folder
                ),
            ]
        return [*self.remove(), *self.make()]

    def remove(self, pristine: bool = True) -> list[Step]:
        """Remove whatever there is of the data, and with `pristine` the copy that remembers them."""
        if self.place.dataset:
            return [_removal("destroy its dataset", _DESTROY, self._dataset)]
        if self.place.filesystem == "btrfs":
            both = [self.folder, *([self._pristine] if pristine else [])]
            return [_removal("delete its subvolume", _DELETE, one) for one in both]
        return [_removal("remove its folder", _REMOVE, self.folder)]

    async def find(self, machine: Machine, backend: str) -> list[Remains]:
        """Return the remains of the data."""
        if self.place.dataset:
            listed = await machine.run(["zfs", "list", "-H", "-o", "name", self._dataset], check=False)
            there = [self._dataset] if self._dataset in listed.out.splitlines() else []
            return [Remains(f"the dataset {one}", backend, tuple(self.remove())) for one in there]
        found = []
        for folder in (self.folder, self._pristine):
            looked = await machine.run(["find", folder, "-maxdepth", "0", "-printf", "%y %i\\n"], check=False)
            kind, _, inode = looked.out.strip().partition(" ")
            if kind != "d":
                continue
            if self.place.filesystem == "btrfs" and inode == "256":  # what every subvolume's root has
                step = _removal("delete its subvolume", _DELETE, folder)
                found.append(Remains(f"the subvolume {folder}", backend, (step,)))
            elif folder == self.folder:
                found.append(
                    Remains(
                        f"the folder {folder}", backend, (_removal("remove its folder", _REMOVE, folder),)
                    )
                )
        return found

    def _make_parts(self) -> list[Step]:
        """Their mount points are inherited, so each is mounted at the folder that it is called after."""
        steps: list[Step] = []
        for part, properties in self.parts.items():
            options = [word for name, value in properties.items() for word in ("-o", f"{name}={value}")]
            for folder in _FOLDERS[part]:
                words = ("zfs", "create", *options, f"{self._dataset}/{folder}")
                mounted = ("mountpoint", "-q", "--", f"{self.folder}/{folder}")
                steps.append(_command(f"make a dataset for {part}", *words))
                steps.append(_command("see that it is mounted", *mounted))
        return steps

    @property
    def _dataset(self) -> str:
        return f"{self.place.dataset}/{self.name}"

    @property
    def _datasets_of_parts(self) -> dict[str, tuple[str, ...]]:
        return {part: tuple(f"{self._dataset}/{one}" for one in _FOLDERS[part]) for part in self.parts}

    @property
    def _pristine(self) -> str:
        return f"{self.folder}.pristine"


def _command(says: str, *words: str) -> Command:
    return Command(says, words, timeout_s=_COPY_S)


def _removal(says: str, script: str, of: str) -> Command:
    return Command(says, ("sh", "-c", script, "sh", of), timeout_s=_COPY_S, until_s=_BUSY_S)
