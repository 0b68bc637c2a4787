"""The settings in lab.yml of a clone on Proxmox."""

import re
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from lab.clones.address import TargetUrl
from lab.clones.guest import GuestSettings, StopTimeout
from lab.names.model import StrictModel
from lab.proxmox import ApiSettings

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
        raise ValueError("must be two numbers from 100 on, at most 10000 apart, such as 9000-9099")
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

    mbps_rd: float | None = Field(None, ge=1, description="MB read a second, at most.")
    mbps_wr: float | None = Field(None, ge=1, description="MB written a second, at most.")
    iops_rd: int | None = Field(None, ge=10, description="Reads a second, at most.")
    iops_wr: int | None = Field(None, ge=10, description="Writes a second, at most.")

    def words(self) -> str:
        """Return the text added to the disk's line of the configuration."""
        return "".join(f",{key}={value:g}" for key, value in self if value is not None)


class ProxmoxSettings(GuestSettings, ApiSettings):
    """A clone of a virtual machine on Proxmox VE."""

    driver: Literal["proxmox"] = Field(description="`proxmox`: a clone of a virtual machine there.")
    node: Node = Field(description="Node that the clone runs on.")
    template: int = Field(ge=100, le=999_999_999, description="Number of what is cloned, best a template.")
    template_node: Node | None = Field(None, description="Node that the template is on. Default: node.")
    full: bool = Field(True, description="Copy the disks; false: a linked clone, on the template's storage.")
    storage: Storage | None = Field(
        None, description="Storage that the disks are copied to: the one under test. Not for linked clones."
    )
    bwlimit: int | None = Field(None, ge=0, description="KiB a second that the copying takes, at most.")
    pool: Pool | None = Field(None, description="Resource pool that the clone is put into.")
    vmid_range: Annotated[str, AfterValidator(_range)] | None = Field(
        None, description="Numbers that the clone may get, FIRST-LAST. Default: the next free one."
    )
    limits: dict[DiskKey, DiskLimits] = Field({}, description="Limits of its disks: {scsi0: {mbps_rd: 150}}.")
    restore: Literal["rollback", "clone"] = Field(
        "rollback",
        description="How a changed site becomes as it was: by a snapshot of the storage, or cloned anew.",
    )
    target: TargetUrl = Field(
        "http://${address}",
        description="Base URL of the site there; ${address} is what the guest agent says.",
    )
    clone_timeout_s: float = Field(3600.0, gt=0, description="Seconds for copying the disks.")
    stop_timeout_s: Annotated[StopTimeout, Field(ge=1)] = 120

    @model_validator(mode="after")
    def _fits(self) -> "ProxmoxSettings":
        if self.full and self.storage is None:
            raise ValueError("storage: is missing: where the disks are copied to (or full: false)")
        if not self.full and self.storage is not None:
            raise ValueError("storage: a linked clone is where its template is; leave it out, or full: true")
        if empty := [disk for disk, limits in self.limits.items() if not limits.words()]:
            raise ValueError(f"limits: {', '.join(empty)}: has no limit in it")
        return self
