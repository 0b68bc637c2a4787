"""Driver `libvirt`: a clone of a domain, with its disks copied onto the disk under test. By virsh."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from lxml import etree
from pydantic import AfterValidator, Field, model_validator

from plimsoll.lab.clones.clone import (
    CloneContext,
    CloneKit,
    Driver,
    GuestSettings,
    Target,
    TargetUrl,
    needs_address,
    resolve_target,
)
from plimsoll.lab.disks.disk import DataLocation, Place
from plimsoll.lab.errors import LabError, MachineError
from plimsoll.lab.machine import Machine
from plimsoll.lab.names import explained_in
from plimsoll.lab.steps.step import Command, Remains, Room, Serve, Step

_DOMAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+:-]{0,99}")
_SLACK_BYTES = 256 << 20
NAMESPACE = "urn:plimsoll:lab"
_QEMU = "http://libvirt.org/schemas/domain/qemu/1.0"
_NVRAM = "/var/lib/libvirt/qemu/nvram"
_TARGET = re.compile(r"[a-z]{2,3}[a-z]{0,2}")
_FORMAT = re.compile(r"[a-z0-9]{1,12}")
_ASK = 'export LC_ALL=C; v() { virsh -q -c "$uri" "$@"; }; uri=$1 name=$2\n'
_OFF = 'off() { case $(v domstate "$name") in "shut off" | crashed) ;; *) return 1 ;; esac; }\n'
# $3: the control group that has the disk's limits.
_JOIN = 'cat "/run/libvirt/qemu/$2.pid" >"$3/cgroup.procs"'


def _domain(value: str) -> str:
    if not _DOMAIN.fullmatch(value):
        raise ValueError("must be a domain's name: letters, digits and _ . + : - only")
    return value


class LibvirtSettings(GuestSettings):
    """A copy of a virtual machine that libvirt has."""

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


@dataclass(frozen=True)
class BaseDisk:
    """A disk of the base that is copied."""

    target: str  # vda
    path: str
    format: str


@dataclass(frozen=True)
class Base:
    """The domain that is cloned: its XML, its disks and its NVRAM."""

    xml: str
    disks: tuple[BaseDisk, ...]
    nvram: str | None = None


class Libvirt:
    """See Clone. Made by `prepare`, which reads what the base is; without that it can only be removed."""

    driver = "libvirt"

    def __init__(
        self,
        settings: LibvirtSettings,
        name: str,
        place: Place,
        base: Base | None = None,
        base_bytes: int = 0,
        problem: str = "the base has not been read",
    ) -> None:
        self._settings, self._name, self._place = settings, name, place
        self._base, self._base_bytes, self._problem = base, base_bytes, problem
        self._folder = f"{place.folder.rstrip('/')}/{name}"

    @classmethod
    async def prepare(cls, settings: LibvirtSettings, name: str, place: Place, machine: Machine) -> "Libvirt":
        """Read the base; change nothing. `create` reports what is wrong with it.

        Raises MachineError where the machine cannot be reached.
        """
        try:
            base = await _base(settings, machine)
            taken = 0
            for disk in base.disks:
                taken += await _measure_allocated(machine, disk.path, disk.format)
        except LabError as error:
            if isinstance(error, MachineError) and not error.command:
                raise
            problem = f"{machine.name}: cannot clone {settings.base}: {error}"
            return cls(settings, name, place, problem=problem)
        return cls(settings, name, place, base, taken)

    def create(self) -> list[Step]:
        """Copy the disks, and define the clone. Raises LabError where the base cannot be cloned."""
        base, said = self._require_base(), self._settings
        room = [Room("see that there is room", self._place.folder, self._base_bytes + _SLACK_BYTES)]
        xml = clone_xml(base, self._name, self._planned_copies(base), self._nvram(base))
        return [
            *(room if said.full else ()),
            Command("make its folder", ("mkdir", "-m", "0711", "--", self._folder)),
            *self._copies(base),
            Command("define it", (*self._virsh(), "define", "/dev/stdin"), stdin=xml),
        ]

    def reset(self, restore: bool) -> list[Step]:
        """Start it with cold caches; with `restore` its disks are copied again."""
        said, place = self._settings, self._place
        steps: list[Step] = [*place.unlimit, *self.stop()]
        if restore:
            base = self._require_base()
            paths = [path for path, _ in self._planned_copies(base).values()]
            steps.append(Command("remove its changed disks", ("rm", "-f", "--", *paths)))
            steps += self._copies(base, nvram=False)
        steps += [
            *place.cold,
            Command("start it", (*self._virsh(), "start", self._name), timeout_s=said.start_timeout_s),
        ]
        if place.group:
            steps.append(join_limits(said.uri, self._name, place.group))
        if needs_address(said.target, said.connect_to):
            steps.append(ask_address(said.uri, self._name, said.source, said.start_timeout_s))
        return [
            *steps,
            Serve("see that the site serves", said.target, said.connect_to, said.start_timeout_s),
            *place.limit,
        ]

    def stop(self) -> list[Step]:
        """Shut it down; switch it off where it takes too long."""
        return [shut_down(self._settings.uri, self._name, self._settings.stop_timeout_s)]

    def destroy(self) -> list[Step]:
        """Switch it off, and remove the domain and its files."""
        return [self._forget(), self._remove_files()]

    def target(self, captured: Mapping[str, str]) -> Target:
        """Return the target at which it is reached."""
        return resolve_target(self._settings.target, self._settings.connect_to, captured)

    def data(self) -> DataLocation:
        """Return the dataset or folder that the disks lie in."""
        return DataLocation(self._place.folder, self._place.dataset)

    def describe(self) -> dict[str, Any]:
        """Return a description of how it was made."""
        kept = {"uri", "base", "full", "format", "target"}
        said = self._settings.model_dump(mode="json", include=kept, exclude_none=True)
        return {"driver": self.driver, "name": self._name, "folder": self._folder, **said}

    async def find(self, machine: Machine) -> list[Remains]:
        """Find the domain with the clone's name and mark, and the folder of that name on its disk."""
        backend, found = self._name.rpartition("--")[2], list[Remains]()
        listed = await machine.run([*self._virsh(), "list", "--all", "--name"], check=False)
        if listed.status not in (0, 127):  # 127: there is no virsh, so there is no clone
            command = listed.command
            raise MachineError(
                machine.name, f"ended with status {listed.status}", command, listed.err, listed.status
            )
        if self._name in map(str.strip, listed.out.splitlines()):
            marked = await machine.run([*self._virsh(), "metadata", self._name, NAMESPACE], check=False)
            if f'name="{self._name}"' in marked.out:
                found.append(Remains(f"the virtual machine {self._name}", backend, (self._forget(),)))
        folder = await machine.run(["find", self._folder, "-maxdepth", "0", "-type", "d"], check=False)
        if folder.out.strip():
            found.append(Remains(f"the folder {self._folder}", backend, (self._remove_files(),)))
        return found

    def _require_base(self) -> Base:
        if self._base is None:
            raise LabError(self._problem)
        return self._base

    def _planned_copies(self, base: Base) -> dict[str, tuple[str, str]]:
        """Return path and format of each copy, by the disk's name in the guest."""
        said = self._settings
        formats = {disk.target: (said.format or disk.format) if said.full else "qcow2" for disk in base.disks}
        return {name: (f"{self._folder}/{name}.{of}", of) for name, of in formats.items()}

    def _nvram(self, base: Base) -> str | None:
        return f"{self._folder}/nvram.fd" if base.nvram else None

    def _copies(self, base: Base, nvram: bool = True) -> list[Step]:
        said, made = self._settings, self._planned_copies(base)
        steps = list[Step]()
        for disk in base.disks:
            path, of = made[disk.target]
            words: tuple[str, ...]
            if said.full:
                words = ("qemu-img", "convert", "-f", disk.format, "-O", of, disk.path, path)
                steps.append(Command(f"copy {disk.target}", words, timeout_s=said.copy_timeout_s))
            else:
                words = ("qemu-img", "create", "-q", "-f", of, "-F", disk.format, "-b", disk.path, path)
                steps.append(Command(f"make {disk.target} on top of the base's", words))
        copy, kept = self._nvram(base), base.nvram
        if nvram and copy and kept:
            # None before the base's first start: then libvirt makes the clone's from their template.
            words = ("sh", "-c", '[ ! -e "$1" ] || cp -- "$1" "$2"', "sh", kept, copy)
            steps.append(Command("copy the firmware's variables", words))
        return steps

    def _forget(self) -> Command:
        return remove_domain(self._settings.uri, self._name)

    def _remove_files(self) -> Command:
        words = ("rm", "-rf", "--one-file-system", "--", self._folder)
        return Command("remove its files", words, timeout_s=600)

    def _virsh(self) -> tuple[str, ...]:
        return ("virsh", "-q", "-c", self._settings.uri)


async def _base(settings: LibvirtSettings, machine: Machine) -> Base:
    """Read the base's XML. Raises LabError where it is not there, runs, or cannot be cloned."""
    virsh = ["env", "LC_ALL=C", "virsh", "-q", "-c", settings.uri]
    state = await machine.run([*virsh, "domstate", settings.base], check=False)
    if state.status == 127:
        raise LabError("virsh is not installed: apt install libvirt-clients libvirt-daemon-system qemu-utils")
    if state.status != 0:
        raise MachineError(machine.name, "it does not exist", state.command, state.err, state.status)
    if state.out.strip() != "shut off":
        raise LabError(f"it is {state.out.strip()}, and must be shut off: virsh shutdown {settings.base}")
    return read_base((await machine.run([*virsh, "dumpxml", "--inactive", settings.base])).out)


async def _measure_allocated(machine: Machine, path: str, disk_format: str) -> int:
    """Return the bytes that a disk takes, with all that lies below it."""
    words = ["qemu-img", "info", "--output=json", "--backing-chain", "-f", disk_format, path]
    try:
        chain = json.loads((await machine.run(words)).out)
        return sum(int(image.get("actual-size", 0)) or int(image["virtual-size"]) for image in chain)
    except (ValueError, KeyError, TypeError):
        raise LabError(f"cannot parse what qemu-img info prints about {path}") from None


async def _prepare(settings: LibvirtSettings, around: CloneContext) -> CloneKit:
    return CloneKit(await Libvirt.prepare(settings, around.name, around.disk, around.machine))


LIBVIRT = Driver("libvirt", LibvirtSettings, _prepare)


def read_base(xml: str) -> Base:
    """Return the parts of a domain that are copied. Raises LabError with everything that cannot be cloned."""
    root = _parse(xml)
    problems = list(_find_shared(root))
    disks = []
    for disk in _copied_disks(root):
        driver, name, path = disk.find("driver"), _name(disk), _path(disk)
        disk_format = "raw" if driver is None else driver.get("type", "raw")
        if not _TARGET.fullmatch(name) or not _FORMAT.fullmatch(disk_format):
            problems.append(f"its disk {name or '(without a target)'} has no valid name or format")
        elif disk.find("shareable") is not None:
            problems.append(f"its disk {name} is shared with other domains: remove <shareable/>, or the disk")
        elif disk.find(".//encryption") is not None:
            problems.append(f"its disk {name} is encrypted, which the lab cannot copy: clone it by hand")
        elif path is None:
            problems.append(
                f"its disk {name} is neither a file nor a block device (type {disk.get('type')}), "
                "and only these are copied: copy it into a file, or take it away"
            )
        else:
            disks.append(BaseDisk(name, path, disk_format))
    kept = (root.findtext("os/nvram") or "").strip() or None
    if kept is None and root.find("os[@firmware='efi']") is not None:
        kept = f"{_NVRAM}/{root.findtext('name')}_VARS.fd"  # where libvirt puts what it chose itself
    for source in root.findall("os/nvram/source"):  # as of libvirt 8.5
        kept = source.get("file")
        if kept is None:
            problems.append("its firmware's variables are not in a file; the lab copies only files")
    problems += [f"{path}: the path contains ${{ or a control character" for path in _odd([*disks], kept)]
    if not disks and not problems:
        problems.append("it has no disk that can be copied")
    if problems:
        raise LabError("\n".join(problems))
    return Base(xml, tuple(disks), kept)


def clone_xml(base: Base, name: str, made: Mapping[str, tuple[str, str]], nvram: str | None = None) -> str:
    """Return the clone's XML. `made` has path and format of the copies, by target."""
    root = _parse(base.xml)
    for path in ("uuid", "genid", "title", "sysinfo/system/entry[@name='uuid']"):
        for element in root.findall(path):
            if (parent := element.getparent()) is not None:
                parent.remove(element)
    root.attrib.pop("id", None)
    for element in root.findall("name"):
        element.text = name
    title = etree.Element("title")
    title.text = f"Plimsoll: {name}"
    root.insert(1, title)
    _mark(root, name)
    devices = root.find("devices")
    if devices is None:
        raise LabError("the domain has no devices")
    for disk in devices.findall("disk"):
        if disk.get("device", "disk") != "disk":
            devices.remove(disk)
    for disk in _copied_disks(root):
        _replace_disk(disk, *made[_name(disk)])
    for i, mac in enumerate(devices.findall("interface/mac")):
        mac.set("address", mac_address(name, i))
    if nvram and (os := root.find("os")) is not None:
        found = os.find("nvram")
        if found is None:
            found = etree.SubElement(os, "nvram")
        found.attrib.pop("type", None)
        for child in list(found):
            found.remove(child)
        found.text = nvram
    return etree.tostring(root, encoding="unicode", pretty_print=True)


def mac_address(name: str, i: int) -> str:
    """Return the address of the clone's i-th network card: always the same, so that its lease stays."""
    digest = hashlib.sha256(f"{name}/{i}".encode()).digest()
    return "52:54:00:" + ":".join(f"{byte:02x}" for byte in digest[:3])


def _parse(xml: str) -> etree._Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_blank_text=True)
    try:
        root = etree.fromstring(xml, parser)
    except (etree.XMLSyntaxError, ValueError):
        raise LabError("virsh dumpxml printed no valid XML") from None
    if root.tag != "domain" or root.find("name") is None:
        raise LabError("virsh dumpxml printed no domain")
    return root


def _copied_disks(root: etree._Element) -> list[etree._Element]:
    """Return the disks that a guest writes to."""
    return [
        disk
        for disk in root.findall("devices/disk")
        if disk.get("device", "disk") == "disk" and disk.find("readonly") is None
    ]


def _find_shared(root: etree._Element) -> Iterator[str]:
    """Yield what a clone would share with its base, and could change."""
    for found in root.findall("devices/filesystem"):
        if found.find("readonly") is None:
            target = found.find("target")
            name = "?" if target is None else target.get("dir", "?")
            yield f"its shared folder {name} is writable: make it <readonly/>, or remove it"
    for found in root.findall("devices/disk[@device='lun']"):
        yield f"its disk {_name(found)} is a whole LUN: remove it"
    if root.find("devices/hostdev") is not None:
        yield "it uses a device of the host (hostdev): remove it"
    arguments = [arg.get("value", "") for arg in root.iter(f"{{{_QEMU}}}arg")]
    if any(re.search(r"-drive|-blockdev|-hd[a-d]|-virtfs|-fsdev|file=|filename", arg) for arg in arguments):
        yield "it has a disk in qemu:commandline, which the lab does not copy: make it a <disk>"


def _name(disk: etree._Element) -> str:
    target = disk.find("target")
    return "" if target is None else target.get("dev", "")


def _path(disk: etree._Element) -> str | None:
    source = disk.find("source")
    key = {"file": "file", "block": "dev"}.get(disk.get("type", ""))
    path = None if source is None or key is None else source.get(key)
    return path if path and path.startswith("/") else None


def _odd(disks: list[BaseDisk], nvram: str | None) -> list[str]:
    """Return the paths that must not become a word of a command."""
    paths = [*(disk.path for disk in disks), *([nvram] if nvram else [])]
    return [ascii(path) for path in paths if "${" in path or any(ord(c) < 32 for c in path)]


def _replace_disk(disk: etree._Element, path: str, disk_format: str) -> None:
    """Let a disk be the file at `path`, with nothing left of what the base's was made of."""
    for key in ("source", "backingStore", "mirror", "transient"):
        for element in disk.findall(key):
            disk.remove(element)
    disk.set("type", "file")
    driver = disk.find("driver")
    if driver is None:
        driver = etree.Element("driver", name="qemu")
        disk.insert(0, driver)
    driver.set("type", disk_format)
    disk.insert(list(disk).index(driver) + 1, etree.Element("source", file=path))


def _mark(root: etree._Element, name: str) -> None:
    """Say whose it is, in its metadata."""
    metadata = root.find("metadata")
    if metadata is None:
        metadata = etree.Element("metadata")
        root.insert(2, metadata)
    for old in metadata.findall(f"{{{NAMESPACE}}}clone"):
        metadata.remove(old)
    mark = etree.SubElement(metadata, f"{{{NAMESPACE}}}clone", nsmap={"plimsoll": NAMESPACE})
    mark.set("name", name)


# $3: seconds that the guest has.
_STOP = (
    _ASK
    + _OFF
    + r"""off && exit
v shutdown "$name" >/dev/null || :
left=$3
while [ "$left" -gt 0 ]; do
    sleep 1
    ! off || exit 0
    left=$((left - 1))
done
v destroy "$name" || off"""
)

# Removes a domain that has the lab's mark; one that is gone is not a failure.
_REMOVE = (
    _ASK
    + _OFF
    + rf"""all=$(v list --all --name) || exit
printf '%s\n' "$all" | grep -Fxq -- "$name" || exit 0
v metadata "$name" {NAMESPACE} 2>/dev/null | grep -Fq "name=\"$name\"" ||
    {{ echo "$name: it does not have the lab's mark, so it stays" >&2; exit 1; }}
off || v destroy "$name" || off || exit
v undefine "$name" --nvram --managed-save --snapshots-metadata --checkpoints-metadata"""
)

# $3: who knows the address.
_ADDRESS = (
    _ASK
    + r"""v domifaddr "$name" --source "$3" | awk '
    $3 == "ipv4" && $4 !~ /^(127|169\.254)\./ && $1 !~ /^(docker|br-|veth|virbr)/ {
        sub(/\/.*/, "", $4); print $4; found = 1; exit
    }
    END { if (!found) { print "it has no address yet" > "/dev/stderr"; exit 1 } }'"""
)


def shut_down(uri: str, name: str, wait_s: int) -> Command:
    """Shut it down, and switch it off where that takes too long."""
    words = ("sh", "-c", _STOP, "sh", uri, name, str(wait_s))
    return Command("shut it down", words, timeout_s=wait_s * 2 + 120)


def remove_domain(uri: str, name: str) -> Command:
    """Switch it off and forget it, with snapshots and variables."""
    return Command("remove the domain", ("sh", "-c", _REMOVE, "sh", uri, name), timeout_s=300)


def ask_address(uri: str, name: str, source: str, until_s: float) -> Command:
    """Capture its address."""
    words = ("sh", "-c", _ADDRESS, "sh", uri, name, source)
    return Command("ask for its address", words, capture="address", until_s=until_s)


def join_limits(uri: str, name: str, group: str) -> Command:
    """Put QEMU under the disk's limits."""
    return Command("put it under the disk's limits", ("sh", "-c", _JOIN, "sh", uri, name, group))
