"""What `zpool status` prints of each pool: what runs on it, and its vdevs. Pure.

The forms are those of `print_scan_status` and `print_status_config` in cmd/zpool/zpool_main.c of OpenZFS 2.1
to 2.4, and zfs-fuse's (`scrub:` for `scan:`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


def parse(text: str) -> list[PoolStatus]:
    """Return the pools in the order in which they are printed."""
    blocks: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        if found := _POOL.fullmatch(line):
            blocks.append((found[1], []))
        elif blocks:
            blocks[-1][1].append(line)
    return [_parsed(pool, lines) for pool, lines in blocks]


def _parsed(pool: str, lines: Sequence[str]) -> PoolStatus:
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
    """Yield the vdevs that have none below them, but for spares."""
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
