"""The interface of the two editors of WordPress."""

from typing import Protocol

from plimsoll.scenarios.running.client import SiteClient, Trouble
from plimsoll.scenarios.wordpress.content import Article


class Editor(Protocol):
    """One article in one editor. Every method sends requests and raises StepFailedError."""

    post: int | None
    link: str

    def autosave(self, article: Article, *, through: SiteClient | None = None, due_ns: int = 0) -> None:
        """Save the draft, as the editor does by itself while its user writes.

        `through`: another client of the same visitor; `due_ns` as in `SiteClient.send`.
        """

    def publish(self, article: Article) -> None:
        """Publish it."""

    def save(self, article: Article) -> None:
        """Save the published article again."""

    def read_back(self, article: Article) -> None:
        """Read it from the site, and see that this version of it is there, and whole."""


def lost(sent: str, back: str, mark: str) -> Trouble | None:
    """Return the part of an article `sent` that is missing from the one that came `back`, or None. Pure.

    A site may filter what is written: a twentieth may be gone, but not the version's `mark`.
    """
    if mark not in back:
        return Trouble("check_failed", f"what was saved is not there: the article came back without “{mark}”")
    if len(back) < 0.95 * len(sent):
        return Trouble("check_failed", f"of {len(sent)} characters saved {len(back)} came back")
    return None
