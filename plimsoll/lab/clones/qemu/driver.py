"""Driver `qemu`: a virtual machine of an image, its disk on the disk under test. By QEMU alone."""

import hashlib
from collections.abc import Mapping
from typing import Any

from plimsoll.lab.clones.clone import CloneKit, Driver, Surroundings, Target
from plimsoll.lab.clones.golden import FREE_PORT
from plimsoll.lab.clones.qemu import scripts
from plimsoll.lab.clones.qemu.disk import QemuDisk
from plimsoll.lab.clones.qemu.settings import QemuSettings
from plimsoll.lab.disks.disk import DataLocation, Place
from plimsoll.lab.disks.limits import run_in_group
from plimsoll.lab.machine import Machine
from plimsoll.lab.steps.step import Command, Look, Remains, Serve, Step, by_step, fill, port_is_free

_START_S = 120.0


class Qemu:
    """A Clone: a process of QEMU whose guest is called `name`, and its disk on `place`."""

    driver = "qemu"

    def __init__(self, settings: QemuSettings, name: str, place: Place) -> None:
        """Raise ValueError where that place cannot hold such a disk."""
        self._settings, self._name, self._place = settings, name, place
        self._disk = QemuDisk.of(settings, place, name)

    def create(self) -> list[Step]:
        """Make its disk."""
        said = self._settings
        return [scripts.look(said.image, said.format), *self._disk.make()]

    def reset(self, restore: bool) -> list[Step]:
        """Start it with cold caches, and with `restore` on a disk as it was; then its disk is made slow."""
        said, place, folder = self._settings, self._place, self._disk.folder
        start = run_in_group(place.group, self._command()) if place.group else self._command()
        probe = ("python3", "-c", FREE_PORT, said.address)
        free = not said.port and not said.bridge
        return [
            *place.unlimit,
            scripts.off(self._name, folder, 0 if restore else said.stop_timeout_s),
            *(self._disk.restore() if restore else []),
            *place.cold,
            *([Command("choose a free port", probe, capture="site_port")] if free else []),
            scripts.pipes(folder),
            Command("start it", tuple(start), timeout_s=_START_S),
            scripts.accelerator(folder),
            Serve("see that the site serves", *self._reached(), said.start_timeout_s),
            *place.limit,
        ]

    def stop(self) -> list[Step]:
        """Shut it down; switch it off where it takes too long."""
        return [
            *self._place.unlimit,
            scripts.off(self._name, self._disk.folder, self._settings.stop_timeout_s),
        ]

    def destroy(self) -> list[Step]:
        """Switch it off, and remove its disk."""
        return [scripts.off(self._name, self._disk.folder, 0), *self._disk.remove()]

    def target(self, captured: Mapping[str, str]) -> Target:
        """Return the target at which it is reached. Raises KeyError before a port was chosen."""
        url, connect_to = self._reached()
        return Target(fill(url, captured), connect_to)

    def data(self) -> DataLocation:
        """Return the location of its disk."""
        return self._disk.data

    def describe(self) -> dict[str, Any]:
        """Return a description of how it was made."""
        kept = {"image", "format", "full", "volblocksize", "cache", "memory_bytes", "cpus", "accelerator"}
        said = self._settings.model_dump(mode="json", include=kept, exclude_none=True)
        network = {"bridge": self._settings.bridge} if self._settings.bridge else {}
        return {"driver": self.driver, "disk": self._disk.path, **said, **network}

    async def find(self, machine: Machine) -> list[Remains]:
        """Find the QEMU process whose guest has the clone's name, then its disk."""
        backend = self._name.rpartition("--")[2]
        looked = await machine.run(["sh", "-c", scripts.OURS, "sh", self._name], check=False)
        pids = scripts.pids(looked.out)
        what = f"the virtual machine {self._name} (process {', '.join(pids)})"
        off = scripts.off(self._name, self._disk.folder, 0)
        runs = [Remains(what, backend, (off,))] if pids else []
        return [*runs, *await self._disk.find(machine, backend)]

    def _reached(self) -> tuple[str, str | None]:
        said = self._settings
        if said.target:
            return said.target, said.connect_to
        return f"http://{said.address}:{self._port}", None

    @property
    def _port(self) -> str:
        return str(self._settings.port or "${site_port}")

    def _command(self) -> list[str]:
        """Return the command that starts QEMU, which goes into the background and so outlives its caller."""
        said, folder = self._settings, self._disk.folder
        accelerators = ("kvm", "tcg") if said.accelerator == "auto" else (said.accelerator,)
        disk = {"file": self._disk.path, "format": self._disk.format, "if": "virtio", "cache": said.cache}
        return [
            "qemu-system-x86_64",
            *("-name", f"guest={self._name}"),
            *("-nodefaults", "-no-user-config", "-display", "none"),
            *("-machine", "q35"),
            *(word for name in accelerators for word in ("-accel", name)),
            *("-cpu", "max", "-smp", str(said.cpus), "-m", f"{said.memory_bytes >> 20}M"),
            *("-drive", _options(disk)),
            *("-netdev", self._network()),
            *("-device", f"virtio-net-pci,netdev=net,mac={mac(self._name)}"),
            *("-device", "virtio-rng-pci"),
            *("-chardev", f"file,id=console,{_options({'path': f'{folder}/console'})}"),
            *("-serial", "chardev:console"),
            *("-chardev", f"pipe,id=monitor,{_options({'path': f'{folder}/monitor'})}"),
            *("-mon", "chardev=monitor,mode=readline"),
            *("-pidfile", f"{folder}/pid", "-daemonize"),
        ]

    def _network(self) -> str:
        said = self._settings
        if said.bridge:
            return _options({"br": said.bridge}, "bridge,id=net")
        ssh = f",hostfwd=tcp:{said.address}:{said.ssh_port}-:22" if said.ssh_port else ""
        return f"user,id=net,hostfwd=tcp:{said.address}:{self._port}-:80{ssh}"


def mac(name: str) -> str:
    """Return the address of its network card, the same each time: DHCP can know it."""
    three = hashlib.blake2b(name.encode(), digest_size=3).hexdigest()
    return f"52:54:00:{three[:2]}:{three[2:4]}:{three[4:]}"


def _options(values: Mapping[str, str], before: str = "") -> str:
    """Return values as QEMU reads them: a comma in one is doubled."""
    pairs = ",".join(f"{key}={value.replace(',', ',,')}" for key, value in values.items())
    return f"{before},{pairs}" if before else pairs


async def _kit(settings: QemuSettings, around: Surroundings) -> CloneKit:
    return CloneKit(Qemu(settings, around.name, around.disk))


def _looks(settings: QemuSettings, _around: Surroundings) -> list[Look]:
    return [
        by_step("clone.image", scripts.look(settings.image, settings.format)),
        *([port_is_free("clone.port", settings.address, settings.port)] if settings.port else []),
    ]


QEMU = Driver(
    "qemu",
    QemuSettings,
    _kit,
    has_own_site=True,
    looks=_looks,
    grows=lambda settings: scripts.size(settings.image_format, settings.image),
)
