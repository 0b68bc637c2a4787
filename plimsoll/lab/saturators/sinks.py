"""The sinks of a stream, and the settings of every saturator that sends one."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from plimsoll.common.units import Size
from plimsoll.lab.names import Folder, StrictModel
from plimsoll.lab.saturators.kind import CLONE, SaturatorSettings
from plimsoll.lab.steps.step import Look, has_room, is_dataset, is_folder

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
    """It is written to one file, which each round writes anew."""

    to: Literal["folder"] = Field(description="`folder`.")
    folder: Folder | Literal["@clone"] = Field(CLONE, description="Folder for the file. Default: the disk's.")


class LocalSink(StrictModel):
    """It is received by the same machine, on another disk."""

    to: Literal["local"] = Field(description="`local`.")
    into: str = Field(description="Dataset (of ZFS) or folder below which it is received.")


class RemoteSink(StrictModel):
    """It is received by another host, over SSH from the machine with the disks."""

    to: Literal["remote"] = Field(description="`remote`.")
    host: SshHost = Field(description="host or user@host, as ssh on the machine with the disks knows it.")
    port: int | None = Field(None, ge=1, le=65535, description="SSH port. Default: ssh's own.")
    into: str = Field(description="Dataset (of ZFS) or folder below which it is received.")


AnySink = NullSink | RamDiskSink | LocalSink | RemoteSink
Sink = Annotated[AnySink, Field(discriminator="to")]
Receiver = LocalSink | RemoteSink  # what has a dataset, a subvolume or a folder of it again


@dataclass(frozen=True)
class Rhythm:
    """When to send, and what: all of a snapshot each time, or what is new in it.

    `every_s`: seconds from the start of a round to the start of the next, if it is over by then.
    `keep`: snapshots that stay after a round, on both ends; an increment needs 1 to begin from.
    """

    incremental: bool
    every_s: float
    keep: int

    @property
    def rounds(self) -> int:
        """Sends until every kind of command was run: the oldest snapshot goes once there are too many."""
        return self.keep + 1


class StreamSettings(SaturatorSettings):
    """The settings of all that send snapshots."""

    sink: Sink = Field(NullSink(), description="Where the stream goes.")
    rate_bytes_per_s: Annotated[Size, Field(ge=1)] | None = Field(
        None, description="Limit for the stream, in bytes a second. Default: none."
    )

    @property
    def rhythm(self) -> Rhythm:
        """When to send, and what."""
        return Rhythm(incremental=False, every_s=0, keep=0)


class SendSettings(StreamSettings):
    """The settings that `zfs send` and `btrfs send` share."""

    mode: Literal["full", "incremental"] = Field(
        "full",
        description="`full`, or `incremental`: one full send, then only the changes since the last one.",
    )

    @property
    def rhythm(self) -> Rhythm:
        """Again and again; a round of a quiet dataset takes a second, so that it does not spin."""
        return super().rhythm if self.mode == "full" else Rhythm(incremental=True, every_s=1, keep=1)


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


def folder_looks(sink: StrictModel) -> list[Look]:
    """Return the look whether the folder that `sink` names is there."""
    if isinstance(sink, FolderSink) and sink.folder != CLONE:
        return [is_folder("saturator.sink.folder", sink.folder)]
    return []


def sink_looks(sink: AnySink, of_zfs: bool) -> list[Look]:
    """Return what is to be looked at before something is sent to `sink`; `of_zfs`: `into` is a dataset."""
    if isinstance(sink, RamDiskSink):
        return [
            is_folder("saturator.sink.folder", sink.folder),
            has_room("saturator.sink.size_bytes", sink.folder, sink.size_bytes),
        ]
    if isinstance(sink, RemoteSink):
        problem = (
            f"saturator.sink.host: {sink.host} cannot be logged in to from there, by key and as a known host"
        )
        return [Look(problem, tuple(over_ssh(sink, ["true"])))]
    if isinstance(sink, LocalSink):
        return [(is_dataset if of_zfs else is_folder)("saturator.sink.into", sink.into)]
    return []
