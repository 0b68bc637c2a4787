"""The README's two commands on a bare Debian, as an ordinary user, in a folder with a blank and an umlaut.

Each Debian is set up by the commands of docs/install.md and nothing else. This takes a quarter of an hour and
3 GB each: it is part of `make test-lab-full`.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.debian import HEADINGS, inside, made
from tests.support.programs import ROOT

pytestmark = pytest.mark.slow

CLONE = "home/anna/Meine Läufe/plimsoll"


@pytest.fixture(params=list(HEADINGS), ids=list(HEADINGS.values()))
def debian(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Return a bare root with an ordinary user and a clone in it, and the heading of docs/install.md."""
    root, suite = tmp_path / "root", request.param
    made(suite, root)
    clone = ["git", "clone", "-q", "--no-hardlinks", str(ROOT), str(root / CLONE)]
    subprocess.run(clone, check=True)
    inside(root, "root", 'chown -R anna: "/home/anna"')
    try:
        yield root, HEADINGS[suite]
    finally:
        shutil.rmtree(root)


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
