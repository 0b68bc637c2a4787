"""Every block of the README runs as it stands: here the site's in a fresh clone; the others elsewhere.

Setting up a clone and filling a site takes some ten minutes: it is part of `make test-lab-full`.
"""

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.programs import ROOT, need
from tests.support.site import need_docker

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
SITE = next(block for block in BLOCKS if "make site" in block)
# The first line of each block, and the test that runs it.
RUN_BY = {
    "make replay LOG=access.log": "tests/real/install/test_stock_debian.py",
    "make site SITE_SIZE=small": "tests/real/install/test_readme_blocks.py",
    "make bench": "tests/real/lab/test_bench.py",
}


def test_each_block_is_run_by_a_test() -> None:
    assert len(BLOCKS) == len(RUN_BY)
    for block, (first, test) in zip(BLOCKS, RUN_BY.items(), strict=True):
        assert block.startswith(first)
        assert (ROOT / test).is_file()


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A fresh clone; what it starts ends with it."""
    need_docker()
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", 8080)) == 0:
            pytest.skip("port 8080, which the README names, is taken")
    folder = tmp_path / "plimsoll"
    subprocess.run([need("git"), "clone", "-q", str(ROOT), str(folder)], check=True)
    yield folder
    subprocess.run([need("make"), "site-down"], cwd=folder, check=True, timeout=300)


@pytest.mark.slow
def test_the_scenario_in_three_lines(clone: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PLIMSOLL_")}
    done = subprocess.run(
        [need("sh"), "-e", "-x"],
        input=SITE,
        cwd=clone,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=3000,
    )
    print(done.stdout)
    assert done.returncode == 0
    assert "article saved" in done.stdout
    assert "<title>" in (clone / "results" / "latest" / "report.html").read_text(encoding="utf-8")
