"""OpenZFS's intent log (ZIL), which an fsync waits for, on all pools together.

The names are those of `zil_stats` in module/zfs/zil.c: `_write`, what is written with headers and padding,
has been counted since OpenZFS 2.2.
"""

from plimsoll.lab.observers.arcstats import parse
from plimsoll.lab.observers.counters import Reading, rate
from plimsoll.lab.observers.observer import file_observer

PATHS = ("/proc/spl/kstat/zfs/zil",)


def read(texts: tuple[str, ...]) -> Reading:
    """Return the reading that `PATHS` give."""
    return parse(texts[0])


COLUMNS = (
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

OBSERVER = file_observer("zil", COLUMNS, read, PATHS)
