"""The facts of a host. What cannot be read is None."""

from pydantic import BaseModel, ConfigDict


class _Facts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class DriveReading(_Facts):
    """What a drive said of its health at one instant. Counters are of its whole life.

    `warnings`: NVMe's critical warnings, or the attributes of SATA that failed. `over_warning_min`,
    `over_critical_min`: minutes over its own limits of temperature. `throttles`: how often it slowed itself.
    """

    passed: bool | None = None
    warnings: tuple[str, ...] = ()
    temperature_c: int | None = None
    media_errors: int | None = None
    reallocated_sectors: int | None = None
    pending_sectors: int | None = None
    over_warning_min: int | None = None
    over_critical_min: int | None = None
    throttles: int | None = None


class DriveFacts(_Facts):
    """A drive by its own account (SMART), before a run and after it.

    `wear_percent`: how much of its rated life is used. `power_loss_protection`: None where it cannot be told.
    """

    protocol: str | None = None
    firmware: str | None = None
    wear_percent: int | None = None
    spare_percent: int | None = None
    power_loss_protection: bool | None = None
    warning_temperature_c: int | None = None
    before: DriveReading | None = None
    after: DriveReading | None = None


class DiskFacts(_Facts):
    """One disk and its queue, as the kernel shows them in /sys/block."""

    device: str
    model: str | None = None
    size_bytes: int | None = None
    rotational: bool | None = None
    logical_block_bytes: int | None = None
    physical_block_bytes: int | None = None
    write_cache: str | None = None
    scheduler: str | None = None
    nr_requests: int | None = None
    read_ahead_kib: int | None = None
    max_sectors_kib: int | None = None
    nomerges: int | None = None
    rq_affinity: int | None = None
    wbt_lat_us: int | None = None
    discard_granularity_bytes: int | None = None
    discard_max_bytes: int | None = None
    drive: DriveFacts | None = None


class PoolFacts(_Facts):
    """One ZFS pool: its structure and its devices, whose names are left out of `layout`."""

    pool: str
    layout: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    ashift: str | None = None
    autotrim: str | None = None


class VolumeFacts(_Facts):
    """The file system below the clone: its type, and whether it discards what is deleted at once."""

    type: str | None = None
    discard: bool | None = None


class DatasetFacts(_Facts):
    """One dataset: the properties that matter here, and how well its data compress.

    `part`: what of a clone is on it (`@database`), where it is one of several.
    """

    dataset: str
    part: str | None = None
    properties: dict[str, str] = {}
    compress_ratio: float | None = None


class HostFacts(_Facts):
    """All facts of a host."""

    kernel: str | None = None
    cpu: str | None = None
    cpus: int | None = None
    governor: str | None = None
    memory_bytes: int | None = None
    transparent_hugepage: str | None = None
    zfs_version: str | None = None
    zfs_arc_min_bytes: int | None = None
    zfs_arc_max_bytes: int | None = None
    arc_c_min_bytes: int | None = None
    arc_c_max_bytes: int | None = None
    fstrim_timer: str | None = None
    volume: VolumeFacts | None = None
    disks: tuple[DiskFacts, ...] = ()
    pools: tuple[PoolFacts, ...] = ()
    datasets: tuple[DatasetFacts, ...] = ()
