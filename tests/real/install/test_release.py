"""A release of `make dist`, installed without network on bare Debian 12 and 13, and used there.

To make it takes some minutes (k6 is compiled) and half a GB: it is part of `make test-lab-full`.
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
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(
    os.environ.get("PLIMSOLL_SLOW") != "1", reason="makes a release and whole Debians: make test-lab-full"
)
_NEEDS = "apt-get update -qq && apt-get install -y -qq python3 ca-certificates >/dev/null"


@pytest.fixture(scope="module")
def dist() -> Path:
    """Make the release of this commit for amd64, and return its folder."""
    dist_words = ["make", "dist", "ARCH=amd64"]
    subprocess.run(dist_words, cwd=ROOT, check=True, timeout=3600)
    return ROOT / "dist"


@pytest.fixture(params=HEADINGS, ids=HEADINGS.values())
def bare(request: pytest.FixtureRequest, tmp_path: Path, dist: Path) -> Iterator[Path]:
    """Return a root with Python and nothing else, and the release in /media."""
    root = tmp_path / "root"
    made(request.param, root)
    inside(root, "root", _NEEDS)
    (archive,) = dist.glob("plimsoll-*-linux-amd64.tar.gz")
    (package,) = dist.glob("plimsoll_*_amd64.deb")
    shutil.copy(package, root / "media" / "plimsoll.deb")
    with tarfile.open(archive) as tar:
        tar.extractall(root / "media", filter="tar")
    (release,) = (root / "media").glob("plimsoll-*-linux-amd64")
    release.rename(root / "media" / "release")
    try:
        yield root
    finally:
        shutil.rmtree(root)


def used(root: Path) -> None:
    """Use it as anna does, from the PATH, without network."""
    share = "/usr/lib/plimsoll/installed/share/plimsoll"
    if not (root / share[1:]).exists():
        share = "/opt/plimsoll/share/plimsoll"
    path = "PATH=/usr/local/bin:$PATH; cd"
    told = inside(root, "anna", f"{path}; replay run {share}/examples/access.log --limit 2000", network=False)
    assert "p99.9" in told
    inside(root, "anna", f"{path}; plimsoll report results/latest", network=False)
    assert (root / "home/anna/results/latest/report.html").stat().st_size > 100_000
    checked = inside(root, "anna", f"{path}; plimsoll --version; {share}/../../bin/k6 version", network=False)
    assert re.search(r"plimsoll, version \d", checked)
    assert "k6 v" in checked
    doctor = inside(root, "anna", f"{path}; plimsoll doctor --json --measure-s 0 || true", network=False)
    assert "replay" in doctor


def test_it_is_installed_used_and_removed(bare: Path) -> None:
    before = listing(bare)
    said = inside(bare, "root", "/media/release/install", network=False)
    assert "plimsoll doctor" in said
    used(bare)
    packages = {path.name for path in (bare / "opt/plimsoll/lib").glob("python3*/site-packages/*")}
    assert "plimsoll" in packages
    assert not packages & {"analysis", "lab", "scenarios"}
    inside(bare, "root", "/media/release/install", network=False)  # again, over it
    inside(bare, "root", "/opt/plimsoll/share/plimsoll/install --uninstall", network=False)
    assert listing(bare) == before


def listing(root: Path) -> set[str]:
    """What is in the places where an installation puts something."""
    places = ("opt", "usr/local")
    return {
        str(path.relative_to(root))
        for place in places
        for path in (root / place).rglob("*")
        if not path.is_dir()
    }


def test_a_user_installs_it_at_home(bare: Path) -> None:
    inside(bare, "anna", "cd; /media/release/install", network=False)
    told = inside(bare, "anna", "~/.local/bin/replay --help; ~/.local/bin/plimsoll --version", network=False)
    assert "plimsoll, version" in told
    inside(bare, "anna", "mkdir ~/own; touch ~/own/file", network=False)
    said = inside(bare, "anna", "/media/release/install --prefix ~/own || echo code=$?", network=False)
    assert "is no installation of Plimsoll" in said
    assert "code=2" in said


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        ("echo x >>/media/release/bin/replay", "is damaged"),
        ("echo 0.1.0 arm64 >/media/release/VERSION", "for arm64"),
        ("rm /media/release/wheels/numpy-*", "has no wheels for"),
    ],
    ids=["a damaged file", "another machine", "another Python"],
)
def test_what_does_not_fit_is_said(bare: Path, spoil: str, says: str) -> None:
    inside(bare, "root", spoil)
    said = inside(bare, "root", "/media/release/install || echo code=$?", network=False)
    assert says in said
    assert "code=2" in said
    assert not (bare / "opt/plimsoll").exists()


def test_the_debian_package(bare: Path) -> None:
    inside(bare, "root", "dpkg -i /media/plimsoll.deb", network=False)
    used(bare)
    inside(bare, "root", "dpkg -r plimsoll", network=False)
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
    run = ["docker", "run", "--rm", "--network", "none", "-v", f"{tmp_path}:/work", "plimsoll"]
    told = subprocess.run(
        [*run, "replay", "run", "access.log", "--limit", "500"], capture_output=True, text=True, check=True
    )
    assert "p99.9" in told.stdout
    subprocess.run([*run, "report", "results/latest"], check=True)
    assert (tmp_path / "results" / "latest" / "report.html").exists()
