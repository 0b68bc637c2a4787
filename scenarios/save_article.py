"""An author's work: write an article, publish it, save it again and again.

Through the classic editor's forms or the block editor's REST requests, whichever the site has.
"""

import time
from typing import Literal

from pydantic import Field

from scenarios.running.errors import StepFailedError
from scenarios.running.hooks import locustfile, runs
from scenarios.running.recognition import Trouble, trouble, words
from scenarios.running.reply import Reply
from scenarios.wordpress.account import expect_logged_in, with_login
from scenarios.wordpress.articles import article, revised
from scenarios.wordpress.author import Author, AuthorSettings
from scenarios.wordpress.blocks import BlockEditor
from scenarios.wordpress.classic import FORM, ClassicEditor
from scenarios.wordpress.editor import Editor
from scenarios.wordpress.forms import form_at

ABOUT = {
    "does": "logs in, writes an article of up to 100 KB, publishes it and saves it again and again",
    "needs": "an author's account on WordPress",
    "changes": "adds articles and revisions",
}


class Settings(AuthorSettings):
    """Settings of the author."""

    iterations: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="Articles, by all users together; default: 10, or no limit with --duration-s.",
    )
    saves: int = Field(5, ge=0, le=10_000, description="Saves of each article after it is published.")
    size_bytes: int = Field(
        100_000,
        ge=200,
        le=100_000,
        description="Size of the largest articles; smaller sizes are drawn by the seed.",
    )
    editor: Literal["auto", "classic", "blocks"] = Field(
        "auto", description="Editor to use: classic, blocks, or the one that the site shows."
    )
    think_s: float = Field(0.0, ge=0, le=3600, description="Seconds to wait before each save.")


class SaveArticle(Author):
    """Writes one article an iteration."""

    scenario = "save-article"
    settings_type = Settings

    def work(self, number: int) -> None:
        """Open the editor, publish an article, read it, save it again and again."""
        settings = self.settings
        editor = self._open()
        text = article(settings.seed, number, settings.size_bytes).named(self.run_name)
        self.pause(settings.think_s)
        editor.autosave(text)
        for version in range(settings.saves + 1):
            if version:
                self.pause(settings.think_s)
                text = revised(text, settings.seed, number, version)
            started_ns = time.monotonic_ns()
            (editor.save if version else editor.publish)(text)
            if editor.post is not None:
                self.created(editor.post)
            editor.read_back(text)
            self.measure("article saved", (time.monotonic_ns() - started_ns) / 1e6)
            if not version and editor.link:
                self.site.get_page("view", editor.link)

    def _open(self) -> Editor:
        """Open the editor for a new article, and return it: the classic one or the block editor."""
        path = "wp-admin/post-new.php"
        if self.settings.editor == "classic":
            path += "?classic-editor"  # the plugin of that name offers both

        def get() -> Reply:
            return self.site.get("open editor", path, check=expect_logged_in(_is_editor))

        page = with_login(self.site, self.who, get)
        classic = form_at(page, FORM) is not None and not _shows_blocks(page)
        if classic and self.settings.editor != "blocks":
            editor: Editor = ClassicEditor(self.site, self.who, page)
        elif self.settings.editor == "classic":
            raise StepFailedError(
                "open editor",
                "check_failed",
                "the site has no classic editor: use --editor auto",
                hopeless=True,
            )
        else:
            editor = BlockEditor(self.rest, page)
        if editor.post is not None:
            self.created(editor.post)
        return editor


def _is_editor(reply: Reply) -> Trouble | None:
    if found := trouble(reply):
        return found
    if form_at(reply, FORM) is None and not _shows_blocks(reply):
        return Trouble("check_failed", f"no known editor: {words(reply.text)}")
    return None


def _shows_blocks(reply: Reply) -> bool:
    return "block-editor-page" in str(reply.page.xpath("string(//body/@class)")).split()


run = runs(SaveArticle)
locustfile(SaveArticle)
