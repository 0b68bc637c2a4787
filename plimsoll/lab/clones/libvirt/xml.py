"""A domain's XML becomes that of its clone. Pure."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lxml import etree

from plimsoll.lab.errors import LabError

NAMESPACE = "urn:plimsoll:lab"
_QEMU = "http://libvirt.org/schemas/domain/qemu/1.0"
_NVRAM = "/var/lib/libvirt/qemu/nvram"
_TARGET = re.compile(r"[a-z]{2,3}[a-z]{0,2}")
_FORMAT = re.compile(r"[a-z0-9]{1,12}")


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


def read_base(xml: str) -> Base:
    """Return the parts of a domain that are copied. Raises LabError with everything that cannot be cloned."""
    root = _parsed(xml)
    problems = list(_shared(root))
    disks = []
    for disk in _copied(root):
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
    root = _parsed(base.xml)
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
    for disk in _copied(root):
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


def _parsed(xml: str) -> etree._Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_blank_text=True)
    try:
        root = etree.fromstring(xml, parser)
    except (etree.XMLSyntaxError, ValueError):
        raise LabError("virsh dumpxml printed no valid XML") from None
    if root.tag != "domain" or root.find("name") is None:
        raise LabError("virsh dumpxml printed no domain")
    return root


def _copied(root: etree._Element) -> list[etree._Element]:
    """Return the disks that a guest writes to."""
    return [
        disk
        for disk in root.findall("devices/disk")
        if disk.get("device", "disk") == "disk" and disk.find("readonly") is None
    ]


def _shared(root: etree._Element) -> Iterator[str]:
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
    """Return the guest's name for a disk."""
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
