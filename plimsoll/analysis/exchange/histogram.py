"""HdrHistogram's counts, and its V2 encoding. Pure.

https://github.com/HdrHistogram/HdrHistogram: values up to 2,047 are counted each by itself; each doubling
above is divided into 1,024 slots of one width, so that every value is known to three digits.
"""

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 3_600_000_000  # an hour in microseconds; longer times count as that
_DIGITS = 3
_HALF_BITS = 10  # 2·10³ values need 11 bits
_HALF = 1 << _HALF_BITS
_V2, _V2_COMPRESSED = 0x1C849313, 0x1C849314


def slots_of(values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of each of `values`, whole numbers from 0 to `LARGEST`, in the array of counts."""
    whole = values.astype(np.int64)
    bits = np.frexp(whole.astype(np.float64))[1].astype(np.int64)
    bucket = np.maximum(bits - (_HALF_BITS + 1), 0)
    found: NDArray[np.int64] = (bucket << _HALF_BITS) + (whole >> bucket)
    return found


def slot_upper_us(slot: int) -> int:
    """Return the largest value that is counted in `slot`."""
    bucket = max((slot >> _HALF_BITS) - 1, 0)
    return ((slot - (bucket << _HALF_BITS) + 1) << bucket) - 1


def encode_counts(counts: NDArray[np.int64]) -> str:
    """Return the counts, shape (any,), as HdrHistogram's V2 encoding, compressed, in base 64."""
    used = np.flatnonzero(counts)
    payload, before = bytearray(), -1
    for slot, count in zip(used.tolist(), counts[used].tolist(), strict=True):
        zeros = slot - before - 1
        if zeros:
            payload += _zigzag(-zeros if zeros > 1 else 0)
        payload += _zigzag(count)
        before = slot
    head = struct.pack(">iiiiqqd", _V2, len(payload), 0, _DIGITS, 1, LARGEST, 1.0)
    packed = zlib.compress(head + bytes(payload))
    return base64.b64encode(struct.pack(">ii", _V2_COMPRESSED, len(packed)) + packed).decode("ascii")


def _zigzag(value: int) -> bytes:
    """Return `value` in ZigZag LEB128: seven bits a byte, the sign in the lowest."""
    rest = (value << 1) ^ (value >> 63)
    found = bytearray()
    while rest >= 0x80:
        found.append((rest & 0x7F) | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)
