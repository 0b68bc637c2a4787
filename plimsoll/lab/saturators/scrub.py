"""Saturator `scrub`: a pool is scrubbed again and again. A mark on the pool says whose scrub it is.

How a scan of a pool is followed stands here too, for `resilver`.
"""

import re
from abc import abstractmethod
from typing import Literal

from pydantic import Field

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.machine import Line, Machine
from plimsoll.lab.names import PoolName
from plimsoll.lab.saturators.saturator import (
    CLONE,
    Runner,
    SaturatorKind,
    SaturatorSettings,
    Settings,
)
from plimsoll.lab.steps.step import Check, Command, Remains, is_pool

END_S = 600.0  # for a command that ends a scan: a busy pool answers late
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


class ScanRunner(Runner[Settings]):
    """The base of saturators that scan a pool again and again."""

    shortest_round_s = 1.0  # the scan of an empty pool takes no time

    @abstractmethod
    def _scan(self) -> list[str]:
        """Return the command that scans once, and tells how far it is."""

    @abstractmethod
    def _end(self) -> list[str]:
        """Return the command that ends a scan of the lab's, also one that a crash left."""

    async def _once(self) -> None:
        figures = ScanProgress()
        await self._follow(self._scan(), figures.read, lambda: figures.total_bytes)

    async def _clean(self) -> None:
        await self.machine.run(self._end(), timeout_s=END_S)


class ScanProgress:
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


MARK = "plimsoll:scrub"  # a property of the pool's first dataset: whose, and since when (Unix time)
# $1: the pool; $2: the label. A scrub that is paused would go on where it was, and be somebody else's.
_SCRUB = f"""# zpool scrub, and wait for its end
{SCAN}
see_idle "$1"
zfs set "{MARK}=$2 $(date +%s)" "$1" && zpool scrub "$1" || exit
follow "$1" """
# Ends well where that pool bears the mark of the label.
_IS_MARKED = f"""mark=$(zfs get -H -o value -s local {MARK} "$1" 2>/dev/null)
[ "${{mark% *}}" = "$2" ]"""
# Stops the scrub that was begun with the mark, and takes the mark off. One that began later is another's.
_STOP = f"""# zpool scrub -s, if the lab began it
{SCAN}
{_IS_MARKED} || exit 0
said=$(scan "$1")
case $said in
*"scrub in progress since "*)
    began=$(date -d "${{said#* since }}" +%s) || exit
    late=$((began - ${{mark##* }}))
    [ "$late" -gt 60 ] || zpool scrub -s "$1" || ! scan "$1" | grep -Eq "$under_way" || exit
    ;;
*"scrub in progress for "*) zpool scrub -s "$1" || ! scan "$1" | grep -Eq "$under_way" || exit ;;
esac
zfs inherit {MARK} "$1" """


class Scrub(SaturatorSettings):
    """`zpool scrub` of one pool."""

    kind: Literal["scrub"] = Field(description="`scrub`.")
    pool: PoolName | Literal["@clone"] = Field(CLONE, description="Pool to scrub. Default: the clone's.")


def scrub_command(pool: str, label: str) -> list[str]:
    """Return the command that scrubs the pool once, and tells how far it is."""
    return ["sh", "-c", _SCRUB, "sh", pool, label]


def stop_command(pool: str, label: str) -> list[str]:
    """Return the command that stops the scrub with this label, if there is one."""
    return ["sh", "-c", _STOP, "sh", pool, label]


class _ScrubRunner(ScanRunner[Scrub]):
    def _scan(self) -> list[str]:
        return scrub_command(self.settings.pool, self.label)

    def _end(self) -> list[str]:
        return stop_command(self.settings.pool, self.label)


def _aim(settings: Scrub, at: DataLocation) -> Scrub:
    if settings.pool != CLONE:
        return settings
    if not at.dataset:
        raise ValueError("pool: is missing: the lab knows no ZFS pool under this clone; name one")
    return settings.model_copy(update={"pool": at.dataset.partition("/")[0]})


def _checks(settings: Scrub) -> list[Check]:
    if settings.pool == CLONE:
        return []
    idle = ("sh", "-c", f'{SCAN}see_idle "$1"', "sh", settings.pool)
    return [
        is_pool("saturator.pool", settings.pool),
        Check("saturator.pool: cannot be scrubbed now", idle, ours=True),
    ]


async def _find(machine: Machine, settings: Scrub, label: str, backend: str) -> list[Remains]:
    """Return the scrub that was begun with this label, and its mark."""
    if settings.pool == CLONE:
        return []
    marked = await machine.run(["sh", "-c", _IS_MARKED, "sh", settings.pool, label], check=False)
    if marked.status:
        return []
    step = Command("stop it", tuple(stop_command(settings.pool, label)), timeout_s=END_S)
    return [Remains(f"the scrub of {settings.pool}, or its mark there", backend, (step,))]


SCRUB = SaturatorKind(
    "scrub",
    Scrub,
    _ScrubRunner,
    aim=_aim,
    programs=frozenset({"zfs", "zpool"}),
    rounds=lambda _: 1,
    checks=_checks,
    find=_find,
)
