"""Saturator `btrfs-send`: its settings and command lines. It reports no progress: the copier counts."""

from typing import Literal

from pydantic import Field

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import Folder, checked_folder, is_own_snapshot, own_name, snapshot_name
from plimsoll.lab.saturators.saturator import CLONE, OnEvent, SaturatorKind
from plimsoll.lab.saturators.send import SendLoop, SendSettings
from plimsoll.lab.saturators.sinks import LocalSink, Receiver, RemoteSink, sink_checks
from plimsoll.lab.steps.step import Check, is_folder


class BtrfsSend(SendSettings):
    """`btrfs send` of one subvolume."""

    kind: Literal["btrfs-send"] = Field(description="`btrfs-send`.")
    subvolume: Folder | Literal["@clone"] = Field(
        CLONE, description="Subvolume to send. Default: the clone's."
    )
    snapshots: Folder | Literal["@clone"] = Field(
        CLONE, description="Folder for snapshots, on the same file system. Default: the disk's."
    )

    def model_post_init(self, _: object) -> None:
        """Check that what receives is a folder."""
        if isinstance(self.sink, LocalSink | RemoteSink):
            checked_folder(self.sink.into)


def leftovers(list_output: str, folder: str, label: str) -> list[str]:
    """Return the snapshots of this experiment in what `listing` printed: right in this folder, no others."""
    within = folder.rstrip("/") + "/"
    return [
        path
        for path in list_output.split("\0")
        if path.startswith(within) and is_own_snapshot(path.removeprefix(within), label)
    ]


class BtrfsSource:
    """The commands that send a subvolume; see send.SnapshotCommands."""

    below = ()  # a snapshot of a subvolume holds none below it

    def __init__(self, settings: BtrfsSend, label: str) -> None:
        self._settings, self._label = settings, label

    def listing(self) -> list[str]:
        """Return the command that lists folders that may be the lab's; it follows no symbolic link."""
        here = ["-mindepth", "1", "-maxdepth", "1", "-type", "d"]
        return ["find", self._settings.snapshots, *here, "-name", f"{own_name(self._label)}-*", "-print0"]

    def own(self, list_output: str) -> list[str]:
        """Return the names that are this saturator's."""
        return leftovers(list_output, self._settings.snapshots, self._label)

    def snapshot(self, number: int) -> list[str]:
        """Return the command that makes a snapshot."""
        return ["btrfs", "subvolume", "snapshot", "-r", self._settings.subvolume, self.name(number)]

    def destroy(self, name: str) -> list[str]:
        """Return the command that deletes one snapshot, no folder. Raises ValueError for a foreign one."""
        if self.own(name) != [name]:
            raise ValueError(f"{name} is not a snapshot of this experiment")
        return ["btrfs", "subvolume", "delete", name]

    def send(self, number: int, previous: int | None) -> list[str]:
        """Return the command that sends a snapshot, or what is new in it since `previous`."""
        since = [] if previous is None else ["-p", self.name(previous)]
        return ["btrfs", "send", "-q", *since, self.name(number)]

    def receive(self) -> list[str] | None:
        """Return the command that receives, where a sink does: it makes snapshots of the same names."""
        receiver = self._receiver
        return ["btrfs", "receive", receiver.into] if receiver else None

    def prune(self, number: int) -> list[list[str]]:
        """Return the commands that delete one snapshot where it was received."""
        receiver = self._receiver
        if not receiver:
            return []
        path = f"{receiver.into.rstrip('/')}/{snapshot_name(self._label, number)}"
        return [["btrfs", "subvolume", "delete", path]]

    def forget(self) -> list[list[str]]:
        """Return the commands that delete what was received."""
        receiver = self._receiver
        if not receiver:
            return []
        only = ["-mindepth", "1", "-maxdepth", "1", "-type", "d", "-regextype", "posix-extended"]
        form = rf".*/{own_name(self._label)}-[0-9]{{6}}"
        return [
            ["find", receiver.into, *only, "-regex", form, "-exec", "btrfs", "subvolume", "delete", "{}", ";"]
        ]

    def name(self, number: int) -> str:
        """Return a snapshot's path."""
        return f"{self._settings.snapshots.rstrip('/')}/{snapshot_name(self._label, number)}"

    @property
    def _receiver(self) -> Receiver | None:
        sink = self._settings.sink
        return sink if isinstance(sink, LocalSink | RemoteSink) else None


def _loop(machine: Machine, settings: BtrfsSend, label: str, on_event: OnEvent) -> SendLoop:
    return SendLoop(machine, settings, label, on_event, BtrfsSource(settings, label))


def _aim(settings: BtrfsSend, at: DataLocation) -> BtrfsSend:
    if CLONE not in (settings.subvolume, settings.snapshots):
        return settings
    if not at.subvolume:
        raise ValueError(
            "subvolume, snapshots: are missing: the lab knows no Btrfs subvolume under this clone; name both"
        )
    update = {"subvolume": at.subvolume} if settings.subvolume == CLONE else {}
    update |= {"snapshots": at.folder or ""} if settings.snapshots == CLONE else {}
    return settings.model_copy(update=update)


def _checks(settings: BtrfsSend) -> list[Check]:
    keys = ("subvolume", "snapshots")
    named = [(key, value) for key in keys if (value := getattr(settings, key)) != CLONE]
    return [
        *(is_folder(f"saturator.{key}", value) for key, value in named),
        *sink_checks(settings.sink, of_zfs=False),
    ]


BTRFS_SEND = SaturatorKind(
    "btrfs-send",
    BtrfsSend,
    _loop,
    aim=_aim,
    programs=frozenset({"btrfs", "python3"}),
    rounds=lambda settings: settings.rhythm.rounds,
    checks=_checks,
)
