"""Settings become saturators."""

from lab.machine import Machine
from lab.saturators import fio
from lab.saturators.btrfs import BtrfsSource
from lab.saturators.own import checked_label
from lab.saturators.runner import OnEvent, Runner, Saturator
from lab.saturators.sending import Sending
from lab.saturators.settings import BtrfsSend, Fio, SaturatorSettings, ZfsSend
from lab.saturators.zfs import IS_OPENZFS, ZfsSource


def saturator(machine: Machine, settings: SaturatorSettings, label: str, on_event: OnEvent) -> Saturator:
    """Return what keeps the disks of `machine` busy. Raises ValueError for an unfit label."""
    checked_label(label)
    if isinstance(settings, ZfsSend):
        return _Zfs(machine, settings, label, on_event)
    if isinstance(settings, BtrfsSend):
        return _Btrfs(machine, settings, label, on_event)
    return _Fio(machine, settings, label, on_event)


class _Zfs(Sending):
    settings: ZfsSend

    def __init__(self, machine: Machine, settings: ZfsSend, label: str, on_event: OnEvent) -> None:
        super().__init__(machine, settings.kind, settings.retries, on_event)
        self.settings, self.label = settings, label
        self.source = ZfsSource(settings, label, openzfs=False)

    async def _prepare(self) -> None:
        self.speaks = (await self.machine.run(IS_OPENZFS, check=False)).status == 0
        self.source = ZfsSource(self.settings, self.label, self.speaks)
        await super()._prepare()


class _Btrfs(Sending):
    def __init__(self, machine: Machine, settings: BtrfsSend, label: str, on_event: OnEvent) -> None:
        super().__init__(machine, settings.kind, settings.retries, on_event)
        self.settings, self.label = settings, label
        self.source = BtrfsSource(settings, label)


class _Fio(Runner):
    def __init__(self, machine: Machine, settings: Fio, label: str, on_event: OnEvent) -> None:
        super().__init__(machine, settings.kind, settings.retries, on_event)
        self._settings, self._label = settings, label

    async def _prepare(self) -> None:
        await self._clean()

    async def _once(self) -> None:
        documents = fio.Documents()
        await self._follow(
            fio.command(self._settings, self._label),
            lambda line: documents.feed(line.text) if line.stream == "out" else None,
        )

    async def _clean(self) -> None:
        await self.machine.run(fio.remove(self._settings, self._label), timeout_s=600)
