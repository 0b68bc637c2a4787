"""An author's day in a real Chromium on a real WordPress, with the block editor and with the classic one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from plimsoll.rundir.read import RunDirectory
from tests.support.programs import LONGEST_S, ROOT, free_port
from tests.support.rundir import load_records
from tests.support.scenario import run_browser
from tests.support.servers import Reply, serve_http
from tests.support.site import PASSWORD, Site

STEPS = (
    "front page",
    "read an article",
    "log in",
    "dashboard",
    "open editor",
    "write",
    "publish",
    "save again",
    "view article",
    "upload",
    "log out",
)


pytestmark = pytest.mark.usefixtures("browser_programs")


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def failures(run: Path) -> list[dict[str, Any]]:
    """What failed, from events.jsonl."""
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    return [event for event in events if event["event"] == "error"]


def test_two_authors_write_on_a_clone_that_answers_under_the_sites_name(
    site_block: Site, tmp_path: Path
) -> None:
    port = urlsplit(site_block.url).port
    options = ("--connect-to", f"127.0.0.1:{port}", "--users", "2", "--iterations", "2")
    done = run_browser("http://blog.example", tmp_path, *options, port=port)
    run = the_day_was_whole(site_block, done, tmp_path, days=2)
    assert set(load_records(run.path)["client"].tolist()) == {1, 2}


def test_days_begin_until_the_time_is_up_and_none_is_cut_off(site_classic: Site, tmp_path: Path) -> None:
    done = run_browser(site_classic.url, tmp_path, "--duration-s", "2")
    run = the_day_was_whole(site_classic, done, tmp_path, days=1)
    assert not read(run.path / "summary.json")["requests"]["skipped"].get("dropped_iterations")


def the_day_was_whole(
    site: Site, done: subprocess.CompletedProcess[str], out: Path, days: int
) -> RunDirectory:
    """Nothing failed; so many days are in the database, and the first one in what was recorded."""
    assert done.returncode == 0, done.stdout + done.stderr
    run = RunDirectory.open(out / "latest")
    assert run.status == "complete"
    assert failures(run.path) == []

    # What it did is in the database.
    own = next(str(event.further["name"]) for event in run.events if event.name == "run name")
    published = site.sql(
        "SELECT ID, post_title, REPLACE(post_content, CHAR(13), '') FROM wp_posts"
        " WHERE post_status = 'publish' AND post_type = 'post' AND post_title LIKE 'Plimsoll%' ORDER BY ID"
    )
    rows = [row for row in published if row[1].endswith(own)]
    assert len(rows) == days
    for _, _, content in rows:
        assert "key by key" in content
        assert "One more thought" in content, "it was saved again"
    parents = site.sql("SELECT DISTINCT post_parent FROM wp_posts WHERE post_type = 'revision'")
    assert [rows[-1][0]] in parents
    files = site.sql("SELECT meta_value FROM wp_postmeta WHERE meta_key = '_wp_attached_file'")
    assert len([row for row in files if own in row[0]]) == days

    # What it recorded.
    # An author may have written before the editor asked the site for anything.
    assert {f"{route}" for route in run.routes} >= set(STEPS) - {"write"}
    summary = read(run.path / "summary.json")
    counted = read(run.path / "k6-summary.json")["metrics"]
    cached = summary["requests"]["skipped"].get("from_cache", 0)
    assert run.requests.count == summary["requests"]["sent"]
    assert summary["requests"]["errors"] == 0
    assert (
        run.requests.count + cached
        >= counted["browser_http_req_failed"]["passes"] + counted["browser_http_req_failed"]["fails"]
    )
    measures = summary["measures"]
    for kind in ("front page", "article", "login", "dashboard", "editor", "media"):
        for vital in ("ttfb", "fcp", "lcp", "page_load"):
            assert measures[f"{vital}: {kind}"]["count"] >= 1, (vital, kind)
    assert measures["cls: editor"]["unit"] == "score"
    assert measures["inp: editor"]["count"] >= 1
    assert all(
        measures[name]["count"] == days for name in ("log_in", "editor_ready", "publish", "save", "upload")
    )
    pictures = sorted(path.name for path in (run.path / "screenshots").iterdir())
    assert pictures == [f"1-{n:02}-{step.replace(' ', '-')}.png" for n, step in enumerate(STEPS, 1)]
    assert min(path.stat().st_size for path in (run.path / "screenshots").iterdir()) > 5000
    assert nowhere(PASSWORD, run.path)
    return run


def nowhere(secret: str, folder: Path) -> bool:
    return not [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_a_wrong_password_is_named_and_kept_secret(site_block: Site, tmp_path: Path) -> None:
    done = run_browser(site_block.url, tmp_path, "--iterations", "3", password="not-the-password")  # noqa: S106
    run = tmp_path / "latest"
    assert done.returncode == 1
    assert read(run / "run.json")["status"] == "failed"
    assert "login failed" in read(run / "run.json")["reason"]
    [failed] = failures(run)
    assert (failed["step"], failed["kind"]) == ("log in", "login_failed"), "one is enough"
    assert (run / "screenshots" / "1-03-log-in-failed.png").exists()
    assert nowhere("not-the-password", run)


def test_who_may_not_write_is_told(site_classic: Site, tmp_path: Path) -> None:
    done = run_browser(site_classic.url, tmp_path, user="subscriber")
    run = tmp_path / "latest"
    assert done.returncode == 1
    assert read(run / "run.json")["status"] == "failed"
    [failed] = failures(run)
    assert (failed["step"], failed["kind"]) == ("open editor", "no_permission")


def test_nobody_there_is_a_failed_run(tmp_path: Path) -> None:
    done = run_browser(f"http://127.0.0.1:{free_port()}", tmp_path, port=free_port())
    assert done.returncode == 1
    facts = read(tmp_path / "latest" / "run.json")
    assert facts["status"] == "failed"
    assert "ERR_CONNECTION_REFUSED" in facts["reason"]


@contextmanager
def serving(page: str) -> Iterator[tuple[str, list[str]]]:
    """Where a page and its files are, and what is asked for. What is called `lost` is not answered."""
    asked: list[str] = []

    def answer(method: str, path: str, _: bytes) -> Reply | None:
        name = path.partition("?")[0]
        asked.append(f"{method} {name}")
        if "lost" in name:
            return None
        if name in ("/", "/post"):
            return 200, page.encode()
        if name.startswith("/elsewhere"):
            return 302, b"", {"Location": "http://elsewhere.example/x"}
        if name in ("/none.js", "/wp-login.php"):
            return 404, b"none"
        return 204 if name == "/empty.png" else 200, b"", {"Cache-Control": "max-age=60"}

    with serve_http(answer) as url:
        yield url, asked


REMEDY = (
    ": the server closed the connection, or a network interface of this machine came or went"
    " (a container or a virtual machine began or ended): run the browser where none does"
)
LOST = [
    (
        "a script; what follows ? may be a secret",
        '<script src="/lost.js?key=1"></script>',
        "1 file of the page did not load, first /lost.js",
    ),
    (
        "each file counts once",
        '<link rel="stylesheet" href="/lost.css"><script src="/lost.js"></script>'
        '<script src="/lost.js"></script><img src="/lost.png"><script src="/whole.js"></script>',
        "3 files of the page did not load, first /lost.css",
    ),
    (
        "a long path is cut at its beginning",
        f'<script src="/{"x" * 300}/lost.js"></script>',
        f"1 file of the page did not load, first …{'x' * 51}/lost.js",
    ),
]


@pytest.mark.parametrize(("says", "page", "words"), LOST)
def test_a_page_that_lacks_files_fails_with_the_likely_reason(
    says: str, page: str, words: str, tmp_path: Path
) -> None:
    with serving(page) as (target, _):
        done = run_browser(target, tmp_path)
    assert done.returncode == 1, says
    [failed] = failures(tmp_path / "latest")
    assert (failed["step"], failed["kind"]) == ("front page", "closed_early"), says
    assert failed["detail"] == words + REMEDY, says


INNOCENT = """
<h2><a href="/post">A post</a></h2>
<meta http-equiv="Content-Security-Policy" content="style-src 'none'">
<link rel="stylesheet" href="/forbidden.css"><link rel="prefetch" href="/lost-prefetch.js">
<script src="/none.js"></script><script src="/elsewhere.js"></script>
<script src="http://elsewhere.example/x.js"></script><img src="data:image/gif;base64,R0lGOD">
<img src="/empty.png"><img src="/elsewhere.png"><iframe src="/lost.html"></iframe>
<img id="changed" src="/lost-given-up.png">
<script>
document.getElementById('changed').src = '/empty.png?changed';
navigator.sendBeacon('/lost-beacon', 'x');
const given_up = new AbortController();
fetch('/never', { signal: given_up.signal }).catch(() => null);
given_up.abort();
fetch('/lost-request').catch(() => null);
fetch('/again.js').then(() => fetch('/again.js', { cache: 'no-cache' }));
</script>
"""


def test_what_a_page_can_do_without_is_no_failure(tmp_path: Path) -> None:
    with serving(INNOCENT) as (target, asked):
        run_browser(target, tmp_path)
    [failed] = failures(tmp_path / "latest")
    assert (failed["step"], failed["kind"]) == ("log in", "http_error"), "there is none"
    checked = [line for line in asked if line.startswith("HEAD")]
    assert sorted(checked) == ["HEAD /elsewhere.js", "HEAD /elsewhere.png"], "once, for both pages"
    assert asked.count("GET /elsewhere.js") == 2


def test_it_asks_for_leave_first(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "plimsoll", "scenario", "browser", "--target", "http://127.0.0.1:9"]
    done = subprocess.run(
        [*line, "--user", "author", "--out", str(tmp_path / "results")],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PLIMSOLL_PASSWORD": PASSWORD, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 2
    assert "--i-may-change-this-site" in done.stderr
    assert not (tmp_path / "results").exists()
