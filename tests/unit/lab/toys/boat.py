"""A toy driver: a site on a boat."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from plimsoll.lab.clones.clone import CloneContext, CloneKit, CloneSettings, Driver, Target
from plimsoll.lab.disks.disk import DataLocation, Place
from plimsoll.lab.machine import Machine
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


BOAT = Driver("boat", BoatSettings, _kit)
