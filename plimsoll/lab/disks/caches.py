"""The caches below a clone at the start of a run, ZFS's own among them, and the steps that set them.

The steps come between the end of a clone and its start (`Place.cold`), so nothing of it is running.
What is in the clone itself, such as MariaDB's buffer pool, begins empty in any case: it is restarted.

Of ZFS's cache (ARC) a machine has one for all its pools. It is emptied by its limits, which are put back.
They outlive the program that lowered them; so they are kept in a file until they are back: it disappears
when the machine restarts, and so do they.
"""

from dataclasses import replace
from typing import Literal

from plimsoll.lab.disks.disk import Place
from plimsoll.lab.disks.removal import UNMOUNT_COPIES
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Check, Command, Remains, Step

CacheState = Literal["cold", "warm", "as-is"]
_MOST_S = 600.0
_READ_S = 6 * 3600.0
_BUSY_S = 20.0
_SHRINKS_S = 60
_KEPT = "/run/plimsoll-arc-limits"
_DROP = "/proc/sys/vm/drop_caches"

COLD = (
    Command("write everything out", ("sync",), timeout_s=600),
    Command("drop the page cache", ("tee", "/proc/sys/vm/drop_caches"), stdin="3\n", timeout_s=600),
)


def with_caches(wanted: CacheState | None, place: Place, name: str) -> Place:
    """Return `place` with the steps that bring `wanted` about for the clone called `name`.

    None: those of the disk's kind, which leave the ARC of a pool that exists as it is.
    """
    if wanted is None:
        return place
    if wanted == "as-is":
        return replace(place, cold=())
    if wanted == "warm":
        read = ("sh", "-c", 'find "$1" -type f -exec cat -- {} + >/dev/null', "sh", f"{place.folder}/{name}")
        read_all = Command("read all files of the site", read, timeout_s=_READ_S)
        return replace(place, cold=(*place.cold, read_all))
    return replace(place, cold=(*place.cold, *_empty_arc(place, name)))


def is_shared_arc(place: Place) -> bool:
    """Return whether the clone shares ZFS's cache with others: the pool is not the lab's, to be exported."""
    return place.dataset is not None and place.size_bytes is None


def can_be_cold(place: Place, backend: str) -> list[Check]:
    """Check whether caches can be emptied below `place`, that of `backend`."""
    if not is_shared_arc(place):
        return []
    problem = f"cache: cold is not possible on {backend}"
    return [can_shrink(problem)]


def _empty_arc(place: Place, name: str) -> list[Step]:
    if not is_shared_arc(place):
        return []
    again = ("sh", "-c", REMOUNT, "sh", f"{place.dataset}/{name}", f"{place.folder}/{name}")
    return [
        Command(
            "unmount the clone's datasets, and mount them again", again, timeout_s=_MOST_S, until_s=_BUSY_S
        ),
        empty_arc(),
    ]


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

_FILES = (
    "/sys/module/zfs/parameters/zfs_arc_min",
    "/sys/module/zfs/parameters/zfs_arc_max",
    "/proc/spl/kstat/zfs/arcstats",
    _KEPT,
)


def can_shrink(problem: str) -> Check:
    """Check whether the ARC can be emptied."""
    return Check(problem, ("sh", "-c", CAN_SHRINK, "sh", *_FILES))


def empty_arc() -> Command:
    """Return the step that empties the ARC; it first restores what a killed one left lowered."""
    words = ("sh", "-c", EMPTY, "sh", *_FILES, _DROP, str(_SHRINKS_S))
    says = "lower the limits of ZFS's cache (ARC) until it is empty, and put them back"
    return Command(says, words, timeout_s=_MOST_S)


async def find_lowered_limits(machine: Machine, backend: str) -> list[Remains]:
    """Find limits that a killed program left lowered. Raises MachineError."""
    if (await machine.run(["test", "-e", _KEPT], check=False)).status:
        return []
    back = Command("put the limits of ZFS's cache back", ("sh", "-c", PUT_BACK, "sh", *_FILES))
    return [Remains("lowered limits of ZFS's cache (ARC)", backend, (back,))]


# Of each script: $1, $2: the files of zfs_arc_min and zfs_arc_max; $3: arcstats; $4: where limits are kept.
CAN_SHRINK = """[ -r "$3" ] && [ -w "$1" ] && [ -w "$2" ] || {
    echo "others share the pool's cache (ARC), and this ZFS, like zfs-fuse, has no limits to lower:" \\
        "give the clone a pool of its own (an emulated disk), write warm or as-is, or leave cache out" >&2
    exit 1
}"""

# 0 stands for a default there, and changes no limit when it is written back: so the size it stood for is
# written first.
PUT_BACK = """least=$1 most=$2 stats=$3 kept=$4
back() {
    trap '' TERM INT HUP
    read -r was_least was_most c_min c_max <"$kept" || return
    echo "$c_max" >"$most" && echo "$c_min" >"$least" || return
    [ "$was_most" = "$c_max" ] || echo "$was_most" >"$most" || return
    [ "$was_least" = "$c_min" ] || echo "$was_least" >"$least" || return
    rm -f -- "$kept"
}
[ ! -e "$kept" ] || back"""

# $5: drop_caches, $6: seconds to wait. A lower limit alone empties nothing: the kernel has to ask for memory
# too (zfs(4), zfs_arc_max). The least that ZFS takes: 32 MiB, and over 64.
EMPTY = f"""{CAN_SHRINK}
{PUT_BACK} || exit
drop=$5 left_s=$6
of() {{ awk -v name="$1" '$1 == name {{ print $3 }}' "$stats"; }}
c_min=$(of c_min) c_max=$(of c_max)
[ -n "$c_min" ] && [ -n "$c_max" ] || {{ echo "arcstats has no c_min and c_max" >&2; exit 1; }}
echo "$(cat "$least") $(cat "$most") $c_min $c_max" >"$kept.new" && mv -- "$kept.new" "$kept" || exit
trap back EXIT
trap 'exit 143' TERM INT HUP
echo 33554432 >"$least"
echo 68157440 >"$most"
while echo 3 >"$drop" && [ "$(of data_size)" -gt 68157440 ]; do
    [ "$left_s" -gt 0 ] || {{ echo "the ARC still holds $(($(of data_size) >> 20)) MiB" >&2; exit 1; }}
    left_s=$((left_s - 1))
    sleep 1
done"""
