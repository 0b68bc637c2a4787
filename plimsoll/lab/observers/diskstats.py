"""The activity of each disk, from /proc/diskstats (the kernel's Documentation/admin-guide/iostats)."""

import re
from collections.abc import Iterable

from plimsoll.lab.machine import Machine
from plimsoll.lab.observers.observer import (
    Column,
    FileSource,
    Log,
    Observer,
    ObserverOptions,
    Reading,
    gauge,
    number,
    per,
    rate,
    read_files,
)

PATHS = ("/proc/diskstats",)
_SECTOR_BYTES = 512  # whatever the disk's own is
_FIELDS = (
    *("reads", "reads merged", "sectors read", "ms reading"),
    *("writes", "writes merged", "sectors written", "ms writing"),
    *("in flight", "ms busy", "ms queued"),
    *("discards", "discards merged", "sectors discarded", "ms discarding"),  # since Linux 4.18
    *("flushes", "ms flushing"),  # since Linux 5.5
)
# Whole devices, but not disks under test unless named.
_LEFT_OUT = re.compile(r"(loop|ram|zram|sr|fd|nbd)\d+")


def parse(text: str) -> dict[str, dict[str, float]]:
    """Return the counters by device; other lines are left out."""
    found = {}
    for line in text.split("\n"):
        words = line.split()
        values = [number(word) for word in words[3:]]
        if len(values) >= 11 and None not in values:
            found[words[2]] = {
                field: value for field, value in zip(_FIELDS, values, strict=False) if value is not None
            }
    return found


def read(texts: tuple[str, ...]) -> Reading:
    """Return the reading that `PATHS` give: counters named `device counter`."""
    return {
        f"{device} {field}": value
        for device, counters in parse(texts[0]).items()
        for field, value in counters.items()
    }


def choose_devices(text: str, whole: Iterable[str], chosen: Iterable[str]) -> tuple[str, ...]:
    """Return the devices of diskstats `text` that get columns: the chosen ones, or else all whole disks.

    `whole` are the names in /sys/block, where partitions are not. Loop devices, RAM disks and the like must
    be chosen. A chosen device that is not there yet has columns all the same, empty until it comes.
    """
    picked = tuple(dict.fromkeys(chosen))
    if picked:
        return picked
    # A slash in a device's name is an exclamation mark in /sys.
    disks = {name.replace("!", "/") for name in whole}
    return tuple(name for name in parse(text) if name in disks and not _LEFT_OUT.fullmatch(name))


def _device_columns(device: str) -> tuple[Column, ...]:
    def field(name: str) -> str:
        return f"{device} {name}"

    return (
        rate(f"{device}_reads_per_s", field("reads")),
        rate(f"{device}_writes_per_s", field("writes")),
        rate(f"{device}_read_bytes_per_s", field("sectors read"), _SECTOR_BYTES),
        rate(f"{device}_write_bytes_per_s", field("sectors written"), _SECTOR_BYTES),
        per(f"{device}_read_latency_ms", field("ms reading"), field("reads")),
        per(f"{device}_write_latency_ms", field("ms writing"), field("writes")),
        rate(f"{device}_flushes_per_s", field("flushes")),
        per(f"{device}_flush_latency_ms", field("ms flushing"), field("flushes")),
        gauge(f"{device}_in_flight_count", field("in flight")),
        rate(f"{device}_queue_count", field("ms queued"), 1 / 1000),
        rate(f"{device}_util_percent", field("ms busy"), 100 / 1000),
    )


COLUMNS = _device_columns("DEVICE")  # as they are documented


def columns(devices: Iterable[str]) -> tuple[Column, ...]:
    """Return the columns of `devices`."""
    return tuple(column for device in devices for column in _device_columns(device))


async def _prepare(machine: Machine, options: ObserverOptions, _log: Log) -> FileSource:
    (text,) = await read_files(machine, PATHS)
    listed = await machine.run(["ls", "/sys/block"])
    devices = choose_devices(text or "", listed.out.split(), options.disks)
    return FileSource("diskstats", columns(devices), read, PATHS)


OBSERVER = Observer("diskstats", COLUMNS, _prepare)
