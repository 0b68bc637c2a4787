"""Scripts for sh, where one command is not enough; what differs comes as arguments."""

from collections.abc import Sequence

from plimsoll.lab.steps.step import Command

# The processes that are QEMU's, and have the clone's name as a whole argument. (The name comes by a pipe, so
# that grep's own arguments do not have it.)
_OURS = r"""name=$1
ours() {
    printf 'guest=%s\n' "$name" | grep -lzxFs -f - /proc/[0-9]*/cmdline | while IFS=/ read -r _ _ pid _; do
        case $(readlink "/proc/$pid/exe") in */qemu-system-*) echo "$pid" ;; esac
    done
}
"""
OURS = _OURS + "ours"

# $2: its monitor; $3: seconds that the guest has to shut down.
_OFF = (
    _OURS
    + r"""left=$3
[ -n "$(ours)" ] || exit 0
[ "$left" -gt 0 ] && [ -p "$2" ] && [ ! -L "$2" ] &&
    echo system_powerdown | timeout 5 dd of="$2" oflag=nonblock conv=notrunc status=none || left=0
for signal in TERM KILL -; do
    while [ "$left" -gt 0 ]; do
        [ -n "$(ours)" ] || exit 0
        sleep 1
        left=$((left - 1))
    done
    [ "$signal" = - ] || for pid in $(ours); do kill -s "$signal" "$pid"; done
    left=20
done
[ -z "$(ours)" ] || { echo "$name: QEMU does not stop" >&2; exit 1; }"""
)

# $1: the image; $2: `zvol` where the kernel's ZFS is needed too.
_LOOK = r"""no() { echo "$1" >&2; exit 1; }
for program in qemu-img qemu-system-x86_64; do
    command -v "$program" >/dev/null || no "$program is not installed: apt install qemu-system-x86 qemu-utils"
done
[ -f "$1" ] || no "there is no image $1: make one with make vm-image"
[ "$2" != zvol ] || [ -c /dev/zfs ] || no "zvols need the kernel's ZFS; zfs-fuse has none: use a file" """

# $1: the folder.
_PIPES = r"""cd "$1" && rm -f -- monitor.in monitor.out console pid && mkfifo -m 600 monitor.in monitor.out"""

# $1: the file with its number.
_ACCELERATOR = r"""pid=$(cat "$1") || exit
if ls -l "/proc/$pid/fd" | grep -q kvm-vm; then echo kvm; else echo tcg; fi"""

_SIZE = r"""qemu-img measure -f "$1" -O raw "$2" | sed -n 's/^required size: //p' | grep ."""


def off(name: str, folder: str, wait_s: int) -> Command:
    """Shut it down, and switch it off where that takes too long; at once without `wait_s`."""
    words = ("sh", "-c", _OFF, "sh", name, f"{folder}/monitor.in", str(wait_s))
    return Command("shut it down" if wait_s else "switch it off", words, timeout_s=wait_s * 2 + 120)


def look(image: str, disk_format: str) -> Command:
    """See that what is needed is there."""
    return Command("see that the image and QEMU are there", ("sh", "-c", _LOOK, "sh", image, disk_format))


def pipes(folder: str) -> Command:
    """Make the pipes of its monitor, of a guest that is off."""
    return Command("make the pipes of its monitor", ("sh", "-c", _PIPES, "sh", folder))


def accelerator(folder: str) -> Command:
    """Capture what it runs by."""
    words = ("sh", "-c", _ACCELERATOR, "sh", f"{folder}/pid")
    return Command("see whether it runs on kvm or tcg", words, capture="accelerator")


def size(image_format: str, image: str) -> Command:
    """Capture how large the image's disk is."""
    words = ("sh", "-c", _SIZE, "sh", image_format, image)
    return Command("see how large its disk is", words, capture="disk_size")


def pids(out: str) -> Sequence[str]:
    """Return the numbers that OURS printed, without anything else."""
    return [line for line in out.splitlines() if line.isascii() and line.isdigit()]
