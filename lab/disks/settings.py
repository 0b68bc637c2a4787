"""Where a backend's clones are put, as lab.yml says it, by `kind`."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from lab.names import DatasetName, DeviceName
from lab.saturators.settings import Folder
from lab.sizes import Size
from lab.steps import no_reference
from lab.tuning.settings import Compression, RecordSize

_SMALLEST_BYTES = 512 << 20  # XFS wants 300 MiB
_REFUSED = set(':"$`\\')  # Docker cannot mount such folders


def _plain(value: str) -> str:
    if _REFUSED & set(value) or not value.isprintable() or value == "/":
        raise ValueError('must be a folder other than /, without : " $ ` \\ and control characters')
    return value


PlainFolder = Annotated[Folder, AfterValidator(_plain), AfterValidator(no_reference)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FolderDisk(_Model):
    """A folder on disks that exist."""

    kind: Literal["folder"] = Field(description="`folder`: a folder on disks that exist.")
    path: PlainFolder = Field(description="That folder, on the backend's machine: /tank/lab.")
    dataset: DatasetName | None = Field(
        None, description="The ZFS dataset that is mounted there: clones become datasets below it."
    )
    btrfs: bool = Field(False, description="true where it lies on Btrfs: clones become subvolumes.")
    devices: tuple[DeviceName, ...] = Field(
        (), description="The disks below, as the kernel calls them: [nvme0n1]; for observers and facts."
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> "FolderDisk":
        if self.dataset and self.btrfs:
            raise ValueError("dataset and btrfs: a folder is on one file system; leave one out")
        return self


class Limits(_Model):
    """What a disk can do, at most, in reads and in writes each; None is no limit."""

    bytes_per_s: int | None = None
    operations_per_s: int | None = None

    def __bool__(self) -> bool:
        """Whether there is any."""
        return self.bytes_per_s is not None or self.operations_per_s is not None


LIKE = {
    "rotating": Limits(bytes_per_s=120_000_000, operations_per_s=200),
    "sata-ssd": Limits(bytes_per_s=500_000_000, operations_per_s=20_000),
    "nvme-ssd": Limits(),
}


class EmulatedDisk(_Model):
    """A disk made of a file: a loop device with limits, and a file system or pool on it."""

    kind: Literal["emulated"] = Field(description="`emulated`: made of a file, and made slow.")
    filesystem: Literal["ext4", "xfs", "btrfs", "zfs"] = Field(description="ext4, xfs, btrfs or zfs.")
    size_bytes: Annotated[Size, Field(ge=_SMALLEST_BYTES)] = Field(
        description="How large it is: 8G. The file grows as the disk is filled."
    )
    like: Literal["rotating", "sata-ssd", "nvme-ssd"] | None = Field(
        None, description="Limits of a kind of disk: rotating, sata-ssd, or nvme-ssd, which has none."
    )
    bytes_per_s: Annotated[Size, Field(ge=1 << 16)] | None = Field(
        None,
        description="Own limit, of reads and of writes each: 50M. None where neither this nor like is said.",
    )
    operations_per_s: int | None = Field(
        None, ge=10, le=10_000_000, description="Own limit, of reads and of writes each: 400."
    )
    recordsize: RecordSize | None = Field(None, description="zfs: largest block of a file: 16K.")
    compression: Compression | None = Field(None, description="zfs: lz4, gzip, off, …; zfs-fuse has no lz4.")

    @model_validator(mode="after")
    def _fits(self) -> "EmulatedDisk":
        if self.filesystem != "zfs" and (self.recordsize or self.compression):
            raise ValueError("recordsize and compression: only zfs has them; leave them out")
        if self.like and (self.bytes_per_s or self.operations_per_s):
            raise ValueError("like and own limits: say one of the two")
        return self

    @property
    def limits(self) -> Limits:
        """What it can do."""
        own = Limits(bytes_per_s=self.bytes_per_s, operations_per_s=self.operations_per_s)
        return LIKE[self.like] if self.like else own

    @property
    def words(self) -> str:
        """What it is made to look like, for the report."""
        parts = [f"{self.filesystem} on a loop device"]
        if self.limits.bytes_per_s:
            parts.append(f"{self.limits.bytes_per_s / 1e6:g} MB/s")
        if self.limits.operations_per_s:
            parts.append(f"{self.limits.operations_per_s} operations/s")
        return ", ".join([*parts, *([] if self.limits else ["no limit"])]) + (
            f" (like {self.like})" if self.like else ""
        )


DiskSettings = Annotated[FolderDisk | EmulatedDisk, Field(discriminator="kind")]
