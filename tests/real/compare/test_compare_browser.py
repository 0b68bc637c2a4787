"""The page of a comparison in a real browser: drawn, quiet, and deaf to what a run directory says."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser

from plimsoll.cli import main
from tests.support.chromium import Opened
from tests.support.comparable import write_both
from tests.unit.compare.test_compare import hostile_sides


def page_of(folder: Path, *sides: str | Path) -> Path:
    page = folder / "page.html"
    CliRunner().invoke(main, ["compare", *map(str, sides), "--html", str(page)], catch_exceptions=False)
    return page


@pytest.mark.parametrize(("ratio", "scheme"), [(1.0, "light"), (1.5, "dark")])
def test_the_page_is_drawn_and_quiet(
    browser: Browser,
    tmp_path: Path,
    scheme: str,
    ratio: float,
) -> None:
    write_both(tmp_path, ratio)
    opened = Opened(
        browser, page_of(tmp_path, tmp_path, "--baseline", "sata", "--candidate", "nvme"), color_scheme=scheme
    )
    assert opened.complaints == []
    assert len(opened.requests) == 1, "it asks for nothing but itself"
    assert opened.page.locator("#verdict .verdict").inner_text() == ("PASS" if ratio == 1 else "FAIL")
    assert opened.page.locator("#figure-effects .trace").count() > 0
    assert opened.page.locator("#figure-repeats .trace").count() > 0
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.page.close()


def test_a_hostile_page_executes_nothing(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, page_of(tmp_path, *hostile_sides(tmp_path)))
    assert opened.page.evaluate("window.owned === undefined")
    assert opened.complaints == []
    assert len(opened.requests) == 1
    opened.page.close()
