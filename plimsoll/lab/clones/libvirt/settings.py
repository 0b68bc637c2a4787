"""The settings in lab.yml of a clone with libvirt."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from plimsoll.lab.clones.clone import GuestSettings, TargetUrl
from plimsoll.lab.names import explained_in

_DOMAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+:-]{0,99}")


def _domain(value: str) -> str:
    if not _DOMAIN.fullmatch(value):
        raise ValueError("must be a domain's name: letters, digits and _ . + : - only")
    return value


class LibvirtSettings(GuestSettings):
    """A clone of a domain of libvirt, on the backend's disk."""

    model_config = explained_in("docs/libvirt.md")

    driver: Literal["libvirt"] = Field(description="`libvirt`: a clone of a domain, by virsh.")
    uri: Literal["qemu:///system", "qemu:///session"] = Field(
        "qemu:///system", description="URI that virsh connects to, on the backend's machine."
    )
    base: Annotated[str, AfterValidator(_domain)] = Field(
        description="Domain to clone. It must be shut off, and stay off while it is copied."
    )
    full: bool = Field(
        True,
        description="true copies the disks. false keeps only the changes on the backend's disk, on top of "
        "the base's disks.",
    )
    format: Literal["raw", "qcow2"] | None = Field(
        None, description="Format of the copies. Default: the base's format. Linked clones are always qcow2."
    )
    source: Literal["lease", "agent", "arp"] = Field(
        "lease",
        description="Where to look up ${address}: libvirt's own network, the guest agent, or the host's ARP "
        "table.",
    )
    target: TargetUrl = Field(
        "http://${address}",
        description="Base URL of the site on the clone. ${address} stands for the address found by source.",
    )
    copy_timeout_s: float = Field(3600.0, gt=0, description="Seconds to wait for one disk to be copied.")

    @model_validator(mode="after")
    def _fits(self) -> "LibvirtSettings":
        if not self.full and self.format == "raw":
            raise ValueError("format: a linked clone is always qcow2; leave format out, or set full: true")
        return self
