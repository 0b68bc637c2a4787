"""Saturator `zfs-send`: a dataset is sent again and again.

What all share that send datasets stands here too: settings, commands, progress (OpenZFS 2.x, zfs-fuse).
"""

import re
from typing import Literal, TypeVar

from pydantic import Field, PrivateAttr

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Line, Machine
from plimsoll.lab.names import DatasetName, checked_dataset, is_own_snapshot, own_name, snapshot_name
from plimsoll.lab.saturators.saturator import CLONE, OnEvent, SaturatorKind
from plimsoll.lab.saturators.send import SendLoop, SendSettings, StreamSettings
from plimsoll.lab.saturators.sinks import LocalSink, Receiver, RemoteSink, at_receiver, sink_checks
from plimsoll.lab.steps.step import Check, Command, Remains, is_dataset

# Once a second with -v -P: time, bytes so far, snapshot; at -vv blocks stand behind the bytes.
_PROGRESS = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}\t([0-9]{1,18})(?:\t[0-9]{1,18})?\t[^\t]+", re.ASCII)
_SIZE = re.compile(r"size\t([0-9]{1,18})", re.ASCII)
# Only OpenZFS since 0.8 knows it; zfs-fuse, which knows neither -P nor this kind of -v, fails.
IS_OPENZFS = ("zfs", "version")
# Destroys the dataset $1 that was received, and no other; what still receives it may be about to end.
_FORGET = """# zfs destroy -r what was received
for _ in $(seq 20); do
    zfs list -H -o name "$1" >/dev/null 2>&1 || exit 0
    ! zfs destroy -r "$1" || exit 0
    sleep 1
done
exit 1"""


class ZfsStream(StreamSettings):
    """The settings of what sends a dataset."""

    dataset: DatasetName | Literal["@clone"] = Field(
        CLONE,
        description="Dataset to send, without those below it. Default: the clone's, with those of its parts.",
    )
    _below: tuple[str, ...] = PrivateAttr(())

    def model_post_init(self, _: object) -> None:
        """Check that what receives is a dataset, and none that is sent."""
        if isinstance(self.sink, LocalSink | RemoteSink):
            checked_dataset(self.sink.into)
        _see_outside(self)

    @property
    def below(self) -> tuple[str, ...]:
        """The datasets below it that are sent too: parts of a clone. No key of lab.yml."""
        return self._below


def _see_outside(settings: ZfsStream) -> None:
    """Raise ValueError where it would be received into what is sent."""
    sink, sent = settings.sink, settings.dataset
    if isinstance(sink, LocalSink) and f"{sink.into}/".startswith(f"{sent}/"):
        raise ValueError(
            f"sink.into: {sink.into} lies in what is sent, {sent}: name a dataset outside of it, on another "
            "pool"
        )


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
    """The commands that send a dataset, and those `below` it; see send.SnapshotCommands.

    Not `zfs send -R`: that sends every older snapshot too, also the one that a clone is put back to.
    """

    def __init__(self, settings: ZfsStream, label: str, openzfs: bool, within: str = "") -> None:
        """`openzfs`: whether it knows -P; `within`: the dataset that is sent before, which this is below."""
        self._settings, self._label, self._openzfs, self._within = settings, label, openzfs, within
        self.below = [
            ZfsSource(sending(settings, name, ()), label, openzfs, settings.dataset)
            for name in settings.below
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
        """Return the command that receives, where a sink does."""
        return ["zfs", "receive", "-F", "-u", self.received()] if self._receiver else None

    def prune(self, number: int) -> list[list[str]]:
        """Return the commands that destroy one snapshot where it was received."""
        name = f"{self.received()}@{snapshot_name(self._label, number)}"
        return [["zfs", "destroy", name]] if self._receiver else []

    def forget(self) -> list[list[str]]:
        """Return the commands that destroy the dataset that was received, and no other."""
        return [["sh", "-c", _FORGET, "sh", self.received()]] if self._receiver else []

    def name(self, number: int) -> str:
        """Return a snapshot's name."""
        return f"{self._settings.dataset}@{snapshot_name(self._label, number)}"

    def received(self) -> str:
        """Return the dataset that a sink makes of it."""
        further = self._settings.dataset.removeprefix(self._within) if self._within else ""
        return f"{self._receiver.into if self._receiver else ''}/{own_name(self._label)}{further}"

    @property
    def _receiver(self) -> Receiver | None:
        sink = self._settings.sink
        return sink if isinstance(sink, LocalSink | RemoteSink) else None


class ZfsProgress:
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


class ZfsLoop(SendLoop):
    """A Saturator that sends datasets."""

    def __init__(self, machine: Machine, settings: ZfsStream, label: str, on_event: OnEvent) -> None:
        super().__init__(machine, settings, label, on_event, ZfsSource(settings, label, openzfs=False))
        self._zfs = settings

    async def _prepare(self) -> None:
        if (await self.machine.run(IS_OPENZFS, check=False)).status == 0:
            self.source = ZfsSource(self._zfs, self.label, openzfs=True)
            self.figures = ZfsProgress
        await super()._prepare()


Stream = TypeVar("Stream", bound=ZfsStream)


def sending(settings: Stream, dataset: str, below: tuple[str, ...]) -> Stream:
    """Return `settings` for this dataset, and those `below` it."""
    pointed = settings.model_copy(update={"dataset": dataset})
    pointed._below = below
    return pointed


def aim_at_clone(settings: Stream, at: DataLocation) -> Stream:
    """Return `settings` for the clone's datasets unless they name one. Raises ValueError."""
    if settings.dataset != CLONE:
        return settings
    if not at.dataset:
        raise ValueError("dataset: is missing: the lab knows no ZFS dataset under this clone; name one")
    pointed = sending(settings, at.dataset, tuple(at.part_of))
    _see_outside(pointed)
    return pointed


def processes(settings: ZfsStream) -> int:
    """Return how many processes it starts until every kind of command was run."""
    return settings.rhythm.rounds * (1 + len(settings.below))


def stream_checks(settings: ZfsStream) -> list[Check]:
    """Return what must hold before a dataset is sent."""
    named = [] if settings.dataset == CLONE else [is_dataset("saturator.dataset", settings.dataset)]
    return [*named, *sink_checks(settings.sink, of_zfs=True)]


_MOST_S = 600.0
_SSH_FAILED = 255
# Ends with 0 where the dataset $1 is there, with 1 where it is not, or no ZFS.
_IS_THERE = 'zfs list -H -o name "$1" >/dev/null 2>&1 || exit 1'


async def find_stream_remains(
    machine: Machine, settings: ZfsStream, label: str, backend: str
) -> list[Remains]:
    """Return the snapshots of a dataset that is not the lab's, and the dataset that was received.

    Looks only, by name. A receiver that cannot be asked counts: what it has is found when it can be.
    Raises MachineError.
    """
    source = ZfsSource(settings, label, openzfs=False)
    found = []
    for one in [source, *source.below]:
        dataset = one.listing()[-1]
        # A clone's snapshots go with the clone.
        if not dataset.startswith("@") and own_name(label) not in dataset.split("/"):
            found += await _snapshots(machine, one, dataset, backend)
    return found + await _find_received(machine, settings, source, backend)


async def _snapshots(machine: Machine, source: ZfsSource, dataset: str, backend: str) -> list[Remains]:
    names = source.own((await machine.run(source.listing(), check=False, timeout_s=_MOST_S)).out)
    destroy = (Command("destroy it", tuple(source.destroy(name)), timeout_s=_MOST_S) for name in names)
    return [
        Remains(f"the snapshot {name}", backend, (step,)) for name, step in zip(names, destroy, strict=True)
    ]


async def _find_received(
    machine: Machine, settings: ZfsStream, source: ZfsSource, backend: str
) -> list[Remains]:
    sink = settings.sink
    if not isinstance(sink, LocalSink | RemoteSink):
        return []
    name, where = source.received(), f" on {sink.host}" if isinstance(sink, RemoteSink) else ""
    look = at_receiver(sink, ["sh", "-c", _IS_THERE, "sh", name])
    status = (await machine.run(look, check=False)).status
    if status not in (0, _SSH_FAILED):
        return []
    what = f"the dataset {name}{where}" + (", or not: it cannot be asked" if status else "")
    steps = tuple(
        Command("destroy what was received", tuple(at_receiver(sink, words)), timeout_s=_MOST_S)
        for words in source.forget()
    )
    return [Remains(what, backend, steps)]


class ZfsSend(SendSettings, ZfsStream):
    """`zfs send` of one dataset."""

    kind: Literal["zfs-send"] = Field(description="`zfs-send`.")


ZFS_SEND = SaturatorKind(
    "zfs-send",
    ZfsSend,
    ZfsLoop,
    aim=aim_at_clone,
    programs=frozenset({"python3", "zfs"}),
    questions=(IS_OPENZFS,),
    rounds=processes,
    checks=stream_checks,
    find=find_stream_remains,
)
