"""The block editor: articles travel over REST."""

import re

from plimsoll.scenarios.running.client import Reply, SiteClient, Trouble
from plimsoll.scenarios.wordpress.content import Article
from plimsoll.scenarios.wordpress.editor import lost
from plimsoll.scenarios.wordpress.rest import Rest, is_object, root_in

_DRAFT = re.compile(r"""initializeEditor\(\s*["']editor["'],\s*["']post["'],\s*(\d+)""")
_ID = re.compile(r"[1-9][0-9]*")


class BlockEditor:
    """An article in the block editor, whose page has made an empty draft for it."""

    def __init__(self, rest: Rest, page: Reply) -> None:
        """Start with the editor's page; of any other page a new post is made when it is first saved."""
        found = _DRAFT.search(page.text)
        self.post: int | None = int(found[1]) if found else None
        self.link = ""
        self._rest = rest
        rest.root = root_in(page)
        rest.renew()

    def autosave(self, article: Article, *, through: SiteClient | None = None, due_ns: int = 0) -> None:
        """Keep the draft, where there is one."""
        if self.post is not None:
            path = f"wp/v2/posts/{self.post}/autosaves"
            status = "publish" if self.link else "draft"
            sent = self._edits(article) | {"excerpt": "", "status": status}
            self._rest.send("autosave", "POST", path, json=sent, through=through, due_ns=due_ns)

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

        def check(reply: Reply) -> Trouble | None:
            if found := is_object(reply):
                return found
            content = reply.data.get("content")
            back = str(content.get("raw", "")) if isinstance(content, dict) else ""
            return lost(article.blocks(), back, article.mark)

        self._rest.get("read back", f"wp/v2/posts/{self.post}", {"context": "edit"}, check)

    def _edits(self, article: Article) -> dict[str, object]:
        return {"title": article.title, "content": article.blocks()}

    def _send(self, step: str, article: Article, further: dict[str, object]) -> None:
        if self.post is None:
            method, path, sent = "POST", "wp/v2/posts", self._edits(article) | further
        else:
            method, path = "PUT", f"wp/v2/posts/{self.post}"
            sent = self._edits(article) | {"id": self.post} | further
        data = self._rest.send(step, method, path, json=sent, check=_published).data
        self.post, self.link = int(data["id"]), str(data.get("link") or "")


def _published(reply: Reply) -> Trouble | None:
    if found := is_object(reply):
        return found
    if not _ID.fullmatch(str(reply.data.get("id"))):
        return Trouble("check_failed", "the reply names no post")
    status = reply.data.get("status")
    if status == "pending":
        return Trouble("no_permission", "the article waits for review: the account must not publish")
    return None if status == "publish" else Trouble("check_failed", f"the article is {status}, not published")
