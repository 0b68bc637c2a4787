"""A page of many runs: folded by scenario and backend, and small."""

import re
from pathlib import Path

import pytest

from plimsoll.analysis.evidence.finding import Finding
from plimsoll.analysis.report import make_report
from plimsoll.analysis.report.contents import Report, merge_repeats
from plimsoll.common.errors import Severity
from tests.support.experiment import write_experiment, write_scripted_experiment
from tests.support.rundir import change, records, write_run
from tests.unit.report.test_comparison import figures_of, text_of, warnings_of


def _report(folder: Path, repeats: int) -> Report:
    """Two scenarios on two backends, those of one failed."""
    write_experiment(folder / "a", repeats, per_s=20.0)
    for path in write_scripted_experiment(folder / "b", ["save-article"], repeats):
        change(path, status="failed", reason="no disk")
    return make_report([folder / "a", folder / "b"])


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return _report(tmp_path_factory.mktemp("many"), 6)


@pytest.mark.slow
def test_200_runs_fit_a_small_page(tmp_path: Path) -> None:
    many = _report(tmp_path, 50)
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
    assert warnings.count("The run failed (no disk). Run it again, or take it out of the folder.") == 1
    assert "and 9 more:</b> The run failed (no disk)." in warnings


def test_only_the_same_words_are_said_once() -> None:
    same, other = Finding(Severity.BAD, "late"), Finding(Severity.BAD, "later")
    said = [("a", same), ("b", other), *((f"r{n}", same) for n in range(5))]
    assert merge_repeats(said) == [("a, r0, r1 and 3 more", same), said[1]]
    assert merge_repeats(said[:3]) == [said[0], said[2], said[1]]


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
    assert "5 warnings on single runs" in text
    assert 'id="warnings"' not in text
