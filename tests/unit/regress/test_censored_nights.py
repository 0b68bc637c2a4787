"""Nights in which requests failed: a failure's figure is kept as such, and makes no night faster."""

from pathlib import Path

import pytest

from plimsoll.analysis.evidence.measure import measure_run
from plimsoll.analysis.evidence.run import WHOLE
from plimsoll.analysis.regress.intake import add_runs, select_readable
from plimsoll.analysis.regress.nights import ExperimentHistory, NightSeries, build_series
from plimsoll.analysis.regress.store import open_history
from plimsoll.rundir.read import RunDirectory
from tests.support.comparable import LAB, write_night


def series(file: Path) -> NightSeries:
    """The p99.9 of whole runs."""
    with open_history(file) as kept:
        past = ExperimentHistory(
            LAB, kept.nights(LAB), kept.runs(LAB), list(kept.figures(LAB, ["p99.9", "p99", "p50"])), [], []
        )
    return next(each for each in build_series(past) if each.key.phase == WHOLE)


@pytest.mark.parametrize(("timeout_s", "at_least"), [(30.0, 30_000.0), (None, None)])
def test_a_history_knows_what_is_censored(
    tmp_path: Path, timeout_s: float | None, at_least: float | None
) -> None:
    folder = write_night(tmp_path / "results", 1, {"nvme": 50.0}, errors=800, timeout_s=timeout_s)
    (path,) = (folder / "runs").iterdir()
    measured = measure_run(RunDirectory.open(path))
    with open_history(tmp_path / "h.sqlite") as kept:
        add_runs(kept, select_readable([tmp_path / "results"]))
        (row,) = kept.runs()
        loaded = kept.load(row)
    assert loaded.phases == measured.phases
    assert loaded.phases[WHOLE].response_ms.censored["p99.9"] == at_least
    assert loaded.phases[WHOLE].steps["page"].at_least == at_least
    assert {(WHOLE, "p99.9"), (WHOLE, "measure page")} <= row.censored
    assert ("during", "p99") in row.censored and ("before", "p50") in row.censored


def test_a_night_is_not_judged_by_the_repeats_that_did_not_fail(tmp_path: Path) -> None:
    results = tmp_path / "results"
    for number in range(3):
        write_night(results, number, {"nvme": 50.0}, repeats=2, timeout_s=30.0)
    last = write_night(results, 3, {"nvme": 10.0}, repeats=2, timeout_s=30.0)
    write_night(tmp_path / "failed", 3, {"nvme": 10.0}, repeats=2, timeout_s=30.0, errors=10)
    second = sorted((last / "runs").iterdir())[1]
    failed = sorted((tmp_path / "failed").glob("*/runs/*"))[1]
    (second / "requests.npy").write_bytes((failed / "requests.npy").read_bytes())
    with open_history(tmp_path / "h.sqlite") as kept:
        add_runs(kept, select_readable([results]))
    found = series(tmp_path / "h.sqlite")
    assert found.key.metric == "p99.9", "a failing night does not make another figure the one to watch"
    assert [len(night.repeats) for night in found.nights] == [2, 2, 2, 0]
    assert found.nights[-1].why == f"{second.name} failed so often that the p99.9 is a failure's"
