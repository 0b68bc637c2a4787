"""An HdrHistogram interval log, as `bin/replay --hdr-log` writes: format 1.3, a line a second and tag.

HdrHistogram (https://github.com/HdrHistogram/HdrHistogram) counts values up to 2,047 each by itself; each
doubling above is divided into 1,024 slots of one width, so that every value is known to three digits.
"""

import base64
import struct
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.exchange.csvfile import by_blocks
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import WARMUP, Records

LARGEST = 3_600_000_000  # an hour in microseconds; longer times count as that
_HALF_BITS = 10  # 2·10³ values need 11 bits


def hdr_blocks(run: RunDirectory) -> Iterator[tuple[int, bytes]]:
    """Yield how many records a piece of the file holds, and the piece. Warm-up is left out."""
    yield 0, _header(run.facts.started_at).encode("ascii")
    intervals = _Intervals()
    for block in run.requests.blocks():
        yield len(block), intervals.add(block[(block["flags"] & WARMUP) == 0]).encode("ascii")
    yield 0, intervals.close().encode("ascii")


def _header(started_at: datetime | None) -> str:
    """Return the lines before the intervals."""
    start = (started_at or datetime.fromtimestamp(0, UTC)).astimezone(UTC)
    since_s = int(start.timestamp() * 1000) / 1000
    return (
        "#[plimsoll: microseconds; tags response (from due) and service (from start)]\n"
        "#[Histogram log format version 1.3]\n"
        f"#[StartTime: {since_s:.3f} (seconds since epoch), {start:%Y-%m-%dT%H:%M:%SZ}]\n"
        f"#[BaseTime: {since_s:.3f} (seconds since epoch)]\n"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    )


class _Intervals:
    """Counts by second in which requests were done; one that is recorded late counts in the open second."""

    def __init__(self) -> None:
        self._second = 0
        slots = int(slots_of(np.array([LARGEST]))[0]) + 1
        self._counts = {tag: np.zeros(slots, dtype=np.int64) for tag in ("response", "service")}

    def add(self, block: Records) -> str:
        """Take records; return the lines of the seconds that they close."""
        if not len(block):
            return ""
        service_us = block["total_us"].astype(np.int64)
        response_us = service_us + block["lag_us"]
        seconds = np.maximum.accumulate((block["due_ns"] + response_us * 1000) // 10**9)
        found = {
            "response": slots_of(np.minimum(response_us, LARGEST)),
            "service": slots_of(np.minimum(service_us, LARGEST)),
        }
        seconds = np.maximum(seconds, self._second)
        changes = np.flatnonzero(np.diff(seconds, prepend=self._second))
        lines, begun = [], 0
        for start in changes.tolist():
            self._count(found, slice(begun, start))
            lines.append(self.close())
            self._second, begun = int(seconds[start]), start
        self._count(found, slice(begun, len(block)))
        return "".join(lines)

    def close(self) -> str:
        """Return the lines of the open second, none if it is empty, and begin again."""
        lines = []
        for tag, counts in self._counts.items():
            used = np.flatnonzero(counts)
            if len(used):
                largest_ms = slot_upper_us(int(used[-1])) / 1000
                lines.append(f"Tag={tag},{self._second}.000,1.000,{largest_ms:.3f},{encode_counts(counts)}\n")
                counts[used] = 0
        return "".join(lines)

    def _count(self, found: dict[str, NDArray[np.int64]], part: slice) -> None:
        for tag, counts in self._counts.items():
            np.add.at(counts, found[tag][part], 1)


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
    head = struct.pack(">iiiiqqd", 0x1C849313, len(payload), 0, 3, 1, LARGEST, 1.0)
    packed = zlib.compress(head + bytes(payload))
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(packed)) + packed).decode("ascii")


def _zigzag(value: int) -> bytes:
    """Return `value` in ZigZag LEB128: seven bits a byte, the sign in the lowest."""
    rest = (value << 1) ^ (value >> 63)
    found = bytearray()
    while rest >= 0x80:
        found.append((rest & 0x7F) | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


HDR = by_blocks(hdr_blocks)
