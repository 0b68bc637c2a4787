"""Records what the block editor asks a WordPress for while somebody writes an article in it, in Chromium.

    PLIMSOLL_USER=author PLIMSOLL_PASSWORD=… .venv/bin/python -m tools.record_editor \
        --target http://127.0.0.1:8080 --out tests/fixtures/block-editor/wordpress-6.1.json

An author opens the editor, writes on for --write-s, ticks a category, puts an image in, publishes, saves
again, and leaves. What it made is removed at the end. The recording has neither cookies, nonces and hosts nor
what was typed. Needs Chromium, and `make .venv/.dev`.
"""

import json
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from playwright.sync_api import Browser, BrowserContext, Frame, Page, Request, sync_playwright

from plimsoll.common.errors import PlimsollError
from plimsoll.common.files import replace_text
from plimsoll.scenarios.browser import chromium_program, chromium_version
from plimsoll.scenarios.running.client import SiteClient
from plimsoll.scenarios.running.clonelist import Credentials, credentials, require_consent
from plimsoll.scenarios.running.session import run_name
from plimsoll.scenarios.running.settings import WordpressSettings, validate_options
from plimsoll.scenarios.wordpress.account import Rest, log_in
from plimsoll.scenarios.wordpress.content import small_photograph
from plimsoll.scenarios.wordpress.leftovers import Leftovers
from tools.editor_requests import body_of, kind_of, request_of

_LONGEST_MS = 300_000
_SETTLED_S = 5.0
_KEYS_EACH_S = 5.0
_TITLE = ".editor-post-title__input"
_PANEL = ".editor-post-publish-panel .editor-post-publish-button"
_READY = "() => window.wp && wp.data && wp.data.select('core/editor')?.getCurrentPostId()"
_NO_WELCOME = """() => {  // what greets a new author, and would lie over the page; no panels
    const set = wp.data.dispatch('core/preferences').set;
    for (const scope of ['core', 'core/edit-post']) {
        set(scope, 'welcomeGuide', false);
        set(scope, 'openPanels', ['post-status']);
    }
    set('core', 'enableChoosePatternModal', false);
}"""
_SAVED = """() => { const e = wp.data.select('core/editor');
    return !e.isSavingPost() && e.isCurrentPostPublished() && !e.isEditedPostDirty(); }"""


class Recording:
    """The requests of a page, each with the part of the author's work in which it was sent."""

    def __init__(self, target: str) -> None:
        self._target, self._seen, self._opened_s = target, list[tuple[float, str, Request]](), 0.0
        self.part = ""

    def begin(self, context: BrowserContext) -> None:
        """Begin with the opening of the editor."""
        self.part, self._opened_s = "opening", time.monotonic()
        context.on("request", self._see)

    def _see(self, request: Request) -> None:
        if request.url.startswith(self._target):
            self._seen.append((time.monotonic() - self._opened_s, self.part, request))

    def requests(self, names: dict[str, str]) -> list[dict[str, Any]]:
        """Return them, in order; of files only how many, by part and type."""
        files: dict[tuple[str, str], int] = {}
        found: list[dict[str, Any]] = []
        for at_s, part, request in self._seen:
            target = request.url.removeprefix(self._target)
            kind = kind_of(request.method, target)
            if kind is None or (kind == "file" and part == "leaving"):
                continue
            if kind == "file":
                key = part, request.resource_type
                files[key] = files.get(key, 0) + 1
                continue
            headers = request.headers
            method = headers.get("x-http-method-override", request.method)
            _, path, query = request_of(method, target, names)
            response = None if request.resource_type == "ping" else request.response()
            found.append(
                {"part": part, "at_ms": round(at_s * 1000), "method": method, "path": path}
                | ({"query": query} if query else {})
                | body_of(headers.get("content-type", ""), _body(request))
                | ({"status": response.status} if response else {})
            )
        counted = [{"part": part, "type": type_, "files": n} for (part, type_), n in files.items()]
        return [*found, *counted]


def _body(request: Request) -> str | None:
    raw = request.post_data_buffer
    return raw.decode(errors="replace") if raw else None


def record(browser: Browser, target: str, who: Credentials, run: str, write_s: float) -> dict[str, Any]:
    """Write an article titled with `run`; return the recording."""
    _no_longer_new(browser, target, who)
    page = _logged_in(browser, target, who)
    recording = Recording(target + "/")
    recording.begin(page.context)
    _open(page, target)
    page.evaluate(_NO_WELCOME)
    page.wait_for_timeout(_SETTLED_S * 1000)
    post = str(page.evaluate("wp.data.select('core/editor').getCurrentPostId()"))
    with _part(recording, page, "writing"):
        _canvas(page).locator(_TITLE).click()
        page.keyboard.type(f"A recording {run}")
        page.keyboard.press("Enter")
        until_s = time.monotonic() + write_s
        while time.monotonic() < until_s:
            page.keyboard.type("And so on. ")
            page.wait_for_timeout(_KEYS_EACH_S * 1000)
    with _part(recording, page, "categories"):
        _tick_a_category(page)
    with _part(recording, page, "image"):
        _put_image_in(page, run)
    media = str(
        page.evaluate(
            "wp.data.select('core/block-editor').getBlocks().find(b => b.name === 'core/image').attributes.id"
        )
    )
    with _part(recording, page, "panel"):
        page.locator(".editor-post-publish-panel__toggle, .editor-post-publish-button__button").first.click()
        page.wait_for_selector(f'{_PANEL}:not([aria-disabled="true"])')
    with _part(recording, page, "publishing"):
        page.locator(_PANEL).click()
        page.wait_for_function(_SAVED, timeout=_LONGEST_MS)
    page.locator('.editor-post-publish-panel__header button[aria-label="Close panel"]').click()
    with _part(recording, page, "saving"):
        page.evaluate(
            """() => wp.data.dispatch('core/block-editor').insertBlocks(
                wp.blocks.createBlock('core/paragraph', { content: 'One more thought.' }))"""
        )
        page.wait_for_timeout(500)
        page.locator(".editor-post-publish-button").first.click()
        page.wait_for_function(_SAVED, timeout=_LONGEST_MS)
    recording.part = "leaving"
    version = str(page.evaluate("document.body.className.match(/version-([0-9-]+)/)[1]")).replace("-", ".")
    author = str(page.evaluate("wp.data.select('core').getCurrentUser()?.id"))
    page.goto(f"{target}/wp-admin/profile.php")
    page.wait_for_timeout(2000)
    names = {post: "post", media: "media", author: "user", f"a-recording-{run}": "post"}
    return {"wordpress": version, "write_s": write_s, "requests": recording.requests(names)}


@contextmanager
def _part(recording: Recording, page: Page, name: str) -> Iterator[None]:
    recording.part = name
    yield
    page.wait_for_timeout(_SETTLED_S * 1000)


def _no_longer_new(browser: Browser, target: str, who: Credentials) -> None:
    """Have the author know the editor, whose cache is empty all the same."""
    page = _logged_in(browser, target, who)
    _open(page, target)
    page.wait_for_timeout(_SETTLED_S * 1000)
    with page.expect_response(lambda response: "users/me" in response.url):
        page.evaluate(_NO_WELCOME)
    page.context.close()


def _open(page: Page, target: str) -> None:
    page.goto(f"{target}/wp-admin/post-new.php")
    page.wait_for_function(_READY, timeout=_LONGEST_MS)


def _logged_in(browser: Browser, target: str, who: Credentials) -> Page:
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    context.set_default_timeout(_LONGEST_MS)
    page = context.new_page()
    page.goto(f"{target}/{who.login_path or 'wp-login.php'}")
    page.locator("#user_login").fill(who.user)
    page.locator("#user_pass").fill(who.password)
    page.locator("#wp-submit").click()
    page.wait_for_selector("#wpadminbar", timeout=_LONGEST_MS)
    return page


def _canvas(page: Page) -> Page | Frame:
    """Return where the article is: the page, or (since WordPress 6.3) a frame of it."""
    page.locator(f'{_TITLE}, iframe[name="editor-canvas"]').first.wait_for()
    return page.frame(name="editor-canvas") or page


def _tick_a_category(page: Page) -> None:
    page.evaluate("wp.data.dispatch('core/edit-post').openGeneralSidebar('edit-post/document')")
    panel = page.get_by_role("button", name=re.compile("^Categories$"))
    panel.wait_for()
    if panel.get_attribute("aria-expanded") == "false":
        panel.click()
    page.locator(".editor-post-taxonomies__hierarchical-terms-choice input").nth(1).check()


def _put_image_in(page: Page, run: str) -> None:
    page.evaluate(
        """() => wp.data.dispatch('core/block-editor').insertBlocks(wp.blocks.createBlock('core/image'))"""
    )
    picker = _canvas(page).locator(".wp-block-image input[type=file]")
    picker.wait_for(state="attached")
    picker.set_input_files(
        {"name": f"photograph-{run}.jpg", "mimeType": "image/jpeg", "buffer": small_photograph(1)}
    )
    page.wait_for_function(
        """() => wp.data.select('core/block-editor').getBlocks()
            .some((block) => block.name === 'core/image' && block.attributes.id)""",
        timeout=_LONGEST_MS,
    )


@click.command(help=__doc__)
@click.option("--target", required=True, help="Base URL of the site.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File for the recording.")
@click.option("--write-s", type=float, default=200.0, show_default=True, help="Seconds of writing.")
@click.option("--i-may-change-this-site", is_flag=True, help="Allow this run to change the target.")
def main(target: str, out: Path, write_s: float, i_may_change_this_site: bool) -> None:
    """Record, write the file, and remove what was made."""
    given = {"target": target, "i_may_change_this_site": i_may_change_this_site}
    try:
        settings = validate_options(WordpressSettings, given)
        require_consent(settings, "recording")
        who, chromium = credentials(settings), chromium_program(None)
    except PlimsollError as error:
        raise click.UsageError(str(error)) from None
    run = run_name(datetime.now(UTC), secrets.randbits(32))
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=flags)
            found = record(browser, settings.target, who, run, write_s)
            browser.close()
    finally:
        _remove(settings, who, run)
    text = {"chromium": chromium_version(chromium)} | found
    replace_text(out, _lines(text), parents=True)
    print(f"{len(found['requests'])} requests of WordPress {found['wordpress']}: {out}", file=sys.stderr)


def _remove(settings: WordpressSettings, who: Credentials, run: str) -> None:
    site = SiteClient(settings, lambda _: None)
    try:
        log_in(site, who)
        there = Leftovers(Rest(site, who))
        for leftover in there.find(run):
            there.remove(leftover)
    finally:
        site.close()


def _lines(recording: dict[str, Any]) -> str:
    """Return the recording as JSON, one request a line."""
    head = json.dumps({k: v for k, v in recording.items() if k != "requests"})[1:-1]
    requests = ",\n".join(f"    {json.dumps(one)}" for one in recording["requests"])
    return f'{{\n  {head},\n  "requests": [\n{requests}\n  ]\n}}\n'


if __name__ == "__main__":
    main()
