"""The transaction groups of each pool, from OpenZFS's history of them, and the writes that it delayed.

A group collects what is written, then is synced to the disks; who writes meanwhile goes into the next one,
until there is too much of it. The format is that of `spa_txg_history_show` in module/zfs/spa_stats.c (OpenZFS
0.7 to 2.4): a header, then a line for each of the last `zfs_txg_history` groups (100 by default), the oldest
first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.observers.arcstats import parse as parse_kstat
from plimsoll.lab.observers.counters import Column, Reading, gauge, number, rate
from plimsoll.lab.observers.files import read_files
from plimsoll.lab.observers.imported import imported_pools
from plimsoll.lab.observers.observer import Observer, Say, Source
from plimsoll.lab.observers.settings import ObserverOptions

# Its first line ends with the instant of the reading, by the clock that groups are timed with.
_CLOCK, _DELAYS = "/proc/spl/kstat/zfs/zil", "/proc/spl/kstat/zfs/dmu_tx"
_DELAYED = "dmu_tx_dirty_delay"
_FIELDS = 12
_MS_OF_NS = 1 / 1e6
_SYNCING, _COMMITTED = "S", "C"


@dataclass(frozen=True)
class Group:
    """One group, with times in ns. `began_sync_ns` is by the kernel's monotonic clock.

    `dirty_bytes` and `written_bytes` are 0 until it is committed.
    """

    number: int
    state: str
    began_sync_ns: float
    sync_ns: float
    dirty_bytes: float
    written_bytes: float


def parse(text: str) -> list[Group]:
    """Return the groups of a `txgs` file; lines that are none are left out."""
    found = []
    for line in text.split("\n"):
        words = line.split()
        if len(words) != _FIELDS or len(words[2]) != 1:
            continue
        values = [number(word) for at, word in enumerate(words) if at != 2]
        known = [value for value in values if value is not None]
        if len(known) == _FIELDS - 1:
            txg, birth, dirty, _, written, _, _, opened, quiesced, waited, synced = known
            began = birth + opened + quiesced + waited
            found.append(Group(int(txg), words[2], began, synced, dirty, written))
    return found


def instant_ns(text: str) -> float | None:
    """Return when a kstat was read: the last word of its first line."""
    words = text.split("\n", 1)[0].split()
    return number(words[-1]) if len(words) == 7 else None


class Groups:
    """The groups of some pools; it remembers which have been told."""

    def __init__(self, pools: Sequence[str]) -> None:
        self._pools = tuple(pools)
        self._told: dict[str, int] = {}
        self._written: dict[str, float] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that `read` takes the texts of."""
        return (_CLOCK, _DELAYS, *(f"/proc/spl/kstat/zfs/{pool}/txgs" for pool in self._pools))

    def read(self, texts: tuple[str, ...]) -> Reading:
        """Return the reading that `paths` give, of what each group did since the last."""
        clock, delays, *groups = texts
        now_ns = instant_ns(clock)
        found = {_DELAYED: parse_kstat(delays).get(_DELAYED)}
        for pool, text in zip(self._pools, groups, strict=True):
            found |= self._of_pool(pool, parse(text), now_ns)
        return {name: value for name, value in found.items() if value is not None}

    def _of_pool(self, pool: str, groups: Sequence[Group], now_ns: float | None) -> dict[str, float | None]:
        ended = [group for group in groups if group.state == _COMMITTED]
        if not ended:
            return {}
        newest = max(group.number for group in ended)
        last = self._told.get(pool, newest)
        # A pool that was imported anew may begin with a smaller number.
        since = [group for group in ended if group.number > last] if newest >= last else []
        self._told[pool] = newest
        written = self._written[pool] = self._written.get(pool, 0) + sum(each.written_bytes for each in since)
        so_far = [now_ns - each.began_sync_ns for each in groups if each.state == _SYNCING and now_ns]
        took = [*(each.sync_ns for each in since), *(ns for ns in so_far if ns >= 0)]
        return {
            f"{pool} stime": max(took, default=None),
            f"{pool} txg": newest,
            f"{pool} ndirty": max((each.dirty_bytes for each in since), default=None),
            f"{pool} nwritten": written,
        }


def columns(pools: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of `pools`."""
    each = (
        column
        for pool in pools
        for column in (
            gauge(f"{pool}_sync_ms", f"{pool} stime", _MS_OF_NS),
            rate(f"{pool}_groups_per_s", f"{pool} txg"),
            gauge(f"{pool}_dirty_bytes", f"{pool} ndirty"),
            rate(f"{pool}_written_bytes_per_s", f"{pool} nwritten"),
        )
    )
    return (*each, rate("delayed_per_s", _DELAYED))


COLUMNS = columns(["POOL"])  # as they are documented


async def _prepare(machine: Machine, options: ObserverOptions, say: Say) -> Source | None:
    pools = await imported_pools(machine, options.pools, "txg", say)
    if not pools:
        return None
    groups = Groups(pools)
    try:
        texts = await read_files(machine, groups.paths)
    except MachineError as error:
        say(f"txg: {error}")
        return None
    if not any(parse(text or "") for text in texts[2:]):
        say(f"txg: {groups.paths[2]} says nothing: no OpenZFS of the kernel, or zfs_txg_history is 0")
        return None
    return Source("txg", columns(pools), groups.read, groups.paths)


OBSERVER = Observer("txg", COLUMNS, _prepare)
