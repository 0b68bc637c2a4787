"""The Grinder's table: a row a backend, and how long it took in a unit that says something."""

import re
from pathlib import Path

import numpy as np
import pytest

from plimsoll.analysis.report import make_report
from plimsoll.analysis.report.sections.single_runs import pooled
from plimsoll.analysis.statistics.routes import GrinderRow
from tests.support.experiment import write_experiment
from tests.support.rundir import records, write_run
from tests.unit.report.test_comparison import text_of


def _row(times_ms: list[float], elapsed_s: float) -> tuple[GrinderRow, float]:
    n = len(times_ms)
    mean, deviation = (float(np.mean(times_ms)), float(np.std(times_ms))) if n else (None, None)
    row = GrinderRow(n, 1, mean, deviation, n / elapsed_s, 1000.0, mean / 2 if mean else None)
    return row, elapsed_s


POOLED = [
    ("two runs are as one of all their requests", [[1.0, 2.0, 9.0], [5.0, 30.0]]),
    ("one is itself", [[1.0, 2.0]]),
    ("a run in which all failed adds its errors and its time", [[4.0, 6.0], []]),
]


@pytest.mark.parametrize(("what", "runs"), POOLED, ids=[row[0] for row in POOLED])
def test_runs_together(what: str, runs: list[list[float]]) -> None:
    found = pooled([_row(times, 10.0) for times in runs])
    every = [ms for times in runs for ms in times]
    assert found.tests == len(every)
    assert found.errors == len(runs)
    assert found.mtt_ms == pytest.approx(np.mean(every)), what
    assert found.ttsd_ms == pytest.approx(np.std(every))
    assert found.mttfb_ms == pytest.approx(np.mean(every) / 2)
    assert found.tps == pytest.approx(len(every) / (10 * len(runs)))
    assert found.rbps == pytest.approx(1000)


def test_nothing_is_absent_and_no_zero() -> None:
    found = pooled([_row([], 10.0)])
    assert (found.mtt_ms, found.ttsd_ms, found.mttfb_ms) == (None, None, None)


def test_several_runs_have_one_row_a_backend(tmp_path: Path) -> None:
    write_experiment(tmp_path, 2)
    text = text_of(make_report([tmp_path]))
    start = text.index("The Grinder&#39;s table, by backend")
    table = text[start : text.index("</table>", start)]
    rows = re.findall(r"<tr class=\"\"><td>(.*?)</td><td>(.*?)</td>.*<td>(.*?)</td></tr>", table)
    assert [(name, runs) for name, runs, _ in rows] == [("nvme-mirror", "2"), ("slow-disk (emulated)", "2")]
    assert ">TT (s)<" in table
    assert all(160 <= float(took) < 170 for *_, took in rows), "both of 80 s together"


@pytest.mark.parametrize(("seconds", "heading", "cell"), [(12, "TT (s)", "12.0"), (3700, "TT (h:m)", "1:01")])
def test_tt_has_the_unit_that_suits_it(tmp_path: Path, seconds: int, heading: str, cell: str) -> None:
    table = records(100)
    table["due_ns"] = np.linspace(0, seconds * 1e9, 100).astype("i8")
    text = text_of(make_report([write_run(tmp_path / "run", table)]))
    assert f">{heading}<" in text
    assert f"<td>{cell}</td></tr>" in text
    assert "by backend" not in text, "one run has its own table"
