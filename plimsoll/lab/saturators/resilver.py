"""Saturator `resilver`: an emulated disk gets a second side, and loses it once ZFS has filled it."""

from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field, PrivateAttr

from plimsoll.lab.disks.disk import DataLocation
from plimsoll.lab.disks.removal import MARK, MIRROR
from plimsoll.lab.names import is_own
from plimsoll.lab.saturators.saturator import SaturatorKind, SaturatorSettings
from plimsoll.lab.saturators.scrub import SCAN, ScanRunner

_SLACK_BYTES = 16 << 20  # a side must not be smaller than the other
# Takes the second side off the pool $1 of the disk in $2, whatever ZFS calls it by now, and removes it.
_DETACH = f"""# zpool detach the second side, and remove it
file=$2/{MIRROR}
side=$(zpool status "$1" 2>/dev/null | awk -v file="$file" '{{
    sub(/^[ \\t]+/, "")
    if (index($0, file) == 1) {{ print file; exit }}
    if (index($0, "was " file)) {{ print $1; exit }}
}}')
[ -z "$side" ] || zpool detach "$1" "$side" || exit
rm -f -- "$file" """
# The pool's only device must be the one that the lab linked when it made the disk: then it is the lab's.
_RESILVER = f"""# zpool attach a second side, wait for the end of the resilver, zpool detach
{SCAN}
device=$(readlink -- "$2/dev/disk") && [ -e "$2/{MARK}" ] || {{
    echo "$1 is on no emulated disk of the lab: only such a pool is resilvered" >&2
    exit 1
}}
side=$(zpool status "$1" | awk '$1 == "NAME" {{ head = NR }} head && NR == head + 2 {{ print; exit }}' |
    sed -E 's/^[ \\t]+//; s/ +[A-Z]+ +[0-9.KMG]+ +[0-9.KMG]+ +[0-9.KMG]+.*$//')
whole=$(echo "$device" | sed -E 's/([0-9])p1$/\\1/')
case $side in
/*) ;;
*) side=/dev/$side ;;  # zfs-fuse finds it by nothing shorter
esac
case $side in
"$2/dev/disk" | "$device" | "$whole") ;;
*)
    echo "$1 is on $side, not on the disk that the lab made: only such a pool is resilvered" >&2
    exit 1
    ;;
esac
# OpenZFS goes through the pool to the end, though the side that it filled is gone.
while scan "$1" | grep -Eq "$under_way"; do sleep 1; done
size=$(lsblk -bdnro SIZE "$whole") || exit
rm -f -- "$2/{MIRROR}" && truncate -s $((size + {_SLACK_BYTES})) -- "$2/{MIRROR}" || exit
zpool attach "$1" "$side" "$2/{MIRROR}" && follow "$1" || exit
{_DETACH}"""


class Resilver(SaturatorSettings):
    """A resilver of the clone's emulated pool."""

    kind: Literal["resilver"] = Field(description="`resilver`.")
    _pool: str = PrivateAttr("")
    _folder: str = PrivateAttr("")


def resilver_command(pool: str, folder: str) -> list[str]:
    """Return the command that resilvers the pool of the emulated disk in `folder` once."""
    return ["sh", "-c", _RESILVER, "sh", pool, folder]


def detach_command(pool: str, folder: str) -> list[str]:
    """Return the command that puts that disk back as it was."""
    return ["sh", "-c", _DETACH, "sh", pool, folder]


class _ResilverRunner(ScanRunner[Resilver]):
    def _scan(self) -> list[str]:
        return resilver_command(self.settings._pool, self.settings._folder)

    def _end(self) -> list[str]:
        return detach_command(self.settings._pool, self.settings._folder)


def _aim(settings: Resilver, at: DataLocation) -> Resilver:
    pool = (at.dataset or "").partition("/")[0]
    mounted = PurePosixPath(at.folder or "/")
    if not is_own(pool) or mounted != PurePosixPath(mounted.parent.parent, pool, "mnt"):
        where = f"is on the pool {pool}" if pool else "is on no ZFS pool that the lab knows"
        raise ValueError(
            f"kind: resilver works only on a pool that the lab makes, and this clone {where}: give the "
            "backend a disk {kind: emulated, filesystem: zfs}, or use the saturator scrub"
        )
    pointed = settings.model_copy()
    pointed._pool, pointed._folder = pool, str(mounted.parent)
    return pointed


RESILVER = SaturatorKind(
    "resilver",
    Resilver,
    _ResilverRunner,
    aim=_aim,
    programs=frozenset({"lsblk", "zpool"}),
    rounds=lambda _: 1,
    mirrors_disk=True,
)
