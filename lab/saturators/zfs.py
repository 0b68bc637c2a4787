"""Saturator `zfs-send`: its settings, command lines and progress, of OpenZFS 2.x and of zfs-fuse."""

import re
from typing import Literal

from pydantic import Field

from lab.disks.place import DataLocation
from lab.machine import Line, Machine
from lab.names.snapshots import is_own_snapshot, own_name, snapshot_name
from lab.names.storage import DatasetName, checked_dataset
from lab.saturators.kind import CLONE, SaturatorKind
from lab.saturators.runner import OnEvent
from lab.saturators.send_loop import SendLoop
from lab.saturators.sinks import RemoteSink, SendSettings, sink_looks
from lab.steps.look import Look, is_dataset

# Once a second with -v -P: time, bytes so far, snapshot; at -vv blocks stand behind the bytes.
_PROGRESS = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}\t([0-9]{1,18})(?:\t[0-9]{1,18})?\t[^\t]+", re.ASCII)
_SIZE = re.compile(r"size\t([0-9]{1,18})", re.ASCII)

# Only OpenZFS since 0.8 knows it; zfs-fuse, which knows neither -P nor this kind of -v, fails.
IS_OPENZFS = ("zfs", "version")


class ZfsSend(SendSettings):
    """`zfs send` of one dataset."""

    kind: Literal["zfs-send"] = Field(description="`zfs-send`.")
    dataset: DatasetName | Literal["@clone"] = Field(
        CLONE, description="Dataset to send. Default: the clone's."
    )

    def model_post_init(self, _: object) -> None:
        """Check that what receives is a dataset."""
        if isinstance(self.sink, RemoteSink):
            checked_dataset(self.sink.into)


class _ZfsSendOfParts(ZfsSend):
    """`zfs send` of a clone whose data are on several datasets; no kind of lab.yml."""

    below: tuple[DatasetName, ...]


def progress_bytes(line: str) -> int | None:
    """Return the bytes sent so far, from a line of `zfs send -v -P`; None if it is another line."""
    found = _PROGRESS.fullmatch(line)
    return int(found[1]) if found else None


def estimated_bytes(line: str) -> int | None:
    """Return the bytes that are going to be sent, which `-v -P` prints first; None on another line."""
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
    """The commands that send a dataset, and those `below` it; see send_loop.SnapshotCommands.

    Not `zfs send -R`: that sends every older snapshot too, also the one that a clone is put back to.
    """

    def __init__(self, settings: ZfsSend, label: str, openzfs: bool, within: str = "") -> None:
        """`openzfs`: whether it knows -P; `within`: the dataset that is sent before, which this is below."""
        self._settings, self._label, self._openzfs, self._within = settings, label, openzfs, within
        names = settings.below if isinstance(settings, _ZfsSendOfParts) else ()
        said = ZfsSend.model_validate(settings.model_dump(exclude={"below"}))
        self.below = [
            ZfsSource(said.model_copy(update={"dataset": name}), label, openzfs, settings.dataset)
            for name in names
        ]

    def listing(self) -> list[str]:
        """Return the command that lists the dataset's snapshots."""
        return ["zfs", "list", "-H", "-t", "snapshot", "-o", "name", "-r", self._settings.dataset]

    def own(self, list_output: str) -> list[str]:
        """Return the names that are this saturator's."""
        return leftovers(list_output, self._settings.dataset, self._label)

    def snapshot(self, number: int) -> list[str]:
        """Return the command that makes a snapshot, at one instant of all that is sent."""
        return ["zfs", "snapshot", *(["-r"] if self.below else []), self.name(number)]

    def destroy(self, name: str) -> list[str]:
        """Return the command that destroys one snapshot, without -r. Raises ValueError for a foreign one."""
        if self.own(name) != [name]:
            raise ValueError(f"{name} is not a snapshot of this experiment")
        return ["zfs", "destroy", name]

    def send(self, number: int, previous: int | None) -> list[str]:
        """Return the command that sends a snapshot, or what is new in it since `previous`."""
        say = ["-v", "-P"] if self._openzfs else []
        since = [] if previous is None else ["-i", self.name(previous)]
        return ["zfs", "send", *say, *since, self.name(number)]

    def receive(self) -> list[str] | None:
        """Return the command that a remote sink runs."""
        return ["zfs", "receive", "-F", "-u", self._received()] if self._remote else None

    def forget(self) -> list[list[str]]:
        """Return the commands by which a remote sink destroys the dataset that it received, and no other."""
        return [["zfs", "destroy", "-r", self._received()]] if self._remote else []

    def name(self, number: int) -> str:
        """Return a snapshot's name."""
        return f"{self._settings.dataset}@{snapshot_name(self._label, number)}"

    @property
    def _remote(self) -> RemoteSink | None:
        return self._settings.sink if isinstance(self._settings.sink, RemoteSink) else None

    def _received(self) -> str:
        further = self._settings.dataset.removeprefix(self._within) if self._within else ""
        return f"{self._remote.into if self._remote else ''}/{own_name(self._label)}{further}"


class Figures:
    """The bytes that `zfs send -v -P` itself reports."""

    def __init__(self) -> None:
        self.estimate_bytes = 0

    def read(self, line: Line) -> int | None:
        """Return the bytes sent so far, None where the line is none of these figures."""
        if line.stream != "err":
            return None
        if (estimate := estimated_bytes(line.text)) is not None:
            self.estimate_bytes = estimate
            return 0
        return progress_bytes(line.text)


class _ZfsLoop(SendLoop):
    def __init__(self, machine: Machine, settings: ZfsSend, label: str, on_event: OnEvent) -> None:
        super().__init__(machine, settings, label, on_event, ZfsSource(settings, label, openzfs=False))
        self._zfs = settings

    async def _prepare(self) -> None:
        if (await self.machine.run(IS_OPENZFS, check=False)).status == 0:
            self.source = ZfsSource(self._zfs, self.label, openzfs=True)
            self.figures = Figures
        await super()._prepare()


def _aimed(settings: ZfsSend, at: DataLocation) -> ZfsSend:
    if settings.dataset != CLONE:
        return settings
    if not at.dataset:
        raise ValueError("dataset: is missing: the lab knows no ZFS dataset under this clone; name one")
    if at.part_of:
        update = {"dataset": at.dataset, "below": tuple(at.part_of)}
        return _ZfsSendOfParts.model_validate(settings.model_dump() | update)
    return settings.model_copy(update={"dataset": at.dataset})


def _processes(settings: ZfsSend) -> int:
    below = settings.below if isinstance(settings, _ZfsSendOfParts) else ()
    return settings.rounds * (1 + len(below))


def _looks(settings: ZfsSend) -> list[Look]:
    named = [] if settings.dataset == CLONE else [is_dataset("saturator.dataset", settings.dataset)]
    return [*named, *sink_looks(settings.sink)]


ZFS_SEND = SaturatorKind(
    "zfs-send",
    ZfsSend,
    _ZfsLoop,
    aim=_aimed,
    programs=frozenset({"python3", "zfs"}),
    questions=(IS_OPENZFS,),
    rounds=_processes,
    looks=_looks,
)
