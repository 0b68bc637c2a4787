"""A scrub or a resilver, followed to its end: the commands, and its progress as `zpool status` tells it.

OpenZFS 2.1 to 2.4 and zfs-fuse tell the share that is done, to 0.01 %; all else there is rounded to three
digits, whatever the options. So the bytes are that share of what the pool holds.
"""

import re
from abc import abstractmethod

from plimsoll.lab.machine import Line
from plimsoll.lab.saturators.runner import Runner, at_least

END_S = 600.0  # for a command that ends a scan: a busy pool answers late
_SHORTEST_ROUND_S = (
    1.0  # that the scan of an empty pool is made to take, so that a loop of them does not spin
)

_TOTAL = re.compile(r"total ([0-9]{1,18})", re.ASCII)
_DONE = re.compile(r"(?:repaired|resilvered|for [0-9]+h[0-9]+m), ([0-9]{1,12}\.[0-9]{2})% done\b", re.ASCII)
# What is written meanwhile comes on top of 100 %; what is far beyond is a counter that ran over.
_MOST_PERCENT = 200.0

# The lines of a shell's functions. `scan POOL` prints what zpool says of the last scan, `UNDER_WAY` is the
# form of that while it is not over.
SCAN = r"""export LC_ALL=C
under_way='(in progress|paused) (since|for) '
scan() { zpool status "$1" | grep -E '^ *(scan|scrub): '; }
follow() {
    total=$(zpool list -H -p -o allocated "$1" 2>/dev/null) ||
        total=$(zfs get -H -p -o value used "$1") || exit
    echo "total $total"
    while :; do
        said=$(zpool status "$1") || exit
        printf '%s\n' "$said" | grep -Eq "^ *(scan|scrub): .*$under_way" || break
        printf '%s\n' "$said" | grep '% done'
        sleep 1
    done
    case $said in *"scrub canceled on "*|*"resilver canceled on "*|*"scrub stopped after "*)
        echo "$1: somebody stopped it" >&2
        exit 1
    esac
}
see_idle() {
    ! scan "$1" | grep -Eq "$under_way" || {
        echo "a scrub or resilver of $1 is under way or paused: let it end, or stop it: zpool scrub -s $1" >&2
        exit 1
    }
}
"""


class ScanRunner(Runner):
    """The base of saturators that scan a pool again and again."""

    @abstractmethod
    def _scan(self) -> list[str]:
        """Return the command that scans once, and tells how far it is."""

    @abstractmethod
    def _end(self) -> list[str]:
        """Return the command that ends a scan of the lab's, also one that a crash left."""

    async def _prepare(self) -> None:
        await self._clean()

    async def _once(self) -> None:
        figures = ScanFigures()
        scanned = self._follow(self._scan(), figures.read, lambda: figures.total_bytes)
        await at_least(_SHORTEST_ROUND_S, scanned)

    async def _clean(self) -> None:
        await self.machine.run(self._end(), timeout_s=END_S)


class ScanFigures:
    """Reads what `follow` prints: the bytes of the pool, then the share of them that is done."""

    def __init__(self) -> None:
        self.total_bytes = 0

    def read(self, line: Line) -> int | None:
        """Return the bytes that are done, None where the line does not say it."""
        if line.stream != "out":
            return None
        if total := _TOTAL.fullmatch(line.text):
            self.total_bytes = int(total[1])
            return 0
        percent = percent_done(line.text)
        return None if percent is None else round(self.total_bytes * percent / 100)


def percent_done(line: str) -> float | None:
    """Return the share of a scrub or resilver that is done, from a line of `zpool status`. Pure."""
    found = _DONE.search(line)
    percent = float(found[1]) if found else None
    return percent if percent is not None and percent <= _MOST_PERCENT else None
