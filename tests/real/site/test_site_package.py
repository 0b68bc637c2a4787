"""A site that is filled already, and another package to offer it: the script that does so, as root."""

import json
import os
import subprocess
import zipfile
from pathlib import Path

from tests.support.programs import ROOT, need

VERSION = """<?php
$wp_version = '{}';
$wp_db_version = 60421;
$required_php_version = '7.2.24';
$required_mysql_version = '5.5.5';
"""


def test_a_filled_site_says_what_another_package_offers(tmp_path: Path) -> None:
    need("unzip")
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
