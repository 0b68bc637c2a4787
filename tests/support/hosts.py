"""host.csv as the observers write it, all columns, for hosts that have a story."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

GIB = 1 << 30
OBSERVER_FAILED_S = (26, 34)  # of `pressure`: a gap, and no 0

Story = Callable[[float], Mapping[str, float]]  # what is not usual, by column, `busy` from 0 to 1

USUAL: dict[str, float] = {
    "arcstats.size_bytes": 12 * GIB,
    "arcstats.target_bytes": 12.5 * GIB,
    "arcstats.max_bytes": 16 * GIB,
    "arcstats.hits_per_s": 4000,
    "arcstats.misses_per_s": 12,
    "arcstats.hit_percent": 99.4,
    "arcstats.throttled_per_s": 0,
    "zpool.tank_read_bytes_per_s": 2e6,
    "zpool.tank_write_bytes_per_s": 5e6,
    "zpool.tank_read_latency_ms": 0.7,
    "zpool.tank_write_latency_ms": 1.1,
    "diskstats.nvme0n1_read_bytes_per_s": 2e6,
    "diskstats.nvme0n1_write_bytes_per_s": 5e6,
    "diskstats.nvme0n1_read_latency_ms": 0.4,
    "diskstats.nvme0n1_write_latency_ms": 0.6,
    "diskstats.nvme0n1_flush_latency_ms": 0.9,
    "diskstats.nvme0n1_util_percent": 4,
    "diskstats.sda_read_bytes_per_s": 9e8,
    "pressure.cpu_some_percent": 3,
    "pressure.io_some_percent": 2,
    "pressure.io_full_percent": 1,
    "pressure.memory_some_percent": 0,
    "pressure.memory_full_percent": 0,
    "cpu.user_percent": 22,
    "cpu.system_percent": 5,
    "cpu.iowait_percent": 1,
    "cpu.steal_percent": 0,
    "cpu.idle_percent": 72,
    "cpu.blocked_count": 0,
    "memory.available_bytes": 9 * GIB,
    "memory.dirty_bytes": 0.1 * GIB,
    "memory.writeback_bytes": 0.01 * GIB,
    "memory.slab_bytes": 1.4 * GIB,
    "memory.swap_used_bytes": 0,
    "mariadb.queries_per_s": 900,
    "mariadb.threads_running_count": 2,
    "mariadb.pool_misses_per_s": 4,
    "mariadb.fsyncs_per_s": 60,
    "mariadb.pool_waits_per_s": 0,
    "mariadb.log_waits_per_s": 0,
    "mariadb.row_lock_waits_per_s": 0,
}


def arc_reclaim(busy: float) -> Mapping[str, float]:
    """As in the ZFS forum: the send fills the memory, and the kernel does nothing but reclaim the ARC."""
    return {
        "arcstats.size_bytes": (12 - 10.5 * busy) * GIB,
        "arcstats.target_bytes": (12.5 - 11.5 * min(1.6 * busy, 1)) * GIB,
        "arcstats.misses_per_s": 12 + 5000 * busy,
        "arcstats.hit_percent": 99.4 - 45 * busy,
        "arcstats.throttled_per_s": 90 * busy,
        "cpu.system_percent": 5 + 95 * min(2.5 * busy, 1),
        "cpu.user_percent": 22 * (1 - min(2.5 * busy, 1)),
        "cpu.idle_percent": 72 * (1 - min(2.5 * busy, 1)),
        "cpu.blocked_count": 24 * busy,
        "memory.available_bytes": (9 - 8.8 * min(2 * busy, 1)) * GIB,
        "memory.swap_used_bytes": 0.6 * busy * GIB,
        "pressure.memory_some_percent": 70 * busy,
        "pressure.memory_full_percent": 40 * busy,
        "pressure.io_some_percent": 2 + 60 * busy,
        "diskstats.nvme0n1_read_bytes_per_s": 2e6 + 2.5e8 * busy,
        "diskstats.nvme0n1_read_latency_ms": 0.4 + 9 * busy,
        "diskstats.nvme0n1_util_percent": 4 + 80 * busy,
        "zpool.tank_read_bytes_per_s": 2e6 + 2.5e8 * busy,
        "zpool.tank_read_latency_ms": 0.7 + 14 * busy,
        "mariadb.queries_per_s": 900 - 700 * busy,
        "mariadb.threads_running_count": 2 + 30 * busy,
    }


def healthy(busy: float) -> Mapping[str, float]:
    """A host that the send does not trouble: it reads, and that is all."""
    return {
        "diskstats.nvme0n1_read_bytes_per_s": 2e6 + 4e8 * busy,
        "diskstats.nvme0n1_util_percent": 4 + 20 * busy,
        "zpool.tank_read_bytes_per_s": 2e6 + 4e8 * busy,
        "cpu.system_percent": 5 + 6 * busy,
    }


def write_host(
    run: Path, story: Story, before_s: int, during_s: int, after_s: int, seed: int = 1, jitter_s: float = 0.01
) -> Path:
    """Write host.csv into `run`, a row a second; what is counted is empty in the first one."""
    random = np.random.default_rng(seed)
    lines = [",".join(["t_ns", *USUAL])]
    busy = 0.0
    for second in range(before_s + during_s + after_s):
        within = before_s <= second < before_s + during_s
        busy = min(busy + 3 / during_s, 1.0) if within else max(busy - 0.2, 0.0)
        values = USUAL | dict(story(busy))
        fields = [
            "" if _absent(name, second) else f"{_noisy(name, value, random):.6g}"
            for name, value in values.items()
        ]
        t_s = second + 0.5 + random.uniform(-jitter_s, jitter_s)
        lines.append(",".join([str(int(t_s * 1e9)), *fields]))
    (run / "host.csv").write_text("\n".join(lines) + "\n")
    return run


def _absent(name: str, second: int) -> bool:
    first, last = OBSERVER_FAILED_S
    failed = name.startswith("pressure.") and first <= second < last
    return failed or (second == 0 and name.endswith(("_per_s", "_percent")))


def _noisy(name: str, value: float, random: np.random.Generator) -> float:
    noisy = max(value * float(random.normal(1, 0.04)), 0.0)
    return min(noisy, 100.0) if name.endswith("_percent") else noisy
