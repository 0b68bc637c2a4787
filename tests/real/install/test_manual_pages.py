"""What `make man` writes, shown by man and checked by mandoc."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import ROOT, need


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, "tools/manual.py", folder], cwd=ROOT, check=True, capture_output=True)
    return sorted(folder.glob("*.1"))


def test_mandoc_finds_nothing(pages: list[Path]) -> None:
    words = [need("mandoc"), "-T", "lint", "-W", "warning", *map(str, pages)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ran.stdout + ran.stderr).splitlines() == []
    assert len(pages) > 40


def test_man_shows_every_page(pages: list[Path]) -> None:
    for page in pages:
        ran = subprocess.run(
            [need("man"), "--warnings", "-l", str(page)],
            capture_output=True,
            text=True,
            check=True,
            env={"MANWIDTH": "80", "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        )
        assert ran.stderr == "", page.name
        shown = " ".join(re.sub(r".\x08", "", ran.stdout).split())
        assert f"NAME {page.stem} - " in shown
        assert "SEE ALSO" in shown
