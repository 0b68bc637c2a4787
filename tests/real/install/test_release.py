"""Releases of `make dist`, installed without network on bare Debian 12 and 13, and used there.

To make them takes some minutes (k6 is compiled) and a GB: this is part of `make test-lab-full`. Those for
arm64 run under QEMU's emulation of its processor, where that is installed, some ten times slower.
"""

import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.debian import HEADINGS, inside, made
from tests.support.programs import ROOT

pytestmark = pytest.mark.slow
_BARE = [(suite, architecture) for architecture in ("amd64", "arm64") for suite in HEADINGS]
_NEEDS = "apt-get update -qq && apt-get install -y -qq python3 ca-certificates >/dev/null"


@pytest.fixture(scope="module")
def dist() -> Path:
    """Make the releases of this commit, and return their folder."""
    dist_words = ["make", "dist"]
    subprocess.run(dist_words, cwd=ROOT, check=True, timeout=3600)
    return ROOT / "dist"


@pytest.fixture(scope="module", params=_BARE, ids=[f"{HEADINGS[suite]}, {arch}" for suite, arch in _BARE])
def bare(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, dist: Path
) -> Iterator[Path]:
    """Return a root with Python and nothing else, and the release in /media. Tests leave it as it was."""
    suite, architecture = request.param
    root = tmp_path_factory.mktemp("bare") / "root"
    made(suite, root, architecture)
    inside(root, "root", _NEEDS)
    (archive,) = dist.glob(f"plimsoll-*-linux-{architecture}.tar.gz")
    (package,) = dist.glob(f"plimsoll_*_{architecture}.deb")
    shutil.copy(package, root / "media" / "plimsoll.deb")
    with tarfile.open(archive) as tar:
        tar.extractall(root / "media", filter="tar")
    (release,) = (root / "media").glob("plimsoll-*-linux-*")
    release.rename(root / "media" / "release")
    try:
        yield root
    finally:
        shutil.rmtree(root)


def offline(root: Path, user: str, script: str) -> str:
    """Run a script where there is no network."""
    return inside(root, user, script, network=False)


def used(root: Path, home: str) -> None:
    """Use an installation as anna does, from the PATH."""
    path = "PATH=/usr/local/bin:$PATH; cd"
    said = offline(root, "anna", f"{path}; replay run {home}/share/plimsoll/examples/access.log --limit 2000")
    assert "p99.9" in said
    offline(root, "anna", f"{path}; plimsoll report results/latest")
    assert (root / "home/anna/results/latest/report.html").stat().st_size > 100_000
    said = offline(root, "anna", f"{path}; plimsoll --version; {home}/bin/k6 version; rm -r results")
    assert re.search(r"plimsoll, version \d", said)
    assert re.search(r"k6\S* v\d", said)
    assert "replay" in offline(root, "anna", f"{path}; plimsoll doctor --json --measure-s 0 || true")


def listing(root: Path) -> set[str]:
    """What is in the places where an installation puts something."""
    places = ("opt", "usr/local", "home")
    found = (path for place in places for path in (root / place).rglob("*"))
    return {str(path.relative_to(root)) for path in found if path.is_symlink() or not path.is_dir()}


def test_it_is_installed_used_and_removed(bare: Path) -> None:
    before = listing(bare)
    assert "plimsoll doctor" in offline(bare, "root", "/media/release/install")
    used(bare, "/opt/plimsoll")
    packages = {path.name for path in (bare / "opt/plimsoll/lib").glob("python3*/site-packages/*")}
    assert "plimsoll" in packages
    assert not packages & {"analysis", "lab", "scenarios"}
    offline(
        bare, "root", "rm -r /opt/plimsoll/lib; /media/release/install; /usr/local/bin/plimsoll --version"
    )
    offline(bare, "root", "/opt/plimsoll/share/plimsoll/install --uninstall")
    assert listing(bare) == before


def test_a_user_installs_it_at_home(bare: Path) -> None:
    before = listing(bare)
    offline(bare, "anna", "cd; /media/release/install")
    said = offline(bare, "anna", "~/.local/bin/replay --help >/dev/null; ~/.local/bin/plimsoll --version")
    assert "plimsoll, version" in said
    said = offline(
        bare, "anna", "mkdir ~/own; touch ~/own/file; /media/release/install --prefix ~/own || echo $?"
    )
    assert "is no installation of Plimsoll" in said
    assert said.endswith("2\n")
    offline(bare, "anna", "rm -r ~/own; ~/.local/lib/plimsoll/share/plimsoll/install --uninstall")
    assert listing(bare) == before


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        ("echo x >>LICENSE", "is damaged"),
        ("echo 0.1.0 riscv64 >VERSION", "for riscv64"),
        ("rm wheels/numpy-*", "has no wheels for"),
    ],
    ids=["a damaged file", "another machine", "another Python"],
)
def test_what_does_not_fit_is_said(bare: Path, spoil: str, says: str) -> None:
    before = listing(bare)
    copied = "cp -r /media/release /media/spoilt; cd /media/spoilt"
    said = offline(bare, "root", f"{copied}; {spoil}; ./install || echo $?; rm -r /media/spoilt")
    assert says in said
    assert said.endswith("2\n")
    assert listing(bare) == before


def test_the_debian_package(bare: Path) -> None:
    offline(bare, "root", "dpkg -i /media/plimsoll.deb")
    used(bare, "/usr/lib/plimsoll/installed")
    trigger = "dpkg-trigger --by-package=python3 /usr/bin/python3; dpkg --triggers-only -a"
    offline(bare, "root", f"rm -r /usr/lib/plimsoll/installed/lib; {trigger}")
    used(bare, "/usr/lib/plimsoll/installed")  # as when a new Python has come: it was installed again
    offline(bare, "root", "dpkg -r plimsoll")
    assert not (bare / "usr/lib/plimsoll").exists()
    assert not (bare / "usr/bin/plimsoll").is_symlink()


def test_bills_of_materials(dist: Path) -> None:
    (archive,) = dist.glob("plimsoll-*-linux-amd64.tar.gz")
    with tarfile.open(archive) as tar:
        names = [name for name in tar.getnames() if name.endswith(".cdx.json")]
        bills = {Path(name).name: json.load(tar.extractfile(name)) for name in names}  # type: ignore[arg-type]
    parts = {
        name: {one["name"] for one in bill["components"]}
        for name, bill in bills.items()
        if bill["bomFormat"] == "CycloneDX"
    }
    assert "numpy" in parts["python.cdx.json"]
    assert any("kong" in one for one in parts["replay.cdx.json"])
    assert any("k6" in one for one in parts["k6-plimsoll.cdx.json"])


def test_the_container_image(dist: Path, tmp_path: Path) -> None:
    words = ["make", "image"]
    subprocess.run(words, cwd=ROOT, check=True, timeout=3600)
    shutil.copy(ROOT / "examples" / "access.log", tmp_path)
    for path in (tmp_path, tmp_path / "access.log"):
        os.chown(path, 4321, 4321)  # a user whom the image does not know
    run = ["docker", "run", "--rm", "--network", "none", "-v", f"{tmp_path}:/work"]
    whoami = subprocess.run(
        [*run, "plimsoll", "sh", "-c", "id -u"], capture_output=True, text=True, check=True
    )
    assert whoami.stdout == "1000\n"
    run += ["--user", "4321:4321", "plimsoll"]
    told = subprocess.run(
        [*run, "replay", "run", "access.log", "--limit", "500"], capture_output=True, text=True, check=True
    )
    assert "p99.9" in told.stdout
    subprocess.run([*run, "report", "results/latest"], check=True)
    assert (tmp_path / "results" / "latest" / "report.html").exists()
