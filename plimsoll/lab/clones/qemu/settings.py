"""The settings in lab.yml of a clone with QEMU."""

import ipaddress
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from plimsoll.common.units import Size
from plimsoll.lab.clones.clone import CloneSettings, StopTimeout
from plimsoll.lab.names import Folder, explained_in
from plimsoll.lab.steps.step import no_reference
from plimsoll.scenarios.running.settings import BaseUrl, HostPort

_FORMATS = {".qcow2": "qcow2", ".raw": "raw", ".img": "raw"}
_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")  # the kernel's own limit: 15


def _image(value: str) -> str:
    if not value.isprintable() or not value.endswith(tuple(_FORMATS)):
        raise ValueError(f"must be a disk's image, without control characters: {', '.join(_FORMATS)}")
    return value


def _interface(value: str) -> str:
    if not _INTERFACE.fullmatch(value):
        raise ValueError("must be a bridge's name, such as br0")
    return value


def _address(value: str) -> str:
    try:
        return str(ipaddress.IPv4Address(value))
    except ValueError:
        raise ValueError("must be an IPv4 address of that machine, such as 10.0.0.7") from None


class QemuSettings(CloneSettings):
    """A virtual machine of an image, on the backend's disk."""

    model_config = explained_in("docs/vm.md")

    driver: Literal["qemu"] = Field(description="`qemu`: a virtual machine of an image, by QEMU alone.")
    image: Annotated[Folder, AfterValidator(_image), AfterValidator(no_reference)] = Field(
        description="Disk image on the backend's machine, such as one from `make vm-image`: .qcow2, .raw or "
        ".img."
    )
    format: Literal["qcow2", "raw", "zvol"] = Field(
        "qcow2",
        description="Format of the clone's disk: a file of that format, or a ZFS volume below the dataset.",
    )
    full: bool = Field(
        True,
        description="true copies the image. false keeps only the changes on the backend's disk, on top of "
        "the image.",
    )
    volblocksize: Literal["4K", "8K", "16K", "32K", "64K", "128K"] | None = Field(
        None, description="zvol: block size of the volume. Default: ZFS's own."
    )
    cache: Literal["none", "writeback", "writethrough", "directsync", "unsafe"] = Field(
        "none", description="How QEMU uses the host's page cache; none bypasses it."
    )
    memory_bytes: Annotated[Size, Field(ge=256 << 20)] = Field(
        2 << 30, description="Memory of the guest: 2G."
    )
    cpus: int = Field(2, ge=1, le=255, description="Number of processors.")
    accelerator: Literal["auto", "kvm", "tcg"] = Field(
        "auto", description="kvm, tcg (which emulates the processor), or auto: kvm if QEMU can use it."
    )
    address: Annotated[str, AfterValidator(_address)] = Field(
        "127.0.0.1", description="Address of the backend's machine whose ports are forwarded to the guest."
    )
    port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="Port of that address that is forwarded to the site. Default: a free port.",
    )
    ssh_port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="Port of that address that is forwarded to the guest's SSH server. Default: none.",
    )
    bridge: Annotated[str, AfterValidator(_interface)] | None = Field(
        None, description="Bridge to connect the guest to. No port is forwarded then. Needs target."
    )
    target: Annotated[BaseUrl, AfterValidator(no_reference)] | None = Field(
        None, description="bridge: base URL of the site on the guest."
    )
    connect_to: Annotated[HostPort, AfterValidator(no_reference)] | None = Field(
        None, description="bridge: HOST:PORT to connect to instead of the target's."
    )
    copy_timeout_s: float = Field(3600.0, gt=0, description="Seconds to wait for the image to be copied.")
    start_timeout_s: float = Field(
        600.0, gt=0, description="Seconds to wait until the guest serves the site."
    )
    stop_timeout_s: StopTimeout = 60

    @model_validator(mode="after")
    def _fits(self) -> "QemuSettings":
        if not self.full and self.format != "qcow2":
            raise ValueError(
                f"format: a linked clone is always qcow2, not {self.format}; leave format out, or set full: "
                "true"
            )
        if self.volblocksize and self.format != "zvol":
            raise ValueError("volblocksize: only a zvol has one; leave it out, or set format: zvol")
        if (self.bridge is None) != (self.target is None):
            raise ValueError("bridge and target: set both or neither; without a bridge, a port is forwarded")
        if self.connect_to and not self.bridge:
            raise ValueError("connect_to: needs a bridge; without one, set address and port")
        if self.bridge and (self.port or self.ssh_port):
            raise ValueError("port and ssh_port: no port is forwarded on a bridge; leave both out")
        if self.port and self.port == self.ssh_port:
            raise ValueError("port and ssh_port: must be different")
        return self

    @property
    def image_format(self) -> str:
        """The format of the image, by its name: looking into a raw one would trust the guest's own bytes."""
        return next(of for end, of in _FORMATS.items() if self.image.endswith(end))
