"""Scripts for sh that run virsh, where one command is not enough; what differs comes as arguments.

$1 is the connection's URI, $2 the domain. `lab plan` shows them to its readers, so they are short.
"""

from plimsoll.lab.clones.libvirt.xml import NAMESPACE
from plimsoll.lab.steps.step import Command

_ASK = 'export LC_ALL=C; v() { virsh -q -c "$uri" "$@"; }; uri=$1 name=$2\n'
_OFF = 'off() { case $(v domstate "$name") in "shut off" | crashed) ;; *) return 1 ;; esac; }\n'

# $3: seconds that the guest has.
_STOP = (
    _ASK
    + _OFF
    + r"""off && exit
v shutdown "$name" >/dev/null || :
left=$3
while [ "$left" -gt 0 ]; do
    sleep 1
    ! off || exit 0
    left=$((left - 1))
done
v destroy "$name" || off"""
)

# Removes a domain that has the lab's mark; one that is gone is no failure.
_REMOVE = (
    _ASK
    + _OFF
    + rf"""all=$(v list --all --name) || exit
printf '%s\n' "$all" | grep -Fxq -- "$name" || exit 0
v metadata "$name" {NAMESPACE} 2>/dev/null | grep -Fq "name=\"$name\"" ||
    {{ echo "$name: it does not have the lab's mark, so it stays" >&2; exit 1; }}
off || v destroy "$name" || off || exit
v undefine "$name" --nvram --managed-save --snapshots-metadata --checkpoints-metadata"""
)

# $3: who knows the address.
_ADDRESS = (
    _ASK
    + r"""v domifaddr "$name" --source "$3" | awk '
    $3 == "ipv4" && $4 !~ /^(127|169\.254)\./ && $1 !~ /^(docker|br-|veth|virbr)/ {
        sub(/\/.*/, "", $4); print $4; found = 1; exit
    }
    END { if (!found) { print "it has no address yet" > "/dev/stderr"; exit 1 } }'"""
)

# $3: the control group that has the disk's limits.
_JOIN = 'cat "/run/libvirt/qemu/$2.pid" >"$3/cgroup.procs"'


def stop(uri: str, name: str, wait_s: int) -> Command:
    """Shut it down, and switch it off where that takes too long."""
    words = ("sh", "-c", _STOP, "sh", uri, name, str(wait_s))
    return Command("shut it down", words, timeout_s=wait_s * 2 + 120)


def remove(uri: str, name: str) -> Command:
    """Switch it off and forget it, with snapshots and variables."""
    return Command("remove the domain", ("sh", "-c", _REMOVE, "sh", uri, name), timeout_s=300)


def address(uri: str, name: str, source: str, until_s: float) -> Command:
    """Capture its address."""
    words = ("sh", "-c", _ADDRESS, "sh", uri, name, source)
    return Command("ask for its address", words, capture="address", until_s=until_s)


def join(uri: str, name: str, group: str) -> Command:
    """Put QEMU under the disk's limits."""
    return Command("put it under the disk's limits", ("sh", "-c", _JOIN, "sh", uri, name, group))
