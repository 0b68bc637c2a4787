"""A bare Debian in a folder, and commands in it: as root or as the ordinary user anna."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HEADINGS = {"bookworm": "Debian 12", "trixie": "Debian 13"}
_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# Runs a program in the root $1 as the user $2; its processes and mounts end with it. The machine's own
# mounts are let go: a copy of one would keep a disk busy that another test wants to remove.
_ENTER = """
root=$1 user=$2; shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
cd "$root"
pivot_root . mnt
umount -l mnt
exec chroot --userspec="$user:$user" . /usr/bin/env -i "$@"
"""


def made(suite: str, root: Path, architecture: str | None = None) -> None:
    """Set up the smallest Debian of that name, with an ordinary user. Skips where that cannot be done.

    Programs of an `architecture` that is not the machine's own run under QEMU's emulation of processors.
    """
    if os.geteuid() or not shutil.which("mmdebstrap"):
        pytest.skip("needs root and mmdebstrap")
    if architecture and not _runs(architecture):
        pytest.skip(f"no programs for {architecture} run here: apt-get install arch-test qemu-user-static")
    make_root = [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        *([f"--architectures={architecture}"] if architecture else []),
        suite,
        str(root),
        "http://deb.debian.org/debian",
    ]
    subprocess.run(make_root, check=True, timeout=1800)
    shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
    if Path(_CERTIFICATES).exists():  # what this machine trusts: its way out may be a proxy
        shutil.copy(_CERTIFICATES, root / "certificates.crt")
    (root / "etc" / "apt" / "apt.conf.d" / "barest").write_text('APT::Install-Recommends "false";\n')
    inside(root, "root", "useradd -m -s /bin/sh anna")


def _runs(architecture: str) -> bool:
    """Return whether programs of that architecture run here."""
    own = ["dpkg", "--print-architecture"]
    native = subprocess.run(own, capture_output=True, text=True, check=False)
    if native.stdout.strip() == architecture:
        return True
    foreign = ["arch-test", architecture]
    return shutil.which("arch-test") is not None and subprocess.run(foreign, check=False).returncode == 0


def settings() -> dict[str, str]:
    """Return how this machine reaches package registries, for the programs inside."""
    passed = {
        name: value
        for name, value in os.environ.items()
        if name.lower().endswith("_proxy") or name in ("GOPROXY", "GOSUMDB", "GONOSUMDB", "PIP_INDEX_URL")
    }
    if Path(_CERTIFICATES).exists():
        passed |= dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT"), "/certificates.crt")
    return passed


def inside(root: Path, user: str, script: str, *, network: bool = True) -> str:
    """Run a script in the root as that user, show what it says, and return it."""
    home = "/root" if user == "root" else f"/home/{user}"
    environment = settings() | {"HOME": home, "USER": user, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    environment |= {"LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    words = [f"{name}={value}" for name, value in environment.items()]
    spaces = ["--mount", "--pid", *([] if network else ["--net"])]
    alone = "" if network else "ip link set lo up\n"
    enter = ["unshare", *spaces, "--fork", "--kill-child", "sh", "-ec", alone + _ENTER, "sh"]
    done = subprocess.run(
        [*enter, str(root), user, *words, "sh", "-ec", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=3600,
    )
    print(f"# {user}: {script}\n{done.stdout}")
    assert done.returncode == 0, f"{script}: exit code {done.returncode}"
    return done.stdout
