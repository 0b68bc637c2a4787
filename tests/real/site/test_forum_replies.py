"""Members reply in the forum stand-in, once each, with a token of the page; guests and forgeries do not."""

from collections.abc import Iterator

import pytest
import requests
from lxml import html

from tests.support.forum import PASSWORD, Forum, serving
from tests.support.programs import LONGEST_S


@pytest.fixture(scope="module")
def forum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forum]:
    yield from serving(tmp_path_factory.mktemp("db"), 1000)


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
