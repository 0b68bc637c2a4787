"""Each disk of a pool, from a `zpool iostat -v` that runs all the time: is one slower than its mirror?"""

import re
from collections.abc import Mapping, Sequence
from statistics import median

from plimsoll.lab.errors import MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.observers import zpool
from plimsoll.lab.observers.observer import (
    Column,
    CommandStream,
    Log,
    Observer,
    ObserverOptions,
    ReadingPair,
    gauge,
)
from plimsoll.lab.observers.poolstate import Leaf, parse_status
from plimsoll.lab.observers.zpool import PROBE_TIMEOUT_S, find_pools

MOST = 32  # vdevs that have columns
# Full paths of what links point to: the same in `zpool status`, and never the name of a mirror.
_PATHS = ("-L", "-P")
_OPTIONS = ("-v", "-H", "-p", "-y", "-l", *_PATHS)
_MS_OF_NS = 1 / 1e6
_UNSAFE = re.compile(r"[^A-Za-z0-9_.:-]+")
_BEHIND = ("read", "write")

Leaves = Mapping[str, Sequence[Leaf]]


def status_command(pools: Sequence[str]) -> list[str]:
    """Return the command that prints the vdevs of `pools`. Pure."""
    return ["zpool", "status", *_PATHS, *pools]


def probe(pools: Sequence[str]) -> list[str]:
    """Return a command that succeeds where zpool knows all options. Pure."""
    return ["zpool", "iostat", *_OPTIONS, *pools, "1", "1"]


def command(pools: Sequence[str]) -> list[str]:
    """Return the command that prints a line a vdev each second, until it is ended. Pure."""
    return ["stdbuf", "-oL", "zpool", "iostat", *_OPTIONS, *pools, "1"]


def safe_names(leaves: Sequence[str]) -> dict[str, str]:
    """Return for each path the name in its columns: without `/dev/`, in plain characters, each once. Pure."""
    found: dict[str, str] = {}
    for path in leaves:
        plain = _UNSAFE.sub("-", path.removeprefix("/dev/")).strip("-") or "vdev"
        name, at = plain, 2
        while name in found.values():
            name, at = f"{plain}-{at}", at + 1
        found[path] = name
    return found


def behind_ns(figures: Mapping[str, float], groups: Sequence[Sequence[str]], kind: str) -> float | None:
    """Return by how much the slowest disk's wait exceeds the median of the others in its mirror or RAID.

    Of all groups the most; None where in none two of them had something to do. Pure.
    """
    most = None
    for group in groups:
        waits = sorted(figures[name] for leaf in group if (name := f"{leaf} {kind} disk wait") in figures)
        if len(waits) > 1:
            most = max(waits[-1] - median(waits[:-1]), most or 0.0)
    return most


class VdevReader:
    """Takes lines as they come, and gives the newest figures of each vdev once."""

    def __init__(self, leaves: Leaves) -> None:
        self._known = {(pool, leaf.name) for pool, each in leaves.items() for leaf in each}
        self._pools = set(leaves)
        self._groups = {pool: _groups(pool, each) for pool, each in leaves.items()}
        self._pool = ""
        self._newest: dict[str, float] = {}

    def add(self, line: str) -> None:
        """Take a line of standard output."""
        if not (found := zpool.parse(line)):
            return
        name, figures = found
        if name in self._pools:
            self._pool = name
        elif (self._pool, name) in self._known:
            self._newest |= {f"{self._pool}/{name} {field}": value for field, value in figures.items()}

    def take(self) -> ReadingPair:
        """Return the figures that came since the last call."""
        taken, self._newest = self._newest, {}
        behind = {
            f"{pool} {kind} behind": apart
            for pool, groups in self._groups.items()
            for kind in _BEHIND
            if (apart := behind_ns(taken, groups, kind)) is not None
        }
        return ReadingPair(taken | behind, None, 1.0)


def _groups(pool: str, leaves: Sequence[Leaf]) -> list[list[str]]:
    groups: dict[str, list[str]] = {}
    for leaf in leaves:
        if leaf.group:
            groups.setdefault(leaf.group, []).append(f"{pool}/{leaf.name}")
    return list(groups.values())


def _vdev_columns(label: str, key: str) -> tuple[Column, ...]:
    return (
        gauge(f"{label}_reads_per_s", f"{key} reads"),
        gauge(f"{label}_writes_per_s", f"{key} writes"),
        gauge(f"{label}_read_bytes_per_s", f"{key} read bytes"),
        gauge(f"{label}_write_bytes_per_s", f"{key} write bytes"),
        gauge(f"{label}_read_latency_ms", f"{key} read wait", _MS_OF_NS),
        gauge(f"{label}_write_latency_ms", f"{key} write wait", _MS_OF_NS),
        gauge(f"{label}_read_disk_latency_ms", f"{key} read disk wait", _MS_OF_NS),
        gauge(f"{label}_write_disk_latency_ms", f"{key} write disk wait", _MS_OF_NS),
    )


def columns(leaves: Leaves) -> tuple[Column, ...]:
    """Return the columns: what is behind in each pool, then each vdev, of the first `MOST`."""
    apart = [
        gauge(f"{pool}_{kind}_behind_ms", f"{pool} {kind} behind", _MS_OF_NS)
        for pool in leaves
        for kind in _BEHIND
    ]
    watched = [
        column
        for pool, each in leaves.items()
        for name, label in safe_names([leaf.name for leaf in each]).items()
        for column in _vdev_columns(f"{pool}/{label}", f"{pool}/{name}")
    ]
    return (*apart, *watched[: MOST * len(_vdev_columns("", ""))])


COLUMNS = columns({"POOL": [Leaf("VDEV", "")]})  # as they are documented


async def _prepare(machine: Machine, options: ObserverOptions, log: Log) -> CommandStream | None:
    pools = await find_pools(machine, options.pools, "vdevs", log)
    if not pools:
        return None
    try:
        probed = await machine.run(probe(pools), timeout_s=PROBE_TIMEOUT_S, check=False)
        status = await machine.run(status_command(pools), timeout_s=PROBE_TIMEOUT_S, check=False)
    except MachineError as error:
        log(f"vdevs: {error}")
        return None
    if probed.status or status.status:
        log(f"vdevs: zpool printed: {(probed.err or status.err).strip()[:200]}")
        return None
    leaves = {each.pool: each.leaves for each in parse_status(status.out)}
    count = sum(map(len, leaves.values()))
    if count > MOST:
        log(f"vdevs: of {count} vdevs only the first {MOST} have columns; `pools` in lab.yml chooses pools")
    return CommandStream(
        "vdevs", columns(leaves), machine, command(pools), VdevReader(leaves), "zpool iostat -v"
    )


OBSERVER = Observer("vdevs", COLUMNS, _prepare)
