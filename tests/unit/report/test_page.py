"""The page: complete in itself, and nothing in it but text from a run."""

import json
import re
from pathlib import Path

import pytest

from plimsoll.analysis.page.chart import Chart
from plimsoll.common.hostile import plotly_text, printable, script_json
from tests.support.pages import (
    HOSTILE,
    check_figure,
    elements_in,
    figures_in,
    page_of_runs,
    write_hostile_run,
)
from tests.support.rundir import records, traffic, write_run


def test_the_page_loads_nothing(busy_run: Path) -> None:
    elements = elements_in(page_of_runs(busy_run))
    links = [
        value for _, attributes in elements for key, value in attributes.items() if key in ("src", "href")
    ]
    assert links == ["data:,"]
    policy = next(a["content"] for tag, a in elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert policy.count("'sha256-") == 3
    assert "unsafe-eval" not in policy
    script_policy = next(part for part in policy.split(";") if "script-src" in part)
    assert "unsafe-inline" not in script_policy


def test_plotly_is_there_once_and_the_page_is_no_larger_than_it_must_be(busy_run: Path) -> None:
    text = page_of_runs(busy_run, busy_run)
    assert text.count("plotly.js v") == 1
    assert len(text) < 6_500_000


@pytest.fixture(scope="module")
def hostile_pages(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A hostile run alone, and one beside a plain run."""
    folder = tmp_path_factory.mktemp("hostile")
    hostile = write_hostile_run(folder / "hostile")
    plain = write_run(folder / "plain", records(3000), routes=["a"] * len(HOSTILE))
    return [page_of_runs(hostile), page_of_runs(hostile, plain)]


def test_a_hostile_run_adds_no_element(hostile_pages: list[str], tmp_path: Path) -> None:
    plain = write_run(tmp_path / "plain", records(3000), routes=["a"] * len(HOSTILE))
    allowed = {tag for tag, _ in elements_in(page_of_runs(plain))} | {"b"}
    for page in hostile_pages:
        elements = elements_in(page)
        assert {tag for tag, _ in elements} <= allowed
        assert len([tag for tag, _ in elements if tag == "script"]) == 4
        assert not [a for _, a in elements if any(name.startswith("on") for name in a)]


def test_plotly_is_given_no_element_of_a_hostile_run(hostile_pages: list[str]) -> None:
    for page in hostile_pages:
        for figure in figures_in(page).values():
            given = json.dumps([figure["data"], figure["layout"]])
            assert not re.search("<(/?script|img|a |b )", given)


def test_no_unprintable_character_reaches_the_page(hostile_pages: list[str]) -> None:
    for character in "\x1b\x00\u202e\u2028":
        assert character not in hostile_pages[0]


@pytest.mark.parametrize("text", HOSTILE)
def test_plotly_is_given_nothing_to_interpret(text: str) -> None:
    safe = plotly_text(text)
    assert not re.search(r"[<>$]|%\{|&(?!(amp|lt|gt|#36|#123);)", safe)


def test_what_is_printable_stays() -> None:
    assert printable("Ünïcode – 漢字 €") == "Ünïcode – 漢字 €"
    assert printable("x" * 1000, 10) == "x" * 9 + "…"
    assert printable("a\tb\x9b\U000e0001") == r"a\x09b\x9b\U000e0001"


def test_json_in_a_script_ends_no_script() -> None:
    text = script_json(HOSTILE)
    assert json.loads(text) == HOSTILE
    assert "<" not in text
    with pytest.raises(ValueError, match="JSON"):
        script_json(float("nan"))


@pytest.mark.parametrize("count", [1, 3, 50, 100, 999, 3000])
def test_every_figure_is_one_that_plotly_knows(tmp_path: Path, count: int) -> None:
    one = write_run(tmp_path / "one", traffic(30, 120)[:count])
    two = write_run(tmp_path / "two", records(count), loop="closed", speed="max")
    for runs in ((one,), (two,), (one, two)):
        figures = figures_in(page_of_runs(*runs))
        for figure in figures.values():
            check_figure(figure)
        assert {"tail", "percentiles", "heat-0", "throughput"} <= set(figures)
        assert ("lag" in figures) is (runs[0] == one)  # a closed loop has no lag


def test_no_figure_grows_with_the_run(tmp_path: Path) -> None:
    text = page_of_runs(write_run(tmp_path / "run", traffic(3000, 30)))
    for figure in figures_in(text).values():
        assert max(len(trace["x"]) for trace in figure["data"]) <= 1000


def test_figures_keep_their_places() -> None:
    assert Chart("k", "t", "c", [], {}).as_json() == {"title": "t", "data": [], "layout": {}}
