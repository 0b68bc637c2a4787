"""The disks of a virtual machine and the mount points of a container, from its configuration. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SLOT = re.compile(r"(scsi|virtio|sata|ide|rootfs|mp)(\d*)")
_ON = ("1", "on", "yes", "true")


@dataclass(frozen=True)
class Volume:
    """One disk or mount point.

    `slot`: its key in the configuration. `storage` and `name`: what stands before and behind the colon;
    None both for a path of the node, such as a bind mount or a disk that is passed through.
    """

    slot: str
    storage: str | None
    name: str | None
    options: Mapping[str, str]

    @property
    def is_mount_point(self) -> bool:
        """Whether it belongs to a container."""
        return self.slot.startswith(("rootfs", "mp"))

    def facts(self) -> dict[str, Any]:
        """Return what it says of itself, with Proxmox's defaults where the configuration has nothing."""
        said = self.options
        facts: dict[str, Any] = {"slot": self.slot, "storage": self.storage, "size": said.get("size")}
        if self.is_mount_point:
            path = "/" if self.slot == "rootfs" else said.get("mp")
            return facts | {"mounted_at": path, "mount_options": said.get("mountoptions")}
        return facts | {
            "format": said.get("format"),
            "cache": said.get("cache", "none"),
            "aio": said.get("aio"),  # None: Proxmox chooses, by storage and cache mode
            "iothread": _is_on(said.get("iothread")),
            "discard": said.get("discard", "ignore") in ("on", "1"),
            "ssd": _is_on(said.get("ssd")),
        }


def volumes_of(config: Mapping[str, Any]) -> list[Volume]:
    """Return the volumes that a configuration has, in the order of their slots; no CD-ROM drives.

    Disks of firmware (efidisk0, tpmstate0) carry no data of the site, and are left out.
    """
    found = []
    for slot, line in config.items():
        if (kind := _SLOT.fullmatch(slot)) and isinstance(line, str):
            volume = _volume(slot, line)
            if volume.options.get("media") != "cdrom":
                found.append(((kind[1] != "rootfs", kind[1], int(kind[2] or 0)), volume))
    return [volume for _, volume in sorted(found, key=lambda one: one[0])]


def _volume(slot: str, line: str) -> Volume:
    first, *others = line.split(",")
    options = dict(part.split("=", 1) for part in others if "=" in part)
    where = first.partition("=")[2] if first.startswith(("file=", "volume=")) else first
    storage, colon, name = where.partition(":")
    is_volume = bool(colon) and not where.startswith("/")
    return Volume(slot, storage if is_volume else None, name if is_volume else None, options)


def _is_on(value: str | None) -> bool:
    return (value or "").lower() in _ON
