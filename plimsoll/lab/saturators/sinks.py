"""Where a saturator's bytes go: sinks, how one is reached and written to, looked at, found again."""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from plimsoll.common.validation import Size
from plimsoll.lab.machine import Machine, script_command
from plimsoll.lab.names import Folder, StrictModel, own_name
from plimsoll.lab.saturators.saturator import CLONE
from plimsoll.lab.steps.step import Check, Command, Remains, has_room, is_dataset, is_folder

_HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*")


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError("must be host or user@host; SSH logs in by key or agent, never by password")
    return value


SshHost = Annotated[str, AfterValidator(_host)]


class NullSink(StrictModel):
    """The stream is thrown away."""

    to: Literal["null"] = Field("null", description="`null`.")


class RamDiskSink(StrictModel):
    """The stream goes round and round in one file of a RAM disk."""

    to: Literal["ramdisk"] = Field(description="`ramdisk`.")
    folder: Folder = Field(description="Folder on the RAM disk, such as /dev/shm.")
    size_bytes: Annotated[Size, Field(ge=1 << 20)] = Field(
        1 << 30, description="Size at which the file starts over."
    )


class FolderSink(StrictModel):
    """It is written to one file, which each round overwrites."""

    to: Literal["folder"] = Field(description="`folder`.")
    folder: Folder | Literal["@clone"] = Field(CLONE, description="Folder for the file. Default: the disk's.")


class LocalSink(StrictModel):
    """It is received by the same machine, on another disk."""

    to: Literal["local"] = Field(description="`local`.")
    into: str = Field(
        description="Dataset (of ZFS) or folder (of Btrfs, of rsync), on another pool, below which it is "
        "received."
    )


class RemoteSink(StrictModel):
    """It is received by another host, over SSH from the machine with the disks."""

    to: Literal["remote"] = Field(description="`remote`.")
    host: SshHost = Field(
        description="host or user@host that receives, as ssh on the machine with the disks knows it. Its "
        "host key "
        "must be known there; login is by key or agent."
    )
    port: int | None = Field(None, ge=1, le=65535, description="SSH port. Default: ssh's own.")
    into: str = Field(
        description="Dataset (of ZFS) or folder (of Btrfs, of rsync) below which it is received."
    )


AnySink = NullSink | RamDiskSink | LocalSink | RemoteSink
Sink = Annotated[AnySink, Field(discriminator="to")]
Receiver = LocalSink | RemoteSink  # what has a dataset, a subvolume or a folder of it again


def ssh_words(sink: RemoteSink) -> list[str]:
    """Return how ssh is called: the host must be known, and nobody is asked for a password."""
    port = ["-p", str(sink.port)] if sink.port else []
    options = ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=30"]
    return ["ssh", *options, *port]


def over_ssh(sink: RemoteSink, command: Sequence[str]) -> list[str]:
    """Return `command` run by the sink's host."""
    return [*ssh_words(sink), "--", sink.host, shlex.join(command)]


def at_receiver(sink: Receiver, command: Sequence[str]) -> list[str]:
    """Return `command` run where the stream is received."""
    return over_ssh(sink, command) if isinstance(sink, RemoteSink) else list(command)


FileSink = NullSink | FolderSink


def folder_checks(sink: StrictModel) -> list[Check]:
    """Check whether the folder that `sink` names exists."""
    if isinstance(sink, FolderSink) and sink.folder != CLONE:
        return [is_folder("saturator.sink.folder", sink.folder)]
    return []


def sink_checks(sink: AnySink, of_zfs: bool) -> list[Check]:
    """Return what must hold before something is sent to `sink`; `of_zfs`: `into` is a dataset."""
    if isinstance(sink, RamDiskSink):
        return [
            is_folder("saturator.sink.folder", sink.folder),
            has_room("saturator.sink.size_bytes", sink.folder, sink.size_bytes),
        ]
    if isinstance(sink, RemoteSink):
        problem = (
            f"saturator.sink.host: {sink.host} cannot be logged in to from there, by key and as a known host"
        )
        return [Check(problem, tuple(over_ssh(sink, ["true"])))]
    if isinstance(sink, LocalSink):
        return [(is_dataset if of_zfs else is_folder)("saturator.sink.into", sink.into)]
    return []


_COPIER = Path(__file__).with_name("copier.py")
_TOTAL = re.compile(r"(bytes|received) ([0-9]{1,18})", re.ASCII)


def copy_to_sink_command(
    command: Sequence[str],
    sink: AnySink,
    rate_bytes_per_s: int | None,
    label: str,
    receive: Sequence[str] | None,
) -> list[str]:
    """Return `command` with its output copied to `sink`; `receive` is what one that receives runs."""
    words = _copier(rate_bytes_per_s)
    if isinstance(sink, RamDiskSink):
        words += [f"--to={ram_file(sink, label)}", f"--wrap={sink.size_bytes}"]
    elif isinstance(sink, LocalSink | RemoteSink) and receive:
        words.append(f"--into={json.dumps(at_receiver(sink, receive))}")
    return [*words, "--", *command]


def copy_to_file_command(
    command: Sequence[str], file: str | None, rate_bytes_per_s: int | None = None
) -> list[str]:
    """Return `command` with its output written to `file`, or thrown away, and counted on the way."""
    to = [f"--to={file}"] if file else []
    return [*_copier(rate_bytes_per_s), *to, "--", *command]


def _copier(rate_bytes_per_s: int | None) -> list[str]:
    rate = [f"--rate={rate_bytes_per_s}"] if rate_bytes_per_s else []
    return script_command(_COPIER, *rate)


def count_received_command(receive: Sequence[str]) -> list[str]:
    """Return `receive` behind a copier that counts what it took, where it runs: as `received N`."""
    return script_command(_COPIER, "--word=received", f"--into={json.dumps(list(receive))}", "--", "cat")


def ram_file(sink: RamDiskSink, label: str) -> str:
    """Return the file on the RAM disk."""
    return f"{sink.folder.rstrip('/')}/{own_name(label)}.stream"


def copied_bytes(line: str, word: str = "bytes") -> int | None:
    """Return the bytes so far, from a line of the copier with that word; None if it is another line."""
    found = _TOTAL.fullmatch(line)
    return int(found[2]) if found and found[1] == word else None


REMOVAL_S = 3600.0  # a copy of millions of files goes slowly
_SSH_FAILED = 255
_IS_THERE = '[ -e "$1" ] || [ -L "$1" ] || exit 1'
# What wrote there may be about to end, and write a last time. A link goes without what it leads to.
_REMOVE = """# rm -rf
for _ in $(seq 20); do
    [ -e "$1" ] || [ -L "$1" ] || exit 0
    ! rm -rf --one-file-system -- "$1" || exit 0
    sleep 1
done
exit 1"""


def own_path(folder: str, label: str, kind: str) -> str:
    """Return the path in `folder` that a saturator of this kind and label may make and remove."""
    # Without the kind it would be the name of the clone's own folder.
    return f"{folder.rstrip('/')}/{own_name(label)}.{kind}"


def own_file(sink: object, label: str, kind: str) -> str | None:
    """Return the file that is written for `sink`; None where none is, or where its folder is still open."""
    if not isinstance(sink, FolderSink) or not sink.folder.startswith("/"):
        return None
    return own_path(sink.folder, label, kind)


def removal_command(path: str) -> list[str]:
    """Return the command that removes a file or a folder of the lab, whether it is there or not."""
    return ["sh", "-c", _REMOVE, "sh", path]


async def find_left(
    machine: Machine, path: str, backend: str, sink: LocalSink | RemoteSink | None = None
) -> list[Remains]:
    """Return what is at `path`, on the host of `sink` where it has one. Looks only. Raises MachineError.

    A host that cannot be asked counts: what it has is found when it can be.
    """
    look, remove = ["sh", "-c", _IS_THERE, "sh", path], removal_command(path)
    if sink is not None:
        look, remove = at_receiver(sink, look), at_receiver(sink, remove)
    status = (await machine.run(look, check=False)).status
    asked = not (isinstance(sink, RemoteSink) and status == _SSH_FAILED)
    if status and asked:
        return []
    where = f" on {sink.host}" if isinstance(sink, RemoteSink) else ""
    what = path + where + ("" if asked else ", or not: it cannot be asked")
    return [Remains(what, backend, (Command("remove it", tuple(remove), timeout_s=REMOVAL_S),))]
