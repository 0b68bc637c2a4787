"""The site under test: what it serves, and what lies in it."""

import re
import shutil
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from plimsoll.rundir.records import SERVED, count_served
from tests.support.programs import Replay, eventually
from tests.support.rundir import load_records
from tests.support.site import Site, left_behind, make, need_docker, run

PAGES = [
    ("/", "The Plimsoll Gazette", "the front page"),
    ("/page/7/", "The Plimsoll Gazette", "an old page of the list"),
    ("/2019/06/", "The Plimsoll Gazette", "a month"),
    ("/category/uncategorized/", "The Plimsoll Gazette", "a category"),
    ("/author/editor/", "The Plimsoll Gazette", "an author"),
    ("/?s=harbour", "Results for", "a search"),
    ("/feed/", "<rss", "the feed"),
    ("/wp-login.php", 'name="testcookie"', "the login form"),
    ("/wp-json/wp/v2/posts?per_page=3", '"rendered"', "the REST interface"),
    ("/static/pages/index.html", "style1.css", "the set of pages for visitors"),
    ("/forum/", "</html>", "the forum"),
]


@pytest.mark.parametrize(("path", "text", "what"), PAGES, ids=[row[2] for row in PAGES])
def test_pages_are_served(site_block: Site, path: str, text: str, what: str) -> None:
    reply = site_block.browser().ask(path)
    assert reply.status == 200, (what, site_block.logs())
    assert text in reply.text


def test_a_post_is_shown_with_its_comments_and_its_picture(site_block: Site) -> None:
    query = """SELECT p.ID, p.post_date, p.post_name FROM wp_posts p JOIN wp_postmeta m ON m.post_id = p.ID
        AND m.meta_key = '_thumbnail_id' WHERE p.post_type = 'post' AND p.post_status = 'publish'
        AND p.comment_count > 5 LIMIT 1"""
    number, date, name = site_block.sql(query)[0]
    reply = site_block.browser().ask(f"/{date[:4]}/{date[5:7]}/{name}/")
    assert reply.status == 200
    assert f"post-{number}" in reply.text
    assert reply.text.count('<li id="comment-') >= 5
    picture = re.search(
        r'<img[^>]* src="(?:http://[^/]*)?(/wp-content/uploads/[^"]*)"[^>]*srcset=', reply.text
    )
    assert picture, "no picture with a choice of sizes"
    assert site_block.browser().ask(picture[1]).headers["content-type"] == "image/jpeg"


def test_links_lead_back_to_the_name_and_port_that_was_asked(site_block: Site) -> None:
    assert f'href="{site_block.url}/' in site_block.browser().ask("/").text


CACHED = [
    ("/", True, "public pages come from the cache"),
    ("/static/pages/style1.css", True, "so do small files"),
    ("/wp-login.php", False, "the login is passed"),
    ("/wp-json/wp/v2/types", False, "REST is passed"),
    ("/?p=1&preview=true", False, "previews are passed"),
    ("/forum/install/", False, "the installer is passed"),
]


@pytest.mark.parametrize(("path", "cached", "why"), CACHED, ids=[row[2] for row in CACHED])
def test_cache(site_block: Site, path: str, cached: bool, why: str) -> None:
    site_block.browser().ask(path)
    again = site_block.browser().ask(path)
    assert again.headers["x-cache"] == ("HIT" if cached else "PASS"), why


def test_what_answered_a_replay_is_what_varnish_counts(
    site_block: Site, replay: Replay, tmp_path: Path
) -> None:
    asked = [
        path
        for number in range(20)
        for path in ("/", "/static/pages/style1.css", f"/no/such/page/{number}/", "/wp-login.php", "/forum/")
    ]
    line = '192.0.2.{} - - [20/Nov/2026:10:00:00 +0000] "GET {} HTTP/1.1" 200 5000 "-" "{}"\n'
    log = tmp_path / "access.log"
    log.write_text("".join(line.format(n % 9, path, n % 9) for n, path in enumerate(asked)))
    before = site_block.cache_counts()
    done = replay(str(log), "--target", site_block.url, "--rate", "20")
    assert done.returncode == 0, done.stderr
    noted = count_served(load_records(tmp_path / "results" / "latest"))
    found = Counter({by: count for by, count in zip(SERVED, noted.tolist(), strict=True) if count})
    assert found.keys() == {"hit", "miss", "pass"}
    assert eventually(lambda: site_block.cache_counts() - before == found, 30), (
        site_block.cache_counts() - before,
        found,
    )


def test_who_is_logged_in_is_passed_by_the_cache(site_block: Site) -> None:
    admin = site_block.browser()
    assert admin.log_in().status == 302
    admin.ask("/")
    reply = admin.ask("/")
    assert reply.headers["x-cache"] == "PASS"
    assert "wp-admin-bar" in reply.text


def test_visitors_may_not_empty_the_cache(site_block: Site) -> None:
    assert site_block.browser().ask("/", method="BAN").status == 405


def test_a_saved_post_is_seen_at_once(site_block: Site) -> None:
    title = site_block.sql("SELECT option_value FROM wp_options WHERE option_name = 'blogname'")[0][0]
    visitor, admin = site_block.browser(), site_block.browser()
    admin.log_in()
    nonce = admin.ask("/wp-admin/admin-ajax.php?action=rest-nonce").text
    visitor.ask("/")
    assert visitor.ask("/").headers["x-cache"] == "HIT"
    form = {"_wpnonce": nonce, "title": "Seen at once", "status": "publish"}
    assert admin.ask("/wp-json/wp/v2/posts", form).status == 201
    page = visitor.ask("/").text
    assert title in page
    assert "Seen at once" in page


@pytest.mark.parametrize("user", ["admin", "editor", "author", "contributor", "subscriber"])
def test_accounts(site_block: Site, user: str) -> None:
    browser = site_block.browser()
    reply = browser.log_in(user)
    assert reply.status == 302
    assert "wordpress_logged_in_" in str(browser.jar)
    assert re.match(r"cpu;dur=\d+\.\d$", reply.headers["server-timing"])


ADMIN = [
    "",
    "edit.php",
    "edit-comments.php",
    "upload.php?mode=list",
    "users.php",
    "media-new.php",
    "site-health.php",
]


@pytest.mark.parametrize("page", ADMIN)
def test_admin_pages(site_block: Site, page: str) -> None:
    admin = site_block.browser()
    admin.log_in()
    reply = admin.ask(f"/wp-admin/{page}")
    assert reply.status == 200
    assert "</html>" in reply.text
    assert "critical error" not in reply.text
    assert "server-timing" in reply.headers


def test_editors(site_block: Site, site_classic: Site) -> None:
    for site, block in ((site_block, True), (site_classic, False)):
        admin = site.browser()
        admin.log_in()
        page = admin.ask("/wp-admin/post-new.php").text
        assert ("block-editor-page" in page) is block
        assert ('name="post_title"' in page) is not block


def test_the_mirror_offers_a_newer_wordpress(site_block: Site) -> None:
    admin = site_block.browser()
    admin.log_in()
    page = admin.ask("/wp-admin/update-core.php").text
    version = re.search(r'<input name="version" value="(6\.8\.\d+)"', page)
    assert version, "update-core.php has no form for 6.8"
    assert site_block.facts()["versions"]["offered"] == version[1]
    assert site_block.facts()["versions"]["wordpress"].startswith("6.1.")


def test_nothing_is_called_outside(site_block: Site) -> None:
    said = site_block.php("calls.php").splitlines()
    assert said == ["http_request_not_executed", "http_request_not_executed", "200", "sent"]
    # Nor could it be: the network has no way out.
    network = run("docker", "network", "inspect", f"{site_block.name}_inside", "-f", "{{.Internal}}")
    assert network.stdout.strip() == "true"


def test_every_picture_has_all_its_sizes(site_block: Site) -> None:
    said = site_block.php("pictures.php").splitlines()
    assert len(said) == 1, said
    assert int(said[0]) >= site_block.facts()["counts"]["images"]


def test_relations_hold(site_block: Site) -> None:
    report = ("php8.2", "/usr/share/plimsoll/seed/report.php", "--size", "small", "--seed", "1")
    site_block.on("php", *report)


def test_the_cache_answers_for_a_dead_backend(site_classic: Site) -> None:
    site_classic.stop("web")
    try:
        reply = site_classic.browser().ask("/wp-login.php")
    finally:
        site_classic.start("web")
    assert reply.status == 503
    assert "Backend fetch failed" in reply.text
    assert reply.headers["server"] == "Varnish"
    assert "x-varnish" in reply.headers
    # And all is well again, at the same place.
    assert eventually(lambda: site_classic.browser().ask("/wp-login.php?again").status == 200)


def test_the_access_log_can_be_replayed(site_block: Site) -> None:
    site_block.browser().ask("/static/pages/index.html?seen-in-the-log")
    line = r'"GET /static/pages/index.html\?seen-in-the-log HTTP/1.1" 200 \d+ "-" "Python'
    log = site_block.folder / "logs" / "access.log"
    assert eventually(lambda: bool(re.search(line, log.read_text())))
    assert "plimsoll-ready" not in log.read_text()


REFUSED = [
    ("site", {"SITE_SIZE": "huge"}, "small, medium or large", "a size that is none"),
    ("site", {"SITE_SEED": "x"}, "SITE_SEED=x", "a seed that is no number"),
    ("site", {"SITE_NAME": "My Site"}, "SITE_NAME=My Site", "a name that Compose would not take"),
    ("site", {"SITE_EDITOR": "vi"}, "block or classic", "an editor that is none"),
    ("site", {"SITE_PORT": "http"}, "not a port number", "a port that is none"),
    (
        "site",
        {"WP_UPGRADE_ZIP": "/no/such.zip"},
        "there is no such file",
        "a package that is not there",
    ),
    ("site", {}, "is neither empty nor a site of ours", "a folder that holds something else"),
    ("site-down", {}, "is not a site of ours", "to end what is no site"),
]


@pytest.mark.parametrize(("target", "settings", "text", "what"), REFUSED, ids=[row[3] for row in REFUSED])
def test_refused(tmp_path: Path, target: str, settings: dict[str, str], text: str, what: str) -> None:
    need_docker()
    (tmp_path / "letter.txt").write_text("mine")
    done = make(target, {"BACKEND_DIR": str(tmp_path)} | settings)
    assert text in done.stderr, what
    assert "Error 2" in done.stderr  # make's own word for the script's exit code
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_package_that_is_no_wordpress_is_refused(site_block: Site, tmp_path: Path) -> None:
    package = tmp_path / "wordpress.zip"
    package.write_text("no zip")
    folder = tmp_path / "data"
    done = make("site", {"BACKEND_DIR": str(folder), "SITE_NAME": "no-zip", "WP_UPGRADE_ZIP": str(package)})
    assert "is not a WordPress zip: it cannot be unpacked" in done.stderr
    assert not folder.exists()
    assert left_behind("no-zip") == []


def test_a_package_of_ones_own_is_offered(site_block: Site, tmp_path: Path) -> None:
    ours = site_block.facts()["versions"]["offered"]  # whatever Debian's package was when the image was made
    offered = site_block.folder / "mirror" / f"wordpress-{ours}.zip"
    package = tmp_path / "my.zip"
    with zipfile.ZipFile(offered) as old, zipfile.ZipFile(package, "w") as new:
        for name in ("readme.html", "wp-includes/version.php", "wp-admin/includes/update-core.php"):
            text = old.read(f"wordpress/{name}").replace(f"'{ours}'".encode(), b"'99.9.1'")
            new.writestr(f"wordpress/{name}", text)
    port = site_block.url.rpartition(":")[2]
    again = {"BACKEND_DIR": str(site_block.folder), "SITE_NAME": site_block.name, "SITE_PORT": port}
    admin = site_block.browser()
    admin.log_in()
    kept = tmp_path / "kept.zip"
    shutil.copy(offered, kept)
    for zip_file, version in ((package, "99.9.1"), (kept, ours)):
        done = make("site", again | {"WP_UPGRADE_ZIP": str(zip_file)})
        assert done.returncode == 0, done.stderr
        assert f'name="version" value="{version}"' in admin.ask("/wp-admin/update-core.php").text


def test_a_seeded_folder_is_not_seeded_otherwise(site_block: Site) -> None:
    for setting in ({"SITE_SIZE": "medium"}, {"SITE_SEED": "2"}):
        done = make("site", {"BACKEND_DIR": str(site_block.folder), "SITE_NAME": site_block.name} | setting)
        assert "make site-down BACKEND_DIR=" in done.stderr
        assert "Error 2" in done.stderr


def test_a_folder_has_one_site_and_a_name_one_folder(site_block: Site, tmp_path: Path) -> None:
    done = make("site", {"BACKEND_DIR": str(site_block.folder), "SITE_NAME": "another"})
    assert f"the site '{site_block.name}' already runs on" in done.stderr
    done = make("site", {"BACKEND_DIR": str(tmp_path / "new"), "SITE_NAME": site_block.name})
    assert f"a site named '{site_block.name}' runs on" in done.stderr
    port = {"SITE_PORT": site_block.url.rpartition(":")[2]}
    done = make("site", port | {"BACKEND_DIR": str(tmp_path / "new"), "SITE_NAME": "another"})
    assert f"port {port['SITE_PORT']} of 127.0.0.1 is not available" in done.stderr
    assert not (tmp_path / "new").exists()
