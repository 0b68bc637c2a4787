"""What the scripts of `make site` do before, and without, Docker."""

import os
import subprocess
from pathlib import Path

from tests.support.paths import ROOT


def test_a_disk_that_is_too_small_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    settings = {"BACKEND_DIR": str(tmp_path / "a" / "site"), "SITE_SIZE": "large", "SITE_LARGE_GIB": "999999"}
    done = subprocess.run(
        [ROOT / "site" / "up"], env=os.environ | settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "a site of size large needs 1250001 GiB" in done.stderr
    assert list(tmp_path.iterdir()) == []
