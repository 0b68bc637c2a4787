"""Values of ZFS properties that may be set; others are refused."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from plimsoll.common.units import AS_SIZE


def on_off(value: object) -> object:
    """Return `on` or `off` for a bare one, which YAML reads as true or false; anything else as it is."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


def _power_of_two(value: int) -> int:
    if value & (value - 1):
        raise ValueError("must be a power of two, such as 16K or 128K")
    return value


RecordSize = Annotated[int, AS_SIZE, Field(ge=512, le=16 << 20), AfterValidator(_power_of_two)]
Compression = Annotated[
    str,
    BeforeValidator(on_off),
    Field(
        pattern=r"^(on|off|lz4|lzjb|zle|gzip(-[1-9])?|zstd(-([1-9]|1[0-9]))?|zstd-fast(-[0-9]{1,4})?)$",
        examples=["lz4, zstd-3 or off"],
    ),
]
Switch = Annotated[Literal["on", "off"], BeforeValidator(on_off)]
