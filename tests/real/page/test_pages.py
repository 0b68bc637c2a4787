"""Every page in a real browser: drawn, quiet, light and dark, wide and narrow, deaf to hostile names."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser

from plimsoll.analysis.report.making import make_report
from plimsoll.cli import main
from tests.support.chromium import Opened
from tests.support.comparable import regress, sign_off, signed_off, write_both, write_gates, write_night
from tests.support.experiment import add_events, cell, write_cells, write_experiment
from tests.support.pages import (
    HOSTILE,
    write_hostile_experiment,
    write_hostile_history,
    write_hostile_run,
    write_hostile_sides,
)
from tests.support.rundir import records, write_run

Write = Callable[[Path], Path]


def report_of(*folders: Path) -> Path:
    return make_report(list(folders), folders[0].parent / "report.html").path


def experiment(folder: Path) -> Path:
    write_experiment(folder / "e")
    return report_of(folder / "e")


def comparison_of(folder: Path, *sides: str | Path) -> Path:
    page = folder / "page.html"
    CliRunner().invoke(main, ["compare", *map(str, sides), "--html", str(page)], catch_exceptions=False)
    return page


def comparison(ratio: float) -> Write:
    def write(folder: Path) -> Path:
        write_both(folder, ratio)
        return comparison_of(folder, folder, "--baseline", "sata", "--candidate", "nvme")

    return write


def history_page(history: Path) -> Path:
    page = history.with_name("history.html")
    assert regress(history, "--html", page).exit_code in (0, 1, 3)
    return page


def history(folder: Path) -> Path:
    file = folder / "history.sqlite"
    for number in range(18):
        tails = {"nvme": (50 + number % 3) * (2 if number > 13 else 1), "sata": 80 + number % 2}
        regress(file, write_night(folder / "results", number, tails, generator_limited=number == 5))
    return history_page(file)


SOME = range(1, 1 << 20)
Holds = dict[str, int | range | str]  # how many there are of it, or what the first begins with
VERDICT: Holds = {"#figure-effects .trace": SOME, "#figure-repeats .trace": SOME}
PAGES: list[tuple[str, Write, Holds]] = [
    (
        "an experiment",
        experiment,
        {
            ".phases tbody": 2,
            "#figure-scatter-0 .scatterlayer .point": range(41, 1 << 20),
            "#figure-scatter-0 .subplot": 4,
            "#figure-repeats-0 .scatterlayer .point": 24,
            "#differences tbody tr": 4,
            "main details": 11,
            ".answer .bigs dd": "nvme-mirror",
        },
    ),
    ("a comparison that passes", comparison(1.0), {"#verdict .verdict": "PASS", **VERDICT}),
    ("a comparison that fails", comparison(1.5), {"#verdict .verdict": "FAIL", **VERDICT}),
    (
        "a history",
        history,
        {
            "#figure-trend-0-0 .scatterlayer .trace": range(4, 1 << 20),
            ".legendtext >> nth=0": "nvme",
            ".legendtext >> nth=1": "sata",
            "main :text('Nights without a figure')": SOME,
        },
    ),
    (
        "a sign-off",
        lambda folder: signed_off(folder, "--signer", "A. Bell") / "signoff.html",
        {"#verdict .verdict": "PASS", **VERDICT},
    ),
]
SCREENS = [("light", 1300), ("dark", 390)]


def is_drawn(browser: Browser, page: Path, screen: tuple[str, int], holds: Holds) -> None:
    scheme, width = screen
    opened = Opened(browser, page, color_scheme=scheme, viewport={"width": width, "height": 900})
    assert opened.complaints == []
    assert opened.requests == [page.as_uri()], "it asks for nothing but itself"
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    for selector, there in holds.items():
        found = opened.page.locator(selector)
        if isinstance(there, str):
            assert (found.first.text_content() or "").strip().startswith(there), selector
        else:
            assert found.count() in (there if isinstance(there, range) else [there]), selector
    ground = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in ground[4:-1].split(","))
    assert brightness > 600 if scheme == "light" else brightness < 150
    opened.page.close()


@pytest.mark.parametrize(("write", "holds"), [row[1:] for row in PAGES], ids=[row[0] for row in PAGES])
def test_a_page_is_drawn_without_a_word(browser: Browser, tmp_path: Path, write: Write, holds: Holds) -> None:
    page = write(tmp_path)
    for screen in SCREENS:
        is_drawn(browser, page, screen, holds)


@pytest.mark.parametrize("screen", SCREENS, ids=["light", "dark, on a telephone"])
def test_a_run_is_drawn_without_a_word(browser: Browser, busy_run: Path, screen: tuple[str, int]) -> None:
    holds: Holds = {
        ".js-plotly-plot .main-svg": range(5, 1 << 20),
        "#figure-tail .scatterlayer .point": range(21, 1 << 20),
        "#headline .bigs dd": 4,
    }
    is_drawn(browser, make_report([busy_run]).path, screen, holds)


def hostile_runs(count: int) -> Write:
    def write(folder: Path) -> Path:
        paths = [write_hostile_run(folder / f"<img src=x onerror=window.owned=1>{n}") for n in range(count)]
        return report_of(*paths)

    return write


def hostile_report(folder: Path) -> Path:
    write_hostile_experiment(folder / "e")
    return report_of(folder / "e")


def hostile_steps(folder: Path) -> Path:
    """Steps, measures and volumes."""
    for number in range(2):
        run = write_run(
            folder / "e" / str(number),
            records(1200, route=[n % 3 for n in range(1200)]),
            routes=HOSTILE[:3],
            scenario=HOSTILE[0],
            backend=f"{HOSTILE[1]}{number}",
            logs=[],
        )
        names = [*HOSTILE, *(f"phase: {name}" for name in HOSTILE), *(f"lcp: {name}" for name in HOSTILE)]
        measures: list[dict[str, Any]] = [{"name": name, "value": 5.0, "unit": "ms"} for name in names]
        measures.append({"name": HOSTILE[2], "value": 1, "unit": HOSTILE[0]})
        measures.append({"name": HOSTILE[0], "value": "x", "unit": "ms"})
        for measure in measures:
            add_events(run, {"t_ns": 1, "event": "measure", **measure})
    write_cells(folder / "e" / "fileio.jsonl", [cell(name, name, 1) for name in HOSTILE])
    return report_of(folder / "e")


def hostile_document(folder: Path) -> Path:
    sides, out = write_hostile_sides(folder), folder / "signed"
    limits = write_gates(folder, json.dumps({"gates": [{"scenario": HOSTILE[3], "at_most_ratio": 1.1}]}))
    signers = [part for name in HOSTILE for part in ("--signer", name)]
    result = sign_off(*sides, "--gates", limits, "--out", out, "--question", HOSTILE[0], *signers)
    assert result.exit_code == 3, result.output
    return out / "signoff.html"


# Each: what it is, what writes it, what it may have of what could execute, and how many figures at least.
HOSTILES: list[tuple[str, Write, str, int]] = [
    ("a run", hostile_runs(1), "", 1),
    ("two runs", hostile_runs(2), "", 1),
    ("an experiment", hostile_report, "", 1),
    ("steps, measures and volumes", hostile_steps, "", 5),
    ("a comparison", lambda folder: comparison_of(folder, *write_hostile_sides(folder)), "", 0),
    ("a history", lambda folder: history_page(write_hostile_history(folder)), "", 0),
    ("a sign-off", hostile_document, ":not([href='#limits'])", 0),
]


@pytest.mark.parametrize(
    ("write", "allowed", "figures"),
    [pytest.param(*row[1:], id=row[0], marks=[pytest.mark.slow] * (row[0] == "a run")) for row in HOSTILES],
)
def test_nothing_that_is_hostile_is_executed(
    browser: Browser, tmp_path: Path, write: Write, allowed: str, figures: int
) -> None:
    page = write(tmp_path)
    opened = Opened(browser, page, viewport={"width": 1300, "height": 900})
    for summary in opened.page.locator("main details > summary:visible").all():
        summary.click()
    assert opened.page.locator(".plot").count() >= figures
    for figure in opened.page.locator(".plot:visible").all():
        figure.scroll_into_view_if_needed()
        figure.hover()
    assert opened.page.evaluate("window.owned === undefined")
    assert opened.page.locator(f"main img, main a{allowed}, main iframe, .plot a").count() == 0
    assert HOSTILE[0] in opened.page.locator("main").inner_text(), "it is shown as text"
    assert opened.complaints == []
    assert opened.requests == [page.as_uri()]
    opened.page.close()
