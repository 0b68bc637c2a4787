"""The check of the locks, by uv itself and without network: each way in which they do not fit."""

import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.support.programs import ROOT

FILES = ["pyproject.toml", "uv.lock", "requirements.lock", "tools/locks"]
FILES += [f"tools/packages/{group}.lock" for group in ("setup", "pip", "bom")]


@pytest.mark.parametrize(
    ("case", "file", "old", "new", "said"),
    [
        ("all is well", "pyproject.toml", "", "", ""),
        (
            "what is asked for has changed",
            "pyproject.toml",
            '"click>=8.1"',
            '"click>=99"',
            "uv.lock does not fit",
        ),
        (
            "something new is asked for",
            "pyproject.toml",
            '"jinja2>=3.1"',
            '"jinja2>=3.1", "nose"',
            "uv.lock does not fit",
        ),
        ("an older Python is promised", "pyproject.toml", '">=3.11"', '">=3.10"', "uv.lock does not fit"),
        (
            "an export was edited",
            "requirements.lock",
            "jinja2==",
            "jinja2==9",
            "requirements.lock is not as in uv.lock",
        ),
        (
            "an export of the tools was edited",
            "tools/packages/pip.lock",
            "==",
            "==9",
            "pip.lock is not as in uv.lock",
        ),
        (
            "another setuptools builds than is locked",
            "pyproject.toml",
            'requires = ["setuptools==',
            'requires = ["setuptools==9',
            "requirements.lock lacks what [build-system] requires, setuptools==9",
        ),
        (
            "locked at a mirror",
            "uv.lock",
            "https://files.pythonhosted.org/packages/",
            "https://mirror.example/",
            "uv.lock names an index that others may not reach, https://mirror.example/",
        ),
    ],
)
def test_the_locks_are_checked(tmp_path: Path, case: str, file: str, old: str, new: str, said: str) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    text = (tmp_path / file).read_text(encoding="utf-8")
    assert old in text, case
    (tmp_path / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    words = ["tools/locks", "check", str(Path(sys.executable).with_name("uv"))]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, said in ran.stderr, bool(ran.stderr)) == (bool(said), True, bool(said)), (
        case,
        ran.stderr,
    )


def test_what_is_locked_for_all_pythons_runs_on_the_lowest() -> None:
    locked = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    names = [package["name"] for package in locked["package"]]
    assert locked["requires-python"] == ">=3.11"
    looked_at = [
        (dist.name, dist.metadata["Requires-Python"])
        for dist in metadata.distributions()
        if names.count(canonicalize_name(dist.name)) == 1
    ]
    assert len(looked_at) > 50
    assert [one for one in looked_at if not SpecifierSet(one[1] or "").contains("3.11.0")] == []
