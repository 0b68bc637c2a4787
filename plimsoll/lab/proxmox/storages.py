"""The storages of Proxmox VE 8 and 9: what each kind is called, and which dataset a volume is. Pure."""

from collections.abc import Mapping
from typing import Any

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
_HERE = "zfspool"  # its datasets are the node's own; those of `zfs` are another machine's
# What of a storage bears on how fast it is. No list of what to leave out: there are passwords among the rest.
_KEPT = ("blocksize", "sparse", "krbd", "preallocation", "nocow", "nowritecache", "options", "smbversion")


def storage_facts(storage: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of an entry of GET /storage; `type` and `kind` are None where it has none."""
    kind = storage.get("type")
    kept = {key: storage[key] for key in _KEPT if isinstance(storage.get(key), str | int | float)}
    return {"type": kind, "kind": KINDS.get(str(kind), kind), **kept}


def dataset_of(storage: Mapping[str, Any], volume: str) -> str | None:
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


def folder_of(storage: Mapping[str, Any]) -> str | None:
    """Return the folder of a storage of files on the node's own disks; None of every other."""
    path = storage.get("path")
    return path if storage.get("type") == "dir" and isinstance(path, str) and path.startswith("/") else None
