"""The rounds of `precondition.jsonl` in an experiment's folder (docs/precondition.md), a line each."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

_Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, le=1 << 62)]


class VolumeRound(BaseModel):
    """A round on a volume (hostile); number 0 is the filling, which is called `filling`.

    `range_percent` and `slope_percent` are of the five rounds up to this one, None before there are five, and
    so is `steady`. `bytes` is the size of the file in number 0, else what was written. The filling has no
    `iops`.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    volume: str
    filling: str
    round: _Count
    fill_percent: _Count
    block_bytes: _Count
    threads: _Count
    bytes: _Count
    seconds: _Number
    mib_per_s: _Number
    iops: _Number | None = None
    p999_ms: _Number | None = None
    range_percent: _Number | None = None
    slope_percent: _Number | None = None
    steady: bool | None = None


def round_of(value: object) -> VolumeRound | None:
    """Return the round that a line's JSON is; None where it is none. Pure."""
    try:
        found = VolumeRound.model_validate(value)
    except ValidationError:
        return None
    return found if found.iops is not None or found.round == 0 else None


def last_filling(every: Sequence[VolumeRound], volume: str) -> list[VolumeRound]:
    """Return those of the last filling of `volume`, the filling itself first; empty before it. Pure."""
    own = [one for one in every if one.volume == volume]
    return [one for one in own if one.filling == own[-1].filling]
