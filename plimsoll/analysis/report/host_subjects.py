"""The registry of all that observers know of a host (docs/observers.md): subjects, and their rows.

A line here is drawn in the report, has a limit beyond which it stands out, and may be what slow windows have
in common: plimsoll/analysis/report/host_rows.py has the type. What it names of host.csv is read once a run.
"""

import re
from dataclasses import dataclass, replace

from plimsoll.analysis.evidence.poolwork import is_pool_work
from plimsoll.analysis.report.host_rows import GROUPS, INTENT, VDEVS, WAITS, WORK, Depth, HostRow, HostSubject
from plimsoll.common.errors import RunDirectoryError
from plimsoll.rundir.hostfile import HostSamples, read_samples
from plimsoll.rundir.names import HOST_FILE
from plimsoll.rundir.read import RunDirectory

_GIB, _MB = float(1 << 30), 1e6
_ARC = HostSubject(
    "arc",
    "What ZFS's cache had",
    "ARC is ZFS's cache in memory, and its target (dotted) the size that it may have. Hits: what share of "
    "the reads that reached it, it had; the others went to the disks.",
    (
        HostRow(
            "ARC hits (%)",
            "ARC hits",
            "%",
            r"arcstats\.hit_percent",
            0.05,
            moves=True,
            alarm="falls",
            at=0.1,
            bad="low",
            depth=Depth.MEMORY,
        ),
        HostRow(
            "ARC size (GiB)",
            "ARC size",
            "GiB",
            r"arcstats\.size_bytes",
            0.1,
            _GIB,
            moves=True,
            alarm="falls",
            at=0.25,
            beside=r"arcstats\.target_bytes",
            bad="low",
            depth=Depth.MEMORY,
        ),
        HostRow("misses/s", "ARC misses", "/s", r"arcstats\.misses_per_s", 50, depth=Depth.MEMORY),
        HostRow(
            "throttled/s",
            "reads that ARC throttled",
            "/s",
            r"arcstats\.throttled_per_s",
            0.5,
            alarm="rises",
            at=1.0,
            depth=Depth.MEMORY,
        ),
    ),
)
LATENCY = re.compile(r"diskstats\.(.+)_read_latency_ms", re.DOTALL)
ARC_HITS = "arcstats.hit_percent"


def _percent(
    title: str, said: str, column: str, quiet: float, at: float, depth: Depth = Depth.SIGN
) -> HostRow:
    return HostRow(f"{title} (%)", said, "%", column, quiet, alarm="rises", at=at, depth=depth)


def _latency(title: str, said: str, column: str) -> HostRow:
    return HostRow(
        f"{title} (ms)", said, "ms", column, quiet=2.0, join="mean", alarm="times", at=3.0, depth=Depth.DISK
    )


def _throughput(title: str, said: str, column: str) -> HostRow:
    return HostRow(f"{title} (MB/s)", said, "MB/s", column, quiet=1.0, scale=_MB, depth=Depth.DISK)


def _written(said: str, column: str) -> HostRow:
    return replace(_throughput("written", said, column), alarm="times", at=10.0)


def _rate(title: str, said: str, column: str, quiet: float, at: float = 3.0) -> HostRow:
    return HostRow(f"{title}/s", said, "/s", column, quiet, alarm="times", at=at, depth=Depth.DATABASE)


_CPU = HostSubject(
    "cpu",
    "The processors",
    "All processors together. System is the kernel: file system, ZFS, and what reclaims memory.",
    (
        replace(_percent("system", "system CPU", r"cpu\.system_percent", 10, 25), of_one=True),
        _percent("user", "user CPU", r"cpu\.user_percent", 10, 40),
        _percent("iowait", "iowait", r"cpu\.iowait_percent", 10, 25),
        _percent("steal", "steal", r"cpu\.steal_percent", 2, 5, Depth.WORK),
        HostRow("blocked tasks", "blocked tasks", "", r"cpu\.blocked_count", 3, alarm="rises", at=8),
    ),
)


_PRESSURE = HostSubject(
    "pressure",
    "Pressure: who had to wait",
    "The share of each second in which some tasks waited, or all of them (full).",
    (
        _percent("I/O, some", "I/O pressure", r"pressure\.io_some_percent", 10, 25),
        _percent("I/O, full", "full I/O pressure", r"pressure\.io_full_percent", 10, 20),
        _percent("memory, some", "memory pressure", r"pressure\.memory_some_percent", 2, 5, Depth.MEMORY),
        _percent(
            "memory, full", "full memory pressure", r"pressure\.memory_full_percent", 2, 5, Depth.MEMORY
        ),
        _percent("CPU, some", "CPU pressure", r"pressure\.cpu_some_percent", 20, 50),
    ),
)


_MEMORY = HostSubject(
    "memory",
    "The memory",
    "Available is what programs could still have; dirty waits to be written. Near the kernel's limit "
    "whoever writes has to wait.",
    (
        HostRow(
            "available (GiB)",
            "available memory",
            "GiB",
            r"memory\.available_bytes",
            0.1,
            _GIB,
            moves=True,
            alarm="falls",
            at=0.4,
            bad="low",
            depth=Depth.MEMORY,
        ),
        HostRow(
            "dirty (GiB)",
            "dirty memory",
            "GiB",
            r"memory\.(?:dirty|writeback)_bytes",
            0.1,
            _GIB,
            alarm="rises",
            at=0.25,
            depth=Depth.MEMORY,
        ),
        replace(
            _percent(
                "dirty, of its limit",
                "dirty memory, of its limit",
                r"memory\.dirty_limit_percent",
                20,
                25,
                Depth.MEMORY,
            ),
            near="dirty memory over {} of its limit",
        ),
        HostRow("slab (GiB)", "slab", "GiB", r"memory\.slab_bytes", 0.3, _GIB, moves=True, bad=""),
        HostRow(
            "swap used (GiB)",
            "swap",
            "GiB",
            r"memory\.swap_used_bytes",
            0.05,
            _GIB,
            alarm="rises",
            at=0.1,
            depth=Depth.MEMORY,
        ),
    ),
)


_DISKS = HostSubject(
    "disks",
    "The disks",
    "Those of the storage, together, where it is known which they are; else all. Times are means of what "
    "ended, with the wait in the kernel.",
    (
        _throughput("read", "disk reads", r"diskstats\.(.+)_read_bytes_per_s"),
        _written("disk writes", r"diskstats\.(.+)_write_bytes_per_s"),
        _latency("a read", "a disk read", r"diskstats\.(.+)_read_latency_ms"),
        _latency("a write", "a disk write", r"diskstats\.(.+)_write_latency_ms"),
        _latency("a flush", "a flush", r"diskstats\.(.+)_flush_latency_ms"),
        HostRow(
            "busy (%)",
            "the busiest disk",
            "%",
            r"diskstats\.(.+)_util_percent",
            20,
            join="max",
            alarm="rises",
            at=60,
            depth=Depth.DISK,
        ),
    ),
    "disks",
)


_POOLS = HostSubject(
    "pools",
    "The pool",
    "As zpool iostat has it: what the pool was asked for, and how long that took with its own queues.",
    (
        _throughput("read", "pool reads", r"zpool\.(.+)_read_bytes_per_s"),
        _written("pool writes", r"zpool\.(.+)_write_bytes_per_s"),
        _latency("a read", "a pool read", r"zpool\.(.+)_read_latency_ms"),
        _latency("a write", "a pool write", r"zpool\.(.+)_write_latency_ms"),
    ),
    "pools",
)


_FSYNC = HostSubject(
    "fsync",
    "What a database waits for",
    "Once a second 4 KiB are written beside the site's data, and an fdatasync waits until the disk has them. "
    "One that still waits counts with what it has waited so far.",
    (
        replace(_latency("the write", "the probe's write", r"fsync\.write_ms"), quiet=5.0, bad=""),
        HostRow(
            "write and fdatasync (ms)",
            "the fsync probe",
            "ms",
            r"fsync\.total_ms",
            quiet=5.0,
            alarm="times",
            at=3.0,
            depth=Depth.DISK,
            near="an fsync probe over {}",
        ),
    ),
)


_MARIADB = HostSubject(
    "mariadb",
    "MariaDB",
    "Misses are pages that its buffer pool had to read; waits are for a free page or the log; row locks, "
    "how often a statement waited for one.",
    (
        replace(_rate("queries", "queries", r"mariadb\.queries_per_s", 5, 10), bad=""),
        HostRow(
            "row locks/s",
            "row-lock waits",
            "/s",
            r"mariadb\.row_lock_waits_per_s",
            0.5,
            alarm="rises",
            at=2.0,
            depth=Depth.DATABASE,
            near="a wait for a row's lock, {} or more",
        ),
        HostRow(
            "statements that wait for a row",
            "statements that wait for a row",
            "",
            r"mariadb\.row_lock_current_waits_count",
            0.5,
            alarm="rises",
            at=2.0,
            depth=Depth.DATABASE,
            near="{} or more statements that wait for a row",
        ),
        HostRow(
            "row-lock time (ms/s)",
            "time in row-lock waits",
            "ms/s",
            r"mariadb\.row_lock_time_ms_per_s",
            20,
            alarm="rises",
            at=200,
            depth=Depth.DATABASE,
        ),
        HostRow(
            "fsyncs waited for",
            "pending fsyncs",
            "",
            r"mariadb\.(?:log_)?pending_fsyncs_count",
            0.5,
            alarm="rises",
            at=1.0,
            depth=Depth.DATABASE,
            near="{} or more pending fsyncs of MariaDB",
        ),
        HostRow(
            "redo log in use (%)",
            "the redo log in use",
            "%",
            r"mariadb\.checkpoint_percent",
            50,
            alarm="rises",
            at=25,
            depth=Depth.DATABASE,
        ),
        *(
            replace(_latency(title, said, column), depth=Depth.DATABASE)
            for title, said, column in (
                ("the redo log", "MariaDB's redo log", r"mariadb\.log_file_wait_ms"),
                ("data files", "MariaDB's data files", r"mariadb\.data_file_wait_ms"),
                ("the binary log", "MariaDB's binary log", r"mariadb\.binlog_wait_ms"),
            )
        ),
        _rate("pool misses", "buffer-pool misses", r"mariadb\.pool_misses_per_s", 20, 5),
        _rate("fsyncs", "fsyncs", r"mariadb\.fsyncs_per_s", 20, 5),
        HostRow(
            "waits/s",
            "MariaDB's waits",
            "/s",
            r"mariadb\.(?:pool|log)_waits_per_s",
            0.5,
            alarm="rises",
            at=2.0,
            depth=Depth.DATABASE,
        ),
        HostRow(
            "threads running",
            "running threads",
            "",
            r"mariadb\.threads_running_count",
            4,
            alarm="rises",
            at=8,
            depth=Depth.DATABASE,
        ),
    ),
)


_PHP = HostSubject(
    "php",
    "PHP",
    "Who waits for one of its workers, how many of them work, and what PHP had to compile anew.",
    (
        HostRow(
            "queue",
            "PHP's queue",
            "",
            r"php\.queue_count",
            0.5,
            alarm="rises",
            at=2.0,
            depth=Depth.SITE,
            near="{} or more visitors in PHP's queue",
        ),
        HostRow(
            "its own status page (ms)",
            "PHP's status page",
            "ms",
            r"php\.status_wait_ms",
            50,
            alarm="times",
            at=5.0,
            depth=Depth.SITE,
        ),
        _percent("workers in use", "PHP's workers in use", r"php\.busy_percent", 50, 40, Depth.SITE),
        HostRow(
            "compiled anew/s",
            "OPcache's misses",
            "/s",
            r"php\.opcache_misses_per_s",
            2,
            alarm="rises",
            at=20,
            depth=Depth.SITE,
        ),
        HostRow(
            "OPcache restarts/s",
            "OPcache's restarts",
            "/s",
            r"php\.opcache_restarts_per_s",
            0.01,
            alarm="rises",
            at=0.1,
            depth=Depth.SITE,
        ),
    ),
)


SUBJECTS = (
    _CPU,
    _PRESSURE,
    _MEMORY,
    WORK,
    _ARC,
    GROUPS,
    INTENT,
    _DISKS,
    _POOLS,
    WAITS,
    VDEVS,
    _FSYNC,
    _MARIADB,
    _PHP,
)


_DRAWN = [
    re.compile(pattern, re.DOTALL)
    for subject in SUBJECTS
    for row in subject.rows
    for pattern in (row.column, row.beside)
    if pattern
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
    return (
        name == ARC_HITS
        or bool(LATENCY.fullmatch(name))
        or is_pool_work(name)
        or any(each.fullmatch(name) for each in _DRAWN)
    )
