"""Snapshot, send, destroy the snapshot, again and again: the same for ZFS and Btrfs."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from pydantic import Field

from plimsoll.common.validation import Size
from plimsoll.lab.machine import Line, Machine
from plimsoll.lab.saturators.saturator import Meter, OnEvent, Runner, SaturatorSettings, last_at_least
from plimsoll.lab.saturators.sinks import (
    LocalSink,
    NullSink,
    RamDiskSink,
    RemoteSink,
    Sink,
    at_receiver,
    copied_bytes,
    copy_to_sink_command,
    count_received_command,
    ram_file,
)


@dataclass(frozen=True)
class Rhythm:
    """When to send, and what: all of a snapshot each time, or what is new in it.

    `every_s`: seconds from the start of a round to the start of the next, if it is over by then.
    `keep`: snapshots that stay after a round, on both ends; an increment needs 1 to begin from.
    """

    incremental: bool
    every_s: float
    keep: int

    @property
    def rounds(self) -> int:
        """Sends until every kind of command was run: the oldest snapshot goes once there are too many."""
        return self.keep + 1


class StreamSettings(SaturatorSettings):
    """The settings of all that send snapshots."""

    sink: Sink = Field(
        NullSink(),
        description="Where the stream goes: `null` (in quotes: without them, YAML reads no value), "
        "`ramdisk`, "
        "`local` or `remote`. Default: `null`.",
    )
    rate_bytes_per_s: Annotated[Size, Field(ge=1)] | None = Field(
        None, description="Limit for the stream, in bytes a second. Default: none."
    )

    @property
    def rhythm(self) -> Rhythm:
        """When to send, and what."""
        return Rhythm(incremental=False, every_s=0, keep=0)


class SendSettings(StreamSettings):
    """The settings that `zfs send` and `btrfs send` share."""

    mode: Literal["full", "incremental"] = Field(
        "full",
        description="`full`, or `incremental`: one full send, then only the changes since the last one.",
    )

    @property
    def rhythm(self) -> Rhythm:
        """Again and again; a round of a quiet dataset takes a second, so that it does not spin."""
        return super().rhythm if self.mode == "full" else Rhythm(incremental=True, every_s=1, keep=1)


class SnapshotCommands(Protocol):
    """The commands that send: lists of arguments.

    `below`: what is sent after it, each by a command of its own, of the very same snapshot.
    """

    @property
    def below(self) -> "Sequence[SnapshotCommands]": ...  # noqa: D102
    def listing(self) -> list[str]: ...  # noqa: D102 each is described where it is written
    def own(self, list_output: str) -> list[str]: ...  # noqa: D102
    def snapshot(self, number: int) -> list[str]: ...  # noqa: D102
    def destroy(self, name: str) -> list[str]: ...  # noqa: D102
    def send(self, number: int, previous: int | None) -> list[str]: ...  # noqa: D102
    def receive(self) -> list[str] | None: ...  # noqa: D102
    def prune(self, number: int) -> list[list[str]]: ...  # noqa: D102
    def forget(self) -> list[list[str]]: ...  # noqa: D102
    def name(self, number: int) -> str: ...  # noqa: D102


class SenderProgress(Protocol):
    """Reads the bytes that a sender itself reports."""

    estimate_bytes: int  # of the whole stream, as announced before it; 0 where it was not

    def read(self, line: Line) -> int | None: ...  # noqa: D102


_BUSY_TIMES = 5
_SEND_S = 600.0  # for a command during a send: a busy pool answers late
# Not straight to /dev/null: OpenZFS 2.1 refuses that on Linux 6 (tests/fixtures/openzfs/2.1.11).
# Its status is that of the command $@, not of what reads it.
_AWAY = """{ { "$@" 3>&-; echo $? >&3; } | cat >/dev/null; } 3>&1 | {
    read -r status
    exit "${status:-1}"
}"""


class SendLoop(Runner[StreamSettings]):
    """A Saturator that sends."""

    figures: Callable[[], SenderProgress] | None = None  # None: the sender prints none, so the copier counts
    received: Meter | None = None  # what a remote sink took, where that is reported too

    def __init__(
        self,
        machine: Machine,
        settings: StreamSettings,
        label: str,
        on_event: OnEvent,
        source: SnapshotCommands,
    ) -> None:
        super().__init__(machine, settings, label, on_event)
        self.source = source
        self._number = 0
        self._kept: list[int] = []  # whole on both ends, the oldest first

    async def _once(self) -> None:
        await last_at_least(self.settings.rhythm.every_s, self._round())

    async def _round(self) -> None:
        rhythm = self.settings.rhythm
        self._number += 1
        number, kept, self._kept = self._number, self._kept, []
        if not kept:
            await self._clean()  # also what a failed round left; a full stream needs an empty place
        await self.machine.run(self.source.snapshot(number), timeout_s=_SEND_S)
        for source in self._sources:
            await self._send(source, number, kept[-1] if kept else None)
        kept = [*kept, number]
        while len(kept) > rhythm.keep:
            await self._prune(kept.pop(0))
        self._kept = kept if rhythm.incremental else []

    @property
    def _sources(self) -> list[SnapshotCommands]:
        return [self.source, *self.source.below]

    async def _send(self, source: SnapshotCommands, number: int, previous: int | None) -> None:
        command = source.send(number, previous)
        sink = self.settings.sink
        if self.figures and isinstance(sink, NullSink) and not self.settings.rate_bytes_per_s:
            # No copier that counts: as little as possible is between the disks and the sink.
            spoken = self.figures()
            await self._follow(discard_command(command), spoken.read, lambda: spoken.estimate_bytes)
            return
        rate, receive = self.settings.rate_bytes_per_s, source.receive()
        if self.received and receive and isinstance(sink, RemoteSink):
            receive = count_received_command(receive)
        try:
            await self._follow(
                copy_to_sink_command(command, sink, rate, self.label, receive), self._read_copied
            )
        finally:
            if self.received:
                self.received.next_process()

    def _read_copied(self, line: Line) -> int | None:
        """Return the bytes that the copier counted; 0 for the sender's figures, which are not errors."""
        if line.stream == "out":
            if self.received and (arrived := copied_bytes(line.text, "received")) is not None:
                self.received.now(arrived)
                return 0
            return copied_bytes(line.text)
        is_figure = self.figures is not None and self.figures().read(line) is not None
        return 0 if is_figure else None

    def _tell_bytes(self, since_ns: int, at_ns: int) -> None:
        super()._tell_bytes(since_ns, at_ns)
        if self.received:
            bytes_per_s = self.received.per_second((at_ns - since_ns) / 1e9)
            said = {"event": f"{self._kind} received bytes", "bytes_per_s": bytes_per_s, "at_ns": at_ns}
            self._on_event(said)

    async def _clean(self) -> None:
        listed = await self.machine.run(self.source.listing(), timeout_s=_SEND_S)
        for source in self._sources:
            for name in source.own(listed.out):
                await self._destroy(source, name)
        sink = self.settings.sink
        if isinstance(sink, RamDiskSink):
            await self.machine.run(["rm", "-f", "--", ram_file(sink, self.label)])
        await self._run_at_receiver(self.source.forget())

    async def _prune(self, number: int) -> None:
        """Destroy a snapshot on both ends."""
        for source in self._sources:
            await self._destroy(source, source.name(number))
            if self.settings.rhythm.incremental:
                await self._run_at_receiver(source.prune(number))

    async def _run_at_receiver(self, commands: list[list[str]]) -> None:
        """Run `commands` where the stream is received, if it is."""
        sink = self.settings.sink
        if isinstance(sink, LocalSink | RemoteSink):
            for command in commands:
                await self.machine.run(at_receiver(sink, command), timeout_s=_SEND_S)

    async def _destroy(self, source: SnapshotCommands, name: str) -> None:
        """Destroy a snapshot of the lab; for a moment after a send was stopped it can still be busy."""
        for _ in range(_BUSY_TIMES):
            if not (await self.machine.run(source.destroy(name), timeout_s=_SEND_S, check=False)).status:
                return
            await asyncio.sleep(self.retry_s)
        await self.machine.run(source.destroy(name), timeout_s=_SEND_S)


def discard_command(command: Sequence[str]) -> list[str]:
    """Return `command` with its output read and thrown away. Pure."""
    return ["sh", "-c", _AWAY, "sh", *command]
