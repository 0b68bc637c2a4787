"""The newer figures in a real browser: quiet, light and dark, wide and narrow, on paper; deaf to names."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from plimsoll.analysis.report import make_report
from tests.support.chromium import Opened
from tests.support.experiment import (
    add_arc,
    add_events,
    cell,
    cells,
    write_cells,
    write_experiment,
    write_scripted_experiment,
)
from tests.support.pages import HOSTILE
from tests.support.rundir import records, write_run

WIDE: Any = {"width": 1300, "height": 900}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything at once: a replay with ARC, an upgrade, a browser's vitals, a download, sysbench."""
    folder = tmp_path_factory.mktemp("everything")
    for run in write_experiment(folder / "a", 2):
        add_arc(run, 99.0, 60.0)
    write_scripted_experiment(folder / "b", ["upgrade-wordpress", "browser", "download"], 2)
    write_cells(folder / "a" / "fileio.jsonl", cells())
    return make_report([folder / "a", folder / "b"]).path


@pytest.fixture(scope="module")
def shared(browser: Browser, report: Path) -> Iterator[Opened]:
    """A page that was drawn once, which takes seconds, for tests that read it at widths of their own."""
    opened = Opened(browser, report, color_scheme="dark", viewport=WIDE)
    yield opened
    opened.page.close()


@pytest.fixture
def opened(shared: Opened) -> Iterator[Opened]:
    yield shared
    shared.page.emulate_media(media="screen")
    shared.page.set_viewport_size(WIDE)
    assert shared.complaints == []


@pytest.mark.parametrize(("width", "scheme"), [(1300, "light"), (390, "dark")])
def test_all_figures_are_drawn_without_a_word(
    browser: Browser,
    report: Path,
    width: int,
    scheme: Any,
) -> None:
    opened = Opened(browser, report, color_scheme=scheme, viewport={"width": width, "height": 900})
    page = opened.page
    assert opened.complaints == []
    assert opened.requests == [report.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#figure-host-arc-0 .subplot").count() == 0, "folded away, and not yet drawn"
    for folded in ("details.host", "details.host[open] details.quiet"):
        page.locator(f"{folded} > summary").first.click()
    opened.until("document.querySelectorAll('#figure-host-arc-0 .subplot').length === 1")
    opened.until("document.querySelectorAll('#figure-host-arc-0-quiet .subplot').length === 1")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#figure-heat-0-1 .heatmaplayer image").count() == 1
    assert page.locator("#figure-phases-3 .barlayer .point").count() == 18
    assert page.locator("#figure-phases-3 .scatterlayer .point").count() == 36
    assert page.locator("#figure-vitals-1 .subplot").count() == 5
    assert page.locator("#figure-vitals-1 .shapelayer path").count() >= 8
    assert page.locator("#figure-rates-2 .barlayer .point").count() == 2
    assert page.locator("#figure-fileio .subplot").count() == 10
    assert page.locator("#figure-fileio .scatterlayer .point").count() == 2 * 5 * 7 * 2
    page.close()


def test_it_prints_on_paper(opened: Opened) -> None:
    assert opened.page.pdf().startswith(b"%PDF")


def test_no_table_is_wider_than_the_paper(opened: Opened) -> None:
    opened.page.set_viewport_size({"width": 718, "height": 1000})  # A4 between its margins
    opened.page.emulate_media(media="print")
    wider = """[...document.querySelectorAll("table")].filter((table) => table.offsetParent
        && table.scrollWidth > table.parentElement.clientWidth + 1).length"""
    assert opened.page.locator("table:visible").count() >= 5
    assert opened.page.evaluate(wider) == 0


def test_the_data_of_a_chart_are_downloaded(opened: Opened) -> None:
    for key in ("phases-3", "heat-0-1"):
        with opened.page.expect_download() as downloading:
            opened.page.locator(f'button[data-csv="{key}"]').click()
        assert downloading.value.suggested_filename.endswith(f"-{key}.csv")
        with downloading.value.path().open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) > 10
        assert list(rows[0]) == ["series", "x_axis", "y_axis", "x", "y", "value"]
        assert all(row["y"] for row in rows)
        assert any(row["value"] for row in rows) == key.startswith("heat")


def test_a_link_leads_to_the_chart(browser: Browser, report: Path, opened: Opened) -> None:
    opened.page.locator('button[data-link="phases-3"]').click()
    assert opened.page.url == f"{report.as_uri()}#figure-phases-3"
    again = Opened(browser, report, viewport=WIDE, fragment="figure-phases-3")
    top_px = again.page.evaluate("document.getElementById('figure-phases-3').getBoundingClientRect().top")
    assert 0 <= top_px < 900
    again.page.close()


@pytest.mark.parametrize(("width", "beside"), [(1600, True), (1300, False), (390, False)])
def test_the_contents_follow_the_reader(opened: Opened, width: int, beside: bool) -> None:
    page = opened.page
    page.set_viewport_size({"width": width, "height": 900})
    assert page.locator(".contents ol").is_visible() == beside
    if not beside:
        page.locator(".contents summary").click()
    titles = page.locator(".contents a").all_inner_texts()
    there = "[...document.querySelectorAll('main h2')].filter((head) => head.checkVisibility())"
    assert titles == page.evaluate(f"{there}.map((head) => head.innerText.trim())")
    page.locator(".contents a").nth(4).click()
    opened.until("document.querySelector('.contents a[aria-current]') !== null")
    assert page.locator(".contents ol").is_visible() == beside, "it is out of the way again"
    current = page.locator(".contents a[aria-current]")
    assert current.count() == 1
    assert current.text_content() == page.locator(".contents a").nth(4).text_content()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.emulate_media(media="print")
    assert not page.locator(".contents").is_visible()
    assert not page.locator(".tools").first.is_visible()


@pytest.mark.parametrize(("width", "columns"), [(1300, 1), (2200, 2)])
def test_charts_are_side_by_side_where_there_is_room(opened: Opened, width: int, columns: int) -> None:
    opened.page.set_viewport_size({"width": width, "height": 900})
    lefts = "new Set([...document.querySelectorAll('.charts > .card')].map((c) => c.offsetLeft)).size"
    assert opened.page.evaluate(lefts) == columns
    plots = "[...document.querySelectorAll('.charts .plot')]"
    wider = f"{plots}.filter((plot) => plot.scrollWidth > plot.clientWidth + 1).length"
    opened.until(f"{wider} === 0")


def test_a_backend_is_hidden_with_bars_and_points(opened: Opened) -> None:
    opened.page.locator("#figure-phases-3").scroll_into_view_if_needed()
    opened.page.locator("#figure-phases-3 .legendtoggle").first.click()
    opened.until("document.querySelectorAll('#figure-phases-3 .barlayer .point').length === 9")
    opened.until("document.querySelectorAll('#figure-phases-3 .scatterlayer .point').length === 18")


def test_nothing_of_hostile_steps_measures_and_volumes_is_executed(browser: Browser, tmp_path: Path) -> None:
    for number in range(2):
        run = write_run(
            tmp_path / str(number),
            records(1200, route=[n % 3 for n in range(1200)]),
            routes=HOSTILE[:3],
            scenario=HOSTILE[0],
            backend=f"{HOSTILE[1]}{number}",
            logs=[],
        )
        names = [*HOSTILE, *(f"phase: {name}" for name in HOSTILE), *(f"lcp: {name}" for name in HOSTILE)]
        for name in names:
            add_events(run, {"t_ns": 1, "event": "measure", "name": name, "value": 5.0, "unit": "ms"})
        add_events(run, {"t_ns": 1, "event": "measure", "name": HOSTILE[2], "value": 1, "unit": HOSTILE[0]})
        add_events(run, {"t_ns": 1, "event": "measure", "name": HOSTILE[0], "value": "x", "unit": "ms"})
    write_cells(tmp_path / "fileio.jsonl", [cell(name, name, 1) for name in HOSTILE])
    report = make_report([tmp_path]).path
    opened = Opened(browser, report, viewport={"width": 1300, "height": 900})
    for summary in opened.page.locator("main details > summary:visible").all():
        summary.click()
    assert opened.page.locator(".plot").count() >= 5
    for figure in opened.page.locator(".plot").all():
        figure.scroll_into_view_if_needed()
        figure.hover()
    assert opened.page.evaluate("window.owned") is None
    assert opened.page.locator("main img, main a, main iframe, .plot a").count() == 0
    assert opened.complaints == []
    assert opened.requests == [report.as_uri()]
    opened.page.close()
