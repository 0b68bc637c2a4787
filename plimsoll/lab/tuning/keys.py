"""What lab.yml may tune, and each as a value of the host. What is not named here cannot be set.

A value checks its own names, so that neither lab.yml nor a journal that was changed can reach anything else.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from plimsoll.common.validation import Size
from plimsoll.lab.names import (
    Compression,
    DatasetName,
    DatasetOrOwn,
    DeviceName,
    DeviceOrOwn,
    RecordSize,
    StrictModel,
    Switch,
    explained_in,
    on_off,
)
from plimsoll.lab.steps.step import Command

# Of the scheduler mq-deadline, in its own folder: a scheduler that is chosen again starts with its defaults.
SCHEDULERS_OWN = ("fifo_batch", "front_merges", "read_expire", "write_expire")
# Properties that hold for data that are there already, too. All others hold for what is written later.
AT_ONCE = frozenset({"primarycache", "secondarycache", "atime", "relatime", "logbias", "sync"})


class DiskTuning(StrictModel):
    """Settings of one disk's queue, in /sys/block/DEVICE/queue."""

    scheduler: Literal["none", "mq-deadline", "kyber", "bfq"] | None = Field(
        None,
        description="I/O scheduler. Changing it resets nr_requests, wbt_lat_usec and the four last keys, "
        "which the lab puts back too.",
    )
    nr_requests: int | None = Field(
        None, ge=1, le=65536, description="Number of requests that the queue holds."
    )
    read_ahead_kb: int | None = Field(None, ge=0, le=1 << 20, description="Read-ahead in KiB.")
    max_sectors_kb: int | None = Field(
        None, ge=4, le=1 << 20, description="Size of the largest request in KiB."
    )
    nomerges: int | None = Field(
        None, ge=0, le=2, description="Merging of requests: 0 for all, 1 for simple ones only, 2 for none."
    )
    rq_affinity: int | None = Field(
        None,
        ge=0,
        le=2,
        description="Processor that completes a request: 0 any, 1 one in the requester's group, 2 the "
        "requester's own.",
    )
    wbt_lat_usec: int | None = Field(
        None,
        ge=0,
        le=10_000_000,
        description="Target latency of write-back throttling in µs; 0 turns it off.",
    )
    fifo_batch: int | None = Field(
        None, ge=1, le=65536, description="mq-deadline: requests that it sends before it looks at deadlines."
    )
    front_merges: int | None = Field(
        None, ge=0, le=1, description="mq-deadline: 0 stops it from merging a request in front of another."
    )
    read_expire: int | None = Field(
        None, ge=0, le=600_000, description="mq-deadline: milliseconds until a read is overdue."
    )
    write_expire: int | None = Field(
        None, ge=0, le=600_000, description="mq-deadline: milliseconds until a write is overdue."
    )

    @model_validator(mode="after")
    def _has_them(self) -> "DiskTuning":
        own = [name for name in SCHEDULERS_OWN if getattr(self, name) is not None]
        if own and self.scheduler not in (None, "mq-deadline"):
            raise ValueError(f"{', '.join(own)}: only mq-deadline has this; leave it out")
        return self


class DatasetTuning(StrictModel):
    """Properties of one dataset. What is already written keeps its record size and compression."""

    compression: Compression | None = Field(
        None, description="Compression of newly written data: lz4, zstd-3, off, …"
    )
    recordsize: RecordSize | None = Field(None, description="Largest block of newly written files: 16K.")
    primarycache: Literal["all", "metadata", "none"] | None = Field(None, description="What the ARC caches.")
    secondarycache: Literal["all", "metadata", "none"] | None = Field(
        None, description="What the L2ARC caches."
    )
    atime: Switch | None = Field(None, description="Whether ZFS records when a file was last read.")
    relatime: Switch | None = Field(None, description="With atime: record it once a day at most.")
    xattr: Annotated[Literal["on", "off", "sa", "dir"], BeforeValidator(on_off)] | None = Field(
        None, description="Where ZFS stores extended attributes."
    )
    logbias: Literal["latency", "throughput"] | None = Field(
        None, description="What synchronous writes are optimised for."
    )
    sync: Literal["standard", "always", "disabled"] | None = Field(
        None,
        description="Whether fsync waits for the disk. disabled can lose data that was reported as safe.",
    )


class ZfsTuning(StrictModel):
    """Parameters of OpenZFS's kernel module, in /sys/module/zfs/parameters."""

    zfs_arc_min: Size | None = Field(None, description="Smallest size of the ARC in bytes.")
    zfs_arc_max: Size | None = Field(
        None, ge=64 << 20, description="Largest size of the ARC in bytes. A larger ARC shrinks slowly."
    )
    zfs_dirty_data_max: Size | None = Field(
        None, description="Most bytes that may be written but not yet on disk."
    )
    zfs_txg_timeout: int | None = Field(
        None, ge=1, le=3600, description="Seconds between transaction groups."
    )
    zfs_prefetch_disable: int | None = Field(None, ge=0, le=1, description="1 turns read-ahead off.")
    zfs_vdev_aggregation_limit: Size | None = Field(
        None, description="Size of the largest aggregated request in bytes."
    )
    zfs_vdev_max_active: int | None = Field(
        None, ge=1, le=10000, description="Most active requests at a disk, of all kinds."
    )
    zfs_vdev_sync_read_max_active: int | None = Field(
        None, ge=1, le=1000, description="Most active synchronous reads."
    )
    zfs_vdev_sync_write_max_active: int | None = Field(
        None, ge=1, le=1000, description="Most active synchronous writes."
    )
    zfs_vdev_async_read_max_active: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="Most active asynchronous reads: read-ahead, including that of zfs send.",
    )
    zfs_vdev_async_write_max_active: int | None = Field(
        None, ge=1, le=1000, description="Most active asynchronous writes."
    )
    zfs_vdev_scrub_max_active: int | None = Field(
        None, ge=1, le=1000, description="Most active reads of a scrub."
    )


class VmTuning(StrictModel):
    """Settings of the kernel's memory, in /proc/sys/vm."""

    swappiness: int | None = Field(None, ge=0, le=200, description="How readily the kernel swaps memory out.")
    vfs_cache_pressure: int | None = Field(
        None, ge=0, le=1000, description="How readily the kernel drops cached inodes."
    )
    dirty_ratio: int | None = Field(
        None,
        ge=0,
        le=100,
        description="Percentage of dirty memory at which programs that write must wait for the disk.",
    )
    dirty_bytes: Size | None = Field(
        None, ge=8192, description="The same limit in bytes. Only one of the two applies."
    )
    dirty_background_ratio: int | None = Field(
        None, ge=0, le=100, description="Percentage of dirty memory at which background write-back begins."
    )
    dirty_background_bytes: Size | None = Field(
        None, ge=1, description="The same limit in bytes. Only one of the two applies."
    )
    dirty_expire_centisecs: int | None = Field(
        None,
        ge=0,
        le=360_000,
        description="Age at which dirty data is written back, in hundredths of a second.",
    )
    dirty_writeback_centisecs: int | None = Field(
        None,
        ge=0,
        le=360_000,
        description="Interval between checks for such data, in hundredths of a second; 0 turns them off.",
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

    model_config = explained_in("docs/tuning.md")

    disks: dict[DeviceOrOwn, DiskTuning] = Field(
        {}, description="Queue settings by device: sda, nvme0n1, loop3. `@disk` is the backend's own disk."
    )
    transparent_hugepage: Literal["always", "madvise", "never"] | None = Field(
        None, description="When the kernel backs memory with huge pages."
    )
    transparent_hugepage_defrag: Literal["always", "defer", "defer+madvise", "madvise", "never"] | None = (
        Field(None, description="When a program waits until the kernel has made room for a huge page.")
    )
    datasets: dict[DatasetOrOwn, DatasetTuning] = Field(
        {},
        description="Properties by dataset: tank/site. `@disk` is the dataset of the backend's own disk; "
        "`@database` and `@web` give these parts of the clone datasets of their own.",
    )
    zfs: ZfsTuning = Field(ZfsTuning(), description="Parameters of OpenZFS's kernel module.")
    vm: VmTuning = Field(VmTuning(), description="Settings of the kernel's memory.")


def _known_names(model: type[BaseModel]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in model.model_fields:
            raise ValueError(f"{name} cannot be tuned; see docs/tuning.md")
        return name

    return AfterValidator(check)


# These files and properties take a word or a number, and never hold anything else.
Text = Annotated[str, Field(pattern=r"^-?[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$")]


class _Value(StrictModel):
    value: Text


class _FileValue(_Value):
    @property
    def path(self) -> str:
        """The file that holds it."""
        raise NotImplementedError

    @property
    def step(self) -> Command:
        """The command that sets it."""
        return Command("", ("tee", self.path), stdin=self.value + "\n")  # sudo does not write a shell's >


class QueueValue(_FileValue):
    """A setting of a disk's queue."""

    kind: Literal["queue"] = "queue"
    device: DeviceName
    name: Annotated[str, _known_names(DiskTuning)]

    @property
    def key(self) -> str:
        """Its key in lab.yml."""
        return f"disks.{self.device}.{self.name}"

    @property
    def path(self) -> str:
        """The file that holds it."""
        folder = "queue/iosched" if self.name in SCHEDULERS_OWN else "queue"
        return f"/sys/block/{self.device}/{folder}/{self.name}"


class HugepageValue(_FileValue):
    """A setting of when the kernel backs memory with huge pages, and when it makes room for them."""

    kind: Literal["hugepage"] = "hugepage"
    name: Literal["enabled", "defrag"] = "enabled"

    @property
    def key(self) -> str:
        """Its key in lab.yml."""
        return "transparent_hugepage" + ("_defrag" if self.name == "defrag" else "")

    @property
    def path(self) -> str:
        """The file that holds it."""
        return f"/sys/kernel/mm/transparent_hugepage/{self.name}"


class ZfsValue(_FileValue):
    """A parameter of OpenZFS's kernel module."""

    kind: Literal["zfs"] = "zfs"
    name: Annotated[str, _known_names(ZfsTuning)]

    @property
    def key(self) -> str:
        """Its key in lab.yml."""
        return f"zfs.{self.name}"

    @property
    def path(self) -> str:
        """The file that holds it."""
        return f"/sys/module/zfs/parameters/{self.name}"


class VmValue(_FileValue):
    """A setting of the kernel's memory."""

    kind: Literal["vm"] = "vm"
    name: Annotated[str, _known_names(VmTuning)]

    @property
    def key(self) -> str:
        """Its key in lab.yml."""
        return f"vm.{self.name}"

    @property
    def path(self) -> str:
        """The file that holds it."""
        return f"/proc/sys/vm/{self.name}"


class PropertyValue(_Value):
    """A property of a dataset, and where it has it from: only what was set there is set again."""

    kind: Literal["property"] = "property"
    dataset: DatasetName
    name: Annotated[str, _known_names(DatasetTuning)]
    source: Literal["local", "inherited", "received"] = "local"

    @property
    def key(self) -> str:
        """Its key in lab.yml."""
        return f"datasets.{self.dataset}.{self.name}"

    @property
    def step(self) -> Command:
        """The command that sets it."""
        if self.source == "local":
            return Command("", ("zfs", "set", f"{self.name}={self.value}", self.dataset))
        received = ("-S",) if self.source == "received" else ()
        return Command("", ("zfs", "inherit", *received, self.name, self.dataset))


Value = Annotated[
    QueueValue | HugepageValue | ZfsValue | VmValue | PropertyValue, Field(discriminator="kind")
]
