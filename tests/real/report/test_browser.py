"""The page in a real browser: drawn, quiet, light and dark, and deaf to what a run directory says."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from plimsoll.analysis.report import make_report
from tests.support.chromium import Opened
from tests.support.experiment import write_experiment
from tests.support.pages import write_hostile_experiment, write_hostile_run


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


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("experiment")
    write_experiment(folder)
    return make_report([folder]).path


@pytest.mark.parametrize(("width", "scheme"), [(1300, "light"), (390, "dark")])
def test_an_experiment_is_drawn_without_a_word(
    browser: Browser, compared: Path, width: int, scheme: str
) -> None:
    opened = Opened(browser, compared, color_scheme=scheme, viewport={"width": width, "height": 900})
    page = opened.page
    assert opened.complaints == []
    assert opened.requests == [compared.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".phases tbody").count() == 2
    assert page.locator("#figure-scatter-0 .scatterlayer .point").count() > 40
    assert page.locator("#figure-scatter-0 .subplot").count() == 4
    assert page.locator("#figure-repeats-0 .scatterlayer .point").count() == 24
    assert page.locator("#differences tbody tr").count() == 4
    assert page.locator("main details").count() == 11
    assert page.locator(".answer .bigs dd").first.inner_text().startswith("nvme-mirror")
    page.close()


def test_a_backend_is_hidden_and_shown_by_its_place_in_the_legend(browser: Browser, compared: Path) -> None:
    opened = Opened(browser, compared, viewport={"width": 1300, "height": 900})
    page = opened.page
    page.locator("#figure-scatter-0").scroll_into_view_if_needed()
    all_points = page.locator("#figure-scatter-0 .scatterlayer .point").count()
    hidden = (
        "document.getElementById('figure-scatter-0')._fullData"
        ".filter((trace) => trace.visible === 'legendonly').length"
    )
    page.locator("#figure-scatter-0 .legendtoggle").first.click()
    opened.until(f"{hidden} >= 5")
    assert page.locator("#figure-scatter-0 .scatterlayer .point").count() < all_points
    for scale in ("linear", "log"):
        page.click(f"button[data-figure=scatter-0][data-scale={scale}]")
        opened.until(f"document.getElementById('figure-scatter-0').layout.yaxis.type === '{scale}'")
    below = "document.getElementById('figure-scatter-0').layout.yaxis2.type"
    assert page.evaluate(below) == "linear", "what is below has a scale of its own"
    assert opened.complaints == []
    page.close()


def test_nothing_of_a_hostile_experiment_is_executed(browser: Browser, tmp_path: Path) -> None:
    write_hostile_experiment(tmp_path)
    report = make_report([tmp_path], tmp_path / "report.html").path
    opened = Opened(browser, report, viewport={"width": 1300, "height": 900})
    for summary in opened.page.locator("main details > summary").all():
        summary.click()
    for figure in opened.page.locator(".plot").all():
        figure.scroll_into_view_if_needed()
        figure.hover()
    assert opened.page.evaluate("window.owned") is None
    assert opened.page.locator("main img, main a, main iframe, .plot a").count() == 0
    assert opened.complaints == []
    assert opened.requests == [report.as_uri()]
    opened.page.close()


@pytest.mark.parametrize("runs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_nothing_of_a_hostile_run_is_executed(browser: Browser, tmp_path: Path, runs: int) -> None:
    paths = [write_hostile_run(tmp_path / f"<img src=x onerror=window.owned=1>{n}") for n in range(runs)]
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
