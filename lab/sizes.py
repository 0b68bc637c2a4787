"""Sizes as people write them: 16K, 4 GiB, or bytes."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

LARGEST_BYTES = 1 << 50  # sizes beyond 1 PiB are slips of the pen
_SIZE = re.compile(r"(\d{1,15})(?:([KMGT])(?:i?B)?)?", re.IGNORECASE)


def read_size(value: object) -> object:
    """Read `16K`, `1 MiB` or 131072 as bytes."""
    if not isinstance(value, str):
        return value
    found = _SIZE.fullmatch(value.replace(" ", ""))
    if not found or not value.isascii():
        raise ValueError("must be a size, such as 16K, 1M or 131072")
    return int(found[1]) << 10 * (" KMGT".index((found[2] or " ").upper()))


Size = Annotated[int, BeforeValidator(read_size), Field(ge=0, le=LARGEST_BYTES)]
