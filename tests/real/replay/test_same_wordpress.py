"""`bin/replay same` on the WordPress of `make site` under two names: a clone that serves the same."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import REPLAY, need
from tests.support.site import Site

TARGETS = (
    "/",
    "/page/7/",
    "/2019/06/",
    "/author/editor/",
    "/?s=harbour",
    "/feed/",
    "/wp-login.php",
    "/wp-json/wp/v2/posts?per_page=2",
    "/wp-includes/css/dist/block-library/style.min.css",
)
WAYS = [
    ("a clone behind another name", []),
    ("each page made anew, with the times and nonces of that moment", ["Authorization: none"]),
]


@pytest.mark.parametrize(("what", "headers"), WAYS, ids=[row[0] for row in WAYS])
def test_a_quiet_pair_is_the_same(site_block: Site, tmp_path: Path, what: str, headers: list[str]) -> None:
    log, given = tmp_path / "access.log", tmp_path / "headers"
    line = '192.0.2.7 - - [20/Nov/2026:10:00:00 +0000] "GET {} HTTP/1.1" 200 5000 "-" "a visitor"\n'
    log.write_text("".join(line.format(target) for target in TARGETS))
    given.write_text("".join(f"{header}\n" for header in ["Accept: */*", *headers]))
    given.chmod(0o600)
    command = [need(REPLAY), "same", str(log), "--baseline", "http://www.site.example", "--candidate"]
    command += ["http://clone.example", "--header-file", str(given), "--json", "--quiet", "--timeout", "120s"]
    for side in ("baseline", "candidate"):
        command += [f"--{side}-connect-to", site_block.url.removeprefix("http://")]
    ran = subprocess.run(
        [*command, "--out", str(tmp_path / "results")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode in {0, 1, 3}, ran.stderr
    found = json.loads(ran.stdout)
    assert (ran.returncode, found["verdict"]) == (0, "same"), (what, found["shown"], ran.stderr)
    assert found["pages"]["same_2xx"] == len(TARGETS), (what, found)
