"""The page in a real browser: drawn, quiet, light and dark, and deaf to what a run directory says."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from analysis.report import make_report
from tests.analysis.test_page import hostile_run

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

    def __init__(self, browser: Browser, path: Path, **context: Any) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page: Page = browser.new_page(**context)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-drawn]")

    def until(self, expression: str) -> None:
        """Wait until it is true. Playwright's own way to wait is one that the page's policy forbids."""
        for _ in range(200):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(expression)


@pytest.fixture(scope="module")
def report(busy_run: Path) -> Path:
    return make_report([busy_run]).path


@pytest.fixture(scope="module")
def opened(browser: Browser, report: Path) -> Opened:
    return Opened(browser, report, color_scheme="light", viewport={"width": 1300, "height": 900})


def _check_drawn(opened: Opened, report: Path, width: int) -> None:
    assert opened.complaints == []
    assert opened.requests == [report.as_uri()]
    assert opened.page.locator(".js-plotly-plot .main-svg").count() >= 5
    assert opened.page.locator("#figure-tail .scatterlayer .point").count() > 20
    assert opened.page.locator("#headline .bigs dd").count() == 4
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def _brightness(opened: Opened) -> int:
    ground = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in ground[4:-1].split(","))


def test_the_page_is_drawn_without_a_word(opened: Opened, report: Path) -> None:
    _check_drawn(opened, report, 1300)
    assert _brightness(opened) > 600


def test_it_is_drawn_on_a_telephone_in_the_dark(browser: Browser, report: Path) -> None:
    dark = Opened(browser, report, color_scheme="dark", viewport={"width": 390, "height": 844})
    _check_drawn(dark, report, 390)
    assert _brightness(dark) < 150
    dark.page.close()


def test_the_switch_changes_the_scale_and_stays_when_the_colours_change(opened: Opened) -> None:
    scale = "document.getElementById('figure-tail').layout.yaxis.type"
    for wanted in ("log", "linear", "log"):
        opened.page.click(f"button[data-figure=tail][data-scale={wanted}]")
        opened.until(f"{scale} === '{wanted}'")
    opened.page.emulate_media(color_scheme="dark")
    opened.until("document.getElementById('figure-tail').layout.font.color === '#e6ebf2'")
    assert opened.page.evaluate(scale) == "log"
    assert opened.complaints == []


def test_it_prints(opened: Opened) -> None:
    assert opened.page.pdf().startswith(b"%PDF")
    assert opened.complaints == []


@pytest.mark.parametrize("runs", [1, 2])
def test_nothing_of_a_hostile_run_is_executed(browser: Browser, tmp_path: Path, runs: int) -> None:
    paths = [hostile_run(tmp_path / f"<img src=x onerror=window.owned=1>{n}") for n in range(runs)]
    report = make_report(paths, tmp_path / "report.html").path
    opened = Opened(browser, report, viewport={"width": 1300, "height": 900})
    for figure in opened.page.locator(".plot").all():
        figure.scroll_into_view_if_needed()
        figure.hover()
    assert opened.page.evaluate("window.owned") is None
    assert opened.page.locator("main img, main a, main iframe, .plot a").count() == 0
    assert opened.complaints == []
    assert opened.requests == [report.as_uri()]
    opened.page.close()
