"""The settings in lab.yml of a clone on Proxmox."""

import re
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from plimsoll.lab.clones.address import TargetUrl
from plimsoll.lab.clones.guest import GuestSettings, StopTimeout
from plimsoll.lab.clones.proxmox.guests import GuestName
from plimsoll.lab.names import StrictModel, explained_in
from plimsoll.lab.proxmox import ApiSettings

_DISK = re.compile(r"(?:scsi(?:[12]?\d|30)|virtio(?:\d|1[0-5])|sata[0-5]|ide[0-3])")
_RANGE = re.compile(r"([1-9]\d{2,8})-([1-9]\d{2,8})")


def _named(what: str, form: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not re.fullmatch(form, value):
            raise ValueError(f"must be {what}")
        return value

    return check


def _disk(value: str) -> str:
    if not _DISK.fullmatch(value):
        raise ValueError("must be a disk of the template, such as scsi0 or virtio1")
    return value


def _range(value: str) -> str:
    found = _RANGE.fullmatch(value)
    if not found or not int(found[1]) <= int(found[2]) < int(found[1]) + 10_000:
        raise ValueError("must be two numbers from 100 up, at most 10000 apart, such as 9000-9099")
    return value


_NODE = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
Node = Annotated[str, AfterValidator(_named("a node's name, such as pve1", _NODE))]
Storage = Annotated[
    str,
    AfterValidator(_named("a storage's name, such as local-zfs", r"[A-Za-z][A-Za-z0-9._-]{0,98}[A-Za-z0-9]")),
]
Pool = Annotated[
    str,
    AfterValidator(_named("a resource pool's name, such as lab", r"[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+){0,2}")),
]
DiskKey = Annotated[str, AfterValidator(_disk)]


class DiskLimits(StrictModel):
    """Limits of one disk of the clone. Proxmox's own words: `mbps` is MB a second, `iops` operations."""

    mbps_rd: float | None = Field(None, ge=1, description="Limit for reads, in MB a second.")
    mbps_wr: float | None = Field(None, ge=1, description="Limit for writes, in MB a second.")
    iops_rd: int | None = Field(None, ge=10, description="Limit for reads, in operations a second.")
    iops_wr: int | None = Field(None, ge=10, description="Limit for writes, in operations a second.")

    def words(self) -> str:
        """Return the text added to the disk's line of the configuration."""
        return "".join(f",{key}={value:g}" for key, value in self if value is not None)


class ProxmoxSettings(GuestSettings, ApiSettings):
    """A clone of a virtual machine or a container on Proxmox VE."""

    model_config = explained_in("docs/proxmox.md")

    driver: Literal["proxmox"] = Field(description="`proxmox`: a clone of a guest there.")
    guest: GuestName = Field(
        "vm", description="What is cloned: `vm`, a virtual machine, or `container`, a container (LXC)."
    )
    node: Node = Field(description="Node to run the clone on.")
    template: int = Field(
        ge=100, le=999_999_999, description="Number of the guest to clone, preferably a template."
    )
    template_node: Node | None = Field(None, description="Node that has the template. Default: node.")
    full: bool = Field(
        True, description="true copies the disks. false makes a linked clone on the template's storage."
    )
    storage: Storage | None = Field(
        None, description="Storage under test, which the disks are copied to. Not for linked clones."
    )
    bwlimit: int | None = Field(None, ge=0, description="Limit for copying the disks, in KiB a second.")
    pool: Pool | None = Field(None, description="Resource pool to put the clone into.")
    vmid_range: Annotated[str, AfterValidator(_range)] | None = Field(
        None, description="Range of numbers for the clone, FIRST-LAST. Default: the next free number."
    )
    limits: dict[DiskKey, DiskLimits] = Field(
        {}, description="Limits for the disks of a virtual machine: {scsi0: {mbps_rd: 150}}."
    )
    restore: Literal["rollback", "clone"] = Field(
        "rollback",
        description="How to restore a changed site: roll back to a snapshot on the storage, or clone it "
        "again.",
    )
    target: TargetUrl = Field(
        "http://${address}",
        description="Base URL of the site on the clone. ${address} stands for the address that the guest "
        "agent reports, or the node for a container.",
    )
    clone_timeout_s: float = Field(3600.0, gt=0, description="Seconds to wait for the disks to be copied.")
    stop_timeout_s: Annotated[StopTimeout, Field(ge=1)] = 120

    @model_validator(mode="after")
    def _fits(self) -> "ProxmoxSettings":
        if self.full and self.storage is None:
            raise ValueError("storage: is missing: name the storage to copy the disks to, or set full: false")
        if not self.full and self.storage is not None:
            raise ValueError(
                "storage: a linked clone stays on its template's storage; leave storage out, or set full: "
                "true"
            )
        if self.guest == "container" and self.limits:
            raise ValueError("limits: Proxmox limits disks of virtual machines only; leave limits out")
        if empty := [disk for disk, limits in self.limits.items() if not limits.words()]:
            raise ValueError(f"limits: {', '.join(empty)}: sets no limit; name one, or leave the disk out")
        return self
