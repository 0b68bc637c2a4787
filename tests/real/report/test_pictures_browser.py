"""The figures of a report as files, drawn by Chromium."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from playwright.sync_api import Browser

from plimsoll.analysis.page.shell import draw_pictures
from plimsoll.analysis.report import make_report
from tests.support.chromium import Opened
from tests.support.experiment import write_experiment
from tests.support.pages import figures_of, write_hostile_experiment


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
    opened = Opened(browser, made.path, color_scheme="dark", viewport={"width": 1300, "height": 900})
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
