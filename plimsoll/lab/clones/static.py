"""Driver `static`: hosts that exist. Nothing is made or removed; the user's commands restart it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from plimsoll.lab.clones.clone import CloneContext, CloneKit, CloneSettings, Driver, Target
from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Remains, Serve, Step, no_reference
from plimsoll.scenarios.running.settings import BaseUrl, HostPort

Word = Annotated[str, AfterValidator(no_reference)]


class StaticSettings(CloneSettings):
    """An existing host: nothing is made or removed."""

    driver: Literal["static"] = Field(description="`static`: an existing host.")
    target: BaseUrl = Field(description="Base URL of the site on that host.")
    connect_to: HostPort | None = Field(None, description="HOST:PORT to connect to instead of the target's.")
    reset: tuple[tuple[Word, ...], ...] = Field(
        (),
        description="Commands that restart the site before each run, each a list of words: [[reboot-site]].",
    )
    restore: tuple[tuple[Word, ...], ...] = Field(
        (), description="Commands that restore the site's data before a run, if the run before changed it."
    )
    timeout_s: float = Field(
        600.0, gt=0, description="Seconds to wait for each of these commands, and for the site to answer."
    )


class Static:
    """See Clone."""

    driver = "static"

    def __init__(self, settings: StaticSettings) -> None:
        self._settings = settings

    def create(self) -> list[Step]:
        """See that it serves."""
        return [self._serves()]

    def reset(self, restore: bool) -> list[Step]:
        """Run the commands that lab.yml has for it."""
        said = self._settings
        return [
            *(
                Command("restore its data", words, timeout_s=said.timeout_s)
                for words in said.restore
                if restore
            ),
            *(Command("restart it", words, timeout_s=said.timeout_s) for words in said.reset),
            self._serves(),
        ]

    def stop(self) -> list[Step]:
        """Leave it as it is."""
        return []

    def destroy(self) -> list[Step]:
        """Leave it as it is."""
        return []

    def target(self, captured: Mapping[str, str]) -> Target:
        """Return the target that lab.yml names."""
        return Target(self._settings.target, self._settings.connect_to)

    def data(self) -> DataLocation:
        """Return an empty location: the lab knows nothing of its data."""
        return DataLocation()

    def describe(self) -> dict[str, Any]:
        """Return the description of the host from lab.yml."""
        return {"driver": self.driver, "target": self._settings.target}

    async def find(self, machine: Machine) -> list[Remains]:
        """Find nothing: the lab made none of it."""
        return []

    def _serves(self) -> Serve:
        said = self._settings
        return Serve("see that it serves", said.target, said.connect_to, said.timeout_s)


async def _prepare(settings: StaticSettings, _around: CloneContext) -> CloneKit:
    return CloneKit(Static(settings))


STATIC = Driver("static", StaticSettings, _prepare, needs_disk=False, is_ours=False)
