"""What runs on each pool and how full it is, from `zpool status` and `zpool list`, every two seconds.

The forms of `zpool status` are those of `print_scan_status` and `print_status_config` in
cmd/zpool/zpool_main.c of OpenZFS 2.1 to 2.4, and zfs-fuse's (`scrub:` for `scan:`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.lab.machine import Machine
from plimsoll.lab.observers.observer import (
    END,
    Column,
    CommandStream,
    Log,
    Observer,
    ObserverOptions,
    ReadingPair,
    gauge,
    repeat_command,
)
from plimsoll.lab.observers.zpool import find_form, find_pools

EVERY_S = 2
_REPEATED = 15  # samples: then the host has not answered for so long that nobody knows
_MOST_LINES = 10_000  # of a round
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,4})?)%?")
# The newest first; zfs-fuse knows neither -p nor fragmentation.
FORMS = (
    ("-H", "-p", "-o", "name,health,capacity,fragmentation"),
    ("-H", "-o", "name,health,capacity"),
)
_POOL = re.compile(r" +pool: (.+)")
_SCRUB = re.compile(r"scrub in progress")
# A rebuild (`resilver (mirror-0) in progress`), an expansion and an evacuation copy as a resilver does.
_RESILVER = re.compile(r"(?:resilver(?: \(.*\))?|expansion of .*|Evacuation of .*) in progress")
_DONE = re.compile(r"(\d{1,15}(?:\.\d{1,4})?)% done")
_STATES = "ONLINE|DEGRADED|FAULTED|OFFLINE|UNAVAIL|REMOVED|SUSPENDED|AVAIL|INUSE|SPLIT"
_VDEV = re.compile(rf"\t( *)(\S.*?) +(?:{_STATES})(?: .*)?")
_SECTION = re.compile(r"\t(logs|cache|spares|special|dedup|bonus)\s*")
_TRIMMED = re.compile(r"  \((?:trimming|\d{1,3}% trimmed, started .*)\)")  # the latter with -t
_SPARES = "spares"
_INDENT = 2


def command(form: Sequence[str], pools: Sequence[str]) -> list[str]:
    """Return the command that prints the state of `pools` again and again. Pure."""
    return repeat_command(f'zpool list {" ".join(form)} "$@"; zpool status "$@"', EVERY_S, pools)


def parse(text: str) -> dict[str, float]:
    """Return what both print, by `POOL FIELD`; a line of `zpool list` has tabs, and begins with a name."""
    found: dict[str, float] = {}
    for line in text.split("\n"):
        pool, *words = line.split("\t")
        if len(words) < 2 or not pool or pool.startswith(" "):
            continue
        found[f"{pool} health"] = 0.0 if words[0] == "ONLINE" else 1.0
        for field, word in zip(("capacity", "fragmentation"), words[1:], strict=False):
            if share := _PERCENT.fullmatch(word):
                found[f"{pool} {field}"] = float(share[1])
    for each in parse_status(text):
        found[f"{each.pool} scrub"] = each.scrub
        found[f"{each.pool} resilver"] = each.resilver
        found[f"{each.pool} trimming"] = each.trimmed
        if each.done_percent is not None:
            found[f"{each.pool} done"] = each.done_percent
    return found


@dataclass(frozen=True)
class Leaf:
    """A disk or file of a pool. `group` is the mirror or RAID that it is a part of; empty where of none."""

    name: str
    group: str


@dataclass(frozen=True)
class PoolStatus:
    """One pool: which scan runs (1 or 0), how far it is in % (None: unknown), how many vdevs are trimmed."""

    pool: str
    scrub: int
    resilver: int
    done_percent: float | None
    trimmed: int
    leaves: tuple[Leaf, ...]


def parse_status(text: str) -> list[PoolStatus]:
    """Return the pools in the order in which they are printed."""
    blocks: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        if found := _POOL.fullmatch(line):
            blocks.append((found[1], []))
        elif blocks:
            blocks[-1][1].append(line)
    return [_parse_pool(pool, lines) for pool, lines in blocks]


def _parse_pool(pool: str, lines: Sequence[str]) -> PoolStatus:
    at = next((at for at, line in enumerate(lines) if line.startswith("config:")), len(lines))
    scan, config = "\n".join(lines[:at]), lines[at:]
    scrub, resilver = (1 if each.search(scan) else 0 for each in (_SCRUB, _RESILVER))
    done = _DONE.search(scan) if scrub or resilver else None
    percent = float(done[1]) if done else None
    return PoolStatus(
        pool,
        scrub,
        resilver,
        # A counter of OpenZFS 2.3.5 ran over, and so did the share.
        percent if percent is not None and percent <= 100 else None,
        sum(bool(_TRIMMED.search(line)) for line in config),
        tuple(_leaves(config)),
    )


def _leaves(config: Sequence[str]) -> Iterator[Leaf]:
    """Yield the vdevs that have none below them, except spares."""
    section = group = ""
    nodes: list[tuple[int, str, str]] = []
    for line in config:
        if found := _SECTION.fullmatch(line):
            section, group = found[1], ""
        elif (found := _VDEV.fullmatch(line)) and section != _SPARES:
            depth, name = len(found[1]) // _INDENT, found[2]
            if depth == 1:
                group = f"{section} {name}".strip()
            if depth:
                nodes.append((depth, name, group))
    for at, (depth, name, of) in enumerate(nodes):
        has_below = at + 1 < len(nodes) and nodes[at + 1][0] > depth
        if not has_below:
            yield Leaf(name, of if depth > 1 else "")


class StateReader:
    """Takes lines as they come, and repeats what the last whole round said."""

    def __init__(self) -> None:
        self._coming: list[str] = []
        self._state: dict[str, float] = {}
        self._left = 0

    def add(self, line: str) -> None:
        """Take a line of standard output."""
        if line != END:
            self._coming += [line] if len(self._coming) < _MOST_LINES else []
            return
        if state := parse("\n".join(self._coming)):
            self._state, self._left = state, _REPEATED
        self._coming = []

    def take(self) -> ReadingPair:
        """Return the state, until it is too old."""
        self._left -= 1
        return ReadingPair(self._state if self._left >= 0 else {}, None, 1.0)


def columns(pools: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of `pools`."""
    return tuple(
        column
        for pool in pools
        for column in (
            gauge(f"{pool}_scrub_count", f"{pool} scrub"),
            gauge(f"{pool}_resilver_count", f"{pool} resilver"),
            gauge(f"{pool}_scan_percent", f"{pool} done"),
            gauge(f"{pool}_trim_count", f"{pool} trimming"),
            gauge(f"{pool}_full_percent", f"{pool} capacity"),
            gauge(f"{pool}_fragmented_percent", f"{pool} fragmentation"),
            gauge(f"{pool}_faulty_count", f"{pool} health"),
        )
    )


COLUMNS = columns(["POOL"])  # as they are documented


async def _prepare(machine: Machine, options: ObserverOptions, log: Log) -> CommandStream | None:
    pools = await find_pools(machine, options.pools, "poolstate", log)
    if not pools:
        return None
    probes = [(form, ["zpool", "list", *form, *pools]) for form in FORMS]
    form = await find_form(machine, "poolstate", "zpool list", probes, log)
    if form is None:
        return None
    return CommandStream(
        "poolstate", columns(pools), machine, command(form, pools), StateReader(), "zpool status"
    )


OBSERVER = Observer("poolstate", COLUMNS, _prepare)
