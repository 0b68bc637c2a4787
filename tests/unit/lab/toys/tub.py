"""A toy disk: a tub of water."""

from typing import Literal

from pydantic import Field

from plimsoll.lab.disks.disk import DiskKind, DiskSettings, Place
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Remains, Step


class TubSettings(DiskSettings):
    """A tub of water."""

    kind: Literal["tub"]
    litres: int = Field(description="How much it holds.")


class Tub:
    def __init__(self, settings: TubSettings, backend: str) -> None:
        self._litres, self._folder = settings.litres, f"/tub/{backend}"

    def place(self) -> Place:
        return Place(self._folder)

    def create(self) -> list[Step]:
        return [Command("fill it", ("fill-tub", self._folder, str(self._litres)))]

    def limit(self) -> list[Step]:
        return []

    def destroy(self) -> list[Step]:
        return [Command("drain it", ("drain-tub", self._folder))]

    async def find(self, machine: Machine) -> list[Remains]:
        return []


TUB = DiskKind("tub", TubSettings, lambda settings, _label, backend, _work: Tub(settings, backend))
