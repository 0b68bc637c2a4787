"""Sizes as sysbench and people write them: `64M`, `2G`."""

import re

_FORM = re.compile(r"(\d{1,15})\s?([KMGT]?)(?:i?B)?", re.IGNORECASE | re.ASCII)
_POWER = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_size(text: str) -> int:
    """Return the bytes that `text` means; K, M, G and T are powers of 1024. Raises ValueError."""
    found = _FORM.fullmatch(text.strip())
    if not found:
        raise ValueError("must be a size such as 64M or 2G")
    return int(found[1]) << (10 * _POWER[found[2].upper()])


def size_text(size_bytes: int) -> str:
    """Return a size in the largest unit that leaves it whole: `2 GiB`, `16 KiB`, `1000 B`."""
    for unit, power in (("TiB", 4), ("GiB", 3), ("MiB", 2), ("KiB", 1)):
        if size_bytes and size_bytes % (1 << (10 * power)) == 0:
            return f"{size_bytes >> (10 * power)} {unit}"
    return f"{size_bytes} B"
