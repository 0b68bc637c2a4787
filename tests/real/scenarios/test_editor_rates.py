"""`save-article` asks a real site for what Chromium asks it for, as often: by kind, from the log."""

import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

import pytest
import yaml

from plimsoll.scenarios.wordpress.editor_traffic import PROFILES
from tests.real.scenarios.test_browser_scenario import day, programs
from tests.support.scenario import ended, plugin, started
from tests.support.site import Site
from tools.editor_requests import kind_of

__all__ = ["programs"]

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
        spent = day(site_block.url, tmp_path / "browser", *think, "--no-screenshots")
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
