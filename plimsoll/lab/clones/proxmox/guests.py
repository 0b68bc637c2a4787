"""The two kinds of guests of Proxmox VE: what its API has for both, under different names. Pure."""

from dataclasses import dataclass
from typing import Literal

GuestName = Literal["vm", "container"]


@dataclass(frozen=True)
class GuestKind:
    """One kind of guest.

    `called`: its name in sentences. `path`: its part of the API's paths, and its `type` in the API's lists.
    `name`: the parameter, and the key of its configuration, that has its name. `clone_task`: the type of the
    task that clones one. `address`: the path, below its own, that tells its addresses; `asks` says so.
    """

    called: str
    path: str
    name: str
    clone_task: str
    address: str
    asks: str


GUESTS: dict[GuestName, GuestKind] = {
    "vm": GuestKind(
        called="virtual machine",
        path="qemu",
        name="name",
        clone_task="qmclone",
        address="agent/network-get-interfaces",
        asks="ask the guest agent for its address",
    ),
    "container": GuestKind(
        called="container",
        path="lxc",
        name="hostname",
        clone_task="vzclone",
        address="interfaces",
        asks="ask the node for its address",
    ),
}
