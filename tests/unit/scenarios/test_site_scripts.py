"""What the scripts of `make site` do before, and without, Docker."""

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT

VERSION = """<?php
$wp_version = '{}';
$wp_db_version = 60421;
$required_php_version = '7.2.24';
$required_mysql_version = '5.5.5';
"""


def test_a_disk_that_is_too_small_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    settings = {"BACKEND_DIR": str(tmp_path / "a" / "site"), "SITE_SIZE": "large", "SITE_LARGE_GIB": "999999"}
    done = subprocess.run(
        [ROOT / "site" / "up"], env=os.environ | settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "a site of size large needs 1250001 GiB" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to the web server's account, as root")
@pytest.mark.skipif(not shutil.which("unzip"), reason="unzip is missing (Debian: apt install unzip)")
def test_a_filled_site_says_what_another_package_offers(tmp_path: Path) -> None:
    package = tmp_path / "package.zip"
    with zipfile.ZipFile(package, "w") as file:
        file.writestr("wordpress/wp-includes/version.php", VERSION.format("6.9.4"))
        for needed in ("readme.html", "wp-admin/includes/update-core.php"):
            file.writestr(f"wordpress/{needed}", "")
    data = tmp_path / "data"
    data.mkdir()
    before = {"size": "small", "wordpress": {"installed": "6.1.9", "offered": "6.8.3"}}
    (data / "site.json").write_text(json.dumps(before, indent=4))
    offer = [str(ROOT / "site" / "provision" / "offer"), "put", str(package)]
    subprocess.run(offer, env=os.environ | {"PLIMSOLL_DATA": str(data)}, check=True)
    assert json.loads((data / "mirror" / "offer.json").read_text())["version"] == "6.9.4"
    after = json.loads((data / "site.json").read_text())
    assert after == before | {"wordpress": {"installed": "6.1.9", "offered": "6.9.4"}}
