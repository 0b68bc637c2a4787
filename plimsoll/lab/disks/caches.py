"""The state in which a run finds the caches below its clone, and the steps that bring it about. Pure.

They stand between the end of a clone and its start (`Place.cold`), so nothing of it runs meanwhile. What is
in the clone itself, such as MariaDB's buffer pool, begins empty in any case: it is started anew.
"""

from dataclasses import replace
from typing import Literal

from plimsoll.lab.disks import arc
from plimsoll.lab.disks.place import Place
from plimsoll.lab.disks.propagation import UNMOUNT_COPIES
from plimsoll.lab.steps.step import Command, Look, Step

CacheState = Literal["cold", "warm", "as-is"]

_MOST_S = 600.0
_READ_S = 6 * 3600.0
_BUSY_S = 20.0


def with_caches(wanted: CacheState | None, place: Place, name: str) -> Place:
    """Return `place` with the steps that bring `wanted` about for the clone called `name`.

    None: those of the disk's kind, which leave the ARC of a pool that exists as it is.
    """
    if wanted is None:
        return place
    if wanted == "as-is":
        return replace(place, cold=())
    if wanted == "warm":
        return replace(place, cold=(*place.cold, _read_through(f"{place.folder}/{name}")))
    return replace(place, cold=(*place.cold, *_empty_arc(place, name)))


def is_shared_arc(place: Place) -> bool:
    """Return whether the clone shares ZFS's cache with others: the pool is not the lab's, to be exported."""
    return place.dataset is not None and place.size_bytes is None


def can_be_cold(place: Place, backend: str) -> list[Look]:
    """Return the look whether caches can be emptied below `place`, that of `backend`."""
    if not is_shared_arc(place):
        return []
    problem = f"cache: cold cannot be brought about on {backend}"
    return [arc.can_shrink(problem)]


def _empty_arc(place: Place, name: str) -> list[Step]:
    if not is_shared_arc(place):
        return []
    again = ("sh", "-c", REMOUNT, "sh", f"{place.dataset}/{name}", f"{place.folder}/{name}")
    return [
        Command(
            "unmount the clone's datasets, and mount them again", again, timeout_s=_MOST_S, until_s=_BUSY_S
        ),
        arc.empty(),
    ]


def _read_through(folder: str) -> Command:
    words = ("sh", "-c", 'find "$1" -type f -exec cat -- {} + >/dev/null', "sh", folder)
    return Command("read all files of the site", words, timeout_s=_READ_S)


# $1: the clone's dataset; $2: its mount point. One that is a volume, or is not there, has nothing to unmount.
# However it ends, all are mounted.
REMOUNT = f"""dataset=$1; shift
all=$(zfs list -H -o name -t filesystem -r "$dataset" 2>/dev/null) || exit 0
{UNMOUNT_COPIES}
status=0
for each in $(printf '%s\\n' "$all" | sort -r); do zfs unmount "$each" || {{ status=1; break; }}; done
for each in $(printf '%s\\n' "$all" | sort); do
    [ "$(zfs get -H -o value mounted "$each")" = yes ] || zfs mount "$each" || status=1
done
exit "$status" """
