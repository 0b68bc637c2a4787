"""A guest that boots in seconds without KVM: a kernel, BusyBox, and a site of three files on its disk."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import need
from tests.support.sitestack import run

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
    reason = ""
    if os.geteuid() != 0:
        reason = "needs root"
    elif "default" not in virsh("net-list", "--name").stdout.split():
        reason = "libvirt with its network does not answer: tools/need-libvirt starts it"
    elif not (KERNEL / "boot").is_dir():
        reason = "there is no kernel for guests: tools/need-libvirt fetches it"
    if reason and os.environ.get("CI") == "true" and os.environ.get("PLIMSOLL_LAB") == "1":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


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
