"""The registry of all that observers know of a host (docs/observers.md): subjects, and their rows.

A row here is drawn in the report, has a limit beyond which it stands out, and may be what slow windows have
in common; `make docs` writes it into docs/report.md and docs/stalls.md. What it names of host.csv is read
once a run.
"""

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from plimsoll.analysis.evidence.poolwork import is_pool_work
from plimsoll.common.errors import RunDirectoryError
from plimsoll.rundir.hostfile import HostSamples, read_samples
from plimsoll.rundir.names import HOST_FILE
from plimsoll.rundir.read import RunDirectory

LATENCY = re.compile(r"diskstats\.(.+)_read_latency_ms", re.DOTALL)
ARC_HITS = "arcstats.hit_percent"
_MOST_OF_ONE = 60.0  # % of a processor
_SCALES = {"GiB": float(1 << 30), "MB": 1e6, "MB/s": 1e6}


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

    `name` stands at its axis, `said` in sentences. `column` finds the columns; its group, if it has one, is
    the device or the pool, over which values are joined. A row is quiet where it never exceeds `quiet`, or,
    if it `moves` (a gauge that is never 0), where it never moved by more than this share. `alarm` says which
    change stands out: one that rises by `at`, falls by this share, or to so many times as much. `beside` is
    drawn dotted in the same row. `of_one`: a thread that takes one processor of many is worth a look, such as
    one that reclaims memory.

    `bad` says on which side it may hold up requests; "" where neither would. `near` names an instant at which
    it does, with `{}` for the value and its unit, where "SAID over 3 ms" would not do. `on_off`: it is 0 or
    1, and has no amount. `saturator` is the one whose own work it shows: of such a run it is not a source.

    `means` and `look_at` are for docs/stalls.md: what it usually is that stands out, and where to look then.
    """

    name: str
    said: str
    unit: str
    column: str
    quiet: float
    alarm: Literal["", "rises", "falls", "times"] = ""
    at: float = 0.0
    depth: Depth = Depth.SIGN
    join: Literal["sum", "mean", "max"] = "sum"
    moves: bool = False
    beside: str = ""
    of_one: bool = False
    bad: Literal["", "high", "low"] = "high"
    near: str = ""
    on_off: bool = False
    saturator: str = ""
    means: str = ""
    look_at: str = ""

    @property
    def title(self) -> str:
        """The name with its unit."""
        return (
            f"{self.name}/s"
            if self.unit == "/s"
            else f"{self.name} ({self.unit})"
            if self.unit
            else self.name
        )

    @property
    def scale(self) -> float:
        """What a value of the observers is divided by to be in `unit`."""
        return _SCALES.get(self.unit, 1.0)

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


_OPENZFS = "https://openzfs.github.io/openzfs-docs/Performance%20and%20Tuning"
_PARAMETERS = f"[Module Parameters]({_OPENZFS}/Module%20Parameters.html)"
_THROTTLE = f"[the write throttle]({_OPENZFS}/ZFS%20Transaction%20Delay.html)"
# A table: the columns of a row first, then what it means.
# fmt: off
SUBJECTS = (
    HostSubject(
        "cpu",
        "The processors",
        "All processors together. System is the kernel: file system, ZFS, and what reclaims memory.",
        (
            HostRow("system", "system CPU", "%", r"cpu\.system_percent", 10, "rises", 25, of_one=True,
                    means="the kernel works: reclaims memory, compresses, sums, copies",
                    look_at="[cgroup and PSI](https://docs.kernel.org/accounting/psi.html); `perf top` on "
                            "the host"),
            HostRow("user", "user CPU", "%", r"cpu\.user_percent", 10, "rises", 40,
                    means="PHP, the database or a neighbour computes",
                    look_at="PHP's slow log; cron jobs of the site"),
            HostRow("iowait", "iowait", "%", r"cpu\.iowait_percent", 10, "rises", 25,
                    means="processors idle while tasks wait for disks: a sign, not a cause",
                    look_at="the rows of the disks"),
            HostRow("steal", "steal", "%", r"cpu\.steal_percent", 2, "rises", 5, Depth.WORK,
                    means="other guests take the processors that this one was to have",
                    look_at="the hypervisor's load; `nice`, pinning, fewer processors for others"),
            HostRow("blocked tasks", "blocked tasks", "", r"cpu\.blocked_count", 3, "rises", 8,
                    means="many tasks wait in the kernel, mostly for disks or locks of a file system",
                    look_at="`echo w > /proc/sysrq-trigger`, then `dmesg`"),
        ),
    ),
    HostSubject(
        "pressure",
        "Pressure: who had to wait",
        "The share of each second in which some tasks waited, or all of them (full).",
        (
            HostRow("I/O, some", "I/O pressure", "%", r"pressure\.io_some_percent", 10, "rises", 25,
                    means="some tasks waited for the storage, as PSI counts it",
                    look_at="the rows of the disks and of the pool"),
            HostRow("I/O, full", "full I/O pressure", "%", r"pressure\.io_full_percent", 10, "rises", 20,
                    means="all tasks that were not idle waited for the storage",
                    look_at="the same"),
            HostRow("memory, some", "memory pressure", "%", r"pressure\.memory_some_percent", 2, "rises", 5,
                    Depth.MEMORY,
                    means="tasks had to free memory before they got some: the page cache is full of what "
                          "is not yet written, or the ARC is too large",
                    look_at="`vm.dirty_background_bytes`, `zfs_arc_max` ([tuning.md](tuning.md))"),
            HostRow("memory, full", "full memory pressure", "%", r"pressure\.memory_full_percent", 2, "rises",
                    5, Depth.MEMORY,
                    means="nothing else happened meanwhile",
                    look_at="the same"),
            HostRow("CPU, some", "CPU pressure", "%", r"pressure\.cpu_some_percent", 20, "rises", 50,
                    means="there are more runnable tasks than processors",
                    look_at="fewer workers, or more processors"),
        ),
    ),
    HostSubject(
        "memory",
        "The memory",
        "Available is what programs could still have; dirty waits to be written. Near the kernel's limit "
        "whoever writes has to wait.",
        (
            HostRow("available", "available memory", "GiB", r"memory\.available_bytes", 0.1, "falls", 0.4,
                    Depth.MEMORY, moves=True, bad="low",
                    means="programs, or the ARC, have taken what there was",
                    look_at="`zfs_arc_max`; the buffer pool's size"),
            HostRow("dirty", "dirty memory", "GiB", r"memory\.(?:dirty|writeback)_bytes", 0.1, "rises", 0.25,
                    Depth.MEMORY,
                    means="written faster than the disks take it; at `vm.dirty_ratio` whoever writes has "
                          "to wait",
                    look_at="[the kernel's page](https://docs.kernel.org/admin-guide/sysctl/vm.html): "
                            "`dirty_bytes`, `dirty_background_bytes`"),
            HostRow("dirty, of its limit", "dirty memory, of its limit", "%", r"memory\.dirty_limit_percent",
                    20, "rises", 25, Depth.MEMORY, near="dirty memory over {} of its limit",
                    means="from half-way between the limits of background writing and of writers on, the "
                          "kernel makes whoever writes wait; the limit is the share of the available "
                          "memory that `vm.dirty_ratio` allows",
                    look_at="the same; `Dirty` in `/proc/meminfo`, `nr_dirty_threshold` in `/proc/vmstat`"),
            HostRow("slab", "slab", "GiB", r"memory\.slab_bytes", 0.3, moves=True, bad=""),
            HostRow("swap used", "swap", "GiB", r"memory\.swap_used_bytes", 0.05, "rises", 0.1, Depth.MEMORY,
                    means="the kernel moved memory of programs to disk, which they then wait for",
                    look_at="a smaller ARC or buffer pool; `vm.swappiness`"),
        ),
    ),
    HostSubject(
        "work",
        "What ran on the pool",
        "1 while it ran, 0 otherwise; TRIM: on how many disks. From zpool status, every two seconds.",
        (
            HostRow("a scrub", "a scrub", "", r"poolstate\.(.+)_scrub_count", 0.5, "rises", 0.5, Depth.WORK,
                    join="max", on_off=True, near="a scrub of the pool", saturator="scrub",
                    means="somebody, or the distribution's timer each month, checks the pool: a verdict on "
                          "such a run is [INCONCLUSIVE](evidence.md#the-pool)",
                    look_at="`zpool status`; `systemctl list-timers`, `/etc/cron.d/zfsutils-linux`; "
                            "`zfs_vdev_scrub_max_active`"),
            HostRow("a resilver", "a resilver", "", r"poolstate\.(.+)_resilver_count", 0.5, "rises", 0.5,
                    Depth.WORK, join="max", on_off=True, near="a resilver of the pool", saturator="resilver",
                    means="the pool copies what a replaced disk should have",
                    look_at="`zpool status`; wait for it"),
            HostRow("TRIM", "TRIM", "", r"poolstate\.(.+)_trim_count", 0.5, "rises", 0.5, Depth.WORK,
                    join="max", on_off=True, near="TRIM of the pool's disks",
                    means="disks learn which blocks are free, and some serve nothing else meanwhile",
                    look_at="`zpool status -t`; `autotrim`, the timer of `zpool trim`"),
        ),
        "pools",
    ),
    HostSubject(
        "arc",
        "What ZFS's cache had",
        "ARC is ZFS's cache in memory, and its target (dotted) the size that it may have. Hits: what share "
        "of the reads that reached it, it had; the others went to the disks.",
        (
            HostRow("ARC hits", "ARC hits", "%", r"arcstats\.hit_percent", 0.05, "falls", 0.1, Depth.MEMORY,
                    moves=True, bad="low",
                    means="what the site reads was pushed out of ZFS's cache, often by a backup or a send",
                    look_at=f"{_PARAMETERS}: `zfs_arc_min`, `primarycache` of what is read once"),
            HostRow("ARC size", "ARC size", "GiB", r"arcstats\.size_bytes", 0.1, "falls", 0.25, Depth.MEMORY,
                    moves=True, beside=r"arcstats\.target_bytes", bad="low",
                    means="the kernel took memory back from ZFS's cache",
                    look_at="`zfs_arc_min`; what else takes memory"),
            HostRow("misses", "ARC misses", "/s", r"arcstats\.misses_per_s", 50, depth=Depth.MEMORY,
                    means="reads go to the disks",
                    look_at="as with ARC hits"),
            HostRow("throttled", "reads that ARC throttled", "/s", r"arcstats\.throttled_per_s", 0.5, "rises",
                    1, Depth.MEMORY,
                    means="ZFS found no memory for a read and made it wait",
                    look_at="`zfs_arc_max`, more memory"),
        ),
    ),
    HostSubject(
        "groups",
        "ZFS's transaction groups",
        "What is written is synced to the disks in groups. While one takes long, whoever writes fills the "
        "next, and then waits. Dirty is what a group that ended had to write.",
        (
            HostRow("sync", "a transaction group's sync", "ms", r"txg\.(.+)_sync_ms", 1000, "times", 3,
                    Depth.STORE, join="max", near="a transaction group that took over {} to sync",
                    means="the disks take what was written more slowly than it comes, and who writes has "
                          "to wait for the group before",
                    look_at="`/proc/spl/kstat/zfs/POOL/txgs`; `zfs_dirty_data_max`, `zfs_txg_timeout`, "
                            f"{_THROTTLE}"),
            HostRow("dirty", "a group's dirty data", "MB", r"txg\.(.+)_dirty_bytes", 64, "times", 10,
                    Depth.STORE, join="max",
                    means="somebody writes much at once: a backup, an import, the images of an upload",
                    look_at=f"`zfs_dirty_data_max`, `zfs_dirty_data_sync_percent` ({_PARAMETERS})"),
        ),
        "pools",
    ),
    HostSubject(
        "intent",
        "Writes that wait: ZFS's intent log",
        "An fsync waits for a write of the log, to a log device (SLOG) if there is one, else to the pool. "
        "Delayed are writes for which the pool had too much dirty data.",
        (
            HostRow("delayed", "writes that ZFS delayed", "/s", r"txg\.delayed_per_s", 0.5, "rises", 10,
                    Depth.STORE,
                    means="so much was dirty that ZFS slowed down whoever writes",
                    look_at=f"{_THROTTLE}: `zfs_delay_min_dirty_percent`"),
            HostRow("commits", "commits of the ZIL", "/s", r"zil\.commits_per_s", 20, "times", 5,
                    Depth.STORE,
                    means="more fsyncs, mostly of the database",
                    look_at="`innodb_flush_log_at_trx_commit`; `sync` of the dataset"),
            HostRow("to the pool", "the ZIL on the pool", "MB/s", r"zil\.pool_bytes_per_s", 1, "times", 10,
                    Depth.STORE,
                    means="what is synced is written to the pool's own disks first, and later again",
                    look_at="a SLOG; `logbias`"),
            HostRow("to the SLOG", "the ZIL on its SLOG", "MB/s", r"zil\.slog_bytes_per_s", 1, "times", 10,
                    Depth.STORE,
                    means="more synced writes than usual; one device takes them all",
                    look_at="`zpool iostat -v`: how busy is the log device?"),
        ),
    ),
    HostSubject(
        "disks",
        "The disks",
        "Those of the storage, together, where it is known which they are; else all. Times are means of "
        "what ended, with the wait in the kernel.",
        (
            HostRow("read", "disk reads", "MB/s", r"diskstats\.(.+)_read_bytes_per_s", 1, depth=Depth.DISK,
                    means="something reads much: a backup, a scan, a send",
                    look_at="who: `iotop`, `zpool iostat`"),
            HostRow("written", "disk writes", "MB/s", r"diskstats\.(.+)_write_bytes_per_s", 1, "times", 10,
                    Depth.DISK,
                    means="something writes much: temporary tables, an import, logs",
                    look_at="who: `iotop`"),
            HostRow("a read", "a disk read", "ms", r"diskstats\.(.+)_read_latency_ms", 2, "times", 3,
                    Depth.DISK, join="mean",
                    means="the disk is at its limit, or its queue is long",
                    look_at="the scheduler (`queue.scheduler`), the saturator's rate"),
            HostRow("a write", "a disk write", "ms", r"diskstats\.(.+)_write_latency_ms", 2, "times", 3,
                    Depth.DISK, join="mean",
                    means="the same; of a consumer SSD, that its fast cache is full",
                    look_at="longer runs; the drive's data sheet"),
            HostRow("a flush", "a flush", "ms", r"diskstats\.(.+)_flush_latency_ms", 2, "times", 3,
                    Depth.DISK, join="mean",
                    means="the drive empties its cache at every commit: no power-loss protection",
                    look_at="a drive with it, a SLOG; `innodb_flush_log_at_trx_commit`"),
            HostRow("busy", "the busiest disk", "%", r"diskstats\.(.+)_util_percent", 20, "rises", 60,
                    Depth.DISK, join="max",
                    means="one disk of many is at its limit",
                    look_at="`zpool iostat -v`: is one slower than its mirror?"),
        ),
        "disks",
    ),
    HostSubject(
        "pools",
        "The pool",
        "As zpool iostat has it: what the pool was asked for, and how long that took with its own queues.",
        (
            HostRow("read", "pool reads", "MB/s", r"zpool\.(.+)_read_bytes_per_s", 1, depth=Depth.DISK,
                    means="as with disk reads",
                    look_at="`zpool iostat`"),
            HostRow("written", "pool writes", "MB/s", r"zpool\.(.+)_write_bytes_per_s", 1, "times", 10,
                    Depth.DISK,
                    means="as with disk writes",
                    look_at="`zpool iostat`"),
            HostRow("a read", "a pool read", "ms", r"zpool\.(.+)_read_latency_ms", 2, "times", 3, Depth.DISK,
                    join="mean",
                    means="the pool's own queues are long",
                    look_at="`zfs_vdev_async_read_max_active`, `zfs_vdev_scrub_max_active`"),
            HostRow("a write", "a pool write", "ms", r"zpool\.(.+)_write_latency_ms", 2, "times", 3,
                    Depth.DISK, join="mean",
                    means="the pool takes writes more slowly than they come, so ZFS delays them",
                    look_at=f"{_THROTTLE}: `zfs_dirty_data_max`"),
        ),
        "pools",
    ),
    HostSubject(
        "waits",
        "What the pool's slowest reads and writes took",
        "The slowest of a hundred in each second, and the slowest of all, with ZFS's own queues; upper "
        "bounds, each twice the one before.",
        (
            HostRow("read, p99", "p99 of pool reads", "ms", r"poolwaits\.(.+)_read_p99_ms", 8, "times", 3,
                    Depth.DISK, join="max",
                    means="one read of a hundred waited that long, in ZFS's queues or at a disk",
                    look_at="`zpool iostat -w`: do the disks take as long?"),
            HostRow("read, slowest", "the slowest pool read", "ms", r"poolwaits\.(.+)_read_max_ms", 16,
                    "times", 3, Depth.DISK, join="max",
                    means="a disk that retries, or one queue that is starved",
                    look_at="`zpool iostat -w`, `smartctl -a`"),
            HostRow("write, p99", "p99 of pool writes", "ms", r"poolwaits\.(.+)_write_p99_ms", 8, "times", 3,
                    Depth.DISK, join="max",
                    means="as with a pool write; a group's sync asks for many at once",
                    look_at="`zpool iostat -w`, `zfs_vdev_async_write_max_active`"),
            HostRow("write, slowest", "the slowest pool write", "ms", r"poolwaits\.(.+)_write_max_ms", 16,
                    "times", 3, Depth.DISK, join="max",
                    means="a disk that empties its cache, or retries",
                    look_at="`zpool iostat -w`, `smartctl -a`"),
        ),
        "pools",
    ),
    HostSubject(
        "vdevs",
        "A disk behind its mirror",
        "By how much the slowest disk of a mirror or RAID took longer than the others at the same time.",
        (
            HostRow("read", "reads of a disk behind its mirror", "ms", r"vdevs\.(.+)_read_behind_ms", 4,
                    "times", 3, Depth.DISK, join="max",
                    means="one disk is slower than its mirror: it retries, it is another model, or its "
                          "port is slower",
                    look_at="`zpool iostat -vl`, `smartctl -a`, `dmesg`"),
            HostRow("write", "writes of a disk behind its mirror", "ms", r"vdevs\.(.+)_write_behind_ms", 4,
                    "times", 3, Depth.DISK, join="max",
                    means="the same; every write waits for the slowest disk",
                    look_at="the same"),
        ),
        "pools",
    ),
    HostSubject(
        "fsync",
        "What a database waits for",
        "Once a second 4 KiB are written beside the site's data, and an fdatasync waits until the disk has "
        "them. One that still waits counts with what it has waited so far.",
        (
            HostRow("the write", "the probe's write", "ms", r"fsync\.write_ms", 5, "times", 3, Depth.DISK,
                    join="mean", bad=""),
            HostRow("write and fdatasync", "the fsync probe", "ms", r"fsync\.total_ms", 5, "times", 3,
                    Depth.DISK, near="an fsync probe over {}",
                    means="whoever commits waits: a flush, a full queue, the journal or the transaction "
                          "group of the file system",
                    look_at="the rows of the disks and of the pool beside it; `fsync.write_ms`: if the "
                            "write waits too, it is the file system or memory, not the flush"),
        ),
    ),
    HostSubject(
        "mariadb",
        "MariaDB",
        "Misses are pages that its buffer pool had to read; waits are for a free page or the log; row "
        "locks, how often a statement waited for one.",
        (
            HostRow("queries", "queries", "/s", r"mariadb\.queries_per_s", 5, "times", 10, Depth.DATABASE,
                    bad=""),
            HostRow("row locks", "row-lock waits", "/s", r"mariadb\.row_lock_waits_per_s", 0.5, "rises", 2,
                    Depth.DATABASE, near="a wait for a row's lock, {} or more",
                    means="a transaction holds rows that others want to write: an import, a long update, a "
                          "counter that everybody raises",
                    look_at="`SHOW ENGINE INNODB STATUS`, [InnoDB's "
                            "locks](https://mariadb.com/kb/en/innodb-lock-modes/)"),
            HostRow("statements that wait for a row", "statements that wait for a row", "",
                    r"mariadb\.row_lock_current_waits_count", 0.5, "rises", 2, Depth.DATABASE,
                    near="{} or more statements that wait for a row",
                    means="as many hold still at this instant for a row that another transaction holds",
                    look_at="the same; `information_schema.INNODB_LOCK_WAITS`"),
            HostRow("row-lock time", "time in row-lock waits", "ms/s", r"mariadb\.row_lock_time_ms_per_s", 20,
                    "rises", 200, Depth.DATABASE,
                    means="what all statements together waited, counted when a wait ends",
                    look_at="the same"),
            HostRow("fsyncs waited for", "pending fsyncs", "", r"mariadb\.(?:log_)?pending_fsyncs_count", 0.5,
                    "rises", 1, Depth.DATABASE, near="{} or more pending fsyncs of MariaDB",
                    means="MariaDB waits for the disk now",
                    look_at="the rows of the disks; the fsync probe"),
            HostRow("redo log in use", "the redo log in use", "%", r"mariadb\.checkpoint_percent", 50,
                    "rises", 25, Depth.DATABASE,
                    means="the log fills faster than pages are written; near 100 % everybody waits for "
                          "that",
                    look_at="`innodb_log_file_size`, `innodb_io_capacity`"),
            HostRow("the redo log", "MariaDB's redo log", "ms", r"mariadb\.log_file_wait_ms", 2, "times", 3,
                    Depth.DATABASE, join="mean",
                    means="every commit waits for it",
                    look_at="`innodb_flush_log_at_trx_commit`; the fsync probe beside it"),
            HostRow("data files", "MariaDB's data files", "ms", r"mariadb\.data_file_wait_ms", 2, "times", 3,
                    Depth.DATABASE, join="mean",
                    means="pages are read or written slowly",
                    look_at="the buffer pool's size; the rows of the disks"),
            HostRow("the binary log", "MariaDB's binary log", "ms", r"mariadb\.binlog_wait_ms", 2, "times", 3,
                    Depth.DATABASE, join="mean",
                    means="with `sync_binlog=1` every commit waits for it too",
                    look_at="`sync_binlog`, `log_bin`"),
            HostRow("pool misses", "buffer-pool misses", "/s", r"mariadb\.pool_misses_per_s", 20, "times", 5,
                    Depth.DATABASE,
                    means="MariaDB reads pages that do not fit its buffer pool",
                    look_at="`innodb_buffer_pool_size`"),
            HostRow("fsyncs", "fsyncs", "/s", r"mariadb\.fsyncs_per_s", 20, "times", 5, Depth.DATABASE,
                    means="more commits, each of which waits for the disk",
                    look_at="`innodb_flush_log_at_trx_commit`; fewer, larger transactions"),
            HostRow("waits", "MariaDB's waits", "/s", r"mariadb\.(?:pool|log)_waits_per_s", 0.5, "rises", 2,
                    Depth.DATABASE,
                    means="no free page in the buffer pool, or the log's buffer is full",
                    look_at="`innodb_io_capacity`, `innodb_log_buffer_size`"),
            HostRow("threads running", "running threads", "", r"mariadb\.threads_running_count", 4, "rises",
                    8, Depth.DATABASE,
                    means="statements that take longer than they come: a sign",
                    look_at="the slow-query log"),
        ),
    ),
    HostSubject(
        "php",
        "PHP",
        "Who waits for one of its workers, how many of them work, and what PHP had to recompile.",
        (
            HostRow("queue", "PHP's queue", "", r"php\.queue_count", 0.5, "rises", 2, Depth.SITE,
                    near="{} or more visitors in PHP's queue",
                    means="all workers of the pool are busy, and visitors wait for one",
                    look_at="`pm.max_children`; what the workers wait for: the rows above"),
            HostRow("its own status page", "PHP's status page", "ms", r"php\.status_wait_ms", 50, "times", 5,
                    Depth.SITE,
                    means="it waits for a worker as a visitor does",
                    look_at="the same"),
            HostRow("workers in use", "PHP's workers in use", "%", r"php\.busy_percent", 50, "rises", 40,
                    Depth.SITE,
                    means="near 100 % the next visitor waits",
                    look_at="the same; `request_slowlog_timeout`"),
            HostRow("recompiled", "OPcache's misses", "/s", r"php\.opcache_misses_per_s", 2, "rises", 20,
                    Depth.SITE,
                    means="PHP compiles scripts: after a deployment, or since its memory is full",
                    look_at="`opcache.memory_consumption`, `opcache.max_accelerated_files`"),
            HostRow("OPcache restarts", "OPcache's restarts", "/s", r"php\.opcache_restarts_per_s", 0.01,
                    "rises", 0.1, Depth.SITE,
                    means="it was full and threw everything away",
                    look_at="the same; `opcache.max_wasted_percentage`"),
        ),
    ),
)
# fmt: on


_DRAWN = [
    pattern for subject in SUBJECTS for row in subject.rows for pattern in (row.column, row.beside) if pattern
]


@dataclass(frozen=True)
class HostCounters:
    """What the observers counted, as far as a report shows it; `trouble` says why it cannot be read."""

    samples: HostSamples
    trouble: str | None = None


def counters_of(run: RunDirectory) -> HostCounters:
    """Read host.csv of `run`; it holds nothing where there is none, or where it is damaged."""
    try:
        return HostCounters(read_samples(run.path / HOST_FILE, _is_shown))
    except RunDirectoryError as error:
        return HostCounters(HostSamples(), str(error))


def _is_shown(name: str) -> bool:
    named = name == ARC_HITS or is_pool_work(name)
    return named or any(re.fullmatch(each, name, re.DOTALL) for each in (LATENCY.pattern, *_DRAWN))
