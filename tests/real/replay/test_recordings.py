"""What visitors post is recorded as docs/record.md has it, replayed, and in the database: each once."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.programs import ROOT, open_to_all
from tests.support.servers import NGINX, Nginx
from tests.support.site import Site

Replayed = Callable[..., subprocess.CompletedProcess[str]]
PASSWORD = "a word for members"  # noqa: S105 (of an account that this test makes)
COMMENT = 'A comment with "quotes", ümlauts & more.'
REPLY = "A reply of the recording.\nOn two lines."
THREAD = "/forum/index.php?threads/1"
READING_S = 3


def recording_format() -> str:
    """The `log_format` of docs/record.md, as it stands there."""
    text = (ROOT / "docs" / "record.md").read_text()
    found = re.search(r"log_format recording [^;]*;", text)
    assert found
    return found.group()


@pytest.fixture
def proxy(site_block: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    """An nginx in front of the site that records."""
    root = tmp_path_factory.mktemp("proxy")
    open_to_all(root.parent)
    begin, _, rest = NGINX.partition("  log_format")
    rest = rest[rest.index("client_body_temp_path") :]
    shape = recording_format().replace("{", "{{").replace("}", "}}")
    place = f"location / {{{{ proxy_pass {site_block.url}; proxy_set_header Host $http_host; }}}}"
    rest = re.sub(r"location / \{\{.*?\}\}", lambda _: place, rest)
    server = Nginx(root, setup=f"{begin}  {shape}\n  access_log {{root}}/recording.log recording;\n  {rest}")
    yield server
    server.stop()


def field(page: str, name: str) -> str:
    """The value of a page's field."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found, page
    return found.group(1)


@pytest.fixture
def member(site_block: Site) -> Iterator[str]:
    """A member of the forum with a password of this test's."""
    hashed = site_block.on(
        "php", "php8.2", "-r", f"echo password_hash('{PASSWORD}', PASSWORD_BCRYPT, ['cost' => 4]);"
    )
    (row,) = site_block.sql("SELECT name, password FROM member WHERE member_id = 2", "forum")
    site_block.sql(f"UPDATE member SET password = '{hashed}' WHERE member_id = 2", "forum")  # noqa: S608
    yield row[0]
    site_block.sql(f"UPDATE member SET password = '{row[1]}' WHERE member_id = 2", "forum")  # noqa: S608
    site_block.sql("DELETE FROM session WHERE member_id = 2", "forum")


def comments(site: Site) -> list[list[str]]:
    return site.sql(
        "SELECT comment_author, comment_author_email FROM wp_comments "
        "WHERE comment_content LIKE 'A comment with %more.'"
    )


def open_post(site: Site) -> str:
    """An article that takes comments."""
    (row,) = site.sql(
        "SELECT ID FROM wp_posts WHERE post_type = 'post' AND post_status = 'publish' "
        "AND comment_status = 'open' ORDER BY ID LIMIT 1"
    )
    return row[0]


def replies(site: Site) -> list[list[str]]:
    return site.sql(
        "SELECT member_id, thread_id FROM post WHERE message LIKE 'A reply of the recording.%lines.'", "forum"
    )


def remove(site: Site) -> None:
    site.sql("DELETE FROM wp_comments WHERE comment_content LIKE 'A comment with %more.'")
    for table in ("search_index", "post"):
        site.sql(f"DELETE FROM {table} WHERE message LIKE 'A reply of the recording.%lines.'", "forum")  # noqa: S608


@pytest.fixture(autouse=True)
def _clean(site_block: Site) -> Iterator[None]:
    """Nothing of another test is there."""
    remove(site_block)
    yield
    remove(site_block)


def as_people_do(line: str, number: int) -> str:
    """A line of the recording, seconds after the one before: who posts has read the page, on a busy site too.

    The two people are one browser in this test; the line says which of them it was.
    """
    line = re.sub(r'"time":"[^"]*"', f'"time":"{1_700_000_000 + number * READING_S}.000"', line)
    return line.replace('"agent":"', '"agent":"' + ("guest " if number < 2 else "member ")) + "\n"


def test_a_comment_and_a_reply_are_replayed_once_each(
    site_block: Site, proxy: Nginx, member: str, replay: Replayed, tmp_path: Path
) -> None:
    post = open_post(site_block)
    site = Site(site_block.name, proxy.url, site_block.folder)
    guest, writer = site.browser(), site.browser()

    # What people do, once: a guest comments, and a member logs in and replies.
    assert guest.ask(f"/?p={post}").status in {200, 301}
    form = {"author": "Anna", "email": "anna@site.example", "url": "", "comment": COMMENT}
    said = guest.ask("/wp-comments-post.php", form | {"comment_post_ID": post, "comment_parent": "0"})
    assert said.status == 302, said.text
    login = writer.ask("/forum/index.php?login")
    form = {"_xfToken": field(login.text, "_xfToken"), "name": member, "password": PASSWORD}
    assert writer.ask("/forum/index.php?login", form).status == 303
    token = field(writer.ask(THREAD).text, "_xfToken")
    assert writer.ask(f"{THREAD}/add-reply", {"_xfToken": token, "message": REPLY}).status == 303
    assert (len(comments(site_block)), len(replies(site_block))) == (1, 1)

    # The clone is from before that.
    remove(site_block)
    site_block.sql("DELETE FROM session WHERE member_id = 2", "forum")
    recording = proxy.log.with_name("recording.log")
    lines = recording.read_text().splitlines()
    assert len(lines) == 6
    assert all(json.loads(line)["client"] == "127.0.0.1" for line in lines)
    recording.write_text("".join(as_people_do(line, n) for n, line in enumerate(lines)))

    listed = tmp_path / "accounts"
    listed.write_text(f"{member}:{PASSWORD}\n")
    listed.chmod(0o600)
    members = ["--accounts", str(listed), "--members-match", "^/forum/"]
    members += ["--login-page", "/forum/index.php?login"]
    done = replay(str(recording), "--target", site_block.url, "--methods", "GET,POST", *members)
    assert done.returncode == 0, done.stderr

    assert [row[0] for row in comments(site_block)] == ["Anna"]
    assert comments(site_block)[0][1].endswith("@example.invalid")
    assert replies(site_block) == [["2", "1"]]
    summary = json.loads((tmp_path / "results" / "latest" / "summary.json").read_text())
    assert summary["requests"]["skipped"] == {"password_in_body": 1}
    assert summary["requests"]["errors"] == summary["requests"]["status_mismatch"] == 0
    written = [path.read_bytes() for path in (tmp_path / "results").rglob("*") if path.is_file()]
    for secret in (PASSWORD, "anna@site", COMMENT[:10], REPLY[:10], token, "forum_session"):
        assert not [text for text in written if secret.encode() in text], secret
        assert secret not in done.stdout + done.stderr


def test_what_a_browser_archived_is_replayed(
    site_block: Site, browser: Browser, replay: Replayed, tmp_path: Path
) -> None:
    archive = tmp_path / "visit.har"
    context = browser.new_context(record_har_path=archive, record_har_content="omit")
    page = context.new_page()
    page.goto(f"{site_block.url}/?p={open_post(site_block)}")
    page.fill("#comment", COMMENT)
    page.fill("#author", "Anna")
    page.fill("#email", "anna@site.example")
    page.click("#submit")
    page.wait_for_load_state()
    context.close()  # writes the archive
    assert len(comments(site_block)) == 1
    remove(site_block)

    done = replay(str(archive), "--target", site_block.url, "--methods", "GET,POST", "--speed", "2")
    assert done.returncode == 0, done.stderr
    assert [row[0] for row in comments(site_block)] == ["Anna"]
    assert comments(site_block)[0][1].endswith("@example.invalid")
    summary = json.loads((tmp_path / "results" / "latest" / "summary.json").read_text())
    assert summary["requests"]["errors"] == 0


def test_without_post_nothing_is_written(
    site_block: Site, proxy: Nginx, replay: Replayed, tmp_path: Path
) -> None:
    browser = Site(site_block.name, proxy.url, site_block.folder).browser()
    browser.ask("/")
    browser.ask("/wp-comments-post.php", {"comment": COMMENT, "comment_post_ID": "999999999"})
    done = replay(str(proxy.log.with_name("recording.log")), "--target", site_block.url)
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "results" / "latest" / "summary.json").read_text())
    assert summary["requests"]["skipped"] == {"method_not_allowed": 1}
    assert comments(site_block) == []
