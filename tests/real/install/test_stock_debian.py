"""The README's two commands on a bare Debian, as an ordinary user, in a folder with a blank and an umlaut.

Each Debian is set up by the commands of docs/install.md and nothing else. This takes a quarter of an hour and
3 GB each: it is part of `make test-lab-full`.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(
    os.environ.get("PLIMSOLL_SLOW") != "1", reason="sets up a whole Debian: make test-lab-full"
)

CLONE = "home/anna/Meine Läufe/plimsoll"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# Runs a program in the root $1 as the user $2; its processes and mounts end with it. The machine's own
# mounts are let go: a copy of one would keep a disk busy that another test wants to remove.
ENTER = """
root=$1 user=$2; shift 2
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
cd "$root"
pivot_root . mnt
umount -l mnt
exec chroot --userspec="$user:$user" . /usr/bin/env -i "$@"
"""


@pytest.fixture(params=["bookworm", "trixie"], ids=["Debian 12", "Debian 13"])
def debian(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Return a bare root with an ordinary user and a clone in it, and the heading of docs/install.md."""
    if os.geteuid() or not shutil.which("mmdebstrap"):
        pytest.skip("needs root and mmdebstrap")
    root, suite = tmp_path / "root", request.param
    make_root = [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        suite,
        str(root),
        "http://deb.debian.org/debian",
    ]
    subprocess.run(make_root, check=True, timeout=900)
    shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
    if Path(CERTIFICATES).exists():  # what this machine trusts: its way out may be a proxy
        shutil.copy(CERTIFICATES, root / "certificates.crt")
    (root / "etc" / "apt" / "apt.conf.d" / "barest").write_text('APT::Install-Recommends "false";\n')
    inside(root, "root", "useradd -m -s /bin/sh anna")
    clone = ["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(root / CLONE)]
    subprocess.run(clone, check=True)
    inside(root, "root", 'chown -R anna: "/home/anna"')
    try:
        yield root, {"bookworm": "Debian 12", "trixie": "Debian 13"}[suite]
    finally:
        shutil.rmtree(root)


def settings() -> dict[str, str]:
    """Return how this machine reaches package registries, for the programs inside."""
    passed = {
        name: value
        for name, value in os.environ.items()
        if name.lower().endswith("_proxy") or name in ("GOPROXY", "GOSUMDB", "GONOSUMDB", "PIP_INDEX_URL")
    }
    if Path(CERTIFICATES).exists():
        passed |= dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT"), "/certificates.crt")
    return passed


def inside(root: Path, user: str, script: str) -> str:
    """Run a script in the root as that user, show what it says, and return it."""
    home = "/root" if user == "root" else f"/home/{user}"
    environment = settings() | {"HOME": home, "USER": user, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    environment |= {"LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    words = [f"{name}={value}" for name, value in environment.items()]
    enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", ENTER, "sh"]
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


def commands(heading: str) -> str:
    """Return the commands of a section of docs/install.md, as root gives them."""
    manual = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {heading}\n.*?^```sh\n(.*?)^```", manual, re.MULTILINE | re.DOTALL)
    assert found, f"docs/install.md has no commands for {heading}"
    return found[1].replace("sudo ", "").replace("apt-get install", "apt-get install -qq -y")


def test_the_two_commands_run(debian: tuple[Path, str]) -> None:
    root, heading = debian
    inside(root, "root", commands(heading))
    here = f'cd "/{CLONE}"'
    versions = inside(root, "anna", f"{here}; python3 --version; go version; go env GOTOOLCHAIN")
    assert ("Python 3.11.2" in versions) == (heading == "Debian 12")

    told = inside(root, "anna", f"{here}; make replay LOG=examples/access.log")
    assert "p99.9" in told
    assert (root / CLONE / "results" / "latest" / "report.html").exists()
    told = inside(root, "anna", f"{here}; make test")
    assert re.search(r"\d+ passed", told)
    assert not re.search(r"\d+ failed", told)
