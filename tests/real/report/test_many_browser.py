"""A page of many runs in a real Chromium: folded, and opened by hand."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from plimsoll.analysis.report import make_report
from tests.support.chromium import Opened
from tests.support.experiment import write_many


@pytest.mark.slow
def test_it_opens_and_unfolds_without_a_word(browser: Browser, tmp_path: Path) -> None:
    many = make_report(write_many(tmp_path, 50))
    opened = Opened(browser, many.path, color_scheme="dark", viewport={"width": 390, "height": 844})
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#headline table:visible").count() == 0
    page.locator("#headline summary").first.click()
    assert page.locator("#headline tbody tr:visible").count() == 50
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator(".runs-of-backend > summary").first.click()
    assert page.locator(".runs-of-backend > details:visible").count() == 50
    page.locator(".runs-of-backend > details > summary").first.click()
    assert page.locator(".runs-of-backend .facts:visible").count() == 1
    assert opened.complaints == []
    page.close()
