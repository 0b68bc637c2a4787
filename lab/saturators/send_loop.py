"""Snapshot, send, destroy the snapshot, again and again: the same for ZFS and Btrfs."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from lab.machine import Line, Machine
from lab.saturators.pace_command import paced, paced_total, ram_file
from lab.saturators.runner import OnEvent, Runner, at_least
from lab.saturators.sinks import NullSink, RamDiskSink, RemoteSink, SendSettings, over_ssh

_BUSY_TIMES = 5
_SEND_S = 600.0  # for a command during a send: a busy pool answers late


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
    def forget(self) -> list[list[str]]: ...  # noqa: D102
    def name(self, number: int) -> str: ...  # noqa: D102


class SenderFigures(Protocol):
    """Reads the bytes that a sender itself reports."""

    estimate_bytes: int  # of the whole stream, as announced before it; 0 where it was not

    def read(self, line: Line) -> int | None: ...  # noqa: D102


class SendLoop(Runner):
    """A Saturator that sends."""

    figures: Callable[[], SenderFigures] | None = None  # None: the sender prints none, so the copier counts

    def __init__(
        self,
        machine: Machine,
        settings: SendSettings,
        label: str,
        on_event: OnEvent,
        source: SnapshotCommands,
    ) -> None:
        super().__init__(machine, settings.kind, settings.retries, on_event)
        self.settings, self.label, self.source = settings, label, source
        self._number = 0
        self._previous: int | None = None

    async def _prepare(self) -> None:
        await self._clean()

    async def _once(self) -> None:
        incremental = self.settings.mode == "incremental"
        await at_least(1.0 if incremental else 0.0, self._round(incremental))

    async def _round(self, incremental: bool) -> None:
        self._number += 1
        number, previous, self._previous = self._number, self._previous, None
        if previous is None:
            await self._clean()  # also what a failed round left; a full stream needs an empty place
        await self.machine.run(self.source.snapshot(number), timeout_s=_SEND_S)
        for source in self._sources:
            await self._send(source, number, previous)
        done = previous if incremental else number
        if done is not None:
            for source in self._sources:
                await self._destroy(source, source.name(done))
        self._previous = number if incremental else None

    @property
    def _sources(self) -> list[SnapshotCommands]:
        return [self.source, *self.source.below]

    async def _send(self, source: SnapshotCommands, number: int, previous: int | None) -> None:
        command = source.send(number, previous)
        sink = self.settings.sink
        if self.figures and isinstance(sink, NullSink) and not self.settings.rate_bytes_per_s:
            # No copier: nothing is between the disks and the sink.
            spoken = self.figures()
            straight = ["sh", "-c", 'exec "$@" >/dev/null', "sh", *command]
            await self._follow(straight, spoken.read, lambda: spoken.estimate_bytes)
            return
        rate = self.settings.rate_bytes_per_s
        whole = paced(command, sink, rate, self.label, source.receive())
        await self._follow(whole, self._copied)

    def _copied(self, line: Line) -> int | None:
        """Return the bytes that the copier counted; 0 for the sender's figures, which are no error."""
        if line.stream == "out":
            return paced_total(line.text)
        is_figure = self.figures is not None and self.figures().read(line) is not None
        return 0 if is_figure else None

    async def _clean(self) -> None:
        listed = await self.machine.run(self.source.listing(), timeout_s=_SEND_S)
        for source in self._sources:
            for name in source.own(listed.out):
                await self._destroy(source, name)
        sink = self.settings.sink
        if isinstance(sink, RamDiskSink):
            await self.machine.run(["rm", "-f", "--", ram_file(sink, self.label)])
        if isinstance(sink, RemoteSink):
            for command in self.source.forget():  # fails where there is nothing to forget
                await self.machine.run(over_ssh(sink, command), timeout_s=_SEND_S, check=False)

    async def _destroy(self, source: SnapshotCommands, name: str) -> None:
        """Destroy a snapshot of the lab; for a moment after a send was stopped it can still be busy."""
        for _ in range(_BUSY_TIMES):
            if not (await self.machine.run(source.destroy(name), timeout_s=_SEND_S, check=False)).status:
                return
            await asyncio.sleep(self.retry_s)
        await self.machine.run(source.destroy(name), timeout_s=_SEND_S)
