"""Limits of an emulated disk: a control group's, of cgroup v1 or v2, for one block device.

Under v1 the limits are those of the root group: it alone has what the kernel writes back and a journal's
threads, and limits of v1 are not inherited. What works on the disk from other groups (containers) is moved
there, so that all of it waits in one line, as before one disk. Under v2, where the root has no limits, it is
a group of the lab's own.
"""

from collections.abc import Sequence

from plimsoll.lab.machine import CommandResult, Machine, Process, WrappedMachine
from plimsoll.lab.names import StrictModel
from plimsoll.lab.steps.step import Command

# Runs a command in the group $1.
JOIN = 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"'


class DiskSpeed(StrictModel):
    """The limits of a disk, for reads and for writes each; None means unlimited."""

    bytes_per_s: int | None = None
    operations_per_s: int | None = None

    def __bool__(self) -> bool:
        """Return whether there is any limit."""
        return self.bytes_per_s is not None or self.operations_per_s is not None


# Prints the group. $1: `zfs` where the kernel's own threads would have to be limited; $2: where the control
# groups are mounted, as /proc/mounts says it.
FIND_GROUP = r"""v1=$(awk '$3 == "cgroup" && ("," $4 ",") ~ /,blkio,/ { print $2; exit }' "$2")
v2=$(awk '$3 == "cgroup2" { print $2; exit }' "$2")
if [ -n "$v1" ] && [ -e "$v1/blkio.throttle.read_bps_device" ]; then
    echo "$v1"
elif [ -n "$v2" ] && grep -qw io "$v2/cgroup.controllers"; then
    if [ "$1" = zfs ] && [ -e /sys/module/zfs ]; then
        echo "cgroup v2 cannot limit the kernel's ZFS: leave the limits out, or use another filesystem" >&2
        exit 1
    fi
    echo "+io +memory" >"$v2/cgroup.subtree_control" && mkdir -p "$v2/plimsoll" && echo "$v2/plimsoll"
else
    echo "this machine has neither blkio of cgroup v1 nor io of v2 to limit a disk: leave the limits out" >&2
    exit 1
fi"""

# Ends well where FIND_GROUP would find one; changes nothing.
CAN_LIMIT = FIND_GROUP.replace(
    """    echo "+io +memory" >"$v2/cgroup.subtree_control" && mkdir -p "$v2/plimsoll" && echo "$v2/plimsoll"
""",
    """    :
""",
)

# $1: the group; $2: major:minor; then bytes and operations a second, 0 for no limit.
SET_LIMITS = r"""if [ -e "$1/io.max" ]; then
    b=$3 o=$4
    [ "$b" != 0 ] || b=max
    [ "$o" != 0 ] || o=max
    echo "$2 rbps=$b wbps=$b riops=$o wiops=$o" >"$1/io.max"
else
    for way in read write; do
        echo "$2 $3" >"$1/blkio.throttle.$way"_bps_device || exit
        echo "$2 $4" >"$1/blkio.throttle.$way"_iops_device || exit
    done
fi"""

# Moves all processes of the containers that docker lists for the filter $2 into the group $1; those that they
# start meanwhile are moved the next time round. What has moved is no longer counted as docker's: `docker
# stats` shows none of its reads and writes.
JOIN_CONTAINERS = r"""group=$1
if [ -e "$group/io.max" ]; then
    root=${group%/*} line='s/^0:://p'
else
    root=$group line='s/^[0-9]*:\([^:]*,\)\{0,1\}blkio\(,[^:]*\)\{0,1\}://p'
fi
for container in $(docker ps -q --filter "$2"); do
    init=$(docker inspect -f '{{.State.Pid}}' "$container") || exit
    below=$(sed -n "$line" "/proc/$init/cgroup") || exit
    own=$root${below%/}
    [ "$own" != "$group" ] || continue
    rounds=0
    while pids=$(cat "$own/cgroup.procs" 2>/dev/null) && [ -n "$pids" ]; do
        rounds=$((rounds + 1))
        [ "$rounds" -le 100 ] || { echo "$container: its processes cannot be moved to $group" >&2; exit 1; }
        for pid in $pids; do echo "$pid" >"$group/cgroup.procs" 2>/dev/null || :; done
    done
done"""


def find_group(filesystem: str) -> Command:
    """Return the step that finds the group that has the limits, and captures it as `disk_group`."""
    words = ("sh", "-c", FIND_GROUP, "sh", filesystem, "/proc/mounts")
    return Command("find the control group that can limit it", words, capture="disk_group")


def set_limits(limits: DiskSpeed, number: str, says: str, group: str = "${disk_group}") -> Command:
    """Return the step that puts the device with this `major:minor` under `limits`."""
    both = (str(limits.bytes_per_s or 0), str(limits.operations_per_s or 0))
    return Command(says, ("sh", "-c", SET_LIMITS, "sh", group, number, *both))


def join_containers(group: str, label: str) -> Command:
    """Return the step that puts the containers with a label (`key=value`) under the limits of `group`."""
    words = ("sh", "-c", JOIN_CONTAINERS, "sh", group, f"label={label}")
    return Command("put its containers under the disk's limits", words)


def run_in_group(group: str, command: Sequence[str]) -> list[str]:
    """Return `command` run under the limits of `group`."""
    return ["sh", "-c", JOIN, "sh", group, *command]


class LimitedMachine(WrappedMachine):
    """A Machine whose commands join a control group before they begin."""

    def __init__(self, machine: Machine, group: str) -> None:
        """`group`: a place's, filled in."""
        super().__init__(machine)
        self._group = group

    async def run(
        self,
        command: Sequence[str],
        *,
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> CommandResult:
        """See Machine."""
        words = run_in_group(self._group, command)
        return await self._machine.run(words, stdin=stdin, timeout_s=timeout_s, check=check)

    async def start(self, command: Sequence[str]) -> Process:
        """See Machine."""
        return await self._machine.start(run_in_group(self._group, command))
