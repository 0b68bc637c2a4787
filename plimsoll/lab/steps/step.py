"""Changes to a machine, and checks of it before they are made, as data. Pure.

What a plan or `--dry-run` prints is what is carried out. `${name}` in a word stands for what an
earlier step captured, as in a shell: the device that losetup chose, the number of a new virtual machine.
Nothing that a user wrote is ever read that way.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

_REFERENCE = re.compile(r"\$\{([a-z][a-z0-9_]*)\}")
_NO_REFERENCE = "${"


@dataclass(frozen=True)
class Command:
    """A command on the backend's machine, by a list of arguments.

    With `capture` its output, without white space around it, is kept under that name. With `until_s` it is
    tried again each second until it succeeds, at most so long. With `may_fail` any status will do.
    """

    says: str
    words: tuple[str, ...]
    capture: str | None = None
    stdin: str | None = None
    timeout_s: float = 60.0
    until_s: float = 0.0
    may_fail: bool = False


@dataclass(frozen=True)
class Call:
    """A request to an API, such as Proxmox's. With `task_timeout_s` the task that it starts is waited for.

    `capture` keeps what it answers (`data`), or the value there under `field`. With `until_s` it is tried
    again while it may yet succeed, for at most `until_s` seconds. `expects` are values that the answer must
    have: anything else is not the lab's. With `may_be_gone` there may be nothing left at `path`.
    """

    says: str
    method: str
    path: str
    params: tuple[tuple[str, str], ...] = ()
    capture: str | None = None
    field: str | None = None
    task_timeout_s: float | None = None
    until_s: float = 0.0
    expects: tuple[tuple[str, str], ...] = ()
    may_be_gone: bool = False


@dataclass(frozen=True)
class Serve:
    """Wait until `url` is answered by a status below 400, asked from where the load comes from."""

    says: str
    url: str
    connect_to: str | None = None
    timeout_s: float = 300.0


@dataclass(frozen=True)
class Room:
    """See that `folder` has room for `bytes` more, and for what the folder `like` takes."""

    says: str
    folder: str
    bytes: int = 0
    like: str | None = None


@dataclass(frozen=True)
class Write:
    """Write `text` to `path`, whole, and make its folder where it is missing."""

    says: str
    path: Path
    text: str


@dataclass(frozen=True)
class Remove:
    """Remove the file at `path`, or with `folder` the folder if nothing is in it; it may be gone."""

    says: str
    path: Path
    folder: bool = False


Step = Command | Call | Serve | Room  # what `StepRunner` does on a machine
LocalStep = Command | Write | Remove  # what `plimsoll schedule` does here


def as_shell(step: Step | LocalStep) -> str:
    """Return the step as text: a command or a file as a shell takes it, the others to be read."""
    if isinstance(step, Command):
        line, rest = " ".join(_quote(word) for word in step.words), " || true" if step.may_fail else ""
        line = f"{line}{rest}" if step.stdin is None else _with_input(line, step.stdin, rest)
        return f"{step.capture}=$({line})" if step.capture else line
    if isinstance(step, Write):
        return _with_input(f"install -D -m 644 /dev/stdin {shlex.quote(str(step.path))}", step.text)
    if isinstance(step, Remove):
        path = shlex.quote(str(step.path))
        return f"rmdir -- {path} 2>/dev/null || true" if step.folder else f"rm -f -- {path}"
    if isinstance(step, Call):
        words = [step.method, step.path, *(f"{key}={_quote(value)}" for key, value in step.params)]
        return " ".join([*([f"{step.capture} ="] if step.capture else []), *words])
    if isinstance(step, Serve):
        there = f" (at {step.connect_to})" if step.connect_to else ""
        return f"GET {step.url}{there} until it is answered, {step.timeout_s:g} s at most"
    like = [f"what {step.like} takes"] if step.like else []
    size = [f"{step.bytes} bytes"] if step.bytes else []
    return f"room in {step.folder} for {' and '.join(like + size) or 'nothing'}"


def _with_input(line: str, text: str, rest: str = "") -> str:
    """Return a command with its input: several lines as a heredoc, in which references are expanded.

    `rest` belongs to the command, and so stands before the text of a heredoc.
    """
    if "\n" not in text:
        return f"printf %s {_quote(text)} | {line}{rest}"
    text = text.removesuffix("\n")
    if "\n" not in text:
        return f"echo {_quote(text)} | {line}{rest}"
    end = "END" if _REFERENCE.search(text) else "'END'"
    return f"{line} <<{end}{rest}\n{text.rstrip()}\nEND"


def fill_step(step: Step, captured: Mapping[str, str]) -> Step:
    """Return `step` with what was captured in place of `${…}`. Raises KeyError where that is not known."""
    if isinstance(step, Command):
        stdin = None if step.stdin is None else fill(step.stdin, captured)
        return replace(step, words=tuple(fill(word, captured) for word in step.words), stdin=stdin)
    if isinstance(step, Call):
        params = tuple((key, fill(value, captured)) for key, value in step.params)
        return replace(step, path=fill(step.path, captured), params=params)
    if isinstance(step, Serve):
        connect_to = None if step.connect_to is None else fill(step.connect_to, captured)
        return replace(step, url=fill(step.url, captured), connect_to=connect_to)
    return replace(step, folder=fill(step.folder, captured))


def fill(text: str, captured: Mapping[str, str]) -> str:
    """Return `text` with what was captured in place of `${…}`. Raises KeyError where that is not known."""
    return _REFERENCE.sub(lambda found: captured[found[1]], text)


def no_reference(value: Any) -> Any:
    """Refuse text of a user that reads as a reference; to be used on every free text that becomes a word."""
    if isinstance(value, str) and _NO_REFERENCE in value:
        raise ValueError("must not contain ${")
    return value


def _quote(word: str) -> str:
    """Quote for a shell, and leave references to be expanded."""
    if _REFERENCE.search(word) and shlex.quote(_REFERENCE.sub("x", word)) == _REFERENCE.sub("x", word):
        return word if _REFERENCE.fullmatch(word) is None else f'"{word}"'
    return shlex.quote(word)


@dataclass(frozen=True)
class Remains:
    """A remnant of a clone or a disk, and the steps that remove it."""

    what: str  # in words: "the virtual machine plimsoll-bench--hdd (9001)"
    backend: str  # whose it is
    remove: tuple[Step, ...]
    captured: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """A command that succeeds if a requirement is met, run before an experiment begins.

    `problem` names the key and the remedy; what the command prints to standard error completes it. With
    `ours`, leftovers of the lab itself may be the cause: they are removed before an experiment begins.
    """

    problem: str
    words: tuple[str, ...]
    timeout_s: float = 60.0
    ours: bool = False


def is_folder(key: str, path: str) -> Check:
    """Check whether `path` is a folder."""
    return Check(f"{key}: folder {path} does not exist: create it, or correct the path", ("test", "-d", path))


def is_file(key: str, path: str) -> Check:
    """Check whether `path` is a file."""
    return Check(f"{key}: file {path} does not exist: correct the path", ("test", "-f", path))


def is_program(key: str, name: str) -> Check:
    """Check whether `name` is an installed program, or a file that can be run."""
    words = ("sh", "-c", 'command -v -- "$1" >/dev/null', "sh", name)
    return Check(f"{key}: program {name} is not installed: install it, or correct the name", words)


def is_dataset(key: str, name: str) -> Check:
    """Check whether `name` is a dataset."""
    words = ("sh", "-c", 'zfs list -H -o name "$1" >/dev/null 2>&1', "sh", name)
    return Check(f"{key}: dataset {name} does not exist: zfs list shows those that do", words)


def is_pool(key: str, name: str) -> Check:
    """Check whether `name` is an imported pool."""
    words = ("sh", "-c", 'zpool list -H -o name "$1" >/dev/null 2>&1', "sh", name)
    return Check(f"{key}: pool {name} is not imported: zpool list shows those that are", words)


def is_device(key: str, name: str) -> Check:
    """Check whether `name` is a whole disk."""
    problem = f"{key}: disk {name} does not exist: lsblk -d shows those that do"
    return Check(problem, ("test", "-e", f"/sys/block/{name}"))


def port_is_free(key: str, address: str, port: int) -> Check:
    """Check whether an address can be listened on."""
    problem = f"{key}: {address}:{port} cannot be listened on: choose another"
    return Check(problem, ("python3", "-c", _BIND, address, str(port)), ours=True)


def has_room(key: str, folder: str, needed_bytes: int) -> Check:
    """Check whether the file system of `folder`, which need not exist yet, has enough room."""
    return Check(f"{key}: does not fit", ("sh", "-c", _ROOM, "sh", folder, str(needed_bytes)))


def by_step(key: str, step: Command) -> Check:
    """Return a read-only step of `create` as a check."""
    return Check(f"{key}: {step.says}: no", step.words, step.timeout_s)


def unless(status: int, words: Sequence[str]) -> tuple[str, ...]:
    """Return `words`, which succeed with `status` too: another check reports what that means."""
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
