"""The machine of `make zfs-vm`: OpenZFS in its kernel, over SSH. Its nginx serves a dataset on each port."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.programs import LONGEST_S, ROOT, free_port, need

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


def started(folder: Path) -> ZfsVm:
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


def stop(machine: ZfsVm) -> None:
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
