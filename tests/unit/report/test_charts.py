"""A chart is one file and one line of analysis/report/charts.py."""

from importlib import import_module
from pathlib import Path

import pytest

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
