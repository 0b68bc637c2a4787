"""What the records of a run have in common: what its findings need of them, and no figure shows."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.records import UNKNOWN_LATE_US, WARMUP, Records, late_us

SLOT_NS = 100_000_000  # of arrivals
_MOST_SLOTS = 1 << 22  # five days
_SAMPLE = 1 << 14  # records of each run, the first ones
_SAMPLED = ("line", "due_ns", "total_us", "route", "logged_bytes")
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 by the golden ratio: spreads neighbouring numbers (Knuth)
_COARSE_US = 1000
_LEAST_SAMPLED = 200
_LEAST_REPEATED = 8  # five of 700 had one time by chance in 1 of 200 simulated runs
NO_TIME = "took no time"


@dataclass(frozen=True)
class RecordTraits:
    """One run's records: `arrivals` are how many were due in each 100 ms, `sample` has columns of the first.

    `hidden` are marked as warm-up though they were due after it. `impossible` counts records that no request
    leaves behind, by what is wrong with them. `end_ns` is when the last one was done. `moved` is the share of
    requests that the generator sent in another 100 ms than that in which they were due. `asked` has what the
    log has of requests (`what`, a number for line, kind, status and size), and when they were due: of all
    lines, or of those whose mixed number ends in `asked_bits` zeros, which are the same lines of each run.
    """

    records: int = 0
    hidden: int = 0
    end_ns: int = 0
    impossible: Counter[str] = field(default_factory=Counter)
    arrivals: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sample: dict[str, NDArray[Any]] = field(default_factory=dict)
    moved: float = 0.0
    asked: dict[str, NDArray[Any]] = field(default_factory=dict)
    asked_bits: int = 0

    @property
    def step_us(self) -> int | None:
        """The steps in which the clock went: what lies between neighbouring service times, by the median.

        None where it was finer than 1 ms, or where that is not known: a coarse clock repeats its values.
        """
        times = self.sample["total_us"] if self.sample else np.zeros(0, dtype=np.uint32)
        values, counts = np.unique(times, return_counts=True)
        if len(times) < _LEAST_SAMPLED or len(values) < 4 or _median(counts) < 2:
            return None
        step = _median(np.diff(values))
        return step if step > _COARSE_US else None

    @property
    def repeated(self) -> tuple[int, int]:
        """The time in µs, over the median, that most of the sampled requests took, and how many did.

        0 where no time is that of 0.1 % of the requests, eight at least, and of 20 times as many as each of
        the microseconds within 1 % of it, or where the clock was coarser than that.
        """
        times = np.sort(self.sample["total_us"]) if self.sample else np.zeros(0, dtype=np.uint32)
        values, counts = np.unique(times, return_counts=True)
        if len(times) < _LEAST_SAMPLED or np.gcd.reduce(values) > 1:
            return 0, 0
        near = np.maximum(values // 100, 1)
        beside = np.searchsorted(times, values + near, "right") - np.searchsorted(times, values - near)
        found = counts * (values > times[len(times) // 2])
        found *= counts >= max(_LEAST_REPEATED, len(times) / 1000)
        found *= counts * 2 * near > 20 * (beside - counts)
        most = int(np.argmax(found))
        return int(values[most]), int(found[most])

    @property
    def has_whole_ms(self) -> bool:
        """True where times were noted in whole milliseconds, so that 0 is less than one of them."""
        return bool(self.sample) and not (self.sample["total_us"] % 1000).any()

    @property
    def commonest_line(self) -> float:
        """The share of the sampled records that are of one line of the log."""
        lines = self.sample["line"] if self.sample else np.zeros(0, dtype=np.uint64)
        if len(lines) < _LEAST_SAMPLED:
            return 0.0
        return float(np.unique(lines, return_counts=True)[1].max() / len(lines))


class TraitCollector:
    """Takes the records of a run, block by block."""

    def __init__(self, directory: RunDirectory) -> None:
        self._warm_ns = round(directory.facts.warmup_s * 1e9)
        self._names = len(directory.routes), len(directory.errors)
        self._kinds = np.array(
            [crc32(name.encode(errors="surrogatepass")) for name in directory.routes] + [0], dtype=np.uint64
        )
        self._asked_bits = max((directory.requests.count - 1) // _SAMPLE, 0).bit_length()
        self._asked: list[dict[str, NDArray[Any]]] = []
        self._records = self._hidden = self._end_ns = 0
        self._impossible: Counter[str] = Counter()
        self._arrivals: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._sent: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._sample: list[Records] = []

    def add(self, block: Records) -> None:
        """Take the next block, shape (n,)."""
        due_ns, lag_us, total_us, ttfb_us, route, error, flags = (
            np.ascontiguousarray(block[name])
            for name in ("due_ns", "lag_us", "total_us", "ttfb_us", "route", "error", "flags")
        )
        room = max(_SAMPLE - self._records, 0)
        if room:
            self._sample.append(block[:room].copy())
        self._records += len(block)
        self._hidden += int(np.count_nonzero(((flags & WARMUP) != 0) & (due_ns >= self._warm_ns)))
        self._end_ns = max(
            self._end_ns, int((due_ns + (lag_us.astype(np.int64) + total_us) * 1000).max(initial=0))
        )
        for what, wrong in (
            (NO_TIME, (total_us == 0) & (error == 0)),
            ("had their first byte after their last", ttfb_us > total_us),
            ("are of a kind that has no name", route >= max(self._names[0], 1)),
            ("failed in a way that has no name", error >= max(self._names[1], 1)),
        ):
            if count := int(np.count_nonzero(wrong)):
                self._impossible[what] += count
        late = late_us(block).astype(np.int64)
        late[late == UNKNOWN_LATE_US] = 0
        self._add_asked(block)
        self._arrivals = count_slots(self._arrivals, due_ns)
        self._sent = count_slots(self._sent, due_ns + late * 1000)

    def traits(self) -> RecordTraits:
        """Return what all of them have in common."""
        sample = np.concatenate(self._sample) if self._sample else None
        return RecordTraits(
            self._records,
            self._hidden,
            self._end_ns,
            self._impossible,
            self._arrivals,
            {} if sample is None else {name: np.ascontiguousarray(sample[name]) for name in _SAMPLED},
            moved_share(self._arrivals, self._sent),
            {name: np.concatenate([each[name] for each in self._asked]) for name in self._asked[0]}
            if self._asked
            else {},
            self._asked_bits,
        )

    def _add_asked(self, block: Records) -> None:
        line = block["line"].astype(np.uint64)
        here = ends_in_zeros(line, self._asked_bits)
        kept = block[here]
        kind = self._kinds[np.minimum(kept["route"], len(self._kinds) - 1)]
        logged = kept["logged_bytes"].astype(np.uint64) << np.uint64(16) | kept["logged_status"]
        what = ((line[here] * _MIX ^ kind) * _MIX ^ logged) * _MIX
        self._asked.append({"line": line[here], "what": what, "due_ns": kept["due_ns"].astype(np.uint64)})


def ends_in_zeros(lines: NDArray[np.uint64], bits: int) -> NDArray[np.bool_]:
    """Return which numbers of lines, mixed, end in so many zeros: the same ones of every run."""
    mixed = (lines * _MIX) >> np.uint64(32)
    found: NDArray[np.bool_] = mixed & np.uint64((1 << bits) - 1) == 0
    return found


def count_slots(counts: NDArray[np.int64], instants_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many instants lie in each 100 ms, shape (slots,), those of `counts` added."""
    slots = np.bincount(np.minimum(instants_ns // SLOT_NS, _MOST_SLOTS), minlength=len(counts))
    slots[: len(counts)] += counts
    return slots


def moved_share(due: NDArray[np.int64], sent: NDArray[np.int64]) -> float:
    """Return the share of the requests that were sent in another 100 ms than that in which they were due.

    Both are counts by `count_slots`; those that took each other's places have not moved the load.
    """
    apart = np.pad(sent, (0, max(len(due) - len(sent), 0)))
    apart[: len(due)] -= due
    return float(np.abs(apart).sum() / 2 / max(due.sum(), 1))


def _median(values: NDArray[np.integer[Any]]) -> int:
    """Return the upper median; numpy's own loads masked arrays, for a tenth of a report's time."""
    return int(np.sort(values)[len(values) // 2])
