"""The settings that the drivers of virtual machines share: how to reach a guest, and how long to wait."""

from typing import Annotated

from pydantic import Field

from plimsoll.lab.clones.address import TargetHost
from plimsoll.lab.clones.clone import CloneSettings

StopTimeout = Annotated[
    int,
    Field(ge=0, le=3600, description="Seconds to wait for the guest to shut down before it is switched off."),
]


class GuestSettings(CloneSettings):
    """The settings of every driver whose clones are guests with an address of their own."""

    connect_to: TargetHost | None = Field(
        None,
        description="HOST:PORT to connect to instead; ${address}:80 if the site has its own name.",
    )
    start_timeout_s: float = Field(
        300.0,
        gt=0,
        description="Seconds to wait for each step of a start: booting, getting an address, serving.",
    )
    stop_timeout_s: StopTimeout = 60
