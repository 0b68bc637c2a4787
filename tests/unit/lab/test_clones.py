"""What all drivers of clones refuse in lab.yml; what they do with the rest has a file each."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from plimsoll.lab.clones import DRIVERS, AnyClone

SETTINGS: TypeAdapter[Any] = TypeAdapter(AnyClone)
# Settings of each driver that are right.
RIGHT: dict[str, dict[str, Any]] = {
    "static": {"target": "http://127.0.0.1:8080"},
    "compose": {},
    "qemu": {"image": "/srv/site.qcow2", "port": 8081},
    "libvirt": {"base": "site"},
    "proxmox": {"api": "pve1", "node": "pve1", "template": 900, "storage": "hdd-zfs"},
}
BRIDGE = {"bridge": "br0", "target": "http://a"}
REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    ("compose", "a port of nought", {"port": 0}, "greater than"),
    ("compose", "an address with a command", {"address": "localhost; reboot"}, "IPv4 address"),
    ("compose", "a buffer pool without a unit", {"buffer_pool": "256"}, "match pattern"),
    ("compose", "a relative project", {"project": "plimsoll"}, "absolute path"),
    ("compose", "a reference in the project", {"project": "/srv/${disk_loop}"}, "without"),
    ("compose", "a key that does not exist", {"file": "x"}, "Extra inputs"),
    ("qemu", "a relative image", {"image": "site.qcow2"}, "absolute path"),
    ("qemu", "an image elsewhere", {"image": "/srv/../etc/site.qcow2"}, r"absolute path without \.\."),
    ("qemu", "an image of another format", {"image": "/srv/site.vmdk"}, "must be a disk's image"),
    ("qemu", "an image that is a protocol", {"image": "nbd://host/site.qcow2"}, "absolute path"),
    ("qemu", "a reference in the image's name", {"image": "/srv/${site_port}.qcow2"}, "must not contain"),
    ("qemu", "a line's end in the image's name", {"image": "/srv/a\nb.qcow2"}, "without control characters"),
    (
        "qemu",
        "a linked clone that is raw",
        {"full": False, "format": "raw"},
        "a linked clone is always qcow2",
    ),
    ("qemu", "a linked clone that is a volume", {"full": False, "format": "zvol"}, "is always qcow2"),
    ("qemu", "blocks of a volume without one", {"volblocksize": "16K"}, "only a zvol has one"),
    ("qemu", "a bridge with the site nobody knows where", {"bridge": "br0", "port": None}, "both or neither"),
    ("qemu", "an option in the bridge's name", BRIDGE | {"bridge": "br0,helper=/x"}, "a bridge's name"),
    ("qemu", "a port on a bridge", BRIDGE, "no port is forwarded on a bridge"),
    ("qemu", "a target without a bridge", {"target": "http://a"}, "both or neither"),
    (
        "qemu",
        "a reference in the target",
        BRIDGE | {"target": "http://${x}", "port": None},
        "must not contain",
    ),
    ("qemu", "an address with an option in it", {"address": "127.0.0.1,restrict=off"}, "IPv4 address"),
    ("qemu", "a name as address", {"address": "localhost"}, "IPv4 address"),
    ("qemu", "one port for two", {"ssh_port": 8081}, "must be different"),
    ("qemu", "too little memory", {"memory_bytes": "1M"}, "greater than or equal"),
    ("qemu", "a cache that does not exist", {"cache": "none,readonly=on"}, "should be 'none'"),
    ("libvirt", "a domain with a space", {"base": "a b"}, "must be a domain's name"),
    ("libvirt", "a domain like an option", {"base": "--all"}, "must be a domain's name"),
    ("libvirt", "a linked clone that is raw", {"full": False, "format": "raw"}, "is always qcow2"),
    ("libvirt", "libvirt's own way to another host", {"uri": "qemu+ssh://x/system"}, "qemu:///system"),
    ("proxmox", "a full clone that goes nowhere", {"storage": None}, "storage: is missing"),
    ("proxmox", "a linked clone on another storage", {"full": False}, "stays on its template's storage"),
    ("proxmox", "a storage that is no name", {"storage": "a,b"}, "must be a storage's name"),
    ("proxmox", "a node that is no name", {"node": "pve1/../x"}, "must be a node's name"),
    ("proxmox", "a card as disk", {"limits": {"net0": {"mbps_rd": 5}}}, "must be a disk of the template"),
    ("proxmox", "a limit that limits nothing", {"limits": {"scsi0": {}}}, "sets no limit"),
    (
        "proxmox",
        "limits of a container",
        {"guest": "container", "limits": {"scsi0": {"mbps_rd": 5}}},
        "limits: Proxmox limits disks of virtual machines only",
    ),
    ("proxmox", "a range that goes downwards", {"vmid_range": "300-200"}, "must be two numbers"),
    ("proxmox", "an address in the path", {"target": "http://site/${address}"}, "in place of the host"),
    ("proxmox", "another reference in the target", {"target": "http://${vmid}"}, "must not contain"),
    ("proxmox", "a target that is no URL", {"target": "${address}"}, "in place of the host"),
    ("proxmox", "a place to connect to without a port", {"connect_to": "10.0.0.5"}, "must be HOST:PORT"),
    ("proxmox", "an API that is a URL", {"api": "https://pve1:8006"}, "without https"),
    ("proxmox", "a fingerprint that is not SHA-256", {"fingerprint": "AA:BB"}, "32 pairs"),
]


def test_the_rows_begin_with_what_is_right() -> None:
    assert [driver.name for driver in DRIVERS] == [*RIGHT]
    for driver, settings in RIGHT.items():
        SETTINGS.validate_python({"driver": driver} | settings)


@pytest.mark.parametrize(
    ("driver", "keys", "message"),
    [(driver, keys, message) for driver, _, keys, message in REFUSED],
    ids=[f"{driver}: {what}" for driver, what, _, _ in REFUSED],
)
def test_what_cannot_be_is_refused(driver: str, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SETTINGS.validate_python({"driver": driver} | RIGHT[driver] | keys)
