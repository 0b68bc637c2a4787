"""Reads the facts of a host through a Machine."""

from collections.abc import Mapping, Sequence

from plimsoll.lab.errors import MachineError
from plimsoll.lab.facts import parse, smart
from plimsoll.lab.facts.model import DatasetFacts, DiskFacts, HostFacts, PoolFacts, VolumeFacts
from plimsoll.lab.machine import Machine
from plimsoll.lab.observers import arcstats, memory
from plimsoll.lab.observers.files import BUSY_S, read_files

_PATHS = {
    "kernel": "/proc/sys/kernel/osrelease",
    "cpuinfo": "/proc/cpuinfo",
    "meminfo": "/proc/meminfo",
    "governor": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",  # a virtual machine has none
    "hugepage": "/sys/kernel/mm/transparent_hugepage/enabled",
    "zfs_version": "/sys/module/zfs/version",
    "arc_min": "/sys/module/zfs/parameters/zfs_arc_min",
    "arc_max": "/sys/module/zfs/parameters/zfs_arc_max",
    "arcstats": arcstats.PATHS[0],
}
_DISK_FILES = (
    *("device/model", "size", "queue/rotational", "queue/logical_block_size", "queue/physical_block_size"),
    *("queue/write_cache", "queue/scheduler", "queue/nr_requests", "queue/read_ahead_kb"),
    *("queue/max_sectors_kb", "queue/nomerges", "queue/rq_affinity", "queue/wbt_lat_usec"),
    *("queue/discard_granularity", "queue/discard_max_bytes"),
)
_SECTOR_BYTES = 512  # the unit of `size`, whatever the disk's own is


def disk_paths(device: str) -> list[str]:
    """Return the files that tell about `device`, a checked name. Pure."""
    return [f"/sys/block/{device}/{file}" for file in _DISK_FILES]


def get_command(dataset: str) -> list[str]:
    """Return the command that prints all properties of `dataset`, a checked name. Pure.

    All, since zfs-fuse refuses a list with one that it does not know, such as `sync`.
    """
    return ["zfs", "get", "-H", "-o", "name,property,value,source", "all", dataset]


def mount_command(folder: str) -> list[str]:
    """Return the command that prints type and options of the file system that `folder` is on. Pure."""
    return ["findmnt", "--noheadings", "--raw", "--output", "FSTYPE,OPTIONS", "--target", folder]


def timer_command() -> list[str]:
    """Return the command that prints whether systemd trims all file systems once a week. Pure."""
    return ["systemctl", "is-enabled", "fstrim.timer"]


def status_command(pool: str) -> list[str]:
    """Return the command that prints how `pool`, a checked name, is built. Pure."""
    return ["zpool", "status", pool]


async def read_facts(
    machine: Machine,
    disks: Sequence[str] = (),
    datasets: Sequence[str] = (),
    part_of: Mapping[str, str] | None = None,
    folder: str | None = None,
) -> HostFacts:
    """Return the facts of the host, of `disks` and of `datasets` with their pools, in the order given.

    `part_of` says, by dataset, what of a clone is on it; `folder` is on the storage under test.
    The names must be checked (`names.storage`). What the host has not, or does not tell, is None; raises
    MachineError only if it cannot be reached.
    """
    files = [*_PATHS.values(), *(path for disk in disks for path in disk_paths(disk))]
    text = dict(zip(files, await read_files(machine, files, BUSY_S), strict=True))
    host = {name: text[path] for name, path in _PATHS.items()}
    arc = arcstats.parse(host["arcstats"] or "")
    total = memory.parse(host["meminfo"] or "").get("MemTotal")
    return HostFacts(
        kernel=parse.line(host["kernel"]),
        cpu=parse.cpu_model(host["cpuinfo"]),
        cpus=parse.cpu_count(host["cpuinfo"]),
        governor=parse.line(host["governor"]),
        memory_bytes=None if total is None else int(total),
        transparent_hugepage=parse.chosen(host["hugepage"]),
        zfs_version=parse.line(host["zfs_version"]),
        zfs_arc_min_bytes=parse.whole(host["arc_min"]),
        zfs_arc_max_bytes=parse.whole(host["arc_max"]),
        arc_c_min_bytes=int(arc["c_min"]) if "c_min" in arc else None,
        arc_c_max_bytes=int(arc["c_max"]) if "c_max" in arc else None,
        fstrim_timer=parse.line(await _printed(machine, timer_command(), any_status=True)),
        volume=await _volume(machine, folder) if folder else None,
        disks=tuple(
            [await _disk(machine, disk, [text[path] for path in disk_paths(disk)]) for disk in disks]
        ),
        pools=tuple(
            [await _pool(machine, pool) for pool in dict.fromkeys(name.split("/")[0] for name in datasets)]
        ),
        datasets=tuple(
            [await _dataset(machine, dataset, (part_of or {}).get(dataset)) for dataset in datasets]
        ),
    )


async def read_again(machine: Machine, facts: HostFacts) -> HostFacts:
    """Return `facts` with what the drives say now, after a run. What cannot be read stays None."""
    disks = [await _read_again(machine, disk) if disk.drive else disk for disk in facts.disks]
    return facts.model_copy(update={"disks": tuple(disks)})


async def _read_again(machine: Machine, disk: DiskFacts) -> DiskFacts:
    after = smart.reading_of(await _smart(machine, disk.device))
    return disk.model_copy(update={"drive": disk.drive and disk.drive.model_copy(update={"after": after})})


async def _disk(machine: Machine, device: str, texts: Sequence[str | None]) -> DiskFacts:
    disk = disk_facts(device, texts)
    drive = smart.drive_facts(await _smart(machine, device), disk.write_cache)
    return disk.model_copy(update={"drive": drive})


async def _smart(machine: Machine, device: str) -> Mapping[str, object]:
    # Its status is a set of bits, of which most tell of the drive, not of the command.
    return smart.parse(await _printed(machine, smart.command(device), any_status=True))


async def _volume(machine: Machine, folder: str) -> VolumeFacts | None:
    return parse.volume(await _printed(machine, mount_command(folder)))


def disk_facts(device: str, texts: Sequence[str | None]) -> DiskFacts:
    """Return the facts that the files of `disk_paths` hold. Pure."""
    file = dict(zip(_DISK_FILES, texts, strict=True))
    sectors, rotational = parse.whole(file["size"]), parse.whole(file["queue/rotational"])
    return DiskFacts(
        device=device,
        model=parse.line(file["device/model"]),
        size_bytes=None if sectors is None else sectors * _SECTOR_BYTES,
        rotational=None if rotational is None else rotational == 1,
        logical_block_bytes=parse.whole(file["queue/logical_block_size"]),
        physical_block_bytes=parse.whole(file["queue/physical_block_size"]),
        write_cache=parse.line(file["queue/write_cache"]),
        scheduler=parse.chosen(file["queue/scheduler"]),
        nr_requests=parse.whole(file["queue/nr_requests"]),
        read_ahead_kib=parse.whole(file["queue/read_ahead_kb"]),
        max_sectors_kib=parse.whole(file["queue/max_sectors_kb"]),
        nomerges=parse.whole(file["queue/nomerges"]),
        rq_affinity=parse.whole(file["queue/rq_affinity"]),
        wbt_lat_us=parse.whole(file["queue/wbt_lat_usec"]),
        discard_granularity_bytes=parse.whole(file["queue/discard_granularity"]),
        discard_max_bytes=parse.whole(file["queue/discard_max_bytes"]),
    )


def dataset_facts(dataset: str, found: dict[str, tuple[str, str]], part: str | None = None) -> DatasetFacts:
    """Return the facts in what `zfs get` printed of one dataset. Pure."""
    names = (*parse.PROPERTIES, *parse.VOLUME_PROPERTIES)
    kept = {name: found[name][0] for name in names if name in found and found[name][0] != "-"}
    ratio = parse.ratio(found.get("compressratio", ("", ""))[0])
    return DatasetFacts(dataset=dataset, part=part, properties=kept, compress_ratio=ratio)


async def _pool(machine: Machine, pool: str) -> PoolFacts:
    layout, devices = parse.pool_layout(await _printed(machine, status_command(pool)))
    # Without -H, which zfs-fuse does not know here.
    ashift = parse.pool_property(await _printed(machine, ["zpool", "get", "ashift", pool]), "ashift")
    autotrim = parse.pool_property(await _printed(machine, ["zpool", "get", "autotrim", pool]), "autotrim")
    return PoolFacts(pool=pool, layout=layout, devices=devices, ashift=ashift, autotrim=autotrim)


async def _dataset(machine: Machine, dataset: str, part: str | None) -> DatasetFacts:
    printed = await _printed(machine, get_command(dataset))
    return dataset_facts(dataset, parse.properties(printed).get(dataset, {}), part)


async def _printed(machine: Machine, command: Sequence[str], any_status: bool = False) -> str:
    """Return the output of a command; empty where it fails or is missing, as on a host without ZFS.

    `any_status`: what it prints counts though it fails.
    """
    try:
        done = await machine.run(command, check=False)
    except MachineError:
        return ""
    return done.out if done.status == 0 or any_status else ""
