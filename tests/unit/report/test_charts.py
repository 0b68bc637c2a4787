"""A chart is one file and one line of analysis/report/charts.py."""

from importlib import import_module
from pathlib import Path

import pytest

from analysis.charts.style import apart, in_lines
from analysis.report import charts, make_report
from tests.support.rundir import traffic, write_run

TOY = '''
from analysis.charts.style import Chart, axis, layout, points


def toy_chart(runs):
    """Return how many requests each run had."""
    trace = points("requests", [run.number for run in runs], [run.statistics.requests for run in runs])
    return Chart("toy", "A toy of a chart", "By run.", [trace], layout(axis("run"), axis("requests")))


def nothing(runs):
    return None
'''


def test_a_chart_that_is_named_in_the_list_is_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy_charts.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    toys = import_module("toy_charts")
    run = write_run(tmp_path / "run", traffic(60, 30))
    before = make_report([run], tmp_path / "before.html").path.read_text(encoding="utf-8")
    monkeypatch.setattr(charts, "RUN_CHARTS", [*charts.RUN_CHARTS, toys.nothing, toys.toy_chart])
    after = make_report([run], tmp_path / "after.html").path.read_text(encoding="utf-8")
    assert "A toy of a chart" not in before
    assert 'id="figure-toy"' in after
    assert after.index('id="figure-lag"') < after.index('id="figure-toy"')


TICKS = [
    ("those that lie apart are all kept, in order", [1, 2, 0.5], 0.4, 3, [0.5, 1, 2]),
    ("of those too close the one that is wanted more", [1, 1.05, 0.95, 1.2], 0.9, 1.6, [1, 1.2]),
    ("those outside the axis are none of its ticks", [1, 0.1, 10], 0.5, 2, [1]),
]


@pytest.mark.parametrize(("what", "ticks", "low", "high", "kept"), TICKS, ids=[row[0] for row in TICKS])
def test_ticks_have_room(what: str, ticks: list[float], low: float, high: float, kept: list[float]) -> None:
    assert apart(ticks, low, high) == kept, what


LABELS = [
    ("a short one stays", "replay: p99", 20, "replay: p99"),
    ("a long one goes on below", "upgrade-wordpress during: p99", 12, "upgrade-<br>wordpress<br>during: p99"),
    ("the end of one that is too long is left out", "a b c d e f g", 3, "a b<br>c d<br>e …"),
    ("what plotly would read is spelled", "<b>a</b> & b", 20, "&lt;b&gt;a&lt;/b&gt; &amp; b"),
]


@pytest.mark.parametrize(("what", "text", "columns", "lines"), LABELS, ids=[row[0] for row in LABELS])
def test_labels_in_lines(what: str, text: str, columns: int, lines: str) -> None:
    assert in_lines(text, columns) == lines, what
