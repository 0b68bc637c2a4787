"""Records of several shards become one stream in the order in which they were done. Pure."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from plimsoll.rundir.records import RECORD, Records

_Instants = NDArray[np.int64]
_ALL = 1 << 18  # records that all shards together hold at a time: some 140 MB with what sorting them takes
_LEAST, _MOST = 256, 1 << 16


def window_of(shards: int) -> int:
    """Return how many records of each of so many shards to hold back, so that all together are bounded."""
    return min(max(_ALL // max(shards, 1), _LEAST), _MOST)


def done_ns(records: Records) -> _Instants:
    """Return when each of `records`, shape (n,), was done, in nanoseconds since the start of the run."""
    took_us = records["lag_us"].astype(np.int64) + records["total_us"]
    done: _Instants = records["due_ns"] + took_us * 1000
    return done


def in_order(streams: Sequence[Iterator[Records]], window: int) -> Iterator[Records]:
    """Yield every record of `streams` once, by the instant it was done; ties in the order of the streams.

    Of each stream between `window` and twice as many records are held, blocks of it may have at most
    `window`. So a record comes in its place if at most `window` records that stand before it in its own
    stream were done after it; one that is further out of order comes late, but comes.
    """
    held = [_Backlog(stream, window) for stream in streams]
    while held:
        horizon_ns = min((each.horizon_ns() for each in held), default=0)
        parts = [each.taken(horizon_ns) for each in held]
        whole = np.concatenate(parts)
        yield whole[np.argsort(done_ns(whole), kind="stable")]
        held = [each for each in held if not each.empty]


class _Backlog:
    """The records held of one stream, in order."""

    def __init__(self, stream: Iterator[Records], window: int) -> None:
        self._stream, self._window, self._ended = stream, window, False
        self._records: Records = np.empty(0, dtype=RECORD)
        self._done_ns: _Instants = np.empty(0, dtype=np.int64)
        self._fill()

    @property
    def empty(self) -> bool:
        return self._ended and not len(self._records)

    def horizon_ns(self) -> int:
        """Return up to when its records may go: so many later ones are held that none before is to come."""
        return int(np.iinfo(np.int64).max if self._ended else self._done_ns[-self._window - 1])

    def taken(self, until_ns: int) -> Records:
        """Take away what was done until then."""
        cut = int(np.searchsorted(self._done_ns, until_ns, side="right"))
        taken, self._records = self._records[:cut], self._records[cut:]
        self._done_ns = self._done_ns[cut:]
        self._fill()
        return taken

    def _fill(self) -> None:
        more: list[Records] = []
        while not self._ended and len(self._records) + sum(len(block) for block in more) <= self._window:
            block = next(self._stream, None)
            if block is None:
                self._ended = True
            else:
                more.append(block)
        if more:
            records = np.concatenate([self._records, *more])
            done = done_ns(records)
            order = np.argsort(done, kind="stable")
            self._records, self._done_ns = records[order], done[order]
