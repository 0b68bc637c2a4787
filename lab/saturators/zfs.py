"""`zfs send`: command lines and progress, of OpenZFS 2.x and of zfs-fuse. Pure."""

import re

from lab.saturators.own import is_own_snapshot, own_name, snapshot_name
from lab.saturators.settings import RemoteSink, ZfsSend

# Once a second with -v -P: time, bytes so far, snapshot; at -vv blocks stand behind the bytes.
_PROGRESS = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}\t([0-9]{1,18})(?:\t[0-9]{1,18})?\t[^\t]+", re.ASCII)
_SIZE = re.compile(r"size\t([0-9]{1,18})", re.ASCII)

# Only OpenZFS since 0.8 knows it; zfs-fuse, which knows neither -P nor this kind of -v, fails.
IS_OPENZFS = ["zfs", "version"]


def progress_bytes(line: str) -> int | None:
    """Return the bytes sent so far that a line of `zfs send -v -P` says; None if it says something else."""
    found = _PROGRESS.fullmatch(line)
    return int(found[1]) if found else None


def estimated_bytes(line: str) -> int | None:
    """Return how much is going to be sent, which `-v -P` says first; None on another line."""
    found = _SIZE.fullmatch(line)
    return int(found[1]) if found else None


def leftovers(list_output: str, dataset: str, label: str) -> list[str]:
    """Return the snapshots of this experiment in what `listing` printed: of this very dataset, no others."""
    found = []
    for line in list_output.splitlines():
        of, _, name = line.partition("@")
        if of == dataset and is_own_snapshot(name, label):
            found.append(line)
    return found


class ZfsSource:
    """What is run to send a dataset; see runner.Source."""

    def __init__(self, settings: ZfsSend, label: str, openzfs: bool) -> None:
        """`openzfs`: whether it knows -P."""
        self._settings, self._label, self._openzfs = settings, label, openzfs

    def listing(self) -> list[str]:
        """Return what lists the dataset's snapshots."""
        return ["zfs", "list", "-H", "-t", "snapshot", "-o", "name", "-r", self._settings.dataset]

    def own(self, list_output: str) -> list[str]:
        """Return those that are ours."""
        return leftovers(list_output, self._settings.dataset, self._label)

    def snapshot(self, number: int) -> list[str]:
        """Return what makes a snapshot."""
        return ["zfs", "snapshot", self.name(number)]

    def destroy(self, name: str) -> list[str]:
        """Return what destroys one snapshot, never with -r. Raises ValueError for one not ours."""
        if self.own(name) != [name]:
            raise ValueError(f"{name} is no snapshot of this experiment")
        return ["zfs", "destroy", name]

    def send(self, number: int, previous: int | None) -> list[str]:
        """Return what sends a snapshot, or what is new in it since `previous`."""
        say = ["-v", "-P"] if self._openzfs else []
        since = [] if previous is None else ["-i", self.name(previous)]
        return ["zfs", "send", *say, *since, self.name(number)]

    def receive(self) -> list[str] | None:
        """Return what a remote sink runs."""
        return ["zfs", "receive", "-F", "-u", self._received()] if self._remote else None

    def forget(self) -> list[list[str]]:
        """Return what a remote sink runs to destroy what it received: the dataset with our name alone."""
        return [["zfs", "destroy", "-r", self._received()]] if self._remote else []

    def name(self, number: int) -> str:
        """Return a snapshot's name."""
        return f"{self._settings.dataset}@{snapshot_name(self._label, number)}"

    @property
    def _remote(self) -> RemoteSink | None:
        return self._settings.sink if isinstance(self._settings.sink, RemoteSink) else None

    def _received(self) -> str:
        return f"{self._remote.into if self._remote else ''}/{own_name(self._label)}"
