"""The report in a real browser: its figures, read at any width, downloaded, on paper, folded, as files."""

import csv
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from plimsoll.analysis.page.shell import draw_pictures
from plimsoll.analysis.report.making import make_report
from tests.support.chromium import Opened
from tests.support.experiment import (
    add_arc,
    cells,
    write_cells,
    write_experiment,
    write_many,
    write_scripted_experiment,
)
from tests.support.pages import figures_of, write_hostile_experiment

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
    marked = "[...document.querySelectorAll('.contents a')].map((link) => link.ariaCurrent)"
    opened.until(f"{marked}.indexOf('true') === 4")  # a frame later than the page has moved
    assert page.locator(".contents ol").is_visible() == beside, "it is out of the way again"
    assert page.locator(".contents a[aria-current]").count() == 1
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


def test_the_switch_changes_the_scale_and_stays_when_the_colours_change(
    browser: Browser, busy_run: Path
) -> None:
    page = make_report([busy_run]).path
    opened = Opened(browser, page, color_scheme="light", viewport=WIDE)
    scale = "document.getElementById('figure-tail').layout.yaxis.type"
    for wanted in ("log", "linear", "log"):
        opened.page.click(f"button[data-figure=tail][data-scale={wanted}]")
        opened.until(f"{scale} === '{wanted}'")
    opened.page.emulate_media(color_scheme="dark")
    opened.until("document.getElementById('figure-tail').layout.font.color === '#e6ebf2'")
    assert opened.page.evaluate(scale) == "log"
    assert opened.complaints == []
    assert opened.page.pdf().startswith(b"%PDF"), "and it prints"
    assert opened.complaints == []
    opened.page.close()


def test_a_backend_is_hidden_and_shown_by_its_place_in_the_legend(browser: Browser, tmp_path: Path) -> None:
    write_experiment(tmp_path)
    opened = Opened(browser, make_report([tmp_path]).path, viewport=WIDE)
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


@pytest.mark.slow
def test_many_runs_open_and_unfold_without_a_word(browser: Browser, tmp_path: Path) -> None:
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


# Its figures as files, drawn by Chromium.


def test_the_page_draws_its_own_figures_as_files(browser: Browser, tmp_path: Path) -> None:
    write_experiment(tmp_path / "a b", 1)
    made = make_report([tmp_path / "a b"])
    files = draw_pictures(made.path, ["svg", "png"])
    keys = figures_of(made).keys()
    assert {path.name for path in files} == {f"{key}.{kind}" for key in keys for kind in ("svg", "png")}
    for path in files:
        assert path.parent == tmp_path / "a b" / "report-figures"
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
            continue
        root = parsed(path)
        assert root.tag.endswith("svg")
        assert root.get("width") == "1000"
        ground = next(iter(root))
        assert "rgb(255, 255, 255)" in (ground.get("style") or ""), "white, whatever the reader's scheme"
        text = path.read_text(encoding="utf-8")
        assert "Arial" in text
        assert "var(--" not in text
    svg = (tmp_path / "a b" / "report-figures" / "scatter-0.svg").read_text(encoding="utf-8")
    assert "while zfs send runs" in svg, "a figure by itself says what it is"


def test_pictures_of_a_hostile_experiment_hold_text_only(browser: Browser, tmp_path: Path) -> None:
    write_hostile_experiment(tmp_path)
    made = make_report([tmp_path], tmp_path / "report.html")
    for path in draw_pictures(made.path, ["svg"]):
        for element in parsed(path).iter():
            assert element.tag.rpartition("}")[2] not in {"script", "a", "foreignObject", "iframe"}
            assert not [name for name in element.keys() if name.lower().startswith("on")]  # noqa: SIM118


def test_the_button_downloads_svg_by_a_plain_name(browser: Browser, tmp_path: Path) -> None:
    write_experiment(tmp_path, 1, experiment='<b>../"Disks" & more')
    made = make_report([tmp_path])
    opened = Opened(browser, made.path, color_scheme="dark", viewport=WIDE)
    opened.page.locator("#figure-scatter-0").hover()
    buttons = opened.page.locator("#figure-scatter-0 .modebar-btn").evaluate_all(
        "all => all.map(one => one.dataset.title)"
    )
    assert buttons == ["Zoom", "Pan", "Zoom in", "Zoom out", "Reset axes", "Download as SVG"], (
        "none that would send what was measured anywhere"
    )
    with opened.page.expect_download() as download:
        opened.page.locator("#figure-scatter-0 [data-title='Download as SVG']").click()
    assert download.value.suggested_filename == "experiment-b-disks-more-2-runs-plimsoll-scatter-0.svg"
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert "#e6ebf2" not in text, "not the dark page's letters"
    assert opened.complaints == []
    opened.page.close()


def parsed(path: Path) -> ElementTree.Element:
    return ElementTree.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 our own
