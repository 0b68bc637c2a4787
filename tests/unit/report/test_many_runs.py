"""A page of many runs and many variants: folded, small, a few in the figures; nothing is dropped."""

import re
from pathlib import Path

import pytest

from plimsoll.analysis.report.contents import Report
from plimsoll.analysis.report.making import make_report
from tests.support.experiment import write_experiment, write_factorial, write_many
from tests.support.pages import HOSTILE, figures_of, text_of, warnings_of
from tests.support.rundir import change, records, write_run


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return make_report(write_many(tmp_path_factory.mktemp("many"), 6))


@pytest.mark.slow
def test_200_runs_fit_a_small_page(tmp_path: Path) -> None:
    many = make_report(write_many(tmp_path, 50))
    assert len(many.runs) == 200
    assert many.path.stat().st_size < 8 << 20
    points = {key: sum(len(t["x"]) for t in figure["data"]) for key, figure in figures_of(many).items()}
    assert max(points.values()) <= 8000, points


def test_they_are_folded_by_scenario_and_backend(many: Report) -> None:
    text = text_of(many)
    table = text[text.index('id="headline"') : text.index('<details class="runs-of-backend">')]
    titles = re.findall(r"<summary>.*?</span>([^<]+)<", table)
    assert [title.strip() for title in titles] == [
        "replay: nvme-mirror",
        "replay: slow-disk",
        "save-article: nvme-mirror",
        "save-article: rotating",
    ]
    assert re.search(r"6 runs, p99\.9 [\d.]+ m?s \(median; \d", table)
    assert "6 not complete" in table
    assert table.count("<tr>") == 24 + 4, "each run once, and a head a table"
    assert text.count('<details class="runs-of-backend">') == 4


def test_what_many_runs_say_is_said_once(many: Report) -> None:
    warnings = warnings_of(many)
    assert warnings.count("each failed (no disk). Run it again, or take it out of the folder.") == 1
    assert "<b>12 of 12 runs of save-article:</b> each failed (no disk)." in warnings


def test_a_dozen_runs_stand_in_one_table(tmp_path: Path) -> None:
    write_experiment(tmp_path, 6, per_s=20.0)
    text = text_of(make_report([tmp_path]))
    assert '<details class="of-backend">' not in text
    assert '<details class="runs-of-backend">' not in text


def test_runs_without_a_backend_are_one_group(tmp_path: Path) -> None:
    for number in range(13):
        write_run(tmp_path / f"{number:02d}", records(1500))
    text = text_of(make_report([tmp_path]))
    assert text.count('<details class="of-backend">') == 1
    assert "runs without a backend" in text


def test_minor_warnings_of_many_runs_are_folded_with_nothing_above_them(tmp_path: Path) -> None:
    for number in range(5):
        path, day = tmp_path / f"run-{number}", f"2026-11-2{number}"
        change(
            write_run(path, records(900 + number), summary={}), started_at=f"{day}T09:00:00Z", ended_at=None
        )
    text = text_of(make_report([tmp_path]))
    assert "1 warning on single runs" in text
    assert "<b>5 of 5 runs:</b> Only 900–904 requests" in text
    assert 'id="warnings"' not in text


LEVELS = {
    "backend": ["nvme", "sata"],
    "recordsize": ["128K", "16K"],
    "compression": ["lz4", "off"],
    "scheduler": ["none", "mq-deadline"],
}
SLOWER = {"sata": 3.0, "16K": 0.7, "off": 1.2, "mq-deadline": 1.4}


def stall_ms(point: dict[str, str]) -> float:
    found = 200.0
    for level in point.values():
        found *= SLOWER.get(level, 1.0)
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
