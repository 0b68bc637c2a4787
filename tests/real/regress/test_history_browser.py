"""The history's page in a real browser: drawn, quiet, and deaf to hostile names."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.chromium import Opened
from tests.support.comparable import regress, write_night
from tests.support.pages import write_hostile_history


def page_of(folder: Path, history: Path) -> Path:
    page = folder / "history.html"
    assert regress(history, "--html", page).exit_code in (0, 1, 3)
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_drawn_and_quiet(browser: Browser, tmp_path: Path, scheme: str) -> None:
    history = tmp_path / "history.sqlite"
    for number in range(18):
        tails = {"nvme": (50 + number % 3) * (2 if number > 13 else 1), "sata": 80 + number % 2}
        regress(history, write_night(tmp_path / "results", number, tails, generator_limited=number == 5))
    opened = Opened(browser, page_of(tmp_path, history), color_scheme=scheme)
    assert opened.complaints == []
    assert len(opened.requests) == 1, "it asks for nothing but itself"
    assert opened.page.locator("#figure-trend-0-0 .scatterlayer .trace").count() >= 4
    assert opened.page.locator(".legendtext").all_text_contents()[:2] == ["nvme", "sata"]
    assert "Nights without a figure" in opened.page.locator("main").inner_text()
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.page.close()


def test_a_hostile_page_executes_nothing(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, page_of(tmp_path, write_hostile_history(tmp_path)))
    assert opened.page.evaluate("window.owned === undefined")
    assert opened.complaints == []
    assert len(opened.requests) == 1
    assert "<script>owned=1</script>" in opened.page.locator("main").inner_text()
    opened.page.close()
