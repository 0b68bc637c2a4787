"""The observers `arcstats`, `txg` and `zil`: what OpenZFS's kernel module counts.

Hosts without the module, such as those with zfs-fuse, have none of its files.

A transaction group (txg) collects what is written, then is synced to the disks; who writes meanwhile goes
into the next one, until there is too much of it. The format of their history is that of
`spa_txg_history_show` in module/zfs/spa_stats.c (OpenZFS 0.7 to 2.4): a header, then a line for each of the
last `zfs_txg_history` groups (100 by default), the oldest first.

An fsync waits for the intent log (ZIL), which is counted for all pools together. The names are those of
`zil_stats` in module/zfs/zil.c: `_write`, what is written with headers and padding, has been counted since
OpenZFS 2.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.observers.observer import (
    Column,
    FileSource,
    Log,
    Observer,
    ObserverOptions,
    Reading,
    ReadingPair,
    file_observer,
    gauge,
    number,
    rate,
    read_files,
)
from plimsoll.lab.observers.zpool import find_pools

ARC_PATHS = ("/proc/spl/kstat/zfs/arcstats",)
ZIL_PATHS = ("/proc/spl/kstat/zfs/zil",)
# Its first line ends with the instant of the reading, by the clock that groups are timed with.
_CLOCK, _DELAYS = ZIL_PATHS[0], "/proc/spl/kstat/zfs/dmu_tx"
_DELAYED = "dmu_tx_dirty_delay"
_FIELDS = 12
_MS_OF_NS = 1 / 1e6
_SYNCING, _COMMITTED = "S", "C"


def parse_kstat(text: str) -> dict[str, float]:
    """Return the statistics by name; other lines are left out."""
    found = {}
    for line in text.split("\n"):
        words = line.split()
        if len(words) == 3 and words[1] == "4" and (value := number(words[2])) is not None:
            found[words[0]] = value
    return found


def read_kstat(texts: tuple[str, ...]) -> Reading:
    """Return the reading that `ARC_PATHS` or `ZIL_PATHS` give."""
    return parse_kstat(texts[0])


def _hit_percent(pair: ReadingPair) -> float | None:
    hits, misses = pair.delta("hits"), pair.delta("misses")
    if hits is None or misses is None:
        return None
    return pair.ratio(100 * hits, hits + misses)


ARC_COLUMNS = (
    gauge("size_bytes", "size"),
    gauge("target_bytes", "c"),
    gauge("max_bytes", "c_max"),
    gauge("data_bytes", "data_size"),
    gauge("metadata_bytes", "metadata_size"),
    rate("hits_per_s", "hits"),
    rate("misses_per_s", "misses"),
    Column("hit_percent", "hits / (hits + misses)", _hit_percent),
    rate("demand_data_misses_per_s", "demand_data_misses"),
    rate("demand_metadata_misses_per_s", "demand_metadata_misses"),
    rate("prefetch_data_misses_per_s", "prefetch_data_misses"),
    rate("throttled_per_s", "memory_throttle_count"),
    gauge("l2_size_bytes", "l2_size"),
    rate("l2_hits_per_s", "l2_hits"),
    rate("l2_misses_per_s", "l2_misses"),
)

ARCSTATS = file_observer("arcstats", ARC_COLUMNS, read_kstat, ARC_PATHS)


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


def parse_groups(text: str) -> list[Group]:
    """Return the groups of a `txgs` file; other lines are left out."""
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
    """The groups of some pools; it remembers which have been reported."""

    def __init__(self, pools: Sequence[str]) -> None:
        self._pools = tuple(pools)
        self._reported: dict[str, int] = {}
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
            found |= self._pool_row(pool, parse_groups(text), now_ns)
        return {name: value for name, value in found.items() if value is not None}

    def _pool_row(self, pool: str, groups: Sequence[Group], now_ns: float | None) -> dict[str, float | None]:
        ended = [group for group in groups if group.state == _COMMITTED]
        if not ended:
            return {}
        newest = max(group.number for group in ended)
        last = self._reported.get(pool, newest)
        # A pool that was imported again may begin with a smaller number.
        since = [group for group in ended if group.number > last] if newest >= last else []
        self._reported[pool] = newest
        written = self._written[pool] = self._written.get(pool, 0) + sum(each.written_bytes for each in since)
        so_far = [now_ns - each.began_sync_ns for each in groups if each.state == _SYNCING and now_ns]
        took = [*(each.sync_ns for each in since), *(ns for ns in so_far if ns >= 0)]
        return {
            f"{pool} stime": max(took, default=None),
            f"{pool} txg": newest,
            f"{pool} ndirty": max((each.dirty_bytes for each in since), default=None),
            f"{pool} nwritten": written,
        }


def txg_columns(pools: Sequence[str]) -> tuple[Column, ...]:
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


TXG_COLUMNS = txg_columns(["POOL"])  # as they are documented


async def _prepare_txg(machine: Machine, options: ObserverOptions, log: Log) -> FileSource | None:
    pools = await find_pools(machine, options.pools, "txg", log)
    if not pools:
        return None
    groups = Groups(pools)
    try:
        texts = await read_files(machine, groups.paths)
    except MachineError as error:
        log(f"txg: {error}")
        return None
    if not any(parse_groups(text or "") for text in texts[2:]):
        log(f"txg: {groups.paths[2]} says nothing: no OpenZFS of the kernel, or zfs_txg_history is 0")
        return None
    return FileSource("txg", txg_columns(pools), groups.read, groups.paths)


TXG = Observer("txg", TXG_COLUMNS, _prepare_txg)


ZIL_COLUMNS = (
    rate("commits_per_s", "zil_commit_count"),
    rate("writes_per_s", "zil_commit_writer_count"),
    rate("transactions_per_s", "zil_itx_count"),
    rate("copied_bytes_per_s", "zil_itx_copied_bytes"),
    rate("needcopy_bytes_per_s", "zil_itx_needcopy_bytes"),
    rate("indirect_bytes_per_s", "zil_itx_indirect_bytes"),
    rate("pool_bytes_per_s", "zil_itx_metaslab_normal_bytes"),
    rate("pool_written_bytes_per_s", "zil_itx_metaslab_normal_write"),
    rate("slog_bytes_per_s", "zil_itx_metaslab_slog_bytes"),
    rate("slog_written_bytes_per_s", "zil_itx_metaslab_slog_write"),
)

ZIL = file_observer("zil", ZIL_COLUMNS, read_kstat, ZIL_PATHS)
