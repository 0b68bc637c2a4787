"""ZFS's cache (ARC), of which a machine has one for all its pools: emptied by its limits, which are put back.

The limits outlive the program that lowered them. So they are kept in a file until they are back: it goes when
the machine starts anew, and so do they.
"""

from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Look, Remains

_MOST_S = 600.0
_SHRINKS_S = 60
_KEPT = "/run/plimsoll-arc-limits"
_FILES = (
    "/sys/module/zfs/parameters/zfs_arc_min",
    "/sys/module/zfs/parameters/zfs_arc_max",
    "/proc/spl/kstat/zfs/arcstats",
    _KEPT,
)
_DROP = "/proc/sys/vm/drop_caches"


def can_shrink(problem: str) -> Look:
    """Return the look whether the ARC can be emptied."""
    return Look(problem, ("sh", "-c", CAN_SHRINK, "sh", *_FILES))


def empty() -> Command:
    """Return the step that empties the ARC; what a killed one left lowered, it puts back first."""
    words = ("sh", "-c", EMPTY, "sh", *_FILES, _DROP, str(_SHRINKS_S))
    says = "lower the limits of ZFS's cache (ARC) until it is empty, and put them back"
    return Command(says, words, timeout_s=_MOST_S)


async def find(machine: Machine, backend: str) -> list[Remains]:
    """Find limits that somebody lowered who was killed. Raises MachineError."""
    if (await machine.run(["test", "-e", _KEPT], check=False)).status:
        return []
    back = Command("put the limits of ZFS's cache back", ("sh", "-c", PUT_BACK, "sh", *_FILES))
    return [Remains("lowered limits of ZFS's cache (ARC)", backend, (back,))]


# Of each script: $1, $2: the files of zfs_arc_min and zfs_arc_max; $3: arcstats; $4: where limits are kept.
CAN_SHRINK = """[ -r "$3" ] && [ -w "$1" ] && [ -w "$2" ] || {
    echo "others share the pool's cache (ARC), and this ZFS has no limits of it to lower, as zfs-fuse:" \\
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
