"""Scenarios ask a site for what a real Chromium asks it for: visitors for files, authors as often."""

import json
import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

import pytest
import yaml
from playwright.sync_api import Browser

from plimsoll.scenarios.wordpress.editor_traffic import PROFILES
from tests.support.programs import LONGEST_S, ROOT
from tests.support.scenario import ended, plugin, run_browser, started
from tests.support.servers import Reply, serve_http
from tests.support.site import Site
from tools.editor_requests import kind_of

SETS = {
    "wordpress": ("s 300w, m 768w, l 1024w, x 1536w", "(max-width: 652px) 100vw, 652px"),
    "lazy": ("s 300w, m 768w, l 1024w", "(max-width: 500px) 100vw, 290px"),
    "whole": ("s 300w, m 768w, l 1024w, x 1536w, y 3000w", ""),
    "sum": ("s 300w, m 768w, l 1024w", "calc(100vw - 60px)"),
    "near": ("s 600w, m 660w, l 1000w", "610px"),
    "fine": ("one, two 2x, three 3x", ""),
    "half": ("half 1.5x, two 2x", ""),
    "far": ("three 3x", ""),
    "range": ("s 300w, l 900w", "(width < 500px) 900px, 300px"),
}
SOURCES = {
    "format": '<source srcset="{0}.no" type="image/x-no"><source srcset="{0}.webp" type="image/webp">',
    "width": (
        '<source srcset="{0}-s" media="(max-width: 600px)">'
        '<source srcset="{0}-l" media="(min-width: 37.6em)">'
    ),
    "none": '<source srcset="{0}-p" media="print">',
    "fine-only": '<source srcset="{0}-fine 3x">',
}
SCREENS = [
    ("a laptop", 1366, 1.0),
    ("a phone", 412, 2.6),
    ("a tablet", 820, 2.0),
    ("a wide screen", 2560, 1.25),
]
SCRIPT = """
import {{ filesOf }} from '{root}/scenarios/k6/files.js';
import {{ Site }} from '{root}/scenarios/k6/address.js';
const html = open('{page}');
export default function () {{
  const screen = {{ width_px: {width}, pixel_ratio: {ratio} }};
  console.log(JSON.stringify(filesOf(html, '{url}/', new Site('{url}'), screen, null)));
}}
"""


HEAD = """<!DOCTYPE html><html><head><link rel="stylesheet" href="/a.css"><script src="/b.js"></script>
<link rel="preload" as="image" imagesrcset="/early/s 300w, /early/l 900w" imagesizes="100vw"></head><body>"""


def _image(name: str, offered: str, sizes: str) -> str:
    addresses = ", ".join(f"/{name}/{one}" for one in offered.split(", "))
    lazy = ' loading="lazy"' if name == "lazy" else ""
    within = f' sizes="{sizes}"' if sizes else ""
    return f'<img src="/{name}/own" srcset="{addresses}"{within}{lazy}>'


def _page() -> str:
    images = [_image(name, *offered) for name, offered in SETS.items()]
    pictures = [
        f'<picture>{sources.format(f"/{name}/it")}<img src="/{name}/own"></picture>'
        for name, sources in SOURCES.items()
    ]
    return "\n".join([HEAD, *images, *pictures, "</body></html>"])


@pytest.mark.parametrize(("width", "ratio"), [row[1:] for row in SCREENS], ids=[row[0] for row in SCREENS])
def test_visitors_fetch_what_a_browser_fetches(
    browser: Browser, k6: Path, tmp_path: Path, width: int, ratio: float
) -> None:
    asked = set[str]()

    def answer(_: str, path: str, __: bytes) -> Reply:
        asked.add(path)
        return (200, _page().encode()) if path == "/" else (200, b"", {"Content-Type": "image/png"})

    with serve_http(answer) as url:
        opened = browser.new_page(viewport={"width": width, "height": 900}, device_scale_factor=ratio)
        opened.goto(url, wait_until="networkidle")
        opened.close()
    (tmp_path / "page.html").write_text(_page())
    script = SCRIPT.format(root=ROOT, page=tmp_path / "page.html", url=url, width=width, ratio=ratio)
    (tmp_path / "script.js").write_text(script)
    line = [str(k6), "run", "--quiet", "--address=", "--summary-mode=disabled", "--log-format=json"]
    done = subprocess.run(
        [*line, str(tmp_path / "script.js")], capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    (files,) = [json.loads(text)["msg"] for text in done.stderr.splitlines() if text.startswith("{")]
    ours = {file.removeprefix(url) for file in json.loads(files)}
    assert sorted(ours) == sorted(asked - {"/", "/favicon.ico"})


# An author in the editor: by kind, from the site's log.

TOLERANCE = 0.1
EVERY_S, THINK_S = 5, 30
LINE = re.compile(
    r'\[(?P<at>[^]]+)\] "(?P<method>\S+) (?P<target>\S+) [^"]*" (?P<status>\d+) .*"(?P<agent>[^"]*)"$'
)
AGENTS = {" Chrome/": "browser", "Plimsoll": "save-article"}
PERIODIC = ("POST admin-ajax", "POST wp/v2/posts/{id}/autosaves")
# What the scenario asks for to know what it has measured, and no editor does.
OWN = {"GET admin-ajax rest-nonce", "GET wp/v2/posts/{id}", "file"}
# What it asks for when an author is new, or changes the editor itself: greetings dismissed, panels opened.
PREFERENCES = ("GET wp/v2/users/me", "POST wp/v2/users/me")
# An editor that beats and keeps drafts so often that a short test sees it.
QUICK = """
add_filter( 'block_editor_settings_all', function ( $s ) { $s['autosaveInterval'] = %d; return $s; } );
add_action( 'admin_print_footer_scripts', function () {
    $beat = 'window.wp && wp.heartbeat && wp.heartbeat.interval( %d )';
    echo "<script>addEventListener( 'load', () => $beat );</script>";
}, 99 );
"""


@dataclass(frozen=True)
class Logged:
    """A request of an author who is in the editor."""

    at_s: float
    kind: str


def in_editor(log: str) -> dict[str, list[Logged]]:
    """What each program asked for from its opening of the editor on."""
    found: dict[str, list[Logged]] = {name: [] for name in AGENTS.values()}
    for line in log.splitlines():
        one = LINE.search(line)
        who = next((name for word, name in AGENTS.items() if one and word in one["agent"]), None)
        kind = kind_of(one["method"], one["target"]) if one else None
        if not one or not who or not kind or not (found[who] or kind == "GET editor"):
            continue
        at_s = datetime.strptime(one["at"], "%d/%b/%Y:%H:%M:%S %z").timestamp()
        found[who].append(Logged(at_s, kind))
    return found


def interval_s(requests: list[Logged], kind: str) -> float:
    """The mean time from one to the next, without pauses and what came between."""
    at_s = [one.at_s for one in requests if one.kind == kind]
    gaps = [later - former for former, later in pairwise(at_s)]
    usual = median(gaps)
    return mean(gap for gap in gaps if usual / 2 < gap < usual * 2)


@pytest.mark.slow
@pytest.mark.usefixtures("browser_programs")
def test_rates_by_kind_are_those_of_a_browser(site_block: Site, tmp_path: Path) -> None:
    version = (site_block.folder / "wordpress" / "wp-includes" / "version.php").read_text()
    branch = re.search(r"wp_version = '(\d+\.\d+)", version)
    assert branch
    profile = yaml.safe_load((PROFILES / f"wordpress-{branch[1]}.yml").read_text(encoding="utf-8"))
    # The browser's author neither chooses categories nor puts the image in: the recordings have those.
    profile |= {"heartbeat_s": EVERY_S, "autosave_s": EVERY_S}
    profile["categories"]["share"] = profile["image"]["share"] = 0
    own = tmp_path / "profile.yml"
    own.write_text(yaml.safe_dump(profile), encoding="utf-8")

    log = site_block.folder / "logs" / "access.log"
    before_bytes = log.stat().st_size
    think = ("--iterations", "1", "--think-s", str(THINK_S))
    once_more = ("--saves", "1", "--editor-profile", str(own))
    with plugin(site_block.folder, QUICK % (EVERY_S, EVERY_S)):
        process = started("save-article", site_block.url, tmp_path / "save", *think, *once_more)
        spent = run_browser(site_block.url, tmp_path / "browser", *think, "--no-screenshots")
        run = ended(process, tmp_path / "save")
    assert spent.returncode == 0, spent.stdout + spent.stderr
    assert run.code == 0, run.said

    with log.open("rb") as file:
        file.seek(before_bytes)
        requests = in_editor(file.read().decode(errors="replace"))
    browser, ours = (Counter(one.kind for one in requests[who]) for who in ("browser", "save-article"))
    once = [kind for kind in browser if kind not in (*PERIODIC, *PREFERENCES, "file")]
    assert once, "the browser wrote an article"
    assert {kind: ours[kind] for kind in once} == pytest.approx(
        {kind: browser[kind] for kind in once}, rel=TOLERANCE
    )
    assert ours.keys() - browser.keys() <= OWN, "nothing that no browser asks for"
    for kind in PERIODIC:
        intervals_s = [interval_s(requests[who], kind) for who in ("save-article", "browser")]
        assert intervals_s[0] == pytest.approx(intervals_s[1], rel=TOLERANCE), kind
