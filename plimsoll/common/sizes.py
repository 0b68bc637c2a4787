"""Sizes as people write them: 16K, 4 GiB, or bytes."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

LARGEST_BYTES = 1 << 50  # sizes beyond 1 PiB are slips of the pen
_UNITS = ("", "K", "M", "G", "T")  # powers of 1024
_SIZE = re.compile(r"(\d{1,15})\s?(?:([KMGT])(?:i?B)?|B)?", re.IGNORECASE | re.ASCII)


def parse_size(text: str) -> int:
    """Return the bytes that `16K`, `1 MiB` or `131072` stands for. Raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise ValueError("must be a size, such as 16K, 1M or 131072")
    return int(found[1]) << 10 * _UNITS.index((found[2] or "").upper())


def size_text(size_bytes: int) -> str:
    """Return a size in the largest unit that leaves it whole: `2 GiB`, `16 KiB`, `1000 B`."""
    for power in range(len(_UNITS) - 1, 0, -1):
        if size_bytes and size_bytes % (1 << 10 * power) == 0:
            return f"{size_bytes >> 10 * power} {_UNITS[power]}iB"
    return f"{size_bytes} B"


def read_size(value: object) -> object:
    """Return text as bytes and anything else as it is: for pydantic, before it checks."""
    return parse_size(value) if isinstance(value, str) else value


# In an annotation: text is read as a size; the JSON Schema says so.
_Written = Annotated[str, Field(pattern=r"^\s*[0-9]{1,15}\s?([KMGTkmgt]?([Ii]?[Bb])?)\s*$")]
AS_SIZE = BeforeValidator(read_size, json_schema_input_type=int | _Written)
Size = Annotated[int, AS_SIZE, Field(ge=0, le=LARGEST_BYTES)]
