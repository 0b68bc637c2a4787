"""`btrfs send`: command lines. It reports no progress: the copier counts. Pure."""

from lab.saturators.own import is_own_snapshot, own_name, snapshot_name
from lab.saturators.settings import BtrfsSend, RemoteSink


def leftovers(list_output: str, folder: str, label: str) -> list[str]:
    """Return the snapshots of this experiment in what `listing` printed: right in this folder, no others."""
    within = folder.rstrip("/") + "/"
    return [
        path
        for path in list_output.split("\0")
        if path.startswith(within) and is_own_snapshot(path.removeprefix(within), label)
    ]


class BtrfsSource:
    """What is run to send a subvolume; see runner.Source."""

    def __init__(self, settings: BtrfsSend, label: str) -> None:
        self._settings, self._label = settings, label

    def listing(self) -> list[str]:
        """Return what lists folders that may be ours; it follows no symbolic link."""
        here = ["-mindepth", "1", "-maxdepth", "1", "-type", "d"]
        return ["find", self._settings.snapshots, *here, "-name", f"{own_name(self._label)}-*", "-print0"]

    def own(self, list_output: str) -> list[str]:
        """Return those that are ours."""
        return leftovers(list_output, self._settings.snapshots, self._label)

    def snapshot(self, number: int) -> list[str]:
        """Return what makes a snapshot."""
        return ["btrfs", "subvolume", "snapshot", "-r", self._settings.subvolume, self.name(number)]

    def destroy(self, name: str) -> list[str]:
        """Return what deletes one snapshot (no plain folder). Raises ValueError for one not ours."""
        if self.own(name) != [name]:
            raise ValueError(f"{name} is no snapshot of this experiment")
        return ["btrfs", "subvolume", "delete", name]

    def send(self, number: int, previous: int | None) -> list[str]:
        """Return what sends a snapshot, or what is new in it since `previous`."""
        since = [] if previous is None else ["-p", self.name(previous)]
        return ["btrfs", "send", "-q", *since, self.name(number)]

    def receive(self) -> list[str] | None:
        """Return what a remote sink runs: it makes snapshots of the same names."""
        remote = self._remote
        return ["btrfs", "receive", remote.into] if remote else None

    def forget(self) -> list[list[str]]:
        """Return what a remote sink runs to delete what it received."""
        remote = self._remote
        if not remote:
            return []
        only = ["-mindepth", "1", "-maxdepth", "1", "-type", "d", "-regextype", "posix-extended"]
        form = rf".*/{own_name(self._label)}-[0-9]{{6}}"
        return [
            ["find", remote.into, *only, "-regex", form, "-exec", "btrfs", "subvolume", "delete", "{}", ";"]
        ]

    def name(self, number: int) -> str:
        """Return a snapshot's path."""
        return f"{self._settings.snapshots.rstrip('/')}/{snapshot_name(self._label, number)}"

    @property
    def _remote(self) -> RemoteSink | None:
        return self._settings.sink if isinstance(self._settings.sink, RemoteSink) else None
