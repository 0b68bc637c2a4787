"""Java programs from Maven Central."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import need


def jars(pom: Path, folder: Path) -> str:
    """A class path of what `pom` depends on; skips the test where it cannot be had, fails it in CI."""
    need("java")
    command = [
        need("mvn"),
        "-B",
        "-q",
        "-f",
        str(pom),
        "dependency:copy-dependencies",
        f"-DoutputDirectory={folder}",
    ]
    got = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if got.returncode != 0 or not list(folder.glob("*.jar")):
        reason = f"Maven brought nothing: {(got.stdout + got.stderr).strip()[-300:]}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return f"{folder}/*"
