"""What a saturator can be told, by `kind`. A field's description is its help text."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from lab.sizes import Size

_PART = r"[A-Za-z0-9][A-Za-z0-9_.:-]*"
_DATASET = re.compile(rf"[A-Za-z][A-Za-z0-9_.:-]*(/{_PART})*")
_HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*")


def _dataset(value: str) -> str:
    if len(value) > 200 or ".." in value or not _DATASET.fullmatch(value):
        raise ValueError("must be a dataset's name, such as tank/site: letters, digits and _ . : - only")
    return value


def _folder(value: str) -> str:
    if not value.startswith("/") or "\0" in value or ".." in value.split("/"):
        raise ValueError("must be an absolute path without .., such as /srv/data")
    return value.rstrip("/") or "/"


def _no_colon(value: str) -> str:
    if ":" in value:
        raise ValueError("must have no colon: fio takes it for the end of the path")
    return value


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError("must be host or user@host; SSH logs in by key or agent, never by password")
    return value


# What stands for the clone's own dataset, subvolume or folder, whatever the backend; see pointed.py.
CLONE: Literal["@clone"] = "@clone"

Dataset = Annotated[str, AfterValidator(_dataset)]
Folder = Annotated[str, AfterValidator(_folder)]
Host = Annotated[str, AfterValidator(_host)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NullSink(_Model):
    """The stream is thrown away."""

    to: Literal["null"] = Field("null", description="`null`.")


class RamDiskSink(_Model):
    """The stream goes round and round in one file of a RAM disk."""

    to: Literal["ramdisk"] = Field(description="`ramdisk`.")
    folder: Folder = Field(description="Folder on the RAM disk, such as /dev/shm.")
    size_bytes: Annotated[Size, Field(ge=1 << 20)] = Field(
        1 << 30, description="How large the file grows before it starts anew."
    )


class RemoteSink(_Model):
    """The stream is received by another host, over SSH from the machine with the disks."""

    to: Literal["remote"] = Field(description="`remote`.")
    host: Host = Field(description="host or user@host, as ssh on that machine knows it.")
    port: int | None = Field(None, ge=1, le=65535, description="SSH port; default: what ssh takes.")
    into: str = Field(description="Dataset (zfs-send) or folder (btrfs-send) that it is received below.")


Sink = Annotated[NullSink | RamDiskSink | RemoteSink, Field(discriminator="to")]


class _Send(_Model):
    mode: Literal["full", "incremental"] = Field(
        "full", description="`full`, or `incremental`: once in full, then what changed since the last one."
    )
    sink: Sink = Field(NullSink(), description="Where the stream goes.")
    rate_bytes_per_s: Annotated[Size, Field(ge=1)] | None = Field(
        None, description="Limit of the stream; default: none."
    )
    retries: int = Field(3, ge=0, le=1000, description="Failures in a row before it gives up.")


class ZfsSend(_Send):
    """`zfs send` of one dataset."""

    kind: Literal["zfs-send"] = Field(description="`zfs-send`.")
    dataset: Dataset | Literal["@clone"] = Field(
        CLONE, description="Dataset that is sent. Default: the clone's."
    )

    def model_post_init(self, _: object) -> None:
        """Check that what receives is a dataset."""
        if isinstance(self.sink, RemoteSink):
            _dataset(self.sink.into)


class BtrfsSend(_Send):
    """`btrfs send` of one subvolume."""

    kind: Literal["btrfs-send"] = Field(description="`btrfs-send`.")
    subvolume: Folder | Literal["@clone"] = Field(
        CLONE, description="Subvolume that is sent. Default: the clone's."
    )
    snapshots: Folder | Literal["@clone"] = Field(
        CLONE, description="Folder on the same file system that snapshots are made in. Default: the disk's."
    )

    def model_post_init(self, _: object) -> None:
        """Check that what receives is a folder."""
        if isinstance(self.sink, RemoteSink):
            _folder(self.sink.into)


class Fio(_Model):
    """fio on files of its own."""

    kind: Literal["fio"] = Field(description="`fio`.")
    folder: Annotated[Folder, AfterValidator(_no_colon)] | Literal["@clone"] = Field(
        CLONE, description="Folder for its files. Default: the disk's."
    )
    size_bytes: Annotated[Size, Field(ge=1 << 20)] = Field(1 << 30, description="Size of each file.")
    rw: Literal["read", "write", "randread", "randwrite", "rw", "randrw"] = Field(
        "randrw", description="What it does, as fio calls it."
    )
    block_bytes: Annotated[Size, Field(ge=512, le=1 << 26)] = Field(
        16384, description="Size of each read and write."
    )
    jobs: int = Field(1, ge=1, le=256, description="How many files at a time.")
    iodepth: int = Field(1, ge=1, le=1024, description="Requests in flight of each; over 1 by libaio.")
    direct: bool = Field(True, description="Go past the page cache (O_DIRECT).")
    rate_bytes_per_s: Annotated[Size, Field(ge=1)] | None = Field(
        None, description="Limit of each file; default: none."
    )
    retries: int = Field(3, ge=0, le=1000, description="Failures in a row before it gives up.")


SaturatorSettings = Annotated[ZfsSend | BtrfsSend | Fio, Field(discriminator="kind")]
