"""The figures of OpenZFS's own work: what runs on a pool, its groups, its intent log, its slowest waits."""

from plimsoll.analysis.report.host_rows import Depth, HostRow, Subject

_MB = 1e6


def _wait(title: str, said: str, column: str, quiet: float) -> HostRow:
    return HostRow(
        f"{title} (ms)",
        said,
        "ms",
        column,
        quiet,
        join="max",
        alarm="times",
        at=3.0,
        depth=Depth.DISK,
    )


def _runs(said: str, column: str, near: str, saturator: str = "") -> HostRow:
    return HostRow(
        said,
        said,
        "",
        column,
        0.5,
        join="max",
        alarm="rises",
        at=0.5,
        depth=Depth.WORK,
        near=near,
        on_off=True,
        saturator=saturator,
    )


WORK = Subject(
    "work",
    "What ran on the pool",
    "1 while it ran, 0 otherwise; TRIM: on how many disks. From zpool status, every five seconds.",
    (
        _runs("a scrub", r"poolstate\.(.+)_scrub_count", "a scrub of the pool", "scrub"),
        _runs("a resilver", r"poolstate\.(.+)_resilver_count", "a resilver of the pool", "resilver"),
        _runs("TRIM", r"poolstate\.(.+)_trim_count", "TRIM of the pool's disks"),
    ),
    "pools",
)
GROUPS = Subject(
    "groups",
    "ZFS's transaction groups",
    "What is written is synced to the disks in groups. While one takes long, whoever writes fills the next, "
    "and then waits. Dirty is what a group that ended had to write.",
    (
        HostRow(
            "sync (ms)",
            "a transaction group's sync",
            "ms",
            r"txg\.(.+)_sync_ms",
            1000,
            join="max",
            alarm="times",
            at=3.0,
            depth=Depth.STORE,
            near="a transaction group that took over {} to sync",
        ),
        HostRow(
            "dirty (MB)",
            "a group's dirty data",
            "MB",
            r"txg\.(.+)_dirty_bytes",
            64,
            _MB,
            join="max",
            alarm="times",
            at=10.0,
            depth=Depth.STORE,
        ),
    ),
    "pools",
)
INTENT = Subject(
    "intent",
    "Writes that wait: ZFS's intent log",
    "An fsync waits for a write of the log, to a log device (SLOG) if there is one, else to the pool. "
    "Delayed are writes for which the pool had too much dirty data.",
    (
        HostRow(
            "delayed/s",
            "writes that ZFS delayed",
            "/s",
            r"txg\.delayed_per_s",
            0.5,
            alarm="rises",
            at=10.0,
            depth=Depth.STORE,
        ),
        HostRow(
            "commits/s",
            "commits of the ZIL",
            "/s",
            r"zil\.commits_per_s",
            20,
            alarm="times",
            at=5.0,
            depth=Depth.STORE,
        ),
        HostRow(
            "to the pool (MB/s)",
            "the ZIL on the pool",
            "MB/s",
            r"zil\.pool_bytes_per_s",
            1.0,
            _MB,
            alarm="times",
            at=10.0,
            depth=Depth.STORE,
        ),
        HostRow(
            "to the SLOG (MB/s)",
            "the ZIL on its SLOG",
            "MB/s",
            r"zil\.slog_bytes_per_s",
            1.0,
            _MB,
            alarm="times",
            at=10.0,
            depth=Depth.STORE,
        ),
    ),
)
WAITS = Subject(
    "waits",
    "What the pool's slowest reads and writes took",
    "The slowest of a hundred in each second, and the slowest of all, with ZFS's own queues; upper bounds, "
    "each twice the one before.",
    (
        _wait("read, p99", "p99 of pool reads", r"poolwaits\.(.+)_read_p99_ms", 8.0),
        _wait("read, slowest", "the slowest pool read", r"poolwaits\.(.+)_read_max_ms", 16.0),
        _wait("write, p99", "p99 of pool writes", r"poolwaits\.(.+)_write_p99_ms", 8.0),
        _wait("write, slowest", "the slowest pool write", r"poolwaits\.(.+)_write_max_ms", 16.0),
    ),
    "pools",
)
VDEVS = Subject(
    "vdevs",
    "A disk behind its mirror",
    "By how much the slowest disk of a mirror or RAID took longer than the others at the same time.",
    (
        _wait("read", "reads of a disk behind its mirror", r"vdevs\.(.+)_read_behind_ms", 4.0),
        _wait("write", "writes of a disk behind its mirror", r"vdevs\.(.+)_write_behind_ms", 4.0),
    ),
    "pools",
)
