"""An HdrHistogram interval log, as `bin/replay --hdr-log` writes: format 1.3, a line a second and tag."""

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.exchange.format import Format, by_blocks
from plimsoll.analysis.exchange.histogram import LARGEST, encode_counts, slot_upper_us, slots_of
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import WARMUP, Records

TAGS = ("response", "service")
_SLOTS = int(slots_of(np.array([LARGEST]))[0]) + 1


def header(started_at: datetime | None) -> str:
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


def hdr_blocks(run: RunDirectory) -> Iterator[tuple[int, bytes]]:
    """Yield how many records a piece of the file holds, and the piece. Warm-up is left out."""
    yield 0, header(run.facts.started_at).encode("ascii")
    intervals = _Intervals()
    for block in run.requests.blocks():
        yield len(block), intervals.add(block[(block["flags"] & WARMUP) == 0]).encode("ascii")
    yield 0, intervals.close().encode("ascii")


class _Intervals:
    """Counts by second in which requests were done; one that is recorded late counts in the open second."""

    def __init__(self) -> None:
        self._second = 0
        self._counts = {tag: np.zeros(_SLOTS, dtype=np.int64) for tag in TAGS}

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
        """Return the lines of the open second, none if it is empty, and begin anew."""
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


HDR = Format("hdr", "an HdrHistogram interval log", by_blocks(hdr_blocks))
