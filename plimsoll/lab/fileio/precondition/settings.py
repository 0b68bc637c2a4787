"""How full a volume is made, how it is overwritten, and when that ends."""

from typing import Annotated

from pydantic import Field

from plimsoll.common.units import Size
from plimsoll.lab.names import StrictModel


class PreconditionSettings(StrictModel):
    """The filling of a volume and its rounds. A field's description is its help text."""

    fill_percent: int = Field(
        80,
        ge=5,
        le=95,
        description="Share of the volume that is to be full before the first run, clone included.",
    )
    block_bytes: Annotated[Size, Field(ge=512, le=1 << 24)] = Field(
        4096, description="Size of each random overwrite."
    )
    threads: int = Field(4, ge=1, le=256, description="Number of threads that overwrite.")
    round_s: int = Field(60, ge=1, le=3600, description="Seconds that a round lasts.")
    most_rounds: int = Field(
        25, ge=5, le=10_000, description="Rounds after which the runs begin although it is not steady."
    )
    longest_s: int = Field(
        86_400,
        ge=10,
        le=30 * 86_400,
        description="Seconds that filling and rounds of a volume may take in all.",
    )
