"""A toy saturator: the tide."""

from typing import Literal

from pydantic import Field

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.saturators.saturator import CLONE, Runner, SaturatorKind, SaturatorSettings


class TideSettings(SaturatorSettings):
    """The tide, twice a day."""

    kind: Literal["tide"]
    folder: str = Field(CLONE, description="Where it rises.")


class Tide(Runner[TideSettings]):
    async def _once(self) -> None:
        await self._follow(["tide", self.settings.folder], lambda line: int(line.text))

    async def _clean(self) -> None:
        await self.machine.run(["ebb", self.settings.folder])


def _aim(settings: TideSettings, at: DataLocation) -> TideSettings:
    return settings.model_copy(update={"folder": at.folder}) if settings.folder == CLONE else settings


TIDE = SaturatorKind("tide", TideSettings, Tide, aim=_aim, programs=frozenset({"tide"}))
