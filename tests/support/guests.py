"""Virtual machines: one that boots in seconds without KVM, and that of `make zfs-vm`."""

import os
import shlex
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.programs import LONGEST_S, ROOT, free_port, need, skip_or_fail
from tests.support.site import run

# A kernel, BusyBox, and a site of three files on the disk.

KERNEL = Path("/var/cache/plimsoll-tests/linux")  # where tools/need-libvirt puts it
_MODULES = (
    *("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"),
    *("failover", "net_failover", "virtio_net", "button", "evdev"),
)
_INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in {modules}; do
    [ ! -e "/lib/$module.ko" ] || insmod "/lib/$module.ko"
done
mount -t ext4 /dev/vda /disk
ip link set lo up
ip link set eth0 up
udhcpc -i eth0 -s /dhcp -t 30 -T 2 -n -q
httpd -p 80 -h /disk/www
button=$(cd /sys/class/input && grep -l 'Power Button' event*/device/name | head -n 1)
head -c 24 "/dev/input/${{button%%/*}}" >/dev/null
umount -l /disk
sync
poweroff -f
"""
_DHCP = """#!/bin/sh
[ "$1" != bound ] || ip addr add "$ip/24" dev eth0
"""
_ADD = """#!/bin/sh
n=$(($(cat /disk/n) + 1))
echo $n >/disk/n
sync
printf 'Content-Type: text/plain\\r\\n\\r\\n%s\\n' $n
"""


def need_libvirt() -> None:
    """Skips the test where libvirt does not answer, fails it in the lab's own CI."""
    for program in ("virsh", "qemu-img", "qemu-system-x86_64", "busybox", "mke2fs"):
        need(program)
    if os.geteuid() != 0:
        skip_or_fail("needs root")
    if "default" not in virsh("net-list", "--name").stdout.split():
        skip_or_fail("libvirt with its network does not answer: tools/need-libvirt starts it")
    if not (KERNEL / "boot").is_dir():
        skip_or_fail("no kernel for guests is here: tools/need-libvirt fetches it")


def virsh(*words: str) -> subprocess.CompletedProcess[str]:
    """Asks the system's libvirt."""
    return run("virsh", "-q", "-c", "qemu:///system", *words)


def kernel() -> Path:
    """The guests' kernel."""
    return next((KERNEL / "boot").glob("vmlinuz-*"))


def initrd(folder: Path) -> Path:
    """What the kernel starts: BusyBox, its modules, and a script."""
    made = folder / "initrd"
    folders = ("bin", "lib", "proc", "sys", "dev", "disk")
    files: dict[str, tuple[int, bytes]] = dict.fromkeys(folders, (stat.S_IFDIR | 0o755, b""))
    files["bin/busybox"] = (stat.S_IFREG | 0o755, Path(need("busybox")).read_bytes())
    files["init"] = (stat.S_IFREG | 0o755, _INIT.format(modules=" ".join(_MODULES)).encode())
    files["dhcp"] = (stat.S_IFREG | 0o755, _DHCP.encode())
    for module in _MODULES:
        for found in KERNEL.glob(f"lib/modules/*/kernel/**/{module}.ko"):
            files[f"lib/{module}.ko"] = (stat.S_IFREG | 0o644, found.read_bytes())
    made.write_bytes(_cpio(files))
    return made


def disk(folder: Path) -> Path:
    """The guest's disk: a page, a page that writes, and a number that it writes."""
    tree, raw, made = folder / "tree", folder / "disk.raw", folder / "base.qcow2"
    (tree / "www" / "cgi-bin").mkdir(parents=True)
    (tree / "www" / "index.html").write_text("<p>a site on a disk</p>\n")
    (tree / "n").write_text("0\n")
    add = tree / "www" / "cgi-bin" / "add"
    add.write_text(_ADD)
    add.chmod(0o755)
    for command in (
        ("mke2fs", "-q", "-t", "ext4", "-d", tree, raw, "32M"),
        ("qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, made),
    ):
        done = run(*command)
        assert done.returncode == 0, done.stderr
    raw.unlink()
    return made


def domain(name: str, folder: Path, efi: bool = False) -> str:
    """The XML of a domain that is the guest; with `efi` it has firmware variables of its own."""
    return f"""<domain type='qemu'>
  <name>{name}</name>
  <description>somebody's words &amp; signs</description>
  <memory unit='MiB'>256</memory>
  <vcpu>1</vcpu>
  <os{' firmware="efi"' if efi else ""}>
    <type arch='x86_64' machine='{"q35" if efi else "pc"}'>hvm</type>
    <kernel>{kernel()}</kernel>
    <initrd>{initrd(folder)}</initrd>
    <cmdline>console=ttyS0 quiet panic=-1</cmdline>
  </os>
  <features><acpi/></features>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='writeback'/>
      <source file='{disk(folder)}'/>
      <target dev='vda' bus='virtio'/>
    </disk>
    <disk type='file' device='cdrom'><target dev='sda' bus='sata'/><readonly/></disk>
    <interface type='network'><source network='default'/><model type='virtio'/></interface>
    <serial type='pty'/>
  </devices>
</domain>
"""


def _cpio(files: dict[str, tuple[int, bytes]]) -> bytes:
    """An archive in the form that kernels unpack (newc)."""
    parts = []
    for i, (name, (mode, data)) in enumerate([*files.items(), ("TRAILER!!!", (0, b""))]):
        fields = (i + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        parts += [head, b"\0" * (-len(head) % 4), data, b"\0" * (-len(data) % 4)]
    return b"".join(parts)


# OpenZFS in its kernel, over SSH. Its nginx serves a dataset on each port.

TOOLS = ROOT / "tools" / "zfs-vm"
BUILD_S, BOOT_S = 7200, 900
SLOW_S = 600  # for a command: the processor may be emulated
SITES = ("r16", "r128")  # datasets of the pool `tank`, named after their record sizes
FILES, FILE_BYTES = 24, 96 << 10

# A pool with a dataset a site, files of noise in each, and nginx, which reads them anew for each request.
_PREPARE = f"""set -e
zpool create -f -o cachefile=none -O mountpoint=none -O compression=off tank /dev/disk/by-id/virtio-one
zfs create -o mountpoint=/tank tank/lab
printf 'events {{}}\\nhttp {{ access_log off; sendfile off;\\n' >/etc/nginx/lab.conf
port=80
for site in {" ".join(SITES)}; do
    zfs create -o recordsize=${{site#r}}K "tank/lab/$site"
    for i in $(seq {FILES}); do head -c {FILE_BYTES} /dev/urandom >"/tank/$site/$i.bin"; done
    echo "$site" >"/tank/$site/index.html"
    echo "server {{ listen $port; root /tank/$site; }}" >>/etc/nginx/lab.conf
    port=$((port + 1))
done
echo '}}' >>/etc/nginx/lab.conf
nginx -c /etc/nginx/lab.conf </dev/null >/dev/null 2>&1
sync
"""


class ZfsVm:
    """A machine that runs. Its pool `tank` is on the disk `one`; the disk `two` is free."""

    def __init__(self, folder: Path, ports: Sequence[str]) -> None:
        self.folder = folder
        self.sites = {site: f"http://127.0.0.1:{port}" for site, port in zip(SITES, ports, strict=True)}

    @property
    def host(self) -> dict[str, Any]:
        """Its keys of a host in lab.yml."""
        found: dict[str, Any] = yaml.safe_load((self.folder / "host").read_text())
        return found

    def run(self, *words: str) -> str:
        """What a command prints there. Fails the test if the command fails."""
        done = self.ask(*words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def ask(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """What comes of a command there."""
        command = [str(self.folder / "ssh"), shlex.join(words)]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=SLOW_S, check=False
        )

    def prepare(self) -> None:
        """Make the pool and the sites."""
        done = self.ask("sh", "-s", stdin=_PREPARE)
        assert done.returncode == 0, done.stderr

    def left(self, name: str) -> list[str]:
        """What is there of an experiment of that name, looked for without the project's own means."""
        asked = (
            "losetup --list --noheadings --output NAME,BACK-FILE; cat /proc/mounts; zpool list -H -o name; "
            "zfs list -H -o name -t all; ps -eo args; "
            "find /sys/fs/cgroup /var/lib/plimsoll /run -name 'plimsoll*' 2>/dev/null; true"
        )
        mark = f"plimsoll-{name}"
        lines = self.run("sh", "-c", asked).splitlines()
        return [line.strip() for line in lines if mark in line and "ps -eo" not in line]


def start_zfs_vm(folder: Path) -> ZfsVm:
    """Build the image if need be, and start a machine from it. Skips where that cannot be done.

    PLIMSOLL_ZFS_VM=FOLDER:PORT:PORT takes one that runs, to write tests.
    """
    if running := os.environ.get("PLIMSOLL_ZFS_VM"):
        path, *ports = running.split(":")
        machine = ZfsVm(Path(path), ports)
        if machine.ask("zpool", "list", "tank").returncode:
            machine.prepare()
        return machine
    for program in ("qemu-system-x86_64", "qemu-img", "mmdebstrap", "mke2fs", "ssh"):
        need(program)
    if os.geteuid() != 0:
        pytest.skip("needs root: make test-lab-full")
    built = subprocess.run([TOOLS / "build"], capture_output=True, text=True, timeout=BUILD_S, check=False)
    assert built.returncode == 0, built.stderr
    ports = [str(free_port()) for _ in SITES]
    forwards = [word for i, port in enumerate(ports) for word in ("--forward", f"{port}:{80 + i}")]
    command: list[str | Path] = [
        TOOLS / "start",
        *forwards,
        "--disk",
        "one:512M",
        "--disk",
        "two:512M",
        "--wait",
        str(BOOT_S),
        folder,
    ]
    begun = subprocess.run(command, capture_output=True, text=True, timeout=BOOT_S + 120, check=False)
    assert begun.returncode == 0, begun.stderr
    machine = ZfsVm(folder, ports)
    machine.prepare()
    return machine


def stop_zfs_vm(machine: ZfsVm) -> None:
    """Cut its power, unless it was there before."""
    if "PLIMSOLL_ZFS_VM" not in os.environ:
        subprocess.run([TOOLS / "stop", "--now", machine.folder], timeout=LONGEST_S, check=True)


def log_of(path: Path, requests: int = 400) -> Path:
    """An access log that asks for the sites' files in a fixed disorder."""
    line = '192.0.2.{} - - [10/Oct/2000:13:{:02}:{:02} +0000] "GET /{}.bin HTTP/1.1" 200 {} "-" "curl/8"\n'
    rows = [
        line.format(i % 20, i // 600 % 60, i // 10 % 60, i * 7 % FILES + 1, FILE_BYTES)
        for i in range(requests)
    ]
    path.write_text("".join(rows))
    return path
