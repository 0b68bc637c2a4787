"""Texts that the parsers of the lab and of imports are tested with, and what OpenZFS prints.

Those of /proc are after recordings on a Linux 6.18 virtual machine (later samples, older kernels' lines and
some numbers are made up), and those of zfs-fuse from its version 0.7.0,
with a pool on a file. Those of OpenZFS are written after its manual pages (zpool-iostat(8),
zpool-status(8), zfs-get(8)) and output that others published, and that of MariaDB after its manual: neither
was at hand where these tests were written.
"""

from collections.abc import Mapping, Sequence

from plimsoll.lab.observers.observer import FileSource
from tests.support.programs import FIXTURES

GRINDER_HEADER = "Thread, Run, Test, Start time (ms since Epoch), Test time, Errors"
LOCUST_HEAD = '{"plimsoll_locust": 1, "locust": "2.47.0"}'

DISKSTATS = """\
   7       0 loop0 16232 1677 3045942 25195 58174 76022 14846383 684358 0 64672 727790 0 0 0 0 6174 18236
   7       1 loop1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 2272947 145155 88802850 1644472 1961832 1178148 250590712 1739586 0 410048 3526838 586805 137 206262640 74585 458650 68193
 254       1 vda1 2272000 145155 88802000 1644000 1961832 1178148 250590712 1739586 0 410048 3526838 586805 137 206262640 74585 0 0
 253       0 zram0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
"""  # noqa: E501 as the kernel prints it

# One second later: 100 reads of 16 KiB in 250 ms, 50 writes of 8 KiB in 400 ms, 10 flushes in 30 ms.
DISKSTATS_LATER = """\
 254       0 vda 2273047 145155 88806050 1644722 1961882 1178148 250591512 1739986 3 410548 3527488 586805 137 206262640 74585 458660 68223
"""  # noqa: E501

# Linux 4.17 and before: neither discards nor flushes.
DISKSTATS_OLD = "   8       0 sda 10 0 80 5 20 0 160 40 0 45 45\n"

PRESSURE = {
    "cpu": "some avg10=6.12 avg60=19.22 avg300=15.69 total=2304938678\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "io": "some avg10=10.93 avg60=3.07 avg300=1.77 total=235695759\n"
    "full avg10=9.70 avg60=2.56 avg300=1.27 total=76521074\n",
    "memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
}

STAT = """\
cpu  566632 19063 184853 589465 11782 0 8196 6699 0 0
cpu0 265132 10424 86513 321724 3056 0 2497 3613 0 0
cpu1 301500 8638 98339 267740 8726 0 5699 3086 0 0
intr 92929611 0 0 0
ctxt 152929611
btime 1763691133
processes 2109391
procs_running 3
procs_blocked 1
softirq 41205122 2 5108113 1 0
"""

MEMINFO = """\
MemTotal:       24684096 kB
MemFree:        19123204 kB
MemAvailable:   22403912 kB
Buffers:           28552 kB
Cached:          3394504 kB
SwapTotal:       1048576 kB
SwapFree:        1000000 kB
Dirty:               628 kB
Writeback:             0 kB
Slab:             539188 kB
AnonHugePages:     10240 kB
HugePages_Total:       0
Hugepagesize:       2048 kB
"""

ARCSTATS = """\
13 1 0x01 147 39984 8423515563 94718472618272
name                            type data
hits                            4    1000000
iohits                          4    120
misses                          4    20000
demand_data_misses              4    15000
demand_metadata_misses          4    4000
prefetch_data_misses            4    1000
c                               4    8589934592
c_min                           4    789891072
c_max                           4    12638257152
size                            4    6442450944
data_size                       4    5368709120
metadata_size                   4    805306368
l2_hits                         4    0
l2_misses                       4    0
l2_size                         4    0
memory_throttle_count           4    7
arc_no_grow                     4    0
"""

# zpool iostat -H -p -y -l tank 1: with -l also the waits in nanoseconds, `-` where nothing waited.
IOSTAT_LATENCY = (
    "tank\t644245094400\t1352914698240\t120\t340\t2015232\t45088768\t1048576\t3145728\t917504\t851968\t960\t828"
    "\t-\t3014656\t-\t-\t-"
)
IOSTAT_EXACT = "tank\t644245094400\t1352914698240\t120\t340\t2015232\t45088768"
# zfs-fuse: a header, then rounded figures; the first of them are means since the import.
IOSTAT_FUSE = """\
               capacity     operations    bandwidth
pool        alloc   free   read  write   read  write
----------  -----  -----  -----  -----  -----  -----
tank         136K  95.4M     29  1.18K   641K  12.0M
tank        6.61M  88.9M      0    402      0  7.14M
"""

MARIADB = """\
Aborted_clients\t0
Innodb_buffer_pool_dump_status\t
Innodb_buffer_pool_pages_dirty\t412
Innodb_buffer_pool_read_requests\t91234567
Innodb_data_fsyncs\t5120
Innodb_os_log_written\t104857600
Queries\t120000
Rpl_semi_sync_master_status\tOFF
Slow_queries\t3
Threads_connected\t12
Threads_running\t4
Uptime\t3600
"""

ZPOOL_STATUS = """\
  pool: tank
 state: ONLINE
status: Some supported and requested features are not enabled on the pool.
  scan: scrub repaired 0B in 00:10:02 with 0 errors on Sun Nov  8 00:34:03 2026
config:

\tNAME                                  STATE     READ WRITE CKSUM
\ttank                                  ONLINE       0     0     0
\t  mirror-0                            ONLINE       0     0     0
\t    ata-DISK_ONE-part3                ONLINE       0     0     0
\t    ata-DISK_TWO-part3                ONLINE       0     0     0
\t  mirror-1                            DEGRADED     0     0     0
\t    ata-DISK_THREE                    ONLINE       0     0     0
\t    ata-DISK_FOUR                     OFFLINE      0     0     0
\tlogs
\t  nvme-LOG-part1                      ONLINE       0     0     0
\tcache
\t  nvme-LOG-part2                      ONLINE       0     0     0

errors: No known data errors
"""
ZPOOL_STATUS_LOOP = """\
  pool: cache
 state: ONLINE
config:

\tNAME        STATE     READ WRITE CKSUM
\tcache       ONLINE       0     0     0
\t  loop3     ONLINE       0     0     0

errors: No known data errors
"""

ZFS_GET = """\
tank/site\tcompression\tlz4\tinherited from tank
tank/site\trecordsize\t128K\tdefault
tank/site\tatime\toff\tlocal
tank/site\tlogbias\tlatency\tdefault
tank/site\tsync\tstandard\treceived
tank/site\tcompressratio\t1.52x\t-
"""

CPUINFO = "processor\t: 0\nmodel name\t: AMD EPYC\ncache size\t: 1024 KB\n\n" * 2
SCHEDULER = "none [mq-deadline] kyber bfq \n"
HUGEPAGE = "always [madvise] never\n"

# zfs-fuse: neither relatime nor sync; the rest is cut.
ZFS_FUSE_GET = """\
tank/site\ttype\tfilesystem\t-
tank/site\tcreation\tSat Nov 21  4:31 2026\t-
tank/site\tcompressratio\t1.00x\t-
tank/site\trecordsize\t128K\tdefault
tank/site\tmountpoint\t/mnt/site\tinherited from tank
tank/site\tcompression\toff\tdefault
tank/site\tatime\toff\tlocal
tank/site\txattr\ton\tdefault
tank/site\tprimarycache\tall\tdefault
tank/site\tsecondarycache\tall\tdefault
tank/site\tusedbysnapshots\t0\t-
"""
ZPOOL_STATUS_FUSE = """\
  pool: tank
 state: ONLINE
 scrub: none requested
config:

\tNAME         STATE     READ WRITE CKSUM
\ttank         ONLINE       0     0     0
\t  /srv/disk  ONLINE       0     0     0

errors: No known data errors
"""


# OpenZFS, in the form of its source (module/zfs/spa_stats.c, zil.c, cmd/zpool/zpool_main.c).

KINDS = 11  # columns of `zpool iostat -w` after the bound of a bucket, since OpenZFS 2.2; 10 before
BUCKETS = 37


def kstat(now_ns: int, **counters: int) -> str:
    """A kstat of named counters that was read at `now_ns`."""
    lines = [f"12 1 0x01 {len(counters)} {len(counters) * 272} 4000000000 {now_ns}"]
    lines.append(f"{'name':<31} {'type':<4} data")
    return "\n".join([*lines, *(f"{name:<31} {4:<4} {value}" for name, value in counters.items()), ""])


TXGS_HEAD = (
    "txg      birth            state ndirty       nread        nwritten     reads    writes   otime        "
    "qtime        wtime        stime       \n"
)


def txg(
    number: int, state: str, birth: int, dirty: int = 0, written: int = 0, times: Sequence[int] = (0, 0, 0, 0)
) -> str:
    """A line of `txgs`; `times` are otime, qtime, wtime and stime."""
    otime, qtime, wtime, stime = times
    return (
        f"{number:<8} {birth:<16} {state:<5} {dirty:<12} {0:<12} {written:<12} {0:<8} {0:<8} "
        f"{otime:<12} {qtime:<12} {wtime:<12} {stime:<12}\n"
    )


def histograms(pool: str, counts: Mapping[tuple[int, int], int], kinds: int = KINDS) -> list[str]:
    """The lines of `zpool iostat -w -H -p` for one pool; `counts` by (bucket, column), all else 0."""
    rows = [
        "\t".join(
            [str((1 << bucket + 1) - 1), *(str(counts.get((bucket, kind), 0)) for kind in range(kinds))]
        )
        for bucket in range(BUCKETS)
    ]
    return ["", pool, *rows]


def sysbench_output(test: str) -> str:
    """What sysbench 1.0.20 printed of a test."""
    return (FIXTURES / "fileio" / f"{test}.txt").read_text(encoding="utf-8")


def fio_output(version: str, what: str) -> str:
    """What fio printed of `etcd` or `rndwr`."""
    return (FIXTURES / "fio" / f"{version}-{what}.json").read_text(encoding="utf-8")


def sampled(source: FileSource, *texts: Sequence[str], every_s: float = 1) -> dict[str, float | None]:
    """What a source shows of the last of these texts, which its files hold at one instant after the other."""
    for number, each in enumerate(texts):
        values = source.sample(each, int(number * every_s * 1e9))
    return dict(zip((column.name for column in source.columns), values, strict=True))


def vdev_line(name: str, read_wait: str = "-", write_wait: str = "-", ops: int = 10) -> str:
    """A line of `zpool iostat -v -H -p -l`; both waits are of the disk, in ns."""
    waits = [read_wait, write_wait, read_wait, write_wait, "-", "-", "-", "-", "-", "-", "-"]
    return "\t".join([name, "-", "-", str(ops), str(ops), "40960", "40960", *waits])
