"""Hosts by the second with a story: noise as real ones have it, and one planted cause. Also runs on them.

Nothing is white: what is counted drifts, comes in bursts, and follows the site's load. A quiet host stalls
too, at instants that have nothing to do with anything that was observed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.analysis.evidence.measure import measure_in_detail
from plimsoll.analysis.report.runs import group_by_scenario, number_runs
from plimsoll.analysis.report.sections.slow_windows import SlowWindows, find_slow_windows
from plimsoll.rundir.read import RunDirectory
from tests.support.rundir import records, write_run

# host.csv as the observers write it, all columns.

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


# Hosts with one planted cause of stalls, or none.

Floats = NDArray[np.float64]

FURTHER: dict[str, float] = {
    "txg.tank_sync_ms": 400,
    "txg.tank_dirty_bytes": 60e6,
    "txg.delayed_per_s": 0,
    "zil.commits_per_s": 55,
    "zil.pool_bytes_per_s": 8e5,
    "poolwaits.tank_read_p99_ms": 2.1,
    "poolwaits.tank_read_max_ms": 8.4,
    "poolwaits.tank_write_p99_ms": 4.2,
    "poolwaits.tank_write_max_ms": 16.8,
    "vdevs.tank_read_behind_ms": 0.3,
    "vdevs.tank_write_behind_ms": 0.5,
    "poolstate.tank_scrub_count": 0,
    "poolstate.tank_resilver_count": 0,
    "poolstate.tank_trim_count": 0,
    "php.queue_count": 0,
    "php.active_count": 1,
}
_COUNTS = (
    "blocked_count",
    "queue_count",
    "waits_per_s",
    "throttled_per_s",
    "swap_used_bytes",
    "active_count",
    "delayed_per_s",
)
_OF_GROUPS = ("txg.tank_sync_ms", "txg.tank_dirty_bytes")
_GROUP_EVERY_S = 5  # zfs_txg_timeout: on a pool that rests, most seconds have no group that ended


@dataclass
class World:
    """A host of `seconds`: `columns` of host.csv, and how many ms a request of each second is held up.

    All arrays have shape (seconds,).
    """

    random: np.random.Generator
    seconds: int
    columns: dict[str, Floats] = field(default_factory=dict)
    held_ms: Floats = field(default_factory=lambda: np.zeros(0))

    def drift(self, memory: float, spread: float) -> Floats:
        """Return a factor about 1 that keeps `memory` of its last second."""
        noise = self.random.normal(0, spread * np.sqrt(1 - memory**2), self.seconds)
        found = np.empty(self.seconds)
        last = self.random.normal(0, spread)
        for second, step in enumerate(noise):
            last = memory * last + step
            found[second] = last
        return np.exp(found)

    def episodes(self, every_s: float, shortest_s: float, longest_s: float) -> Floats:
        """Return 1 while an episode lasts, and 0 else; they begin some `every_s` apart."""
        found = np.zeros(self.seconds)
        at = self.random.exponential(every_s)
        while at < self.seconds:
            lasts = self.random.uniform(shortest_s, longest_s)
            found[int(at) : int(at + lasts) + 1] = 1.0
            at += lasts + self.random.exponential(every_s)
        return found

    def raise_(self, during: Floats, **factors: tuple[float, float]) -> None:
        """Add to columns (`__` for a dot) while `during`: in each episode an amount between these two."""
        starts = np.flatnonzero(np.diff(np.concatenate([[0.0], (during > 0).astype(float)])) > 0)
        which = np.cumsum(np.isin(np.arange(self.seconds), starts)) * (during > 0)
        for name, (least, most) in factors.items():
            amount = self.random.uniform(least, most, len(starts) + 1)
            column = name.replace("__", ".")
            value = self.columns[column] + during * amount[which] * self.drift(0.5, 0.2)
            self.columns[column] = np.minimum(value, 100.0) if name.endswith("_percent") else value


def usual(seed: int, seconds: int) -> World:
    """A host without any cause: its load drifts, jobs of its own come and go, and it stalls all the same."""
    world = World(np.random.default_rng(seed), seconds)
    load = world.drift(0.98, 0.25)
    for name, value in (USUAL | FURTHER).items():
        memory = float(world.random.uniform(0.3, 0.97))
        follows = load if name.startswith(("cpu.user", "mariadb.queries", "mariadb.threads", "disk")) else 1.0
        world.columns[name] = value * world.drift(memory, 0.15) * follows
        if name.endswith(_COUNTS):
            world.columns[name] = value + world.random.poisson(0.2, seconds) * world.episodes(40, 1, 8)
    jobs = world.episodes(70, 3, 25)
    world.raise_(
        jobs,
        diskstats__nvme0n1_read_latency_ms=(0.5, 6),
        diskstats__nvme0n1_util_percent=(10, 60),
        pressure__io_some_percent=(5, 40),
        cpu__iowait_percent=(2, 20),
    )
    world.raise_(world.episodes(90, 2, 15), cpu__user_percent=(10, 60), pressure__cpu_some_percent=(5, 50))
    world.raise_(world.episodes(100, 2, 10), mariadb__row_lock_waits_per_s=(1, 4))
    world.raise_(world.episodes(80, 1, 6), php__queue_count=(1, 4))
    world.raise_(world.episodes(60, 2, 5), txg__tank_sync_ms=(200, 2500))
    world.raise_(world.episodes(70, 1, 4), poolwaits__tank_write_max_ms=(30, 400))
    _rest(world)
    world.raise_(world.episodes(120, 5, 30), memory__dirty_bytes=(1e8, 6e8))
    world.held_ms = 25 * world.drift(0.7, 0.5)
    return world


def _rest(world: World) -> None:
    """Let a group end every five seconds, as on a pool that rests: the other seconds know of none."""
    ended = np.zeros(world.seconds, dtype=bool)
    at = world.random.uniform(0, _GROUP_EVERY_S)
    while at < world.seconds:
        ended[int(at)] = True
        at += _GROUP_EVERY_S * world.random.uniform(1, 1.1)
    for name in _OF_GROUPS:
        world.columns[name] = np.where(ended, world.columns[name], np.nan)


def _sync(world: World, during: Floats) -> None:
    """Let a group sync in each second of `during`."""
    for name in _OF_GROUPS:
        value = world.columns[name]
        world.columns[name] = np.where((during > 0) & np.isnan(value), FURTHER[name], value)


def quiet(seed: int, seconds: int = 600) -> World:
    """It stalls every minute or so, and nothing that was observed has to do with it."""
    world = usual(seed, seconds)
    _hold(world, world.episodes(60, 1, 6), 300, 2500)
    return world


def calm(seed: int, seconds: int = 600) -> World:
    """It never stalls."""
    return usual(seed, seconds)


def txg_sync(seed: int, seconds: int = 600) -> World:
    """Transaction groups of a slow disk that now and then take seconds to sync."""
    world = usual(seed, seconds)
    heavy = world.episodes(45, 3, 8)
    _sync(world, heavy)
    world.raise_(
        heavy,
        txg__tank_sync_ms=(2800, 7000),
        txg__tank_dirty_bytes=(4e8, 9e8),
        txg__delayed_per_s=(20, 400),
        poolwaits__tank_write_p99_ms=(30, 500),
        poolwaits__tank_write_max_ms=(100, 1000),
        arcstats__misses_per_s=(20, 200),
        arcstats__hit_percent=(-30, -15),
        diskstats__nvme0n1_write_latency_ms=(5, 40),
        diskstats__nvme0n1_util_percent=(60, 95),
        pressure__io_some_percent=(30, 80),
        cpu__blocked_count=(3, 12),
        php__queue_count=(2, 12),
        mariadb__threads_running_count=(3, 12),
    )
    _hold(world, heavy, 800, 4000)
    return world


def scrub(seed: int, seconds: int = 600) -> World:
    """A scrub takes the disks for a third of the run."""
    world = usual(seed, seconds)
    scan = np.zeros(seconds)
    start = int(world.random.uniform(0.1, 0.5) * seconds)
    scan[start : start + seconds // 3] = 1.0
    world.columns["poolstate.tank_scrub_count"] = scan.copy()
    world.raise_(
        scan,
        diskstats__nvme0n1_read_latency_ms=(6, 20),
        diskstats__nvme0n1_read_bytes_per_s=(8e7, 2e8),
        diskstats__nvme0n1_util_percent=(60, 95),
        zpool__tank_read_latency_ms=(8, 30),
        poolwaits__tank_read_p99_ms=(20, 130),
        poolwaits__tank_read_max_ms=(60, 500),
        pressure__io_some_percent=(20, 60),
        cpu__iowait_percent=(10, 40),
        txg__tank_sync_ms=(300, 1500),
    )
    _hold(world, scan * (world.random.random(seconds) < 0.6), 300, 2000)
    return world


def page_cache(seed: int, seconds: int = 600) -> World:
    """Dirty pages reach their limit, and who writes has to wait until the disk has taken them."""
    return _plant(
        usual(seed, seconds),
        (50, 5, 15),
        (500, 4000),
        memory__dirty_bytes=(1.5e9, 2.5e9),
        memory__writeback_bytes=(2e8, 6e8),
        pressure__memory_some_percent=(8, 40),
        pressure__io_some_percent=(40, 90),
        pressure__io_full_percent=(20, 60),
        diskstats__nvme0n1_write_bytes_per_s=(1e8, 2e8),
        diskstats__nvme0n1_write_latency_ms=(20, 90),
        diskstats__nvme0n1_util_percent=(80, 98),
        cpu__blocked_count=(5, 20),
        php__queue_count=(2, 12),
    )


def row_lock(seed: int, seconds: int = 600) -> World:
    """A long transaction holds rows that every visitor wants to write."""
    return _plant(
        usual(seed, seconds),
        (50, 4, 12),
        (500, 5000),
        mariadb__row_lock_waits_per_s=(4, 20),
        mariadb__threads_running_count=(10, 40),
        php__queue_count=(2, 15),
        php__active_count=(5, 20),
    )


def php_pool(seed: int, seconds: int = 600) -> World:
    """Two PHP workers, and at times visitors for ten: they queue."""
    return _plant(
        usual(seed, seconds),
        (50, 4, 12),
        (300, 3000),
        php__queue_count=(3, 20),
        cpu__user_percent=(10, 40),
        pressure__cpu_some_percent=(5, 30),
    )


def _plant(
    world: World,
    episodes_s: tuple[float, float, float],
    hold_ms: tuple[float, float],
    **factors: tuple[float, float],
) -> World:
    """Return the world with a cause in episodes, each of which raises columns and holds up requests."""
    during = world.episodes(*episodes_s)
    world.raise_(during, **factors)
    _hold(world, during, *hold_ms)
    return world


def _hold(world: World, during: Floats, least_ms: float, most_ms: float) -> None:
    """Hold up requests of most of the seconds of `during`."""
    held = world.random.uniform(least_ms, most_ms, world.seconds) * (world.random.random(world.seconds) < 0.9)
    world.held_ms = world.held_ms + during * held


# Runs on them, and what a report says of their stalls.

_PER_S = 15


def write_stalled(path: Path, world: World, backend: str | None = "rust", repeat: int = 1) -> Path:
    """Write the run of a site on this host: its requests are held up as the host has it."""
    random = world.random
    due_s = np.sort(random.random(world.seconds * _PER_S) * world.seconds)
    held = random.random(len(due_s)) < 0.4
    took_ms = 8 * random.lognormal(0, 0.5, len(due_s)) + held * world.held_ms[due_s.astype(np.int64)]
    table = records(
        len(due_s),
        due_ns=(due_s * 1e9).astype("i8"),
        total_us=took_ms * 1000,
        ttfb_us=took_ms * 900,
    )
    table["logged_bytes"] = table["bytes"]
    facts: dict[str, Any] = {"backend": backend, "repeat": repeat} if backend else {}
    run = write_run(path, table, storage=_STORAGE, **facts)
    instants_s = np.arange(world.seconds) + 0.5 + random.uniform(-0.02, 0.02, world.seconds)
    lines = [",".join(["t_ns", *world.columns])]
    for second, t_s in enumerate(instants_s.tolist()):
        values = (column[second] for column in world.columns.values())
        fields = ("" if np.isnan(value) else f"{value:.6g}" for value in values)
        lines.append(",".join([str(int(t_s * 1e9)), *fields]))
    (run / "host.csv").write_text("\n".join(lines) + "\n")
    return run


_STORAGE = {"facts": {"disks": [{"device": "nvme0n1"}], "pools": [{"pool": "tank"}]}, "clone": {}}


def stalls_of_runs(paths: Sequence[Path]) -> list[SlowWindows]:
    """What a report finds of these runs of one scenario."""
    runs = [measure_in_detail(RunDirectory.open(path), sliced=len(paths) > 1) for path in paths]
    (scenario,) = group_by_scenario(number_runs(runs))
    return find_slow_windows(scenario)
