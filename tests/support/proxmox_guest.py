"""The guests of the Proxmox server: virtual machines and containers, and where the API tells them apart."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Vm:
    """A virtual machine or a container, or the template of one. `kind` is `qemu` or `lxc`."""

    node: str
    config: dict[str, Any]
    running: bool = False
    snapshots: dict[str, dict[str, Any]] = field(default_factory=dict)
    address: str | None = "192.0.2.77"
    kind: str = "qemu"

    @property
    def name_key(self) -> str:
        """The key of its configuration, and of a request to clone, that has its name."""
        return "name" if self.kind == "qemu" else "hostname"

    @property
    def called(self) -> str:
        """How messages call it."""
        return "VM" if self.kind == "qemu" else "CT"

    def task(self, what: str) -> str:
        """The type of a task on it."""
        return f"{'qm' if self.kind == 'qemu' else 'vz'}{what}"

    def interfaces(self) -> list[dict[str, Any]]:
        """Its interfaces, as agent and node tell them."""
        rows = [] if self.address is None else [_address(self.address, 24)]
        return [
            {"name": "lo", "ip-addresses": [_address("127.0.0.1", 8)]},
            {"name": "eth0", "ip-addresses": rows},
        ]


def config_file(node: str, kind: str, vmid: int) -> str:
    """Where a node keeps a configuration."""
    return f"nodes/{node}/{'qemu-server' if kind == 'qemu' else 'lxc'}/{vmid}.conf"


def copied(vm: Vm, number: int, params: dict[str, str]) -> dict[str, Any]:
    """The volumes of a clone of `vm`: each on the storage that `params` name, with the clone's number."""
    storage = params.get("storage")
    made = {}
    for place, slot in enumerate(slot for slot in vm.config if slot.startswith(("scsi", "rootfs", "mp"))):
        volume, _, options = str(vm.config[slot]).partition(",")
        prefix = "vm" if vm.kind == "qemu" else "subvol"
        made[slot] = f"{storage or volume.split(':')[0]}:{prefix}-{number}-disk-{place},{options}"
    return made


def _address(text: str, prefix: int) -> dict[str, Any]:
    return {"ip-address": text, "ip-address-type": "ipv4", "prefix": prefix}
