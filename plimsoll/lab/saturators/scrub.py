"""Saturator `scrub`: a pool is scrubbed again and again. A mark on the pool says whose scrub it is."""

from typing import Literal

from pydantic import Field

from plimsoll.lab.disks.place import DataLocation
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import PoolName
from plimsoll.lab.saturators.kind import CLONE, SaturatorKind, SaturatorSettings
from plimsoll.lab.saturators.runner import OnEvent
from plimsoll.lab.saturators.zpool_scan import END_S, SCAN, ScanRunner
from plimsoll.lab.steps.step import Command, Look, Remains, is_pool

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


def scrub(pool: str, label: str) -> list[str]:
    """Return the command that scrubs the pool once, and tells how far it is."""
    return ["sh", "-c", _SCRUB, "sh", pool, label]


def stop(pool: str, label: str) -> list[str]:
    """Return the command that stops the scrub with this label, if there is one."""
    return ["sh", "-c", _STOP, "sh", pool, label]


class _Scrubbing(ScanRunner):
    def __init__(self, machine: Machine, settings: Scrub, label: str, on_event: OnEvent) -> None:
        super().__init__(machine, settings.kind, settings.retries, on_event)
        self._pool, self._label = settings.pool, label

    def _scan(self) -> list[str]:
        return scrub(self._pool, self._label)

    def _end(self) -> list[str]:
        return stop(self._pool, self._label)


def _aimed(settings: Scrub, at: DataLocation) -> Scrub:
    if settings.pool != CLONE:
        return settings
    if not at.dataset:
        raise ValueError("pool: is missing: the lab knows no ZFS pool under this clone; name one")
    return settings.model_copy(update={"pool": at.dataset.partition("/")[0]})


def _looks(settings: Scrub) -> list[Look]:
    if settings.pool == CLONE:
        return []
    idle = ("sh", "-c", f'{SCAN}see_idle "$1"', "sh", settings.pool)
    return [
        is_pool("saturator.pool", settings.pool),
        Look("saturator.pool: cannot be scrubbed now", idle, ours=True),
    ]


async def _find(machine: Machine, settings: Scrub, label: str, backend: str) -> list[Remains]:
    """Return the scrub that was begun with this label, and its mark."""
    if settings.pool == CLONE:
        return []
    marked = await machine.run(["sh", "-c", _IS_MARKED, "sh", settings.pool, label], check=False)
    if marked.status:
        return []
    step = Command("stop it", tuple(stop(settings.pool, label)), timeout_s=END_S)
    return [Remains(f"the scrub of {settings.pool}, or its mark there", backend, (step,))]


SCRUB = SaturatorKind(
    "scrub",
    Scrub,
    _Scrubbing,
    aim=_aimed,
    programs=frozenset({"zfs", "zpool"}),
    rounds=lambda _: 1,
    looks=_looks,
    find=_find,
)
