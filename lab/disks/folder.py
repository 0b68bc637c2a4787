"""A folder on disks that exist."""

from lab.clones.clone import Found
from lab.disks.settings import FolderDisk
from lab.machine import Machine
from lab.place import Place
from lab.steps import Command, Step

COLD = (
    Command("write everything out", ("sync",), timeout_s=600),
    Command("forget what is cached", ("tee", "/proc/sys/vm/drop_caches"), stdin="3\n", timeout_s=600),
)


class Folder:
    """A Disk: nothing is made, and nothing removed."""

    def __init__(self, settings: FolderDisk) -> None:
        self._settings = settings

    def place(self) -> Place:
        """Return what lab.yml says. The pool may hold other things, so it is not imported anew."""
        said = self._settings
        filesystem = "zfs" if said.dataset else "btrfs" if said.btrfs else "plain"
        return Place(said.path, filesystem, said.dataset, said.devices, cold=COLD)

    def create(self) -> list[Step]:
        """See that it is there, and that it is what lab.yml says."""
        said = self._settings
        steps: list[Step] = [
            Command("see that the folder is there", ("test", "-d", said.path)),
        ]
        if said.dataset:
            mounted = ("sh", "-c", _IS_MOUNTED, "sh", said.dataset, said.path)
            steps.append(Command("see that the dataset is mounted there", mounted))
        if said.btrfs:
            subvolume = ("btrfs", "filesystem", "df", said.path)
            steps.append(Command("see that it is on Btrfs", subvolume))
        return steps

    def limit(self) -> list[Step]:
        """Leave it as it is."""
        return []

    def destroy(self) -> list[Step]:
        """Leave it as it is."""
        return []

    async def find(self, machine: Machine) -> list[Found]:
        """Find nothing: none of it is ours."""
        return []


_IS_MOUNTED = """[ "$(zfs get mountpoint "$1" | awk 'NR == 2 { print $3 }')" = "$2" ] || {
    echo "the dataset $1 is not mounted at $2: say with path where it is" >&2; exit 1
}"""
