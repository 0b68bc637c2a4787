"""What access logs say was served: every time to the microsecond, and how often it came, hour by hour.

Packed, an hour takes a byte or so a request, and loses nothing: times are sorted, so that each is kept as its
distance from the one before, in as few bytes as that takes. Pure.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.statistics.times import Microseconds

HOUR_NS = 3_600_000_000_000
_LEVEL = 9
_VARINT_BITS = 7

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Served:
    """Requests, those that are alike together, shape (n,) each.

    `hour` counts from 1970-01-01 UTC, `route` is a number, `took_us` the time as it counts, `number` how many
    requests are so.
    """

    hour: Integers
    route: Integers
    took_us: Microseconds
    failed: NDArray[np.bool_]
    number: Integers

    @classmethod
    def joined(cls, parts: Sequence["Served"]) -> "Served":
        """Return all of `parts` together, one at least."""
        return cls(
            np.concatenate([part.hour for part in parts]),
            np.concatenate([part.route for part in parts]),
            np.concatenate([part.took_us for part in parts]),
            np.concatenate([part.failed for part in parts]),
            np.concatenate([part.number for part in parts]),
        )

    def at(self, which: NDArray[Any] | slice) -> "Served":
        """Return those at some places."""
        return Served(
            self.hour[which], self.route[which], self.took_us[which], self.failed[which], self.number[which]
        )

    @property
    def requests(self) -> int:
        """How many requests there are."""
        return int(self.number.sum())

    @property
    def failures(self) -> int:
        """How many of them failed."""
        return int(self.number[self.failed].sum())


def alike(served: Served) -> Served:
    """Return the same requests, in any order, with those that are alike together, sorted."""
    order = np.lexsort((served.took_us, served.failed, served.route, served.hour))
    found = served.at(order)
    same = np.arange(len(order)) > 0
    for column in (found.hour, found.route, found.took_us, found.failed):
        same[1:] &= column[1:] == column[:-1]
    first = np.flatnonzero(~same)
    return replace(found.at(first), number=np.add.reduceat(found.number, first))


def packed(hour: Served) -> bytes:
    """Return the requests of one hour, sorted as `alike` does, as bytes."""
    group = hour.route * 2 + hour.failed
    begins = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    sizes = np.diff(np.append(begins, len(group)))
    took = hour.took_us.astype(np.int64)
    apart = np.diff(took, prepend=0)
    apart[begins] = took[begins]
    stream = [np.array([len(begins)]), group[begins], sizes, apart, hour.number]
    return zlib.compress(_varints(np.concatenate(stream)), _LEVEL)


def unpacked(hour: int, data: bytes) -> Served:
    """Return what `packed` made of the requests of that hour."""
    values = _values(zlib.decompress(data))
    groups = int(values[0])
    group, sizes = values[1 : 1 + groups], values[1 + groups : 1 + 2 * groups]
    apart, number = np.split(values[1 + 2 * groups :], 2)
    took = np.cumsum(apart)
    begins = np.cumsum(sizes) - sizes
    took -= np.repeat(took[begins] - apart[begins], sizes)  # each group begins anew
    each = np.repeat(group, sizes)
    hours = np.full(len(each), hour, dtype=np.int64)
    return Served(hours, each >> 1, took.astype(np.uint32), (each & 1).astype(bool), number)


def hours_of(served: Served) -> Iterator[tuple[int, Served]]:
    """Yield the requests of each hour; `served` is sorted as `alike` does."""
    edges = np.flatnonzero(np.append(True, served.hour[1:] != served.hour[:-1]))
    for begin, end in zip(edges, np.append(edges[1:], len(served.hour)), strict=True):
        yield int(served.hour[begin]), served.at(slice(begin, end))


def _varints(values: Integers) -> bytes:
    """Return whole numbers from 0 on: seven bits a byte, the lowest first; the eighth says that more come."""
    lengths = np.ones(len(values), dtype=np.int64)
    rest = values >> _VARINT_BITS
    while rest.any():
        lengths += rest > 0
        rest >>= _VARINT_BITS
    stream = np.zeros(int(lengths.sum()), dtype=np.uint8)
    begins = np.cumsum(lengths) - lengths
    for place in range(int(lengths.max(initial=0))):
        longer = lengths > place
        low = (values[longer] >> (_VARINT_BITS * place)) & 127
        stream[begins[longer] + place] = low | np.where(lengths[longer] > place + 1, 128, 0)
    return stream.tobytes()


def _values(data: bytes) -> Integers:
    stream = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(stream < 128)
    begins = np.append(0, ends[:-1] + 1)
    place = np.arange(len(stream)) - np.repeat(begins, ends - begins + 1)
    shifted = (stream.astype(np.int64) & 127) << (_VARINT_BITS * place)
    return np.add.reduceat(shifted, begins).astype(np.int64)
