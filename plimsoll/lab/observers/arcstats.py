"""OpenZFS's cache (ARC). Hosts without the kernel module, such as those with zfs-fuse, have no such file."""

from plimsoll.lab.observers.counters import Column, Pair, Reading, gauge, number, rate
from plimsoll.lab.observers.observer import file_observer

PATHS = ("/proc/spl/kstat/zfs/arcstats",)


def parse(text: str) -> dict[str, float]:
    """Return the statistics by name; lines that are none are left out."""
    found = {}
    for line in text.split("\n"):
        words = line.split()
        if len(words) == 3 and words[1] == "4" and (value := number(words[2])) is not None:
            found[words[0]] = value
    return found


def read(texts: tuple[str, ...]) -> Reading:
    """Return the reading that `PATHS` give."""
    return parse(texts[0])


def _hit_percent(pair: Pair) -> float | None:
    hits, misses = pair.delta("hits"), pair.delta("misses")
    if hits is None or misses is None:
        return None
    return pair.ratio(100 * hits, hits + misses)


COLUMNS = (
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

OBSERVER = file_observer("arcstats", COLUMNS, read, PATHS)
