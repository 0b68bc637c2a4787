"""Driver `qemu`: a virtual machine of an image, its disk on the disk under test. By QEMU alone."""

import hashlib
import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from plimsoll.common.validation import Size
from plimsoll.lab.clones.clone import CloneContext, CloneKit, CloneSettings, Driver, StopTimeout, Target
from plimsoll.lab.clones.golden import FREE_PORT
from plimsoll.lab.clones.sitedata import SiteData
from plimsoll.lab.disks.disk import DataLocation, Place
from plimsoll.lab.disks.limits import run_in_group
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import Folder, explained_in
from plimsoll.lab.steps.step import (
    Check,
    Command,
    Remains,
    Room,
    Serve,
    Step,
    by_step,
    fill,
    no_reference,
    port_is_free,
)
from plimsoll.scenarios.running.settings import BaseUrl, HostPort

_FORMATS = {".qcow2": "qcow2", ".raw": "raw", ".img": "raw"}
_INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")  # the kernel's own limit: 15
_START_S = 120.0
_SLACK_BYTES = 256 << 20
_MOST_S = 600.0
_SNAPSHOT = "plimsoll-pristine"

# The processes that are QEMU's, and have the clone's name as a whole argument. (The name comes by a pipe, so
# that grep's own arguments do not have it.)
_OURS = r"""name=$1
ours() {
    printf 'guest=%s\n' "$name" | grep -lzxFs -f - /proc/[0-9]*/cmdline | while IFS=/ read -r _ _ pid _; do
        case $(readlink "/proc/$pid/exe") in */qemu-system-*) echo "$pid" ;; esac
    done
}
"""
OURS = _OURS + "ours"
# $1: the folder.
_PIPES = r"""cd "$1" && rm -f -- monitor.in monitor.out console pid && mkfifo -m 600 monitor.in monitor.out"""
# $1: the file with its number.
_ACCELERATOR = r"""pid=$(cat "$1") || exit
if ls -l "/proc/$pid/fd" | grep -q kvm-vm; then echo kvm; else echo tcg; fi"""
_SIZE = r"""qemu-img measure -f "$1" -O raw "$2" | sed -n 's/^required size: //p' | grep ."""


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
    """A virtual machine from the image of `make vm-image`."""

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
        return [check_image(said.image, said.format), *self._disk.make()]

    def reset(self, restore: bool) -> list[Step]:
        """Start it with cold caches, and with `restore` on a disk as it was; then its disk is made slow."""
        said, place, folder = self._settings, self._place, self._disk.folder
        start = run_in_group(place.group, self._command()) if place.group else self._command()
        probe = ("python3", "-c", FREE_PORT, said.address)
        free = not said.port and not said.bridge
        words = ("sh", "-c", _ACCELERATOR, "sh", f"{folder}/pid")
        return [
            *place.unlimit,
            switch_off(self._name, folder, 0 if restore else said.stop_timeout_s),
            *(self._disk.restore() if restore else []),
            *place.cold,
            *([Command("choose a free port", probe, capture="site_port")] if free else []),
            Command("make the pipes of its monitor", ("sh", "-c", _PIPES, "sh", folder)),
            Command("start it", tuple(start), timeout_s=_START_S),
            Command("see whether it runs on kvm or tcg", words, capture="accelerator"),
            Serve("see that the site serves", *self._site_address(), said.start_timeout_s),
            *place.limit,
        ]

    def stop(self) -> list[Step]:
        """Shut it down; switch it off where it takes too long."""
        return [
            *self._place.unlimit,
            switch_off(self._name, self._disk.folder, self._settings.stop_timeout_s),
        ]

    def destroy(self) -> list[Step]:
        """Switch it off, and remove its disk."""
        return [switch_off(self._name, self._disk.folder, 0), *self._disk.remove()]

    def target(self, captured: Mapping[str, str]) -> Target:
        """Return the target at which it is reached. Raises KeyError before a port was chosen."""
        url, connect_to = self._site_address()
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
        looked = await machine.run(["sh", "-c", OURS, "sh", self._name], check=False)
        pids = read_pids(looked.out)
        what = f"the virtual machine {self._name} (process {', '.join(pids)})"
        off = switch_off(self._name, self._disk.folder, 0)
        runs = [Remains(what, backend, (off,))] if pids else []
        return [*runs, *await self._disk.find(machine, backend)]

    def _site_address(self) -> tuple[str, str | None]:
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


async def _prepare(settings: QemuSettings, around: CloneContext) -> CloneKit:
    return CloneKit(Qemu(settings, around.name, around.disk))


def _checks(settings: QemuSettings, _around: CloneContext) -> list[Check]:
    return [
        by_step("clone.image", check_image(settings.image, settings.format)),
        *([port_is_free("clone.port", settings.address, settings.port)] if settings.port else []),
    ]


QEMU = Driver(
    "qemu",
    QemuSettings,
    _prepare,
    has_own_site=True,
    checks=_checks,
    grows=lambda settings: measure_image(settings.image_format, settings.image),
)


@dataclass(frozen=True)
class QemuDisk(SiteData):
    """Does for a disk's image what SiteData does for folders: places, restores, finds and removes it."""

    settings: QemuSettings

    @classmethod
    def of(cls, settings: QemuSettings, place: Place, name: str) -> "QemuDisk":
        """Return the disk of the clone called `name`."""
        if settings.format == "zvol" and not place.dataset:
            raise ValueError(
                "format: a zvol needs a disk with a dataset; use qcow2 or raw, or set the disk's dataset"
            )
        return cls(place, name, settings.image, settings)

    @property
    def path(self) -> str:
        """The path of the file or device that QEMU opens."""
        if self._zvol:
            return f"/dev/zvol/{self._dataset}"
        return f"{self.folder}/disk.{self.settings.format}"

    @property
    def format(self) -> str:
        """The format that QEMU reads it in."""
        return "raw" if self._zvol else self.settings.format

    def make(self) -> list[Step]:
        """Copy the image, or lay a file over it, and take a snapshot where the file system can."""
        full = self.settings.full
        room = Room(
            "see that there is room for it",
            self.place.folder,
            _SLACK_BYTES,
            like=self.settings.image if full else None,
        )
        remember = ("zfs", "snapshot", f"{self._dataset}@{_SNAPSHOT}")
        if self._zvol:
            return [room, *self._volume(), self._convert("-n"), _do("take a snapshot", *remember)]
        said = self.settings
        backing = ("-F", said.image_format, "-b", said.image)
        create = ("qemu-img", "create", "-q", "-f", "qcow2", *backing, self.path)
        fill = self._convert() if full else _do("make a disk on top of the image", *create)
        if self.place.dataset:
            return [
                room,
                _do("make a dataset", "zfs", "create", self._dataset),
                _do("see that it is mounted", "mountpoint", "-q", "--", self.folder),
                fill,
                _do("take a snapshot", *remember),
            ]
        if self.place.filesystem == "btrfs":
            keep = ("btrfs", "subvolume", "snapshot", "-r", self.folder, self._pristine)
            return [
                room,
                _do("make a subvolume", "btrfs", "subvolume", "create", self.folder),
                fill,
                _do("take a snapshot", *keep),
            ]
        return [room, _do("make its folder", "mkdir", "-m", "0711", "--", self.folder), fill]

    def remove(self, pristine: bool = True) -> list[Step]:
        """Remove whatever there is of it; for a volume, the folder of its monitor too."""
        return [*super().remove(pristine), *(self._beside.remove() if self._zvol else [])]

    async def find(self, machine: Machine, backend: str) -> list[Remains]:
        """Return its remains."""
        found = await super().find(machine, backend)
        return [*found, *(await self._beside.find(machine, backend) if self._zvol else [])]

    @property
    def _zvol(self) -> bool:
        return self.settings.format == "zvol"

    @property
    def _beside(self) -> SiteData:
        """A volume holds no files: what QEMU has of them is in a folder."""
        return SiteData(Place(self.place.folder), self.name, self.golden)

    def _volume(self) -> list[Step]:
        of = self.settings.volblocksize
        block = ("-o", f"volblocksize={of}") if of else ()
        return [
            _do("make a folder for its monitor", "mkdir", "-m", "0711", "--", self.folder),
            measure_image(self.settings.image_format, self.settings.image),
            _do("make a volume", "zfs", "create", "-s", *block, "-V", "${disk_size}", self._dataset),
            Command("see that it is there", ("test", "-b", self.path), until_s=30),
        ]

    def _convert(self, *more: str) -> Command:
        """Copy the image, and have it on the disk at the end: QEMU's own default does not wait for that."""
        said = self.settings
        formats = ("-f", said.image_format, "-O", self.format)
        words = ("qemu-img", "convert", "-t", "writeback", *more, *formats, said.image, self.path)
        return Command("copy the image", words, timeout_s=said.copy_timeout_s)


def _do(says: str, *words: str) -> Command:
    return Command(says, words, timeout_s=_MOST_S)


# $2: its monitor; $3: seconds that the guest has to shut down.
_OFF = (
    _OURS
    + r"""left=$3
[ -n "$(ours)" ] || exit 0
[ "$left" -gt 0 ] && [ -p "$2" ] && [ ! -L "$2" ] &&
    echo system_powerdown | timeout 5 dd of="$2" oflag=nonblock conv=notrunc status=none || left=0
for signal in TERM KILL -; do
    while [ "$left" -gt 0 ]; do
        [ -n "$(ours)" ] || exit 0
        sleep 1
        left=$((left - 1))
    done
    [ "$signal" = - ] || for pid in $(ours); do kill -s "$signal" "$pid"; done
    left=20
done
[ -z "$(ours)" ] || { echo "$name: QEMU does not stop" >&2; exit 1; }"""
)

# $1: the image; $2: `zvol` where the kernel's ZFS is needed too.
_LOOK = r"""no() { echo "$1" >&2; exit 1; }
for program in qemu-img qemu-system-x86_64; do
    command -v "$program" >/dev/null || no "$program is not installed: apt install qemu-system-x86 qemu-utils"
done
[ -f "$1" ] || no "image $1 does not exist: create one with make vm-image"
[ "$2" != zvol ] || [ -c /dev/zfs ] || no "zvols need the kernel's ZFS; zfs-fuse has none: use a file" """


def switch_off(name: str, folder: str, wait_s: int) -> Command:
    """Shut it down, and switch it off where that takes too long; at once without `wait_s`."""
    words = ("sh", "-c", _OFF, "sh", name, f"{folder}/monitor.in", str(wait_s))
    return Command("shut it down" if wait_s else "switch it off", words, timeout_s=wait_s * 2 + 120)


def check_image(image: str, disk_format: str) -> Command:
    """See that what is needed is there."""
    return Command("see that the image and QEMU are there", ("sh", "-c", _LOOK, "sh", image, disk_format))


def measure_image(image_format: str, image: str) -> Command:
    """Capture how large the image's disk is."""
    words = ("sh", "-c", _SIZE, "sh", image_format, image)
    return Command("see how large its disk is", words, capture="disk_size")


def read_pids(out: str) -> Sequence[str]:
    """Return the numbers that OURS printed, without anything else."""
    return [line for line in out.splitlines() if line.isascii() and line.isdigit()]
