"""How long what pools were asked for took, second by second, from the histograms of `zpool iostat -w`.

`zpool iostat -w POOL 1` multiplies its counts by 1 s / (the time since its last line), a little less than 1,
and cuts them off: one slow write becomes none (print_iostat_histo in cmd/zpool/zpool_main.c). Called without
an interval it prints all counts since the pool was imported, exactly; what is new since is computed here.
"""

import math
from collections.abc import Mapping, Sequence

from plimsoll.lab.machine import Machine
from plimsoll.lab.observers.observer import (
    END,
    Column,
    CommandStream,
    Log,
    Observer,
    ObserverOptions,
    ReadingPair,
    gauge,
    number,
    repeat_command,
)
from plimsoll.lab.observers.zpool import find_form, find_pools

_WORDS = ("zpool", "iostat", "-w", "-H", "-p")
_MS_OF_NS = 1 / 1e6
# The first columns after a bucket's upper bound in ns. Those of the queues and of scrub and TRIM follow.
_KINDS = ("total_wait read", "total_wait write", "disk_wait read", "disk_wait write")
_NAMES = ("read", "write", "read_disk", "write_disk")
_SHARES = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
_MOST_BUCKETS = 64

Histogram = dict[int, int]  # counts by the upper bound of a bucket in ns
Round = dict[str, Histogram]  # by `POOL KIND`


def command(pools: Sequence[str]) -> list[str]:
    """Return the command that prints the histograms of `pools` about once a second. Pure."""
    return repeat_command(f'{" ".join(_WORDS)} "$@"', 1, pools)


def bound_ns(histogram: Mapping[int, int], share: float) -> float | None:
    """Return the upper bound in ns of the percentile's bucket (nearest rank); None of nothing."""
    rank = math.ceil(share * sum(histogram.values()))
    for bound, count in sorted(histogram.items()):
        rank -= count
        if count and rank <= 0:
            return float(bound)
    return None


def since(now: Round, before: Round) -> Round:
    """Return what is new in each histogram; nothing if it fell, since its pool was re-imported."""
    found = {}
    for name, counts in now.items():
        if (earlier := before.get(name)) is None:
            continue
        new = {bound: count - earlier.get(bound, 0) for bound, count in counts.items()}
        if min(new.values(), default=0) >= 0:
            found[name] = new
    return found


class HistogramReader:
    """Takes lines as they come; a round counts when it is whole."""

    def __init__(self) -> None:
        self._pool = ""
        self._coming: Round = {}
        self._whole: Round = {}
        self._reported: Round = {}

    def add(self, line: str) -> None:
        """Take a line of standard output."""
        if line == END:
            if self._coming:
                self._whole = self._coming
            self._coming, self._pool = {}, ""
            return
        label, *words = line.split("\t")
        if not words:
            self._pool = line or self._pool
            return
        counts = [number(word) for word in words[: len(_KINDS)]]
        bound = number(label)
        if bound is None or len(counts) < len(_KINDS) or not self._pool:
            return
        for kind, count in zip(_KINDS, counts, strict=True):
            histogram = self._coming.setdefault(f"{self._pool} {kind}", {})
            if count is not None and len(histogram) < _MOST_BUCKETS:
                histogram[int(bound)] = int(count)

    def take(self) -> ReadingPair:
        """Return the figures of what came since the last call, in ns."""
        new = since(self._whole, self._reported)
        self._reported = self._whole
        found = {
            f"{name} {which}": bound
            for name, histogram in new.items()
            for which, share in _SHARES
            if (bound := bound_ns(histogram, share)) is not None
        }
        return ReadingPair(found, None, 1.0)


def columns(pools: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of `pools`."""
    return tuple(
        gauge(f"{pool}_{name}_{which}_ms", f"{pool} {kind} {which}", _MS_OF_NS)
        for pool in pools
        for name, kind in zip(_NAMES, _KINDS, strict=True)
        for which, _ in _SHARES
    )


COLUMNS = columns(["POOL"])  # as they are documented


async def _prepare(machine: Machine, options: ObserverOptions, log: Log) -> CommandStream | None:
    pools = await find_pools(machine, options.pools, "poolwaits", log)
    probes = [(True, [*_WORDS, *pools])]
    if not pools or not await find_form(machine, "poolwaits", "zpool iostat -w", probes, log):
        return None
    return CommandStream(
        "poolwaits", columns(pools), machine, command(pools), HistogramReader(), "zpool iostat -w"
    )


OBSERVER = Observer("poolwaits", COLUMNS, _prepare)
