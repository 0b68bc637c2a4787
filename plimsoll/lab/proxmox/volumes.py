"""The volumes of a guest, and the storages below them. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SLOT = re.compile(r"(scsi|virtio|sata|ide|rootfs|mp)(\d*)")
_ON = ("1", "on", "yes", "true")
_HERE = "zfspool"  # its datasets are the node's own; those of `zfs` are another machine's
# What of a storage bears on how fast it is. No list of what to leave out: there are passwords among the rest.
_KEPT = ("blocksize", "sparse", "krbd", "preallocation", "nocow", "nowritecache", "options", "smbversion")


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


def parse_volumes(config: Mapping[str, Any]) -> list[Volume]:
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


# As in the enumeration `type` of the API's POST /storage.
KINDS = {
    "btrfs": "Btrfs",
    "cephfs": "CephFS",
    "cifs": "SMB/CIFS",
    "dir": "directory",
    "esxi": "VMware ESXi",
    "glusterfs": "GlusterFS",  # until Proxmox VE 8
    "iscsi": "iSCSI",
    "iscsidirect": "iSCSI by libiscsi",
    "lvm": "LVM",
    "lvmthin": "LVM-thin",
    "nfs": "NFS",
    "pbs": "Proxmox Backup Server",
    "rbd": "Ceph RBD",
    "zfs": "ZFS over iSCSI",
    "zfspool": "ZFS",
}


def storage_facts(storage: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of an entry of GET /storage; `type` and `kind` are None where it has none."""
    kind = storage.get("type")
    kept = {key: storage[key] for key in _KEPT if isinstance(storage.get(key), str | int | float)}
    return {"type": kind, "kind": KINDS.get(str(kind), kind), **kept}


def find_dataset(storage: Mapping[str, Any], volume: str) -> str | None:
    """Return the dataset that `volume` is, such as tank/vm-105-disk-0; None where the storage is not ZFS.

    `volume` is what stands behind the storage's name; a linked clone has its base before a slash.
    """
    pool = storage.get("pool")
    if storage.get("type") not in (_HERE, "zfs") or not isinstance(pool, str):
        return None
    return f"{pool}/{volume.rpartition('/')[2]}"


def is_of_node(storage: Mapping[str, Any]) -> bool:
    """Return whether a dataset of `storage` is one of the node itself."""
    return storage.get("type") == _HERE


def find_folder(storage: Mapping[str, Any]) -> str | None:
    """Return the folder of a storage of files on the node's own disks; None of every other."""
    path = storage.get("path")
    return path if storage.get("type") == "dir" and isinstance(path, str) and path.startswith("/") else None
