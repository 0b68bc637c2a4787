"""The driver `libvirt`: what becomes of a domain's XML, what is refused, the steps, and their scripts."""

import asyncio
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from plimsoll.lab.clones import libvirt as scripts
from plimsoll.lab.clones.libvirt import Base, Libvirt, LibvirtSettings, clone_xml, mac_address, read_base
from plimsoll.lab.disks.disk import Place
from plimsoll.lab.errors import LabError, MachineError
from plimsoll.lab.machine import CommandResult
from plimsoll.lab.steps.step import Command, Room, Serve, Step, as_shell
from tests.support.scripted import FakeMachine

NAME = "plimsoll-bench--hdd"
DISK = """<disk type='file' device='disk'>
  <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
  <source file='/var/lib/libvirt/images/site.qcow2' index='2'/>
  <backingStore type='file'><format type='raw'/><source file='/golden.raw'/><backingStore/></backingStore>
  <target dev='vda' bus='virtio'/><boot order='1'/><serial>S1</serial>
</disk>"""
CDROM = "<disk type='file' device='cdrom'><source file='/x.iso'/><target dev='hda'/><readonly/></disk>"
CARDS = (
    "<interface type='network'><mac address='52:54:00:11:11:11'/><source network='default'/></interface>"
    "<interface type='bridge'><mac address='52:54:00:22:22:22'/><source bridge='br0'/></interface>"
)


def domain(devices: str = DISK + CDROM + CARDS, head: str = "", tail: str = "") -> str:
    return (
        "<domain type='kvm' id='7' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><name>site</name>"
        f"<uuid>8f1d2d4e-5a34-4c1c-9f3d-7b1c2b5b5a01</uuid>{head}<memory unit='MiB'>2048</memory>"
        f"<devices>{devices}</devices>{tail}</domain>"
    )


def cloned(xml: str, **keys: Any) -> etree._Element:
    base = read_base(xml)
    made = {disk.target: (f"/backend/{NAME}/{disk.target}.raw", "raw") for disk in base.disks}
    return etree.fromstring(clone_xml(base, NAME, made, **keys))


def test_a_clone_is_its_base_with_a_name_disks_and_addresses_of_its_own() -> None:
    head = (
        "<genid>1</genid><title>the site</title><description>d</description>"
        "<metadata><o:x xmlns:o='urn:other'/></metadata>"
        "<sysinfo type='smbios'><system><entry name='uuid'>8f1d</entry><entry name='serial'>5</entry>"
        "</system></sysinfo>"
    )
    root = cloned(domain(head=head))
    assert root.findtext("name") == NAME
    assert root.findtext("title") == f"Plimsoll: {NAME}"
    assert (root.get("id"), root.find("uuid"), root.find("genid")) == (None, None, None)
    assert [entry.get("name") for entry in root.iter("entry")] == ["serial"]
    assert root.findtext("description") == "d"
    assert root.find("metadata/{urn:other}x") is not None, "others' notes are kept"
    mark = root.find("metadata/{urn:plimsoll:lab}clone")
    assert mark is not None
    assert mark.get("name") == NAME
    (disk,) = root.findall("devices/disk")
    assert [child.tag for child in disk] == ["driver", "source", "target", "boot", "serial"]
    assert dict(disk[0].attrib) == {"name": "qemu", "type": "raw", "cache": "none", "discard": "unmap"}
    assert dict(disk[1].attrib) == {"file": f"/backend/{NAME}/vda.raw"}
    cards = [mac.get("address") for mac in root.iter("mac")]
    assert cards == [mac_address(NAME, 0), mac_address(NAME, 1)]
    assert len({*cards, mac_address("plimsoll-bench--ssd", 0)}) == 3
    assert all(card and card.startswith("52:54:00:") for card in cards)
    assert [
        card.get("network") or card.get("bridge") for card in root.findall("devices/interface/source")
    ] == [
        "default",
        "br0",
    ], "the network is the base's"


def test_a_block_device_becomes_a_file() -> None:
    disk = "<disk type='block' device='disk'><source dev='/dev/vg0/site'/><target dev='sda'/></disk>"
    assert read_base(domain(disk)).disks[0].format == "raw"
    (made,) = cloned(domain(disk)).findall("devices/disk")
    assert made.get("type") == "file"
    assert [child.tag for child in made] == ["driver", "source", "target"]


NVRAMS = [
    ("old", "<nvram template='/t.fd' type='file'>/nvram/site.fd</nvram>"),
    ("chosen by libvirt", ""),
    ("new", "<nvram template='/t.fd' type='file'><source file='/nvram/site.fd'/></nvram>"),
]


@pytest.mark.parametrize(("why", "nvram"), NVRAMS)
def test_what_is_only_read_stays_where_it_is_and_firmware_gets_its_own_variables(
    why: str, nvram: str
) -> None:
    more = "<disk type='file' device='disk'><source file='/tools.img'/><target dev='vdb'/><readonly/></disk>"
    head = f"<os firmware='efi'><type>hvm</type>{nvram}</os>"
    path = "/nvram/site.fd" if nvram else "/var/lib/libvirt/qemu/nvram/site_VARS.fd"
    assert read_base(domain(DISK + more, head)).nvram == path
    root = cloned(domain(DISK + more, head), nvram=f"/backend/{NAME}/nvram.fd")
    assert [source.get("file") for source in root.findall("devices/disk/source")] == [
        f"/backend/{NAME}/vda.raw",
        "/tools.img",
    ]
    (variables,) = root.findall("os/nvram")
    assert (variables.text, len(variables)) == (f"/backend/{NAME}/nvram.fd", 0)


def test_a_clone_of_a_clone_has_one_mark() -> None:
    again = etree.tostring(cloned(domain()), encoding="unicode")
    assert len(list(cloned(again).iter("{urn:plimsoll:lab}clone"))) == 1


REFUSED = [
    (
        "two domains would write to one disk",
        domain(DISK.replace("<boot", "<shareable/><boot")),
        "its disk vda is shared with other domains",
    ),
    (
        "a folder of the host could be changed",
        domain(DISK + "<filesystem><source dir='/srv'/><target dir='srv'/></filesystem>"),
        "its shared folder srv is writable",
    ),
    ("a LUN", domain(DISK.replace("'disk'", "'lun'", 1)), "its disk vda is a whole LUN"),
    ("hardware", domain(DISK + "<hostdev mode='subsystem'/>"), "it uses a device of the host"),
    (
        "a disk that libvirt does not see",
        domain(tail="<qemu:commandline><qemu:arg value='-drive'/></qemu:commandline>"),
        "it has a disk in qemu:commandline",
    ),
    (
        "a disk elsewhere",
        domain("<disk type='network' device='disk'><source protocol='rbd'/><target dev='vda'/></disk>"),
        r"its disk vda is neither a file nor a block device \(type network\)",
    ),
    (
        "an encrypted disk",
        domain(DISK.replace("<boot", "<encryption format='luks'/><boot")),
        "its disk vda is encrypted",
    ),
    ("no disk", domain(CDROM), "it has no disk that can be copied"),
    ("a path that reads as a reference", domain(DISK.replace("/site.qcow2", "/${x}")), "the path contains"),
    ("a path with a line break", domain(DISK.replace("/site.qcow2", "/a&#10;b")), "the path contains"),
    (
        "a disk that is called like a path",
        domain(DISK.replace("'vda'", "'../x'")),
        "has no valid name or format",
    ),
    ("no XML", "<domain", "printed no valid XML"),
    ("an entity", "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><x>&e;</x>", "printed no domain"),
    ("no domain", "<network/>", "printed no domain"),
]


@pytest.mark.parametrize(("why", "xml", "said"), REFUSED)
def test_what_a_clone_would_share_is_refused(why: str, xml: str, said: str) -> None:
    with pytest.raises(LabError, match=said):
        read_base(xml)


def test_all_that_is_wrong_is_reported_at_once() -> None:
    with pytest.raises(LabError) as raised:
        read_base(domain(DISK.replace("<boot", "<shareable/><boot") + "<hostdev/>"))
    assert len(str(raised.value).splitlines()) == 2


class Host(FakeMachine):
    """A machine with one domain, which says what it is told to."""

    def __init__(self, xml: str = "", state: str = "shut off", status: int = 0) -> None:
        chain = [{"actual-size": 5 << 30, "virtual-size": 9 << 30}, {"actual-size": 1 << 30}]
        super().__init__(
            answers={
                "env LC_ALL=C virsh -q -c qemu:///system domstate site": f"{state}\n\n",
                "env LC_ALL=C virsh -q -c qemu:///system dumpxml --inactive site": xml or domain(),
                "qemu-img info": json.dumps(chain),
            }
        )
        self.status = status

    def result_of(self, command: Sequence[str], stdin: bytes | None) -> CommandResult:
        if self.status and "virsh" in command:
            return CommandResult(tuple(command), self.status, "", "failed to connect")
        return super().result_of(command, stdin)


def prepared(host: Host, place: Place | None = None, **keys: Any) -> Libvirt:
    settings = LibvirtSettings.model_validate({"driver": "libvirt", "base": "site"} | keys)
    return asyncio.run(Libvirt.prepare(settings, NAME, place or Place("/backend"), host))


def lines(steps: Sequence[Step]) -> list[str]:
    return [as_shell(step) for step in steps if not isinstance(step, Command) or step.words[0] != "sh"]


def test_a_full_clone_is_copied_and_defined() -> None:
    clone = prepared(Host(), format="raw")
    room, *steps = clone.create()
    assert isinstance(room, Room)
    assert (room.folder, room.bytes) == ("/backend", (6 << 30) + (256 << 20))
    assert [as_shell(step) for step in steps[:2]] == [
        f"mkdir -m 0711 -- /backend/{NAME}",
        "qemu-img convert -f qcow2 -O raw /var/lib/libvirt/images/site.qcow2 " + f"/backend/{NAME}/vda.raw",
    ]
    define = steps[2]
    assert isinstance(define, Command)
    assert define.words == ("virsh", "-q", "-c", "qemu:///system", "define", "/dev/stdin")
    assert f"<name>{NAME}</name>" in (define.stdin or "")


def test_a_linked_clone_lies_over_the_base() -> None:
    clone = prepared(Host(), full=False)
    assert lines(clone.create())[:2] == [
        f"mkdir -m 0711 -- /backend/{NAME}",
        "qemu-img create -q -f qcow2 -F qcow2 -b /var/lib/libvirt/images/site.qcow2 "
        f"/backend/{NAME}/vda.qcow2",
    ]


def test_nothing_but_looking_is_done_before() -> None:
    host = Host()
    prepared(host)
    assert [" ".join(line[:6]) for line in host.ran if line[0] == "env"] == [
        "env LC_ALL=C virsh -q -c qemu:///system"
    ] * 2
    assert {line[0] for line in host.ran} == {"env", "qemu-img"}


def test_it_starts_fast_and_cold_and_is_slow_when_it_serves() -> None:
    place = Place(
        "/backend",
        cold=(Command("forget", ("drop",)),),
        limit=(Command("slow", ("slow",)),),
        unlimit=(Command("fast", ("fast",)),),
        group="${disk_group}",
    )
    clone = prepared(Host(), place, connect_to="${address}:80", target="https://site.lab")
    steps = clone.reset(restore=True)
    said = [step.words[0] if isinstance(step, Command) else type(step).__name__ for step in steps]
    assert said == ["fast", "sh", "rm", "qemu-img", "drop", "virsh", "sh", "sh", "Serve", "slow"]
    join, address, serve = steps[6:9]
    assert isinstance(join, Command)
    assert join.words[-1] == "${disk_group}"
    assert isinstance(address, Command)
    assert (address.capture, address.until_s, address.words[-1]) == ("address", 300, "lease")
    assert isinstance(serve, Serve)
    target = clone.target({"address": "192.0.2.9"})
    assert (target.url, target.connect_to) == ("https://site.lab", "192.0.2.9:80")
    assert "qemu-img" not in str(lines(clone.reset(restore=False)))


def test_a_fixed_target_needs_no_address() -> None:
    steps = prepared(Host(), target="http://10.0.0.9").reset(restore=False)
    assert not any(isinstance(step, Command) and step.capture for step in steps)


CANNOT = [
    ("runs", Host(state="running"), "it is running, and must be shut off: virsh shutdown site"),
    ("is not there", Host(status=1), "it does not exist: failed to connect"),
    ("no libvirt", Host(status=127), "virsh is not installed: apt install libvirt-clients"),
    ("shares", Host(domain(DISK + "<hostdev/>")), "it uses a device of the host"),
]


@pytest.mark.parametrize(("why", "host", "said"), CANNOT)
def test_a_base_that_cannot_be_cloned_is_reported_when_it_is_to_be(why: str, host: Host, said: str) -> None:
    clone = prepared(host)
    assert clone.destroy()
    with pytest.raises(LabError, match=f"far: cannot clone site: .*{said}"):
        clone.create()
    with pytest.raises(LabError, match=said):
        clone.reset(restore=True)


def test_a_machine_that_is_out_of_reach_is_reported_at_once() -> None:
    class Far(Host):
        async def run(self, command: Sequence[str], **_: Any) -> CommandResult:
            raise MachineError("far", "cannot be reached")

    with pytest.raises(MachineError, match="far: cannot be reached"):
        prepared(Far())


def test_without_virsh_there_is_nothing_and_without_libvirtd_nobody_knows() -> None:
    assert asyncio.run(prepared(Host(status=127)).find(FakeMachine())) == []
    clone = prepared(Host())
    with pytest.raises(MachineError, match="ended with status 1: failed to connect"):
        asyncio.run(clone.find(Host(status=1)))


def test_it_is_described() -> None:
    assert prepared(Host()).describe() == {
        "driver": "libvirt",
        "name": NAME,
        "folder": f"/backend/{NAME}",
        "uri": "qemu:///system",
        "base": "site",
        "full": True,
        "target": "http://${address}",
    }
    assert isinstance(read_base(domain()), Base)


# The scripts, run against a virsh that says what it is told to.

URI = "qemu:///system"
VIRSH = """#!/bin/sh
shift 3 # -q -c URI
echo "$*" >>"$STATE/asked"
case $1 in
list) [ ! -e "$STATE/down" ] || exit 1; printf '%s\\n\\n' "$(cat "$STATE/names")" ;;
metadata) cat "$STATE/mark" ;;
domstate) cat "$STATE/state" ;;
shutdown) [ -e "$STATE/deaf" ] || echo "shut off" >"$STATE/state" ;;
destroy) echo "shut off" >"$STATE/state" ;;
undefine) : >"$STATE/names" ;;
domifaddr) cat "$STATE/addresses" ;;
esac
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "virsh"
    program.parent.mkdir()
    program.write_text(VIRSH)
    program.chmod(0o755)
    files = {
        "names": NAME,
        "mark": f'<clone name="{NAME}"/>',
        "state": "running",
        "addresses": "",
        "asked": "",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n" if text else "")
    return tmp_path


def run(state: Path, command: Command) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{state}/bin:{os.environ['PATH']}", "STATE": str(state)}
    return subprocess.run(
        command.words, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def asked(state: Path) -> list[str]:
    return [line.split()[0] for line in (state / "asked").read_text().splitlines()]


ADDRESSES = [
    ("a lease", " vnet0      52:54:00:aa:bb:cc    ipv4         192.168.122.5/24\n", "192.168.122.5"),
    (
        "an agent's",
        " lo         00:00:00:00:00:00    ipv4         127.0.0.1/8\n"
        " -          -                    ipv6         ::1/128\n"
        " docker0    02:42:00:00:00:00    ipv4         172.17.0.1/16\n"
        " eth0       52:54:00:aa:bb:cc    ipv4         169.254.3.3/16\n"
        " -          -                    ipv4         10.0.0.7/24\n",
        "10.0.0.7",
    ),
    ("the host's", " vnet0      52:54:00:aa:bb:cc    ipv4         10.0.0.8/0\n", "10.0.0.8"),
    ("none yet", "", None),
]


@pytest.mark.parametrize(("why", "table", "found"), ADDRESSES)
def test_the_address_is_read_out_of_its_table(state: Path, why: str, table: str, found: str | None) -> None:
    (state / "addresses").write_text(table)
    done = run(state, scripts.ask_address(URI, NAME, "lease", 0))
    assert (done.returncode == 0, done.stdout.strip() or None) == (found is not None, found), why
    assert found or "it has no address yet" in done.stderr


def test_a_guest_that_listens_is_shut_down(state: Path) -> None:
    assert run(state, scripts.shut_down(URI, NAME, 30)).returncode == 0
    assert asked(state) == ["domstate", "shutdown", "domstate"]


def test_a_guest_that_does_not_is_switched_off(state: Path) -> None:
    (state / "deaf").touch()
    assert run(state, scripts.shut_down(URI, NAME, 1)).returncode == 0
    assert asked(state)[-1] == "destroy"


def test_a_guest_at_rest_is_let_be(state: Path) -> None:
    (state / "state").write_text("shut off\n")
    assert run(state, scripts.shut_down(URI, NAME, 30)).returncode == 0
    assert asked(state) == ["domstate"]


def test_what_has_our_mark_is_removed_once(state: Path) -> None:
    for _ in range(2):
        assert run(state, scripts.remove_domain(URI, NAME)).returncode == 0
    assert asked(state) == ["list", "metadata", "domstate", "destroy", "undefine", "list"]


@pytest.mark.parametrize("mark", ["", f'<clone name="{NAME}x"/>', f'<clone name="x{NAME}"/>'])
def test_what_has_not_is_left(state: Path, mark: str) -> None:
    (state / "mark").write_text(mark)
    done = run(state, scripts.remove_domain(URI, NAME))
    assert (done.returncode, "it does not have the lab's mark" in done.stderr) == (1, True)
    assert "undefine" not in asked(state)


def test_a_name_that_is_nearly_ours_is_none(state: Path) -> None:
    (state / "names").write_text(f"{NAME}x\nx{NAME}\n{NAME.replace('-', '.')}\n")
    assert run(state, scripts.remove_domain(URI, NAME)).returncode == 0
    assert asked(state) == ["list"]


def test_without_libvirtd_nothing_is_said_to_be_removed(state: Path) -> None:
    (state / "down").touch()
    assert run(state, scripts.remove_domain(URI, NAME)).returncode == 1
