"""What is read of a clone's disks, mount points and storages, and that it reaches what differs."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.evidence.storage import described, differing
from plimsoll.lab.clones.clone import CloneContext
from plimsoll.lab.clones.golden import SiteSettings
from plimsoll.lab.clones.proxmox import PROXMOX, ProxmoxSettings
from plimsoll.lab.experiment.labfile import Backend
from plimsoll.lab.experiment.rig import Rig
from plimsoll.lab.facts import read_facts
from plimsoll.lab.proxmox.volumes import (
    KINDS,
    find_dataset,
    find_folder,
    is_of_node,
    parse_volumes,
    storage_facts,
)
from plimsoll.rundir.facts import Storage
from tests.support.proxmox import ENVIRONMENT, ProxmoxServer, Vm, proxmox_server
from tests.support.scripted import FakeMachine

DISKS: list[tuple[str, str, str, dict[str, Any]]] = [
    (
        "what is not said is Proxmox's default; aio has none that holds for all storages",
        "scsi0",
        "tank:vm-105-disk-0,size=32G",
        {"storage": "tank", "size": "32G", "format": None, "cache": "none", "aio": None, "iothread": False}
        | {"discard": False, "ssd": False},
    ),
    (
        "all that is said",
        "scsi3",
        "tank:vm-105-disk-1,aio=native,cache=writeback,discard=on,format=raw,iothread=1,size=8G,ssd=1",
        {"storage": "tank", "size": "8G", "format": "raw", "cache": "writeback", "aio": "native"}
        | {"iothread": True, "discard": True, "ssd": True},
    ),
    (
        "a disk of the node that is passed through",
        "scsi1",
        "/dev/disk/by-id/nvme-x,size=1T",
        {"storage": None, "size": "1T", "format": None, "cache": "none", "aio": None, "iothread": False}
        | {"discard": False, "ssd": False},
    ),
    (
        "the root of a container",
        "rootfs",
        "tank:subvol-105-disk-0,size=8G",
        {"storage": "tank", "size": "8G", "mounted_at": "/", "mount_options": None},
    ),
    (
        "a mount point, with its key spelled out",
        "mp3",
        "volume=tank:subvol-105-disk-1,mp=/srv,mountoptions=noatime;discard,size=9G",
        {"storage": "tank", "size": "9G", "mounted_at": "/srv", "mount_options": "noatime;discard"},
    ),
]


@pytest.mark.parametrize(("slot", "line", "facts"), [row[1:] for row in DISKS], ids=[row[0] for row in DISKS])
def test_what_a_line_of_the_configuration_says(slot: str, line: str, facts: dict[str, Any]) -> None:
    (volume,) = parse_volumes({slot: line})
    assert volume.facts() == {"slot": slot, **facts}


def test_drives_of_discs_firmware_and_unused_volumes_are_left_out_and_slots_are_counted() -> None:
    config = {
        "scsi10": "a:vm-1-disk-3",
        "scsi2": "a:vm-1-disk-2",
        "ide2": "none,media=cdrom",
        "ide0": "local:iso/debian.iso,media=cdrom,size=600M",
        "efidisk0": "a:vm-1-disk-0,size=4M",
        "unused0": "a:vm-1-disk-9",
        "scsihw": "virtio-scsi-single",
        "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0",
        "virtio0": 5,
    }
    assert [volume.slot for volume in parse_volumes(config)] == ["scsi2", "scsi10"]
    assert [volume.slot for volume in parse_volumes({"mp1": "a:b", "mp0": "a:b", "rootfs": "a:b"})] == [
        "rootfs",
        "mp0",
        "mp1",
    ]


DATASETS: list[tuple[str, dict[str, Any], str, str | None, bool]] = [
    ("a disk", {"type": "zfspool", "pool": "tank/vm"}, "vm-105-disk-0", "tank/vm/vm-105-disk-0", True),
    (
        "a container's",
        {"type": "zfspool", "pool": "tank"},
        "subvol-105-disk-1",
        "tank/subvol-105-disk-1",
        True,
    ),
    (
        "a linked clone, whose base stands before it",
        {"type": "zfspool", "pool": "tank"},
        "base-900-disk-0/vm-105-disk-0",
        "tank/vm-105-disk-0",
        True,
    ),
    ("ZFS of another machine", {"type": "zfs", "pool": "tank"}, "vm-105-disk-0", "tank/vm-105-disk-0", False),
    *(
        (
            f"{kind} is no ZFS, whatever its pool is",
            {"type": kind, "pool": "rbd"},
            "vm-105-disk-0",
            None,
            False,
        )
        for kind in sorted(set(KINDS) - {"zfs", "zfspool"})
    ),
    ("a storage that the token may not see", {}, "vm-105-disk-0", None, False),
]


@pytest.mark.parametrize(
    ("why", "storage", "volume", "dataset", "here"), DATASETS, ids=[row[0] for row in DATASETS]
)
def test_a_volume_on_zfs_is_a_dataset(
    why: str, storage: dict[str, Any], volume: str, dataset: str | None, here: bool
) -> None:
    assert (find_dataset(storage, volume), is_of_node(storage)) == (dataset, here), why


def test_a_storage_is_named_and_keeps_no_secret() -> None:
    nfs = {
        "type": "nfs",
        "storage": "nas",
        "server": "10.0.0.9",
        "options": "vers=4.2",
        "path": "/mnt/pve/nas",
    }
    assert storage_facts(nfs) == {"type": "nfs", "kind": "NFS", "options": "vers=4.2"}
    assert find_folder(nfs) is None
    cifs = {"type": "cifs", "username": "lab", "password": "hunter2", "smbversion": "3"}
    assert storage_facts(cifs) == {"type": "cifs", "kind": "SMB/CIFS", "smbversion": "3"}
    assert storage_facts({"type": "vendor"}) == {"type": "vendor", "kind": "vendor"}
    assert storage_facts({}) == {"type": None, "kind": None}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProxmoxServer]:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with proxmox_server(tmp_path) as made:
        made.vms[105] = Vm(
            "pve1",
            {
                "name": "a",
                "scsihw": "virtio-scsi-single",
                "scsi0": "sata:vm-105-disk-0,iothread=1,size=32G",
                "scsi1": "files:105/vm-105-disk-0.qcow2,format=qcow2,size=9G",
            },
        )
        made.vms[106] = Vm("pve1", {"hostname": "b", "rootfs": "nvme:subvol-106-disk-0,size=8G"}, kind="lxc")
        made.storages = [
            {"storage": "sata", "type": "zfspool", "pool": "sata/vm", "blocksize": "8k", "sparse": 1},
            {"storage": "nvme", "type": "zfspool", "pool": "nvme"},
            {"storage": "files", "type": "dir", "path": "/sata/files"},
        ]
        yield made


ZVOL = "sata/vm/vm-105-disk-0"
NODE = {
    "uname -n": "pve1.lan\n",
    "findmnt": "zfs  sata/files\n",
    "zfs get": f"{ZVOL}\tvolblocksize\t8K\t-\n{ZVOL}\tcompression\tlz4\tdefault\n",
}


async def seen_of(server: ProxmoxServer, machine: FakeMachine, guest: str, number: int) -> Any:
    given = {"driver": "proxmox", "guest": guest, "api": server.api, "ca_file": server.ca, "node": "pve1"}
    said = ProxmoxSettings.model_validate(given | {"template": 900, "storage": "sata"})
    kit = await PROXMOX.make(said, CloneContext(machine, "plimsoll-a--b", None, SiteSettings(), "/w", "/p"))
    rig = Rig(Backend(name="b", clone=said), machine, None, kit, None, None, lambda *_: None)
    rig.runner.captured["vmid"] = str(number)
    return await rig.read_details()


def test_on_its_node_a_clones_datasets_are_read_too(server: ProxmoxServer) -> None:
    machine = FakeMachine(answers=NODE)
    seen = asyncio.run(seen_of(server, machine, "vm", 105))
    disk, file = seen.description["volumes"]
    assert seen.description["scsihw"] == "virtio-scsi-single"
    assert (disk["dataset"], disk["iothread"], disk["on"]) == (
        ZVOL,
        True,
        {"type": "zfspool", "kind": "ZFS", "blocksize": "8k", "sparse": 1},
    )
    assert (file["dataset"], file["on"]["kind"]) == ("sata/files", "directory")
    assert seen.datasets == (ZVOL, "sata/files")
    facts = asyncio.run(read_facts(machine, [], seen.datasets))
    assert facts.datasets[0].properties == {"compression": "lz4", "volblocksize": "8K"}


def test_on_another_machine_a_dataset_is_named_and_never_read(server: ProxmoxServer) -> None:
    machine = FakeMachine(answers={"uname -n": "laptop\n", "findmnt": "zfs  sata/files\n"})
    seen = asyncio.run(seen_of(server, machine, "vm", 105))
    assert [one["dataset"] for one in seen.description["volumes"]] == [ZVOL, None]
    assert seen.datasets == ()
    assert machine.ran == [("uname", "-n")]


def test_a_containers_volume_is_found_as_dataset(server: ProxmoxServer) -> None:
    seen = asyncio.run(seen_of(server, FakeMachine(answers=NODE), "container", 106))
    assert seen.datasets == ("nvme/subvol-106-disk-0",)


def test_a_name_that_is_no_datasets_becomes_no_part_of_a_command(server: ProxmoxServer) -> None:
    server.storages[1]["pool"] = "nvme; rm -rf /"
    seen = asyncio.run(seen_of(server, FakeMachine(answers=NODE), "container", 106))
    assert seen.datasets == ()


def test_a_storage_that_the_token_may_not_see_is_unknown(server: ProxmoxServer) -> None:
    server.storages.clear()
    seen = asyncio.run(seen_of(server, FakeMachine(answers=NODE), "vm", 105))
    assert [one["on"] for one in seen.description["volumes"]] == [{"type": None, "kind": None}] * 2


def test_what_differs_between_two_clones_stands_in_the_table(server: ProxmoxServer) -> None:
    """A cache mode that only one template has is what explains a difference best."""
    sides = []
    for line in ("sata:vm-105-disk-0,iothread=1", "nvme:vm-105-disk-0,cache=writeback,aio=threads"):
        server.vms[105].config |= {"scsi0": line}
        seen = asyncio.run(seen_of(server, FakeMachine(), "vm", 105))
        sides.append(described(Storage(clone=dict(seen.description))))
    assert dict(differing(sides)) == {
        "clone.volumes.1.storage": ("sata", "nvme"),
        "clone.volumes.1.cache": ("none", "writeback"),
        "clone.volumes.1.aio": (None, "threads"),
        "clone.volumes.1.iothread": (True, False),
        "clone.volumes.1.on.blocksize": ("8k", None),
        "clone.volumes.1.on.sparse": (1, None),
    }
