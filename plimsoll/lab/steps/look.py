"""A look at a machine: a command that changes nothing, and what is wrong where it fails. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.lab.steps.step import Command


@dataclass(frozen=True)
class Look:
    """`problem` names the key and the remedy; what the command prints to standard error completes it.

    With `ours` the lab's own leftovers may be the cause, which go before an experiment begins.
    """

    problem: str
    words: tuple[str, ...]
    timeout_s: float = 60.0
    ours: bool = False


def is_folder(key: str, path: str) -> Look:
    """Return the look whether `path` is a folder."""
    return Look(f"{key}: there is no folder {path}: make it, or correct the path", ("test", "-d", path))


def is_file(key: str, path: str) -> Look:
    """Return the look whether `path` is a file."""
    return Look(f"{key}: there is no file {path}: correct the path", ("test", "-f", path))


def is_program(key: str, name: str) -> Look:
    """Return the look whether there is a program `name`, or a file that can be run."""
    words = ("sh", "-c", 'command -v -- "$1" >/dev/null', "sh", name)
    return Look(f"{key}: there is no program {name}: install it, or correct the name", words)


def is_dataset(key: str, name: str) -> Look:
    """Return the look whether `name` is a dataset."""
    words = ("sh", "-c", 'zfs list -H -o name "$1" >/dev/null 2>&1', "sh", name)
    return Look(f"{key}: there is no dataset {name}: zfs list names those that there are", words)


def is_pool(key: str, name: str) -> Look:
    """Return the look whether `name` is an imported pool."""
    words = ("sh", "-c", 'zpool list -H -o name "$1" >/dev/null 2>&1', "sh", name)
    return Look(f"{key}: there is no pool {name}: zpool list names those that are imported", words)


def is_device(key: str, name: str) -> Look:
    """Return the look whether `name` is a whole disk."""
    problem = f"{key}: there is no disk {name}: lsblk -d names those that there are"
    return Look(problem, ("test", "-e", f"/sys/block/{name}"))


def port_is_free(key: str, address: str, port: int) -> Look:
    """Return the look whether something could listen there."""
    problem = f"{key}: {address}:{port} cannot be listened on: choose another"
    return Look(problem, ("python3", "-c", _BIND, address, str(port)), ours=True)


def has_room(key: str, folder: str, needed_bytes: int) -> Look:
    """Return the look whether the file system of `folder`, which may not be there yet, has such room."""
    return Look(f"{key}: does not fit", ("sh", "-c", _ROOM, "sh", folder, str(needed_bytes)))


def by_step(key: str, step: Command) -> Look:
    """Return a step of `create` that only looks, and says itself what is wrong."""
    return Look(f"{key}: {step.says}: no", step.words, step.timeout_s)


def unless(status: int, words: Sequence[str]) -> tuple[str, ...]:
    """Return `words`, which end well with `status` too: another look says what that means."""
    return ("sh", "-c", f'"$@" || {{ status=$?; [ "$status" = {status} ] || exit "$status"; }}', "sh", *words)


_BIND = """import socket, sys
with socket.socket() as probe:
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind((sys.argv[1], int(sys.argv[2])))
        probe.listen()
    except OSError as error:
        sys.exit(error.strerror)"""

_ROOM = """gib() { awk -v bytes="$1" 'BEGIN { printf "%.1f GiB", bytes / 1073741824 }'; }
here=$1 need=$2
until [ -e "$here" ]; do here=$(dirname -- "$here"); done
free=$(df -P -B1 -- "$here" | awk 'NR == 2 { print $4 }')
[ "$need" -le "$free" ] || {
    echo "$(gib "$need") are needed and $here has $(gib "$free"): make room, or choose another folder" >&2
    exit 1
}"""
