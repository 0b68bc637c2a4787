"""`make vm-image` says what is wrong with its settings before it does anything."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import ROOT

SCRIPT = ROOT / "site" / "vm-image"


@pytest.mark.parametrize(
    ("what", "settings", "message"),
    [
        ("a size that is none", {"VM_FREE_GIB": "8G"}, "not a whole number of GiB"),
        ("another format", {"VM_IMAGE": "{folder}/site.raw"}, "the name of the image must end in .qcow2"),
        ("a path that Docker cannot mount", {"VM_IMAGE": "{folder}/a:b.qcow2"}, "cannot be mounted"),
        ("a folder in its place", {"VM_IMAGE": "{folder}/there.qcow2"}, "is a folder"),
        ("a key that is not there", {"VM_SSH_KEY": "{folder}/none"}, "there is no such file"),
        ("the private key", {"VM_SSH_KEY": "{folder}/private"}, "name the public one"),
        ("something else than a key", {"VM_SSH_KEY": "{folder}/text"}, "contains no public SSH key"),
    ],
)
def test_a_wrong_setting_is_refused(
    tmp_path: Path, what: str, settings: dict[str, str], message: str
) -> None:
    (tmp_path / "there.qcow2").mkdir()
    (tmp_path / "private").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    (tmp_path / "text").write_text("hello\n")
    before = sorted(tmp_path.iterdir())
    given = {"VM_IMAGE": "{folder}/site.qcow2", "VM_SSH_KEY": "", "VM_FREE_GIB": ""} | settings
    environment = os.environ | {key: value.format(folder=tmp_path) for key, value in given.items()}
    done = subprocess.run([SCRIPT], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, ""), what
    assert message in done.stderr
    assert done.stderr.startswith("make vm-image: ")
    assert sorted(tmp_path.iterdir()) == before


def test_usage_names_every_setting() -> None:
    done = subprocess.run([SCRIPT, "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    for setting in ("VM_IMAGE", "VM_SSH_KEY", "VM_FREE_GIB", "SITE_SIZE"):
        assert setting in done.stderr
