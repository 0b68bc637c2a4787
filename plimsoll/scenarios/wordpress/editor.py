"""The two editors of WordPress: the block editor sends articles over REST, the classic one as forms."""

import re
from typing import Any, Protocol

from plimsoll.scenarios.running.client import (
    Check,
    Reply,
    SiteClient,
    StepFailedError,
    StepFailure,
    find_failure,
    visible_text,
)
from plimsoll.scenarios.running.clonelist import Credentials
from plimsoll.scenarios.wordpress.account import (
    Rest,
    expect_logged_in,
    fields,
    find_form,
    find_rest_root,
    form_address,
    is_object,
    retry_logged_in,
    retry_renewed,
)
from plimsoll.scenarios.wordpress.content import Article

FORM = "//form[@id='post'][.//input[@name='_wpnonce']]"
_HEARTBEAT = re.compile(r"""heartbeatSettings\s*=\s*\{[^}]*?"nonce":"(\w+)\"""")
_MESSAGE = re.compile(r"[?&]message=(\d+)")
_REVIEW = "8"
# The old date: if it were sent beside the current one, WordPress would see a change.
_DATE = re.compile(r"(?:hidden|cur)_(?:mm|jj|aa|hh|mn|ss)")
_DRAFT = re.compile(r"""initializeEditor\(\s*["']editor["'],\s*["']post["'],\s*(\d+)""")
_ID = re.compile(r"[1-9][0-9]*")


class Editor(Protocol):
    """One article in one editor. Every method sends requests and raises StepFailedError."""

    post: int | None
    link: str

    def autosave(self, article: Article, *, client: SiteClient | None = None, due_ns: int = 0) -> None:
        """Save the draft, as the editor does by itself while its user writes.

        `client`: another client of the same visitor; `due_ns` as in `SiteClient.send`.
        """

    def publish(self, article: Article) -> None:
        """Publish it."""

    def save(self, article: Article) -> None:
        """Save the published article again."""

    def read_back(self, article: Article) -> None:
        """Read it from the site, and see that this version of it is there, and whole."""


class BlockEditor:
    """An article in the block editor, whose page has made an empty draft for it."""

    def __init__(self, rest: Rest, page: Reply) -> None:
        """Start with the editor's page; of any other page a new post is made when it is first saved."""
        found = _DRAFT.search(page.text)
        self.post: int | None = int(found[1]) if found else None
        self.link = ""
        self._rest = rest
        rest.root = find_rest_root(page)
        rest.renew()

    def autosave(self, article: Article, *, client: SiteClient | None = None, due_ns: int = 0) -> None:
        """Keep the draft, if there is one."""
        if self.post is not None:
            path = f"wp/v2/posts/{self.post}/autosaves"
            status = "publish" if self.link else "draft"
            sent = self._edits(article) | {"excerpt": "", "status": status}
            self._rest.send("autosave", "POST", path, json=sent, client=client, due_ns=due_ns)

    def publish(self, article: Article) -> None:
        """Publish it."""
        further: dict[str, object] = {"status": "publish"}
        if article.categories:
            further["categories"] = list(article.categories)
        self._send("publish", article, further)

    def save(self, article: Article) -> None:
        """Save the published article again."""
        self._send("save", article, {})

    def read_back(self, article: Article) -> None:
        """Read it, and see that this version of it is there, and whole."""

        def check(reply: Reply) -> StepFailure | None:
            if found := is_object(reply):
                return found
            content = reply.data.get("content")
            back = str(content.get("raw", "")) if isinstance(content, dict) else ""
            return find_loss(article.blocks(), back, article.mark)

        self._rest.get("read back", f"wp/v2/posts/{self.post}", {"context": "edit"}, check)

    def _edits(self, article: Article) -> dict[str, object]:
        return {"title": article.title, "content": article.blocks()}

    def _send(self, step: str, article: Article, further: dict[str, object]) -> None:
        if self.post is None:
            method, path, sent = "POST", "wp/v2/posts", self._edits(article) | further
        else:
            method, path = "PUT", f"wp/v2/posts/{self.post}"
            sent = self._edits(article) | {"id": self.post} | further
        data = self._rest.send(step, method, path, json=sent, check=_check_published).data
        self.post, self.link = int(data["id"]), str(data.get("link") or "")


def _check_published(reply: Reply) -> StepFailure | None:
    if found := is_object(reply):
        return found
    if not _ID.fullmatch(str(reply.data.get("id"))):
        return StepFailure("check_failed", "the reply names no post")
    status = reply.data.get("status")
    if status == "pending":
        return StepFailure("no_permission", "the article waits for review: the account must not publish")
    return (
        None
        if status == "publish"
        else StepFailure("check_failed", f"the article is {status}, not published")
    )


class ClassicEditor:
    """An article in the classic editor, whose page has made an empty draft for it."""

    def __init__(self, site: SiteClient, who: Credentials, page: Reply) -> None:
        """Start with the editor's page."""
        self.link = ""
        self.post: int | None = None
        self._site, self._who = site, who
        self._page, self._form = page, find_form(page, FORM)
        self._show(page)

    def autosave(self, article: Article, *, client: SiteClient | None = None, due_ns: int = 0) -> None:
        """Keep the draft by a heartbeat, where the page has one."""
        beat = heartbeat_nonce(self._page)
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
        data |= {"action": "heartbeat", "_nonce": beat, "interval": "60", "screen_id": "post"}
        site = client or self._site
        site.post("autosave", "wp-admin/admin-ajax.php", data=data, check=_check_autosave, due_ns=due_ns)

    def publish(self, article: Article) -> None:
        """Publish it."""
        self._send("publish", article, {"publish": "Publish"}, "6")

    def save(self, article: Article) -> None:
        """Save the published article again."""
        self._send("save", article, {"save": "Update"}, "1")

    def read_back(self, article: Article) -> None:
        """Open the page that comes after a save, and see that this version is there, and whole."""

        def check(reply: Reply) -> StepFailure | None:
            if found := _is_form(reply):
                return found
            back = dict(fields(find_form(reply, FORM))).get("content", "")
            return find_loss(article.html(), back.replace("\r\n", "\n"), article.mark)

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
            check = expect_logged_in(_check_saved(message))
            return self._site.post(step, form_address(self._page, self._form), data=sent, check=check)

        retry_renewed(once, lambda: self._show(self._open("open editor", _is_form)))

    def _open(self, step: str, check: Check) -> Reply:
        path = f"wp-admin/post.php?post={self.post}&action=edit"
        return retry_logged_in(
            self._site, self._who, lambda: self._site.get(step, path, check=expect_logged_in(check))
        )

    def _show(self, page: Reply) -> None:
        """Take the form and the article's address from a page of the editor."""
        form: Any = find_form(page, FORM)
        number = dict(fields(form)).get("post_ID", "") if form is not None else ""
        if not number.isdigit():
            raise StepFailedError("open editor", "check_failed", "the editor's form names no post")
        self._page, self._form, self.post = page, form, int(number)
        shown = page.page.xpath(
            "//*[@id='sample-permalink']//a/@href | //*[@id='sample-permalink'][@href]/@href"
        )
        self.link = str(shown[0]) if shown else self.link


def _is_form(reply: Reply) -> StepFailure | None:
    if found := find_failure(reply):
        return found
    return (
        None if find_form(reply, FORM) is not None else StepFailure("check_failed", visible_text(reply.text))
    )


def _check_saved(message: str) -> Check:
    def check(reply: Reply) -> StepFailure | None:
        if found := find_failure(reply):
            return found
        message_number = _MESSAGE.search(reply.location)
        if message_number and message_number[1] == message:
            return None
        if message_number and message_number[1] == _REVIEW:
            return StepFailure("no_permission", "the article waits for review: the account must not publish")
        return StepFailure(
            "check_failed", f"status {reply.status}, leads to {reply.location}: {visible_text(reply.text)}"
        )

    return check


def _check_autosave(reply: Reply) -> StepFailure | None:
    if found := find_failure(reply):
        return found
    data = reply.data if isinstance(reply.data, dict) else {}
    if data.get("nonces_expired"):
        return StepFailure("nonce_expired", "the heartbeat's nonce has expired")
    kept = data.get("wp_autosave")
    if isinstance(kept, dict) and kept.get("success"):
        return None
    return StepFailure("check_failed", f"no draft was kept: {visible_text(reply.text)}")


def heartbeat_nonce(page: Reply) -> str:
    """Return the nonce of the heartbeats on an editor's page, empty where it sends none. Pure."""
    found = _HEARTBEAT.search(page.text)
    return found[1] if found else ""


def find_loss(sent: str, back: str, mark: str) -> StepFailure | None:
    """Return the part of an article `sent` that is missing from the one that came `back`, or None. Pure.

    A site may filter what is written: a twentieth may be gone, but not the version's `mark`.
    """
    if mark not in back:
        return StepFailure(
            "check_failed", f"what was saved is not there: the article came back without “{mark}”"
        )
    if len(back) < 0.95 * len(sent):
        return StepFailure("check_failed", f"of {len(sent)} characters saved {len(back)} came back")
    return None
