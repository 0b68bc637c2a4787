"""An author's work: write an article, publish it, save it again and again.

Through the classic editor's forms or the block editor's REST requests, whichever the site has.
"""

import time
from dataclasses import replace
from functools import cache
from typing import Any

from plimsoll.scenarios.running.client import Reply, StepFailedError, StepFailure, find_failure, visible_text
from plimsoll.scenarios.running.locustfile import Say, locustfile, on_locust
from plimsoll.scenarios.settings import SaveArticleSettings
from plimsoll.scenarios.wordpress.account import expect_logged_in, find_form, retry_logged_in
from plimsoll.scenarios.wordpress.author import Author
from plimsoll.scenarios.wordpress.content import Article, make_article, revise_article, small_photograph
from plimsoll.scenarios.wordpress.editor import FORM, BlockEditor, ClassicEditor, Editor
from plimsoll.scenarios.wordpress.editor_traffic import (
    BackgroundClient,
    EditorTraffic,
    Profile,
    nearest_profile,
    read_profile,
    recorded_profiles,
    wordpress_branch,
)

ABOUT = {
    "does": "logs in, writes an article of up to 100 KB, publishes it and saves it again and again",
    "needs": "an author's account on WordPress",
    "changes": "adds articles and revisions",
}


_DIFFERENT = 4  # photographs of a run; each gets a name of its own on the site
_photograph = cache(small_photograph)


class SaveArticle(Author):
    """Writes one article an iteration."""

    scenario = "save-article"
    settings_type = SaveArticleSettings

    @classmethod
    def prepare(cls, settings: Any, say: Say, *, has_target: bool = True) -> None:
        """Make the photographs, where a profile wants some."""
        own = settings.editor_profile
        profiles = [read_profile(own)] if own else recorded_profiles().values()
        if settings.editor != "classic" and any(profile.image.share for profile in profiles):
            for number in range(min(settings.planned or _DIFFERENT, _DIFFERENT)):
                _photograph(settings.seed, number + 1)

    def begin(self) -> None:
        """Log in; nothing of the editor is in this user's cache."""
        super().begin()
        self._background = BackgroundClient(self.settings, self._report_request, self.site)
        own = self.settings.editor_profile
        self._profile = read_profile(own) if own else None
        self._has_files = False

    def end(self, well: bool) -> None:
        """Delete what was made as the settings say. Raises StepFailedError."""
        try:
            super().end(well)
        finally:
            self._background.close()

    def work(self, number: int) -> None:
        """Open the editor, publish an article, read it, save it again and again."""
        settings = self.settings
        page, editor = self._open_editor()
        text = make_article(settings.seed, number, settings.size_bytes).with_run_name(self.run_name)
        with self._open_traffic(page, editor, number) as traffic:
            traffic.writing(text)
            self.pause(settings.think_s)
            if not traffic.note_written():
                editor.autosave(text)
            text = self._finish_article(text, traffic, number)
            for version in range(settings.saves + 1):
                if version:
                    text = revise_article(text, settings.seed, number, version)
                    traffic.writing(text)
                    self.pause(settings.think_s)
                    traffic.note_written()
                started_ns = time.monotonic_ns()
                (editor.save if version else editor.publish)(text)
                if editor.post is not None:
                    self.note_created(editor.post)
                editor.read_back(text)
                self.measure("article saved", (time.monotonic_ns() - started_ns) / 1e6)
                traffic.note_saved(first=not version)
                if not version and editor.link:
                    self.site.get_page("view", editor.link)
            traffic.leave()

    def _open_traffic(self, page: Reply, editor: Editor, number: int) -> EditorTraffic:
        """Return the editor's own requests for this article, the first of them sent: none but of blocks."""
        settings, profile = self.settings, Profile()
        if isinstance(editor, BlockEditor) and editor.post is not None:
            profile = self._profile or nearest_profile(wordpress_branch(page.text), recorded_profiles())
        chance = f"editor {settings.seed} {number}"
        traffic = EditorTraffic(profile, editor, page, self.rest, self._background, chance)
        traffic.open(files=profile.files == "always" or (profile.files == "first" and not self._has_files))
        self._has_files = True
        return traffic

    def _finish_article(self, text: Article, traffic: EditorTraffic, number: int) -> Article:
        """Return the article as it is published: with categories and an image, where it gets some."""
        name = f"photograph-{number}-{self.run_name}.jpg"
        seed = self.settings.seed
        picture = traffic.picture(
            name, lambda: _photograph(seed, (number - 1) % _DIFFERENT + 1), self.note_created
        )
        text = replace(text, categories=traffic.categories())
        traffic.before_publishing()
        return text.with_picture(picture) if picture else text

    def _open_editor(self) -> tuple[Reply, Editor]:
        """Open the editor for a new article; return its page and it: the classic or the block editor."""
        path = "wp-admin/post-new.php"
        if self.settings.editor == "classic":
            path += "?classic-editor"  # the plugin of that name offers both

        def get() -> Reply:
            return self.site.get("open editor", path, check=expect_logged_in(_is_editor))

        page = retry_logged_in(self.site, self.who, get)
        classic = find_form(page, FORM) is not None and not _shows_blocks(page)
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
            self.note_created(editor.post)
        return page, editor


def _is_editor(reply: Reply) -> StepFailure | None:
    if found := find_failure(reply):
        return found
    if find_form(reply, FORM) is None and not _shows_blocks(reply):
        return StepFailure("check_failed", f"no known editor: {visible_text(reply.text)}")
    return None


def _shows_blocks(reply: Reply) -> bool:
    return "block-editor-page" in str(reply.page.xpath("string(//body/@class)")).split()


run = on_locust(SaveArticle)
locustfile(SaveArticle)
