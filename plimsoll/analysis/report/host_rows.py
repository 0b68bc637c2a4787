"""What is known of a host, row by row: how it is drawn, when it stands out, on which side it is bad."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

_MOST_OF_ONE = 60.0  # % of a processor
Join = Literal["sum", "mean", "max"]
Alarm = Literal["", "rises", "falls", "times"]
Bad = Literal["", "high", "low"]
_MB = 1e6


class Depth(IntEnum):
    """How far below the visitor a row is: what is deeper is named first of those that move alike."""

    WORK = 0  # what somebody does to the storage beside the site
    STORE = 1  # what the file system has to do for it
    MEMORY = 2  # what that leaves of the memory and of caches
    DISK = 3
    DATABASE = 4
    SITE = 5
    SIGN = 6  # what waiting of any kind shows up in


@dataclass(frozen=True)
class HostRow:
    """One row of a figure: the columns that it is made of, and when it is worth a look.

    `column` finds them; its group, if it has one, is the device or the pool, over which values are joined.
    Values are divided by `scale` and then in `unit`. A row is quiet where it never exceeds `quiet`, or, if it
    `moves` (a gauge that is never 0), where it never moved by more than this share. `alarm` says which change
    stands out: one that rises by `at`, falls by this share, or to so many times as much. `beside` is drawn
    dotted in the same row. `of_one`: a thread that takes one processor of many is worth a look, such as one
    that reclaims memory.

    `bad` says on which side it may hold up requests; "" where neither would. `near` names an instant at which
    it does, with `{}` for the value and its unit, where "SAID over 3 ms" would not do. `on_off`: it is 0 or
    1, and has no amount. `saturator` is the one whose own work it shows: of such a run it is no source.
    """

    title: str
    said: str
    unit: str
    column: str
    quiet: float
    scale: float = 1.0
    join: Join = "sum"
    moves: bool = False
    alarm: Alarm = ""
    at: float = 0.0
    beside: str = ""
    of_one: bool = False
    bad: Bad = "high"
    depth: Depth = Depth.SIGN
    near: str = ""
    on_off: bool = False
    saturator: str = ""

    def share_of_one(self, limit: float, cpus: int | None) -> float:
        """Return `limit`, or most of one of so many processors, where that is less."""
        return min(limit, _MOST_OF_ONE / cpus) if self.of_one and cpus else limit


@dataclass(frozen=True)
class HostSubject:
    """One figure. `devices` says what the group in its columns is: of the storage only its own are drawn."""

    key: str
    title: str
    about: str
    rows: tuple[HostRow, ...]
    devices: Literal["", "disks", "pools"] = ""


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


WORK = HostSubject(
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


GROUPS = HostSubject(
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
INTENT = HostSubject(
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
WAITS = HostSubject(
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
VDEVS = HostSubject(
    "vdevs",
    "A disk behind its mirror",
    "By how much the slowest disk of a mirror or RAID took longer than the others at the same time.",
    (
        _wait("read", "reads of a disk behind its mirror", r"vdevs\.(.+)_read_behind_ms", 4.0),
        _wait("write", "writes of a disk behind its mirror", r"vdevs\.(.+)_write_behind_ms", 4.0),
    ),
    "pools",
)
