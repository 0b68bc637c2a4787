"""The settings in lab.yml of an emulated disk."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plimsoll.common.units import Size, significant
from plimsoll.lab.disks.disk import DiskSettings
from plimsoll.lab.names import Compression, RecordSize, StrictModel

_SMALLEST_BYTES = 512 << 20  # XFS wants 300 MiB


class DiskSpeed(StrictModel):
    """The limits of a disk, for reads and for writes each; None is no limit."""

    bytes_per_s: int | None = None
    operations_per_s: int | None = None

    def __bool__(self) -> bool:
        """Return whether there is any limit."""
        return self.bytes_per_s is not None or self.operations_per_s is not None


LIKE = {
    "rotating": DiskSpeed(bytes_per_s=120_000_000, operations_per_s=200),
    "sata-ssd": DiskSpeed(bytes_per_s=500_000_000, operations_per_s=20_000),
    "nvme-ssd": DiskSpeed(),
}


class EmulatedDisk(DiskSettings):
    """A disk made of a file: a loop device with limits, and a file system or pool on it."""

    kind: Literal["emulated"] = Field(description="`emulated`: a slow disk made from a file.")
    filesystem: Literal["ext4", "xfs", "btrfs", "zfs"] = Field(
        description="File system: ext4, xfs, btrfs or zfs."
    )
    size_bytes: Annotated[Size, Field(ge=_SMALLEST_BYTES)] = Field(
        description="Size of the disk: 8G. Its file grows as the disk fills up."
    )
    like: Literal["rotating", "sata-ssd", "nvme-ssd"] | None = Field(
        None, description="Kind of disk whose limits apply: rotating, sata-ssd, or nvme-ssd, which has none."
    )
    bytes_per_s: Annotated[Size, Field(ge=1 << 16)] | None = Field(
        None,
        description="Your own limit in bytes a second, for reads and writes each: 50M. Not together "
        "with like.",
    )
    operations_per_s: int | None = Field(
        None,
        ge=10,
        le=10_000_000,
        description="Your own limit in operations a second, for reads and writes each: 400. Not together "
        "with like.",
    )
    recordsize: RecordSize | None = Field(None, description="zfs: size of a file's largest block: 16K.")
    compression: Compression | None = Field(None, description="zfs: lz4, gzip, off, …; zfs-fuse has no lz4.")

    @model_validator(mode="after")
    def _fits(self) -> "EmulatedDisk":
        if self.filesystem != "zfs" and (self.recordsize or self.compression):
            raise ValueError("recordsize and compression: only zfs has these; leave them out")
        if self.like and (self.bytes_per_s or self.operations_per_s):
            raise ValueError("like and limits of your own: give one or the other")
        return self

    @property
    def limits(self) -> DiskSpeed:
        """The limits of this disk: its own, or those of the disk that it is `like`."""
        own = DiskSpeed(bytes_per_s=self.bytes_per_s, operations_per_s=self.operations_per_s)
        return LIKE[self.like] if self.like else own

    @property
    def words(self) -> str:
        """A description of the emulated disk, for the report."""
        parts = [f"{self.filesystem} on a loop device"]
        if self.limits.bytes_per_s:
            parts.append(f"{significant(self.limits.bytes_per_s / 1e6)} MB/s")
        if self.limits.operations_per_s:
            parts.append(f"{self.limits.operations_per_s} operations/s")
        return ", ".join([*parts, *([] if self.limits else ["no limit"])]) + (
            f" (like {self.like})" if self.like else ""
        )
