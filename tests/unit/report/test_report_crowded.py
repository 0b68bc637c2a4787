"""A report on many variants: figures show a few, say which, and let the reader choose; nothing is dropped."""

import re
from pathlib import Path

import pytest

from plimsoll.analysis.report.contents import Report
from plimsoll.analysis.report.report import make_report
from tests.support.experiment import write_factorial
from tests.unit.report.test_comparison import figures_of, text_of
from tests.unit.report.test_page import HOSTILE

LEVELS = {
    "backend": ["nvme", "sata"],
    "recordsize": ["128K", "16K"],
    "compression": ["lz4", "off"],
    "scheduler": ["none", "mq-deadline"],
}
SLOW = {"sata": 3.0, "16K": 0.7, "off": 1.2, "mq-deadline": 1.4}


def stall_ms(point: dict[str, str]) -> float:
    found = 200.0
    for level in point.values():
        found *= SLOW.get(level, 1.0)
    return found


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """16 variants."""
    folder = tmp_path_factory.mktemp("crowded")
    write_factorial(folder, LEVELS, stall_ms, repeats=2, noise=0.01)  # type: ignore[arg-type]
    return make_report([folder])


def test_the_page_says_which_of_many_variants_its_figures_show(crowded: Report) -> None:
    (found,) = re.findall(r"Of 16 variants, figures show 5: [^.]*\.", text_of(crowded))
    assert "nvme-128k-lz4-none (the base)" in found, "the first level of each factor"
    assert "(the fastest by their whole runs)" in found
    assert "sata-128k-off-mq-deadline" in found, "the slowest of all"
    assert "nvme-16k-lz4-none" in found, "the fastest of all"
    assert "(the slowest)" in found


def test_those_have_colours_of_their_own(crowded: Report) -> None:
    scenario = crowded.compared[0].scenario
    assert len({backend.shade % 8 for backend in scenario.few.backends}) == 5
    assert len(scenario.few.backends) == 5


def test_scatter_and_curves_have_all_variants_to_choose_from(crowded: Report) -> None:
    drawn, text = figures_of(crowded), text_of(crowded)
    for key in ("scatter-0", "curves-0"):
        groups = {trace["legendgroup"] for trace in drawn[key]["data"]}
        assert len(groups) == 16, "nothing is dropped"
        boxes = re.findall(rf'data-figure="{key}" data-shade="(\d+)"( checked)?', text)
        assert {f"backend {shade}" for shade, _ in boxes} == groups
        assert sum(bool(checked) for _, checked in boxes) == 5
    assert text.count("Shown: 5 of 16. Choose others") == 2


def test_other_figures_show_the_few_and_tables_fold_the_rest(crowded: Report) -> None:
    repeats = figures_of(crowded)["repeats-0"]["data"]
    assert len({trace["legendgroup"] for trace in repeats}) == 5
    text = text_of(crowded)
    table = text[text.index("Before, during and after") :]
    before, after = table.split("11 further variants", 1)
    assert before.count('scope="rowgroup"') == 5
    assert after.count('scope="rowgroup"') == 11


def test_eight_variants_and_fewer_are_all_shown(tmp_path: Path) -> None:
    levels = {key: LEVELS[key] for key in ("backend", "recordsize", "compression")}
    write_factorial(tmp_path, levels, lambda _: 200.0, repeats=1)
    made = make_report([tmp_path])
    text = text_of(made)
    assert "figures show" not in text
    assert "Choose others" not in text
    assert [backend.shade for backend in made.compared[0].scenario.backends] == list(range(8))


def test_names_of_many_are_text(tmp_path: Path) -> None:
    levels = {"backend": [f"{HOSTILE[0]}{number}" for number in range(9)]}
    write_factorial(tmp_path, levels, lambda _: 200.0, repeats=1)
    page = make_report([tmp_path]).path.read_text()
    assert "and 2 more: whether a difference is" in page, "what is said of each of many names a few"
    assert "Of 9 variants" in page
    assert "<script>window" not in page
    assert "&lt;script&gt;window" in page
