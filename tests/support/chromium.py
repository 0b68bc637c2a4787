"""A real Chromium, and a page that is open in it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MUST_RUN = os.environ.get("CI") == "true" and os.environ.get("PLIMSOLL_LAB") == "1"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        if MUST_RUN:
            pytest.fail("no chromium on the path, and CI with PLIMSOLL_LAB=1 needs one")
        pytest.skip("no chromium on the path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Opened:
    """A page, and what it complained of or asked for."""

    def __init__(self, browser: Browser, path: Path, *, fragment: str = "", **context: Any) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page: Page = browser.new_page(**context)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(f"{path.as_uri()}#{fragment}" if fragment else path.as_uri())
        self.page.wait_for_selector("html[data-drawn]")

    def until(self, expression: str) -> None:
        """Wait until it is true. Playwright's own way to wait is one that the page's policy forbids."""
        for _ in range(200):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(expression)
