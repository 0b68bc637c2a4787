"""A toy driver, disk, saturator and observer, each as somebody would write it who adds one to the lab.

Imported before the command, in a process of its own: it adds them to the registries.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from plimsoll.lab.clones import DRIVERS
from plimsoll.lab.clones.clone import CloneContext, CloneKit, CloneSettings, Driver, Target
from plimsoll.lab.disks import DISKS
from plimsoll.lab.disks.disk import DataLocation, DiskKind, DiskSettings, Place
from plimsoll.lab.machine import Machine
from plimsoll.lab.observers import OBSERVERS
from plimsoll.lab.observers.observer import Reading, file_observer, gauge
from plimsoll.lab.saturators import SATURATORS
from plimsoll.lab.saturators.saturator import CLONE, Runner, SaturatorKind, SaturatorSettings
from plimsoll.lab.steps.step import Command, Remains, Serve, Step


class BoatSettings(CloneSettings):
    """The site on a boat."""

    driver: Literal["boat"]
    port: int = Field(8080, description="Where it listens.")


class Boat:
    driver = "boat"

    def __init__(self, settings: BoatSettings, name: str, place: Place) -> None:
        self._url, self._folder = f"http://127.0.0.1:{settings.port}", f"{place.folder}/{name}"

    def create(self) -> list[Step]:
        return [Command("build it", ("build-boat", self._folder))]

    def reset(self, restore: bool) -> list[Step]:
        return [Command("launch it", ("launch-boat", self._folder)), Serve("see that it serves", self._url)]

    def stop(self) -> list[Step]:
        return []

    def destroy(self) -> list[Step]:
        return [Command("sink it", ("sink-boat", self._folder))]

    def target(self, captured: Mapping[str, str]) -> Target:
        return Target(self._url)

    def data(self) -> DataLocation:
        return DataLocation(folder=self._folder)

    def describe(self) -> dict[str, Any]:
        return {"driver": self.driver}

    async def find(self, machine: Machine) -> list[Remains]:
        return []


async def _kit(settings: BoatSettings, around: CloneContext) -> CloneKit:
    return CloneKit(Boat(settings, around.name, around.disk))


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


class TideSettings(SaturatorSettings):
    """The tide, twice a day."""

    kind: Literal["tide"]
    folder: str = Field(CLONE, description="Where it rises.")


class Tide(Runner[TideSettings]):
    async def _once(self) -> None:
        await self._follow(["tide", self.settings.folder], lambda line: int(line.text))

    async def _clean(self) -> None:
        await self.machine.run(["ebb", self.settings.folder])


def _aimed(settings: TideSettings, at: DataLocation) -> TideSettings:
    return settings.model_copy(update={"folder": at.folder}) if settings.folder == CLONE else settings


def _read(texts: tuple[str, ...]) -> Reading:
    return {"knots": float(texts[0])} if texts[0] else {}


DRIVERS.append(Driver("boat", BoatSettings, _kit))
DISKS.append(DiskKind("tub", TubSettings, lambda settings, _label, backend, _work: Tub(settings, backend)))
SATURATORS.append(SaturatorKind("tide", TideSettings, Tide, aim=_aimed, programs=frozenset({"tide"})))
OBSERVERS.append(file_observer("wind", (gauge("knots_count", "knots"),), _read, ("/proc/wind",)))
