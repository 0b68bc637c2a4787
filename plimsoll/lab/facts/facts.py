"""What a host is, read once through a Machine. What cannot be read is None."""

import re
from collections.abc import Mapping, Sequence

from pydantic import Field

from plimsoll.lab.errors import MachineError
from plimsoll.lab.facts import smart
from plimsoll.lab.facts.smart import DriveFacts, Facts
from plimsoll.lab.machine import Machine
from plimsoll.lab.observers.kstat import ARC_PATHS, parse_kstat
from plimsoll.lab.observers.observer import BUSY_S, read_files
from plimsoll.lab.observers.proc import parse_meminfo


class DiskFacts(Facts):
    """One disk and its queue, as the kernel shows them in /sys/block."""

    device: str
    model: str | None = None
    serial: str | None = None
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


class PoolFacts(Facts):
    """One ZFS pool: its structure and its devices, whose names are left out of `layout`."""

    pool: str
    layout: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    ashift: str | None = None
    autotrim: str | None = None


class VolumeFacts(Facts):
    """The file system below the clone: its type, and whether it discards what is deleted at once."""

    type: str | None = None
    discard: bool | None = None


class DatasetFacts(Facts):
    """One dataset: the properties that matter here, and how well its data compress.

    `part`: what of a clone is on it (`@database`), where it is one of several.
    """

    dataset: str
    part: str | None = None
    properties: dict[str, str] = Field({})
    compress_ratio: float | None = None


class HostFacts(Facts):
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


_PATHS = {
    "kernel": "/proc/sys/kernel/osrelease",
    "cpuinfo": "/proc/cpuinfo",
    "meminfo": "/proc/meminfo",
    "governor": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",  # a virtual machine has none
    "hugepage": "/sys/kernel/mm/transparent_hugepage/enabled",
    "zfs_version": "/sys/module/zfs/version",
    "arc_min": "/sys/module/zfs/parameters/zfs_arc_min",
    "arc_max": "/sys/module/zfs/parameters/zfs_arc_max",
    "arcstats": ARC_PATHS[0],
}
_DISK_FILES = (
    *("device/model", "size", "queue/rotational", "queue/logical_block_size", "queue/physical_block_size"),
    *("queue/write_cache", "queue/scheduler", "queue/nr_requests", "queue/read_ahead_kb"),
    *("queue/max_sectors_kb", "queue/nomerges", "queue/rq_affinity", "queue/wbt_lat_usec"),
    *("queue/discard_granularity", "queue/discard_max_bytes"),
    *("device/serial", "serial"),  # of NVMe, of virtio; others say theirs to smartctl alone
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
    arc = parse_kstat(host["arcstats"] or "")
    total = parse_meminfo(host["meminfo"] or "").get("MemTotal")
    pools = dict.fromkeys(name.split("/")[0] for name in datasets)
    mount = ["findmnt", "--noheadings", "--raw", "--output", "FSTYPE,OPTIONS", "--target"]
    return HostFacts(
        kernel=parse_line(host["kernel"]),
        cpu=cpu_model(host["cpuinfo"]),
        cpus=cpu_count(host["cpuinfo"]),
        governor=parse_line(host["governor"]),
        memory_bytes=None if total is None else int(total),
        transparent_hugepage=parse_chosen(host["hugepage"]),
        zfs_version=parse_line(host["zfs_version"]),
        zfs_arc_min_bytes=parse_whole(host["arc_min"]),
        zfs_arc_max_bytes=parse_whole(host["arc_max"]),
        arc_c_min_bytes=int(arc["c_min"]) if "c_min" in arc else None,
        arc_c_max_bytes=int(arc["c_max"]) if "c_max" in arc else None,
        fstrim_timer=parse_line(
            await _read_output(machine, ["systemctl", "is-enabled", "fstrim.timer"], any_status=True)
        ),
        volume=parse_volume(await _read_output(machine, [*mount, folder])) if folder else None,
        disks=tuple(
            [await _read_disk(machine, disk, [text[path] for path in disk_paths(disk)]) for disk in disks]
        ),
        pools=tuple([await _read_pool(machine, pool) for pool in pools]),
        datasets=tuple(
            [await _read_dataset(machine, dataset, (part_of or {}).get(dataset)) for dataset in datasets]
        ),
    )


async def read_facts_after(machine: Machine, facts: HostFacts) -> HostFacts:
    """Return `facts` with what the drives say now, after a run. What cannot be read stays None."""
    disks = [await _read_disk_again(machine, disk) if disk.drive else disk for disk in facts.disks]
    return facts.model_copy(update={"disks": tuple(disks)})


async def _read_disk_again(machine: Machine, disk: DiskFacts) -> DiskFacts:
    after = smart.parse_reading(await _read_smart(machine, disk.device))
    return disk.model_copy(update={"drive": disk.drive and disk.drive.model_copy(update={"after": after})})


async def _read_disk(machine: Machine, device: str, texts: Sequence[str | None]) -> DiskFacts:
    disk = disk_facts(device, texts)
    said = await _read_smart(machine, device)
    serial, drive = smart.parse_serial(said) or disk.serial, smart.drive_facts(said, disk.write_cache)
    return disk.model_copy(update={"serial": serial, "drive": drive})


async def _read_smart(machine: Machine, device: str) -> Mapping[str, object]:
    # Its status is a set of bits, of which most tell of the drive, not of the command.
    return smart.parse(await _read_output(machine, smart.command(device), any_status=True))


def disk_facts(device: str, texts: Sequence[str | None]) -> DiskFacts:
    """Return the facts that the files of `disk_paths` hold. Pure."""
    file = dict(zip(_DISK_FILES, texts, strict=True))
    sectors, rotational = parse_whole(file["size"]), parse_whole(file["queue/rotational"])
    return DiskFacts(
        device=device,
        model=parse_line(file["device/model"]),
        serial=parse_line(file["device/serial"]) or parse_line(file["serial"]),
        size_bytes=None if sectors is None else sectors * _SECTOR_BYTES,
        rotational=None if rotational is None else rotational == 1,
        logical_block_bytes=parse_whole(file["queue/logical_block_size"]),
        physical_block_bytes=parse_whole(file["queue/physical_block_size"]),
        write_cache=parse_line(file["queue/write_cache"]),
        scheduler=parse_chosen(file["queue/scheduler"]),
        nr_requests=parse_whole(file["queue/nr_requests"]),
        read_ahead_kib=parse_whole(file["queue/read_ahead_kb"]),
        max_sectors_kib=parse_whole(file["queue/max_sectors_kb"]),
        nomerges=parse_whole(file["queue/nomerges"]),
        rq_affinity=parse_whole(file["queue/rq_affinity"]),
        wbt_lat_us=parse_whole(file["queue/wbt_lat_usec"]),
        discard_granularity_bytes=parse_whole(file["queue/discard_granularity"]),
        discard_max_bytes=parse_whole(file["queue/discard_max_bytes"]),
    )


def dataset_facts(dataset: str, found: dict[str, tuple[str, str]], part: str | None = None) -> DatasetFacts:
    """Return the facts in what `zfs get` printed of one dataset. Pure."""
    names = (*PROPERTIES, *VOLUME_PROPERTIES)
    kept = {name: found[name][0] for name in names if name in found and found[name][0] != "-"}
    ratio = parse_ratio(found.get("compressratio", ("", ""))[0])
    return DatasetFacts(dataset=dataset, part=part, properties=kept, compress_ratio=ratio)


async def _read_pool(machine: Machine, pool: str) -> PoolFacts:
    layout, devices = pool_layout(await _read_output(machine, status_command(pool)))
    # Without -H, which zfs-fuse does not know here.
    ashift = pool_property(await _read_output(machine, ["zpool", "get", "ashift", pool]), "ashift")
    autotrim = pool_property(await _read_output(machine, ["zpool", "get", "autotrim", pool]), "autotrim")
    return PoolFacts(pool=pool, layout=layout, devices=devices, ashift=ashift, autotrim=autotrim)


async def _read_dataset(machine: Machine, dataset: str, part: str | None) -> DatasetFacts:
    printed = await _read_output(machine, get_command(dataset))
    return dataset_facts(dataset, parse_properties(printed).get(dataset, {}), part)


async def _read_output(machine: Machine, command: Sequence[str], any_status: bool = False) -> str:
    """Return the output of a command; empty where it fails or is missing, as on a host without ZFS.

    `any_status`: what it prints counts though it fails.
    """
    try:
        done = await machine.run(command, check=False)
    except MachineError:
        return ""
    return done.out if done.status == 0 or any_status else ""


# The properties of a dataset that are kept and that tuning may set.
PROPERTIES = (
    *("compression", "recordsize", "primarycache", "secondarycache", "atime", "relatime", "xattr"),
    *("logbias", "sync"),
)
# Those that are kept of a volume besides; they cannot be set once it is made.
VOLUME_PROPERTIES = ("volblocksize",)
_GROUPS = re.compile(
    r"(mirror|raidz\d?|draid\d?[\w:]*|spare|replacing|logs?|cache|special|dedup|spares)(-\d+)?"
)
_STATES = {"ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "AVAIL", "INUSE"}


def parse_line(text: str | None) -> str | None:
    """Return the first line without its white space, None where there is nothing."""
    return (text or "").strip().split("\n")[0].strip() or None


def parse_whole(text: str | None) -> int | None:
    """Return the number that stands alone in `text`."""
    found = re.fullmatch(r"-?[0-9]{1,20}", (text or "").strip())
    return int(found[0]) if found else None


def parse_chosen(text: str | None) -> str | None:
    """Return the word in brackets: `always [madvise] never` → madvise; a word that stands alone is it."""
    words = (text or "").split()
    bracketed = [word[1:-1] for word in words if word.startswith("[") and word.endswith("]")]
    if bracketed:
        return bracketed[0] or None
    return words[0] if len(words) == 1 else None


def cpu_model(cpuinfo: str | None) -> str | None:
    """Return the processor's name, from /proc/cpuinfo; ARM's has none."""
    found = re.search(r"^model name[ \t]*:[ \t]*(.+)$", cpuinfo or "", re.MULTILINE)
    return found[1].strip() or None if found else None


def cpu_count(cpuinfo: str | None) -> int | None:
    """Return the number of processors in /proc/cpuinfo."""
    return len(re.findall(r"^processor[ \t]*:", cpuinfo or "", re.MULTILINE)) or None


def parse_properties(text: str) -> dict[str, dict[str, tuple[str, str]]]:
    """Return dataset → property → (value, source) of `zfs get -H -o name,property,value,source`."""
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for row in text.split("\n"):
        fields = row.split("\t")
        if len(fields) == 4:
            name, key, value, source = fields
            found.setdefault(name, {})[key] = (value, source.strip())
    return found


def pool_property(text: str, name: str) -> str | None:
    """Return the value of property `name` in what `zpool get` printed, with or without a header."""
    for row in text.split("\n"):
        words = row.split()
        if len(words) >= 3 and words[1] == name and words[2] != "-":
            return words[2]
    return None


def parse_volume(text: str) -> VolumeFacts | None:
    """Return type and discarding of a file system: `ext4 rw,relatime,discard`; None where there is none."""
    words = text.split()
    if len(words) != 2:
        return None
    options = {option.partition("=")[0] for option in words[1].split(",")}
    return VolumeFacts(type=words[0], discard="discard" in options and "nodiscard" not in options)


def parse_ratio(text: str | None) -> float | None:
    """Return a compress ratio: `1.52x` (rounded) or `1.52` (with -p)."""
    found = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)x?", (text or "").strip())
    return float(found[1]) if found else None


def pool_layout(status: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a pool's layout as `zpool status` shows it, and its devices in order.

    The layout has one entry a group, `mirror × 2`, `disk` for a device that stands alone, after `logs`,
    `cache` or the like where it is of that class; so two pools of other disks compare as equal.
    """
    groups: list[list[str | int]] = []
    devices: list[str] = []
    class_, group_depth = "", -1
    for row, (depth, name) in enumerate(_config(status)):
        if depth == 0:  # the pool itself, then classes of devices beside it
            class_, group_depth = f"{name} " if row else "", -1
        elif found := _GROUPS.fullmatch(name):
            if group_depth < 0 or depth <= group_depth:
                groups.append([class_ + found[1], 0])
                group_depth = depth
        else:
            devices.append(name)
            if 0 <= group_depth < depth:
                groups[-1][1] = int(groups[-1][1]) + 1
            else:
                group_depth = -1
                groups.append([f"{class_}disk", 0])
    return tuple(f"{kind} × {count}" if count else str(kind) for kind, count in groups), tuple(devices)


def _config(status: str) -> list[tuple[int, str]]:
    """Return depth and name of each line of the table below `config:`; the pool's own depth is 0."""
    rows: list[tuple[int, str]] = []
    inside = False
    for text in status.split("\n"):
        words = text.split()
        if words[:2] == ["NAME", "STATE"]:
            inside = True
        elif inside and words and words[0] == "errors:":
            break
        elif inside and words and (len(words) == 1 or words[1] in _STATES):
            indent = len(text.lstrip("\t")) - len(text.lstrip("\t").lstrip(" "))
            rows.append((indent // 2, words[0]))
    return rows
