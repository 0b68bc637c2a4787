"""A toy driver whose clones are real files, made in an instant: for tests that kill experiments many times.

Run as a program it is `plimsoll` that knows the driver `raft`.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from plimsoll.lab.clones import DRIVERS
from plimsoll.lab.clones.clone import CloneContext, CloneKit, CloneSettings, Driver, Target
from plimsoll.lab.disks.disk import DataLocation, Place
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Remains, Serve, Step


class RaftSettings(CloneSettings):
    driver: Literal["raft"]
    target: str = Field(description="Site that answers for it.")
    megabytes: int = Field(8, description="Size of its data.")
    caches: bool = Field(False, description="Whether its caches are seen to, as those of other clones are.")


class Raft:
    """A folder with one file, on whatever disk; a site that runs anyway answers for it."""

    driver = "raft"

    def __init__(self, settings: RaftSettings, name: str, place: Place) -> None:
        self._settings, self._place, self._folder = settings, place, f"{place.folder}/{name}"

    def create(self) -> list[Step]:
        dd = ("dd", "if=/dev/urandom", f"of={self._folder}/data", "bs=1M", "conv=fsync", "status=none")
        return [
            Command("make its folder", ("mkdir", "--", self._folder)),
            Command("write its data", (*dd, f"count={self._settings.megabytes}")),
        ]

    def reset(self, restore: bool) -> list[Step]:
        return [
            *(self._place.cold if self._settings.caches else ()),
            Command("start it", ("touch", f"{self._folder}/up")),
            Serve("see it", self._settings.target),
        ]

    def stop(self) -> list[Step]:
        return [Command("stop it", ("rm", "-f", f"{self._folder}/up"))]

    def destroy(self) -> list[Step]:
        return [Command("remove it", ("rm", "-rf", "--", self._folder))]

    def target(self, captured: Mapping[str, str]) -> Target:
        return Target(self._settings.target)

    def data(self) -> DataLocation:
        return DataLocation(folder=self._place.folder, dataset=self._place.dataset)

    def describe(self) -> dict[str, Any]:
        return {"driver": self.driver}

    async def find(self, machine: Machine) -> list[Remains]:
        there = (await machine.run(["test", "-e", self._folder], check=False)).status == 0
        return [Remains(f"the raft {self._folder}", self._folder, tuple(self.destroy()))] if there else []


async def _kit(settings: RaftSettings, around: CloneContext) -> CloneKit:
    return CloneKit(Raft(settings, around.name, around.disk))


DRIVERS.append(Driver("raft", RaftSettings, _kit, has_files=True))

if __name__ == "__main__":
    from plimsoll.cli import main

    main()
