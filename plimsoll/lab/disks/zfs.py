"""The pool of an emulated disk: the kernel's ZFS where the machine has it, else Debian's zfs-fuse. Pure."""

from plimsoll.lab.disks.emulated_settings import EmulatedDisk
from plimsoll.lab.disks.propagation import UNMOUNT_COPIES
from plimsoll.lab.steps.step import Command, Step

MOST_S = 600.0

# $1: the file of zfs-fuse's process number; it marks that process as the lab's.
START_DAEMON = r"""[ -d /sys/module/zfs ] || modprobe -q zfs 2>/dev/null || :
zpool list >/dev/null 2>&1 && exit
command -v zfs-fuse >/dev/null || {
    echo "this machine has neither the kernel's ZFS nor zfs-fuse: apt install zfs-fuse" >&2
    exit 1
}
runs() { ps -C zfs-fuse -o stat= | grep -qv '^Z'; }
for _ in $(seq 50); do
    runs || setsid zfs-fuse --pidfile "$1" </dev/null >/dev/null 2>&1
    zpool list >/dev/null 2>&1 && exit
    sleep 0.2
done
echo "zfs-fuse does not answer: is the kernel's module fuse loaded?" >&2
exit 1"""

# Ends well where ZFS runs, or could be started.
IS_THERE = """[ -d /sys/module/zfs ] || modprobe -nq zfs 2>/dev/null || command -v zfs-fuse >/dev/null || {
    echo "this machine has neither the kernel's ZFS nor zfs-fuse: apt install zfs-fuse" >&2
    exit 1
}"""

# $1: that file; $2: the group with the limits. One that is not the lab's is not moved. One that was killed
# counts no more, although it may wait for init to take notice (Z).
JOIN_DAEMON = r"""daemon=$(ps -C zfs-fuse -o pid= -o stat= | awk '$2 !~ /^Z/ { print $1 }')
[ -n "$daemon" ] || exit 0
! grep -qx "$daemon" "$2/cgroup.procs" || exit 0
[ "$(cat "$1" 2>/dev/null)" = "$daemon" ] || {
    echo "zfs-fuse already runs in another control group: stop it, so that the lab can start its own" >&2
    exit 1
}
echo "$daemon" >"$2/cgroup.procs" """

# Ends the daemon in the file $1, unless it still serves a pool, whoever's.
END_DAEMON = r"""daemon=$(cat "$1") || exit 0
if ps -o stat= -o comm= -p "$daemon" | grep -q '^[^Z].* zfs-fuse$'; then
    pools=$(zpool list -H -o name) || exit 0
    [ -z "$pools" ] || exit 0
    kill "$daemon"
    for _ in $(seq 50); do
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.2
    done
fi
rm -f -- "$1" """

# Links $2 to the device $1, or to the partition that the kernel's ZFS made of it.
LINK = r"""ln -sfn "$(test -e "$1p1" && echo "$1p1" || echo "$1")" "$2" """


def make_pool(settings: EmulatedDisk, pool: str, folder: str) -> list[Step]:
    """Return the steps that make the pool on `${disk_loop}`, with the dataset `site` at `folder`/mnt."""
    properties = [
        *(["-o", f"recordsize={settings.recordsize}"] if settings.recordsize else []),
        *(["-o", f"compression={settings.compression}"] if settings.compression else []),
    ]
    make = ("zpool", "create", "-o", "cachefile=none", "-O", "mountpoint=none", pool, "${disk_loop}")
    dataset = ("zfs", "create", "-o", f"mountpoint={folder}/mnt", *properties, f"{pool}/site")
    return [
        Command("make the pool", make, timeout_s=MOST_S),
        Command(
            "link the device, so that an import finds it",
            ("sh", "-c", LINK, "sh", "${disk_loop}", f"{folder}/dev/disk"),
        ),
        Command("make the dataset", dataset, timeout_s=MOST_S),
    ]


def import_anew(pool: str, folder: str) -> list[Step]:
    """Return the steps that empty ZFS's cache: the pool is exported and imported."""
    away = ("sh", "-c", _EXPORT, "sh", f"{folder}/mnt", pool)
    again = ("zpool", "import", "-d", f"{folder}/dev", "-o", "cachefile=none", pool)
    return [
        Command("export the pool, which empties its cache", away, timeout_s=MOST_S, until_s=20),
        Command("import it", again, timeout_s=MOST_S),
    ]


# $1: the mount point; $2: the pool.
_EXPORT = f"""{UNMOUNT_COPIES}
zpool export "$2" """
