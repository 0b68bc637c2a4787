"""The classic editor: articles travel as forms."""

import re
from typing import Any

from plimsoll.scenarios.running.client import (
    Check,
    Reply,
    SiteClient,
    StepFailedError,
    Trouble,
    trouble,
    words,
)
from plimsoll.scenarios.running.clonelist import Credentials
from plimsoll.scenarios.wordpress.account import expect_logged_in, with_login
from plimsoll.scenarios.wordpress.content import Article
from plimsoll.scenarios.wordpress.editor import lost
from plimsoll.scenarios.wordpress.forms import action, fields, form_at
from plimsoll.scenarios.wordpress.rest import twice

FORM = "//form[@id='post'][.//input[@name='_wpnonce']]"
_HEARTBEAT = re.compile(r"""heartbeatSettings\s*=\s*\{[^}]*?"nonce":"(\w+)\"""")
_MESSAGE = re.compile(r"[?&]message=(\d+)")
_REVIEW = "8"
# The old date: if it were sent beside the current one, WordPress would see a change.
_DATE = re.compile(r"(?:hidden|cur)_(?:mm|jj|aa|hh|mn|ss)")


class ClassicEditor:
    """An article in the classic editor, whose page has made an empty draft for it."""

    def __init__(self, site: SiteClient, who: Credentials, page: Reply) -> None:
        """Start with the editor's page."""
        self.link = ""
        self.post: int | None = None
        self._site, self._who = site, who
        self._page, self._form = page, form_at(page, FORM)
        self._show(page)

    def autosave(self, article: Article, *, through: SiteClient | None = None, due_ns: int = 0) -> None:
        """Keep the draft by a heartbeat, where the page has one."""
        beat = _HEARTBEAT.search(self._page.text)
        if not beat:
            return
        draft = {
            "post_id": self.post,
            "post_type": "post",
            "post_title": article.title,
            "content": article.html(),
            "excerpt": "",
            "_wpnonce": dict(fields(self._form)).get("_wpnonce", ""),
        }
        data = {f"data[wp_autosave][{name}]": str(value) for name, value in draft.items()}
        data |= {"action": "heartbeat", "_nonce": beat[1], "interval": "60", "screen_id": "post"}
        site = through or self._site
        site.post("autosave", "wp-admin/admin-ajax.php", data=data, check=_kept, due_ns=due_ns)

    def publish(self, article: Article) -> None:
        """Publish it."""
        self._send("publish", article, {"publish": "Publish"}, "6")

    def save(self, article: Article) -> None:
        """Save the published article again."""
        self._send("save", article, {"save": "Update"}, "1")

    def read_back(self, article: Article) -> None:
        """Open the page that comes after a save, and see that this version is there, and whole."""

        def check(reply: Reply) -> Trouble | None:
            if found := _is_form(reply):
                return found
            back = dict(fields(form_at(reply, FORM))).get("content", "")
            return lost(article.html(), back.replace("\r\n", "\n"), article.mark)

        self._show(self._open("read back", check))

    def _send(self, step: str, article: Article, button: dict[str, str], message: str) -> None:
        def once() -> Reply:
            typed = {
                "post_title": article.title,
                "content": article.html(),
                "post_status": "publish",
                **button,
            }
            sent = [pair for pair in fields(self._form, typed) if not _DATE.fullmatch(pair[0])]
            check = expect_logged_in(_saved(message))
            return self._site.post(step, action(self._page, self._form), data=sent, check=check)

        twice(once, lambda: self._show(self._open("open editor", _is_form)))

    def _open(self, step: str, check: Check) -> Reply:
        path = f"wp-admin/post.php?post={self.post}&action=edit"
        return with_login(
            self._site, self._who, lambda: self._site.get(step, path, check=expect_logged_in(check))
        )

    def _show(self, page: Reply) -> None:
        """Take the form and the article's address from a page of the editor."""
        form: Any = form_at(page, FORM)
        number = dict(fields(form)).get("post_ID", "") if form is not None else ""
        if not number.isdigit():
            raise StepFailedError("open editor", "check_failed", "the editor's form names no post")
        self._page, self._form, self.post = page, form, int(number)
        shown = page.page.xpath(
            "//*[@id='sample-permalink']//a/@href | //*[@id='sample-permalink'][@href]/@href"
        )
        self.link = str(shown[0]) if shown else self.link


def _is_form(reply: Reply) -> Trouble | None:
    if found := trouble(reply):
        return found
    return None if form_at(reply, FORM) is not None else Trouble("check_failed", words(reply.text))


def _saved(message: str) -> Check:
    def check(reply: Reply) -> Trouble | None:
        if found := trouble(reply):
            return found
        message_number = _MESSAGE.search(reply.location)
        if message_number and message_number[1] == message:
            return None
        if message_number and message_number[1] == _REVIEW:
            return Trouble("no_permission", "the article waits for review: the account must not publish")
        return Trouble(
            "check_failed", f"status {reply.status}, leads to {reply.location}: {words(reply.text)}"
        )

    return check


def _kept(reply: Reply) -> Trouble | None:
    if found := trouble(reply):
        return found
    data = reply.data if isinstance(reply.data, dict) else {}
    if data.get("nonces_expired"):
        return Trouble("nonce_expired", "the heartbeat's nonce has expired")
    kept = data.get("wp_autosave")
    if isinstance(kept, dict) and kept.get("success"):
        return None
    return Trouble("check_failed", f"no draft was kept: {words(reply.text)}")
