"""What a backend's `clone` can be told, by driver."""

from typing import Annotated

from pydantic import Field

from lab.clones.compose import ComposeSettings
from lab.clones.libvirt_settings import LibvirtSettings
from lab.clones.proxmox_settings import ProxmoxSettings
from lab.clones.qemu_settings import QemuSettings
from lab.clones.static import StaticSettings

CloneSettings = Annotated[
    StaticSettings | ComposeSettings | QemuSettings | LibvirtSettings | ProxmoxSettings,
    Field(discriminator="driver"),
]
