"""Snapshot, send, destroy the snapshot, again and again: the same for ZFS and Btrfs."""

import asyncio
from typing import Protocol

from lab.machine import Line
from lab.saturators.pacing import over_ssh, paced, paced_total, ram_file
from lab.saturators.runner import Runner, at_least
from lab.saturators.settings import BtrfsSend, NullSink, RamDiskSink, RemoteSink, ZfsSend
from lab.saturators.zfs import estimated_bytes, progress_bytes

_BUSY_TIMES = 5
_SEND_S = 600.0  # for a command beside the send: a busy pool answers late


class Source(Protocol):
    """What is run to send: lists of arguments."""

    def listing(self) -> list[str]: ...  # noqa: D102 each is described where it is written
    def own(self, list_output: str) -> list[str]: ...  # noqa: D102
    def snapshot(self, number: int) -> list[str]: ...  # noqa: D102
    def destroy(self, name: str) -> list[str]: ...  # noqa: D102
    def send(self, number: int, previous: int | None) -> list[str]: ...  # noqa: D102
    def receive(self) -> list[str] | None: ...  # noqa: D102
    def forget(self) -> list[list[str]]: ...  # noqa: D102
    def name(self, number: int) -> str: ...  # noqa: D102


class Sending(Runner):
    """A Saturator that sends."""

    settings: ZfsSend | BtrfsSend
    source: Source
    label: str
    speaks: bool = False  # whether the sender says its bytes itself
    _number = 0
    _previous: int | None = None

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
        await self._send(number, previous)
        done = previous if incremental else number
        if done is not None:
            await self._destroy(self.source.name(done))
        self._previous = number if incremental else None

    async def _send(self, number: int, previous: int | None) -> None:
        command = self.source.send(number, previous)
        sink = self.settings.sink
        if self.speaks and isinstance(sink, NullSink) and not self.settings.rate_bytes_per_s:
            # Nothing needs a copier: nothing stands between the disks and the sink.
            spoken = _Spoken()
            straight = ["sh", "-c", 'exec "$@" >/dev/null', "sh", *command]
            await self._follow(straight, spoken.read, lambda: spoken.estimate_bytes)
            return
        rate = self.settings.rate_bytes_per_s
        whole = paced(command, sink, rate, self.label, self.source.receive())
        await self._follow(whole, _counted)

    async def _clean(self) -> None:
        listed = await self.machine.run(self.source.listing(), timeout_s=_SEND_S)
        for name in self.source.own(listed.out):
            await self._destroy(name)
        sink = self.settings.sink
        if isinstance(sink, RamDiskSink):
            await self.machine.run(["rm", "-f", "--", ram_file(sink, self.label)])
        if isinstance(sink, RemoteSink):
            for command in self.source.forget():  # fails where there is nothing to forget
                await self.machine.run(over_ssh(sink, command), timeout_s=_SEND_S, check=False)

    async def _destroy(self, name: str) -> None:
        """Destroy a snapshot of ours; for a moment after a send was stopped it can still be busy."""
        for _ in range(_BUSY_TIMES):
            if not (await self.machine.run(self.source.destroy(name), timeout_s=_SEND_S, check=False)).status:
                return
            await asyncio.sleep(self.retry_s)
        await self.machine.run(self.source.destroy(name), timeout_s=_SEND_S)


def _counted(line: Line) -> int | None:
    if line.stream == "out":
        return paced_total(line.text)
    # What zfs says besides is no error: it must not pass for the reason of one.
    says = progress_bytes(line.text) is not None or estimated_bytes(line.text) is not None
    return 0 if says else None


class _Spoken:
    """The bytes that zfs itself says."""

    def __init__(self) -> None:
        self.estimate_bytes = 0

    def read(self, line: Line) -> int | None:
        if line.stream != "err":
            return None
        if (estimate := estimated_bytes(line.text)) is not None:
            self.estimate_bytes = estimate
            return 0
        return progress_bytes(line.text)
