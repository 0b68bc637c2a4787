"""The forum stand-in against a real MariaDB: read, replied to, upgraded, killed, upgraded by two at once."""

import contextlib
import re
import threading
from collections.abc import Iterator

import pytest
import requests
from lxml import html

from tests.support.forum import COMPLETE, FORUM, PASSWORD, Forum, serving
from tests.support.programs import LONGEST_S, wait_for

POSTS = 5000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    yield from serving(tmp_path_factory.mktemp("db"), POSTS, FORUM_PAGE_ROWS="2000", FORUM_BATCH_ROWS="500")


@pytest.fixture
def forum(site: Forum) -> Iterator[Forum]:
    yield site
    site.reset()


@pytest.fixture(scope="module")
def upgraded(site: Forum) -> list[str]:
    """The tables after an upgrade that nothing interrupted."""
    site.must("cmd.php", "upgrade")
    tables = site.tables()
    site.reset()
    return tables


class Browser:
    """One who clicks through the installer."""

    def __init__(self, forum: Forum, password: str = PASSWORD) -> None:
        self.session, self.url = requests.Session(), f"{forum.url}/install/index.php"
        self.see(self.session.get(self.url))
        self.send(account="admin", secret=password)

    def see(self, reply: requests.Response) -> requests.Response:
        self.reply, self.page = reply, html.fromstring(reply.text)
        return reply

    def fields(self) -> dict[str, str]:
        return {str(e.get("name")): str(e.get("value")) for e in self.page.cssselect("input[type=hidden]")}

    def send(self, **further: str) -> requests.Response:
        return self.see(self.session.post(self.url, {**self.fields(), **further}))

    def text(self, selector: str) -> str:
        return " ".join(element.text_content() for element in self.page.cssselect(selector))

    def begun(self) -> bool:
        """Whether the upgrade goes on when its start form is sent again."""
        self.see(self.session.get(self.url))
        self.send()
        return "step" in self.fields()

    def until(self, step: str | None) -> "Browser":
        """Sends the continue form until `step` comes next, or (None) until there is none."""
        for _ in range(500):
            fields = self.fields()
            if fields.get("step") == step:
                return self
            assert fields, self.reply.text
            self.send()
            assert self.reply.status_code == 200, self.reply.text
        raise AssertionError("500 pages")


def test_the_same_seed_gives_the_same_forum_and_another_gives_another(forum: Forum) -> None:
    def seeded(seed: int) -> list[str]:
        forum.must("seed.php", "--rows", "1000", "--seed", str(seed), "--force")
        return forum.tables()

    try:
        first, again, other = seeded(1), seeded(1), seeded(2)
        assert first == again != other
        assert "already" in forum.must("seed.php", "--rows", "1000", "--seed", "2")
        refused = forum.php("seed.php", "--rows", "1000", "--seed", "3")
        assert (refused.returncode, "--force" in refused.stderr) == (2, True)
        # What a seeding that was interrupted leaves is made anew without being asked.
        forum.database.sql("DELETE FROM setting WHERE name = 'seeded'")
        forum.must("seed.php", "--rows", "1000", "--seed", "2")
        assert forum.tables() == other
    finally:
        forum.must("seed.php", "--rows", str(POSTS), "--force")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["seed.php", "--size", "huge"], id="a size that there is not"),
        pytest.param(["seed.php", "--rows", "many"], id="rows that are no number"),
        pytest.param(["seed.php", "small"], id="a word that belongs to no option"),
        pytest.param(["cmd.php"], id="no command"),
        pytest.param(["fault.php", "flood", "post-index"], id="a fault that there is not"),
        pytest.param(["fault.php", "fatal", "post-flood"], id="a step that there is not"),
    ],
)
def test_wrong_usage_is_said_and_exits_2(forum: Forum, arguments: list[str]) -> None:
    done = forum.php(*arguments)
    assert done.returncode == 2
    assert "usage:" in done.stderr


def test_guests_read_boards_threads_and_pages_and_get_no_cookie(forum: Forum) -> None:
    seen: set[str] = set()
    waiting = [f"{forum.url}/index.php"]
    while waiting and len(seen) < 60:
        url = waiting.pop(0)
        if url in seen or "login" in url:
            continue
        seen.add(url)
        reply = requests.get(url, timeout=LONGEST_S)
        assert reply.status_code == 200, url
        assert "Set-Cookie" not in reply.headers, "a cache would not keep this page"
        page = html.fromstring(reply.text, base_url=url)
        page.make_links_absolute()
        waiting += [str(href) for href in page.xpath("//a/@href") if str(href).startswith(forum.url)]
        if "threads/" in url:
            assert page.cssselect("article")
    assert any("page-" in url for url in seen)


@pytest.mark.parametrize(
    "route",
    ["threads/999999", "forums/99", "threads/1/page-9999", "threads/1'", "../config", "threads/1/page-0"],
)
def test_what_there_is_not_is_a_404_with_an_error_box(forum: Forum, route: str) -> None:
    reply = requests.get(f"{forum.url}/index.php?{route}", timeout=LONGEST_S)
    assert reply.status_code == 404
    assert "error-box" in reply.text


def test_a_member_logs_in_and_out(forum: Forum) -> None:
    session, url = requests.Session(), f"{forum.url}/index.php?login"

    def send(to: str, page: str, **fields: str) -> str:
        token = html.fromstring(page).cssselect("input[name=_xfToken]")[0].get("value")
        return session.post(to, {"_xfToken": str(token), **fields}, timeout=LONGEST_S).text

    page = session.get(url, timeout=LONGEST_S).text
    page = send(url, page, name="member2", password="wrong")  # noqa: S106
    assert "error-box" in page
    page = send(url, page, name="member2", password=PASSWORD)
    assert "logged in as member2" in page
    assert "logged out" in send(f"{forum.url}/index.php?logout", page)
    assert "logged in" not in session.get(url, timeout=LONGEST_S).text


def test_an_upgrade_ends_with_its_text_and_can_be_taken_back(forum: Forum, upgraded: list[str]) -> None:
    before = forum.tables()
    browser = Browser(forum)
    assert "1.9" in browser.text("main")
    browser.send()
    browser.until(None)
    assert browser.text(".complete") == COMPLETE
    assert forum.version() == "2.0"
    assert forum.tables() == upgraded
    assert int(forum.database.value("SELECT COUNT(*) FROM search_index")) == POSTS
    found = "SELECT COUNT(*) > 0 FROM search_index WHERE MATCH (title, message) AGAINST ('train')"
    assert forum.database.value(found) == "1"
    for route in ("", "forums/1", "threads/1"):
        assert requests.get(f"{forum.url}/index.php?{route}", timeout=LONGEST_S).status_code == 200
    forum.must("reset.php")
    assert forum.tables() == before


def test_a_second_upgrade_is_refused(forum: Forum) -> None:
    forum.must("cmd.php", "upgrade")
    refused = forum.php("cmd.php", "upgrade")
    assert (refused.returncode, "already up to date" in refused.stderr) == (1, True)
    browser = Browser(forum)
    assert "already up to date" in browser.text(".up-to-date")
    assert not browser.page.cssselect("form")


@pytest.mark.parametrize("token", ["", "1,abc", "9999999999," + "0" * 64])
def test_a_token_that_does_not_fit_is_refused_and_nothing_is_done(forum: Forum, token: str) -> None:
    browser = Browser(forum)
    reply = browser.send(_xfToken=token)
    assert reply.status_code == 400
    assert "security token" in browser.text(".error-box")
    assert forum.database.value("SELECT COUNT(*) FROM upgrade_lease") == "0"


@pytest.mark.parametrize(
    ("password", "account"), [("wrong", "admin"), (PASSWORD, "member2"), (PASSWORD, "nobody")]
)
def test_only_an_administrator_comes_in(forum: Forum, password: str, account: str) -> None:
    browser = Browser(forum, "wrong")
    reply = browser.send(account=account, secret=password)
    assert reply.status_code == 200, "as such software does"
    assert browser.text(".error-box")
    assert forum.database.value("SELECT COUNT(*) FROM upgrade_lease") == "0"


@pytest.mark.parametrize(
    ("further", "why"),
    [
        ({"cursor": "7777777"}, "a cursor ahead of the journal"),
        ({"step": "search-index"}, "a step that has not come yet"),
        ({"step": "nonsense"}, "a step that there is not"),
        ({"cursor": "-1"}, "a cursor that is no number"),
    ],
)
def test_a_form_that_we_did_not_make_is_refused(forum: Forum, further: dict[str, str], why: str) -> None:
    browser = Browser(forum)
    browser.send()
    browser.until("thread-counters")
    assert browser.send(**further).status_code == 400, why
    assert browser.text(".error-box")


def test_a_form_that_is_sent_twice_is_done_once(forum: Forum) -> None:
    browser = Browser(forum)
    browser.send()
    browser.until("post-reactions")
    fields = browser.fields()
    browser.send()
    after = browser.fields()
    assert after["cursor"] != fields["cursor"]
    browser.send(step=fields["step"], cursor=fields["cursor"])
    assert browser.fields()["cursor"] == after["cursor"]


def in_background(browser: Browser) -> threading.Thread:
    """Sends the continue form, whose page will not come."""

    def send() -> None:
        with contextlib.suppress(requests.RequestException):
            browser.send()

    thread = threading.Thread(target=send)
    thread.start()
    return thread


@pytest.mark.slow
def test_mariadbd_killed_in_an_alter_and_in_a_batch(forum: Forum, upgraded: list[str]) -> None:
    database = forum.database
    browser = Browser(forum)
    browser.send()
    for step, blocker, statement in (
        ("post-charset", "SELECT 1 FROM post LIMIT 1", "ALTER TABLE `post` CONVERT"),
        ("search-index", "SELECT 1 FROM post WHERE post_id = {} FOR UPDATE", "INSERT INTO search_index"),
    ):
        browser.until(step)
        row = int(browser.fields()["cursor"] or 0) + 700  # within the next page, and not in its first batch
        with database.blocking(blocker.format(row)):
            thread = in_background(browser)
            wait_for(statement, lambda statement=statement: database.busy_with(statement))  # type: ignore[misc]
            database.kill()
            thread.join()
        assert browser.reply.status_code == 500
        assert browser.text(".error-box")
        database.start()
        done_before = int(dict(database.sql("SELECT step, position FROM upgrade_step"))[step])
        assert done_before < row
        browser = Browser(forum)
        assert "continues where it stopped" in browser.text("main")
        wait_for("the lease is over", browser.begun)
        assert browser.fields()["step"] == step, "the steps before are not done again"
    browser.until(None)
    assert browser.text(".complete") == COMPLETE
    assert forum.tables() == upgraded


@pytest.mark.slow
def test_php_killed_in_mid_batch(forum: Forum, upgraded: list[str]) -> None:
    database = forum.database
    browser = Browser(forum)
    browser.send()
    browser.until("post-reactions")
    done = int(browser.fields()["cursor"] or 0)
    blocked = f"SELECT 1 FROM post WHERE post_id = {done + 1200} FOR UPDATE"  # noqa: S608
    with database.blocking(blocked):
        thread = in_background(browser)
        wait_for("the third batch waits", lambda: database.busy_with("UPDATE post p"))
        wait_for(
            "two batches are done",
            lambda: (
                database.value("SELECT MAX(position) FROM upgrade_step WHERE step = 'post-reactions'")
                == str(done + 1000)
            ),
        )
        forum.kill()
        thread.join()
        forum.start()
        browser = Browser(forum)
        assert not browser.begun(), "the database is still at it: nobody else may begin"
        assert "locked: a step is still running" in browser.text(".error-box")
    wait_for("the batch is rolled back and the lease over", browser.begun)
    assert browser.fields() | {"_xfToken": ""} == {
        "_xfToken": "",
        "action": "run",
        "step": "post-reactions",
        "cursor": str(done + 1000),
    }
    browser.until(None)
    assert forum.tables() == upgraded


def test_two_upgrades_do_not_run_at_once_and_one_that_stopped_is_taken_over(forum: Forum) -> None:
    slow = Forum(forum.database, FORUM_LEASE_SECONDS="600", FORUM_PAGE_ROWS="500")
    try:
        first, second = Browser(slow), Browser(slow)
        first.send()
        first.until("post-reactions")
        second.send()
        assert re.search("locked: somebody else .* in [0-9]+ seconds", second.text(".error-box"))
        assert "locked" in slow.php("cmd.php", "upgrade").stderr
        first.send()
        assert first.fields()["cursor"] == "500", "the first goes on undisturbed"
        forum.database.sql("UPDATE upgrade_lease SET expires_at = 1")
        assert second.begun()
        assert second.fields()["cursor"] == "500"
        first.send()
        assert "taken over" in first.text(".error-box")
        second.until(None)
        assert slow.version() == "2.0"
    finally:
        slow.kill()


def test_an_upgrade_on_the_command_line_goes_on_in_the_browser(forum: Forum, upgraded: list[str]) -> None:
    forum.must("fault.php", "error", "member-counters")
    failed = forum.php("cmd.php", "upgrade")
    assert (failed.returncode, "It failed" in failed.stderr) == (1, True)
    assert "Rebuilding counters of threads" in failed.stdout
    forum.must("fault.php", "off")
    forum.database.sql("DELETE FROM upgrade_lease")
    browser = Browser(forum)
    browser.send()
    assert browser.fields()["step"] == "member-counters"
    browser.until(None)
    assert forum.tables() == upgraded


@pytest.mark.parametrize(
    ("kind", "status", "seen"),
    [
        ("fatal", 200, "Allowed memory size"),
        ("error", 500, "error-box"),
        ("refused", 200, "error-box"),
        ("stuck", 200, 'value="post-index"'),
    ],
)
def test_faults_come_as_ordered(forum: Forum, kind: str, status: int, seen: str) -> None:
    forum.must("fault.php", kind, "post-index")
    browser = Browser(forum)
    browser.send()
    browser.until("post-index")
    browser.send()
    assert browser.reply.status_code == status
    assert seen in browser.reply.text


def test_commands_are_not_for_browsers(forum: Forum) -> None:
    for name in ("seed.php", "reset.php", "cmd.php", "fault.php", "config.php"):
        assert not (FORUM / "public" / name).exists()
        assert "Cli::main(" in (FORUM / name).read_text() or name == "config.php"


# Members reply, once each, with a token of the page; guests and forgeries do not. These last: the posts stay.


class Visitor(requests.Session):
    """One with cookies."""

    def __init__(self, forum: Forum) -> None:
        super().__init__()
        self.url = f"{forum.url}/index.php"

    def see(self, route: str) -> html.HtmlElement:
        return html.fromstring(self.get(f"{self.url}?{route}", timeout=LONGEST_S).text)

    def submit(self, route: str, **fields: str) -> requests.Response:
        return self.post(f"{self.url}?{route}", fields, timeout=LONGEST_S, allow_redirects=False)

    def token(self, route: str, form: str) -> str:
        (field,) = self.see(route).cssselect(f"form.{form} input[name=_xfToken]")
        return str(field.get("value"))

    def log_in(self) -> "Visitor":
        token = self.token("login", "login")
        assert self.submit("login", _xfToken=token, name="member2", password=PASSWORD).status_code == 303
        return self


def counts(forum: Forum) -> list[int]:
    """How many posts the thread, its board, the member and the search index have."""
    query = (
        "SELECT t.post_count, b.post_count, m.post_count, (SELECT COUNT(*) FROM search_index), "
        "(SELECT COUNT(*) FROM post) FROM thread t JOIN board b USING (board_id) "
        "JOIN member m ON m.member_id = 2 WHERE t.thread_id = 1"
    )
    return [int(word) for word in forum.database.sql(query)[0]]


def test_a_member_replies(forum: Forum) -> None:
    before, member = counts(forum), Visitor(forum).log_in()
    token = member.token("threads/1", "reply")
    done = member.submit("threads/1/add-reply", _xfToken=token, message="Two\nlines & <more>")
    assert done.status_code == 303
    after = counts(forum)
    assert [now - then for now, then in zip(after, before, strict=True)] == [1] * 5
    (post,) = forum.database.sql("SELECT post_id, position FROM post WHERE message LIKE 'Two%more>'")
    assert done.headers["Location"].endswith(f"threads/1#post-{post[0]}")
    assert int(post[1]) == before[0]
    page = -(-after[0] // 20)
    shown = requests.get(f"{forum.url}/index.php?threads/1/page-{page}", timeout=LONGEST_S).text
    assert "<p>lines &amp; &lt;more&gt;</p>" in shown


@pytest.mark.parametrize(
    ("why", "route", "message", "status"),
    [
        ("a token that was never given", "threads/1/add-reply", "forged", 400),
        ("nothing said", "threads/1/add-reply", " ", 400),
        ("more than a reply may have", "threads/1/add-reply", "x" * 10001, 400),
        ("no such thread", "threads/999999999/add-reply", "lost", 404),
    ],
)
def test_a_reply_is_refused(forum: Forum, why: str, route: str, message: str, status: int) -> None:
    before, member = counts(forum), Visitor(forum).log_in()
    token = "1,2" if message == "forged" else member.token("threads/1", "reply")
    assert member.submit(route, _xfToken=token, message=message).status_code == status, why
    assert counts(forum) == before


def test_guests_get_no_form_and_cannot_send_one(forum: Forum) -> None:
    before, guest = counts(forum), Visitor(forum)
    assert guest.see("threads/1").cssselect("form") == []
    assert guest.submit("threads/1/add-reply", _xfToken="1,2", message="spam").status_code == 400
    token = guest.token("login", "login")  # a guest's own session has a token, too
    assert guest.submit("threads/1/add-reply", _xfToken=token, message="spam").status_code == 403
    assert guest.get(f"{guest.url}?threads/1/add-reply", timeout=LONGEST_S).status_code == 404
    assert counts(forum) == before
