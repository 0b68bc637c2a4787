"""Settings become clones."""

from dataclasses import dataclass

from lab.clones.clone import Clone
from lab.clones.compose import Compose, ComposeSettings
from lab.clones.golden import Golden, SiteSettings
from lab.clones.libvirt import Libvirt
from lab.clones.proxmox import Proxmox
from lab.clones.proxmox_settings import ProxmoxSettings
from lab.clones.qemu import Qemu
from lab.clones.qemu_settings import QemuSettings
from lab.clones.settings import CloneSettings
from lab.clones.static import Static, StaticSettings
from lab.doing import Api
from lab.machine import Machine
from lab.place import Place
from lab.proxmox import ProxmoxApi, connect


@dataclass(frozen=True)
class Made:
    """A clone, the API that it is made through, and the site that it copies, where there are such things."""

    clone: Clone
    api: Api | None = None
    golden: Golden | None = None


async def clone_of(
    settings: CloneSettings,
    machine: Machine,
    name: str,
    place: Place | None,
    site: SiteSettings,
    work: str,
    project: str,
) -> Made:
    """Return the clone called `name`. Looks at what it is made of; changes nothing. Raises LabError.

    `place` is None only for drivers that put it nowhere; `project` is Plimsoll's own folder.
    """
    if isinstance(settings, StaticSettings):
        return Made(Static(settings))
    if isinstance(settings, ProxmoxSettings):
        api = ProxmoxApi(connect(settings))
        return Made(Proxmox(settings, name, api), api)
    if place is None:
        raise ValueError(f"{settings.driver} needs a disk")
    if isinstance(settings, ComposeSettings):
        golden = Golden(site, work, settings.project or project)
        return Made(Compose(settings, name, place, golden), golden=golden)
    if isinstance(settings, QemuSettings):
        return Made(Qemu(settings, name, place))
    return Made(await Libvirt.prepared(settings, name, place, machine))
