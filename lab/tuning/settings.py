"""The settings of a host that lab.yml may tune. What is not named here cannot be set."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from lab.names.model import StrictModel
from lab.names.properties import Compression, RecordSize, Switch, on_off
from lab.names.storage import DatasetName, DeviceName
from plimsoll.common.sizes import Size


class DiskTuning(StrictModel):
    """Settings of one disk's queue, in /sys/block/DEVICE/queue."""

    scheduler: Literal["none", "mq-deadline", "kyber", "bfq"] | None = Field(
        None,
        description="I/O scheduler. A change resets nr_requests and wbt_lat_usec, which are put back too.",
    )
    nr_requests: int | None = Field(None, ge=1, le=65536, description="Requests that the queue holds.")
    read_ahead_kb: int | None = Field(None, ge=0, le=1 << 20, description="KiB read ahead of a reader.")
    max_sectors_kb: int | None = Field(None, ge=4, le=1 << 20, description="KiB of the largest request.")
    nomerges: int | None = Field(
        None, ge=0, le=2, description="2 merges no requests, 1 only simple ones, 0 all."
    )
    rq_affinity: int | None = Field(
        None,
        ge=0,
        le=2,
        description="Which processor ends a request: 0 any, 1 the group's, 2 the one that asked.",
    )
    wbt_lat_usec: int | None = Field(
        None, ge=0, le=10_000_000, description="Aim of write-back throttling in µs; 0 is off."
    )


class DatasetTuning(StrictModel):
    """Properties of one dataset. What is already written keeps its record size and compression."""

    compression: Compression | None = Field(
        None, description="Compression of what is written from now on: lz4, zstd-3, off, …"
    )
    recordsize: RecordSize | None = Field(
        None, description="Largest block of files written from now on: 16K."
    )
    primarycache: Literal["all", "metadata", "none"] | None = Field(None, description="What the ARC keeps.")
    secondarycache: Literal["all", "metadata", "none"] | None = Field(
        None, description="What the L2ARC keeps."
    )
    atime: Switch | None = Field(None, description="Whether reading a file writes when it was read.")
    relatime: Switch | None = Field(None, description="With atime: write so once a day at most.")
    xattr: Annotated[Literal["on", "off", "sa", "dir"], BeforeValidator(on_off)] | None = Field(
        None, description="Where extended attributes are kept."
    )
    logbias: Literal["latency", "throughput"] | None = Field(
        None, description="What synchronous writes aim at."
    )
    sync: Literal["standard", "always", "disabled"] | None = Field(
        None, description="Whether fsync waits for the disk. disabled can lose what was said to be safe."
    )


class ZfsTuning(StrictModel):
    """Parameters of OpenZFS's kernel module, in /sys/module/zfs/parameters."""

    zfs_arc_min: Size | None = Field(None, description="Bytes that the ARC never shrinks below.")
    zfs_arc_max: Size | None = Field(
        None, ge=64 << 20, description="Bytes that the ARC never grows beyond; it does not shrink at once."
    )
    zfs_dirty_data_max: Size | None = Field(None, description="Bytes written and not yet on disk.")
    zfs_txg_timeout: int | None = Field(
        None, ge=1, le=3600, description="Seconds between transaction groups."
    )
    zfs_prefetch_disable: int | None = Field(None, ge=0, le=1, description="1 reads nothing ahead.")
    zfs_vdev_aggregation_limit: Size | None = Field(None, description="Bytes of the largest joined request.")
    zfs_vdev_max_active: int | None = Field(
        None, ge=1, le=10000, description="Requests at a disk, of all kinds."
    )
    zfs_vdev_sync_read_max_active: int | None = Field(None, ge=1, le=1000, description="Reads waited for.")
    zfs_vdev_sync_write_max_active: int | None = Field(None, ge=1, le=1000, description="Writes waited for.")
    zfs_vdev_async_read_max_active: int | None = Field(
        None, ge=1, le=1000, description="Reads ahead, those of zfs send among them."
    )
    zfs_vdev_async_write_max_active: int | None = Field(
        None, ge=1, le=1000, description="Writes in the background."
    )
    zfs_vdev_scrub_max_active: int | None = Field(None, ge=1, le=1000, description="Reads of a scrub.")


class VmTuning(StrictModel):
    """Settings of the kernel's memory, in /proc/sys/vm."""

    swappiness: int | None = Field(None, ge=0, le=200, description="How readily memory is swapped out.")
    vfs_cache_pressure: int | None = Field(
        None, ge=0, le=1000, description="How readily inodes are forgotten."
    )
    dirty_ratio: int | None = Field(
        None, ge=0, le=100, description="Percent dirty at which writers must write."
    )
    dirty_bytes: Size | None = Field(None, ge=8192, description="The same in bytes; one of the two counts.")
    dirty_background_ratio: int | None = Field(
        None, ge=0, le=100, description="Percent dirty at which writing back begins."
    )
    dirty_background_bytes: Size | None = Field(
        None, ge=1, description="The same in bytes; one of the two counts."
    )
    dirty_expire_centisecs: int | None = Field(
        None, ge=0, le=360_000, description="Age at which dirty data is written, in hundredths of a second."
    )
    dirty_writeback_centisecs: int | None = Field(
        None, ge=0, le=360_000, description="How often it is looked for, in hundredths of a second; 0 never."
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> "VmTuning":
        for name in ("dirty", "dirty_background"):
            if getattr(self, f"{name}_ratio") is not None and getattr(self, f"{name}_bytes") is not None:
                raise ValueError(
                    f"{name}_ratio and {name}_bytes: setting one unsets the other; leave one out"
                )
        return self


class Tuning(StrictModel):
    """Everything that a backend may tune; what is not given stays as it is."""

    disks: dict[DeviceName, DiskTuning] = Field(
        {}, description="Queue settings by device: sda, nvme0n1, loop3."
    )
    transparent_hugepage: Literal["always", "madvise", "never"] | None = Field(
        None, description="When the kernel backs memory with huge pages."
    )
    datasets: dict[DatasetName, DatasetTuning] = Field({}, description="Properties by dataset: tank/site.")
    zfs: ZfsTuning = Field(ZfsTuning(), description="Parameters of OpenZFS's kernel module.")
    vm: VmTuning = Field(VmTuning(), description="Settings of the kernel's memory.")
