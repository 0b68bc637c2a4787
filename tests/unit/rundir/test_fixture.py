"""The same run directory, read in Go and in Python: the same figures."""

import json
from typing import Any

import pytest

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.evidence.run import RunStatistics
from plimsoll.common.units import hours_minutes
from plimsoll.rundir.read import RunDirectory
from tests.support.programs import FIXTURES

RUN = FIXTURES / "run-go"


@pytest.fixture(scope="module")
def statistics() -> RunStatistics:
    return measure_figures(RunDirectory.open(RUN))


@pytest.fixture(scope="module")
def summary() -> dict[str, Any]:
    return dict(json.loads((RUN / "summary.json").read_text()))


@pytest.mark.parametrize("time", ["response", "service", "lag", "ttfb"])
def test_every_time_is_what_the_writer_summed_up(
    statistics: RunStatistics, summary: dict[str, Any], time: str
) -> None:
    found, theirs = statistics.samples[time].figures(), dict(summary[f"{time}_ms"])
    assert found.censored == theirs.pop("censored", {})
    assert found.ms == pytest.approx(theirs)


def test_every_count_is_what_the_writer_counted(statistics: RunStatistics, summary: dict[str, Any]) -> None:
    counted = statistics.as_json()["requests"]
    assert isinstance(counted, dict)
    assert counted == {name: summary["requests"][name] for name in counted}
    assert statistics.duration_s == pytest.approx(summary["duration_s"])


def test_the_grinders_table_is_the_writers(statistics: RunStatistics, summary: dict[str, Any]) -> None:
    total = statistics.total.grinder
    assert {
        "tests": total.tests,
        "errors": total.errors,
        "MTT_ms": pytest.approx(total.mtt_ms),
        "TTSD_ms": pytest.approx(total.ttsd_ms),
        "TPS": pytest.approx(total.tps),
        "RBPS": pytest.approx(total.rbps),
        "MTTFB_ms": pytest.approx(total.mttfb_ms),
        "TT": hours_minutes(statistics.duration_s),
    } == summary["grinder"]
