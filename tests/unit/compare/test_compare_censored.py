"""A percentile that is a failure's has no figure that could be compared: only a lower bound, if that."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from plimsoll.analysis.compare.gates import CensoredError, NoFigureError, Reading, metric_of
from plimsoll.analysis.evidence.measure import measure_run
from plimsoll.analysis.evidence.run import WHOLE
from plimsoll.cli import main
from plimsoll.rundir.read import RunDirectory
from tests.support.comparable import runs_of, write_both, write_comparable
from tests.support.rundir import load_records, records

# 10 of 1,500 requests fail at once, all of them before the saturator starts.
FIGURES: list[tuple[str, str, str, float | None, str, str | None]] = [
    ("a percentile that is a failure's", "p99.9", WHOLE, 30.0, "at least 30 s", "p99.9"),
    ("of which nothing is known", "p99.9", WHOLE, None, "is not known", "p99.9"),
    ("a percentile below the failures", "p99", WHOLE, 30.0, "", None),
    ("a phase without failures", "p99.9", "during", 30.0, "", None),
    ("the mean counts them at their time-out", "mean", WHOLE, 30.0, "", None),
    ("or is withheld", "mean", WHOLE, None, "does not say at which time-out", None),
]


@pytest.mark.parametrize(
    ("what", "metric", "phase", "timeout_s", "says", "lost"), FIGURES, ids=[r[0] for r in FIGURES]
)
def test_a_figure_is_given_where_it_is_no_failure(
    tmp_path: Path, what: str, metric: str, phase: str, timeout_s: float | None, says: str, lost: str | None
) -> None:
    path = write_comparable(tmp_path / "run", "nvme", 1, 0, 50.0, errors=10, timeout_s=timeout_s)
    run = measure_run(RunDirectory.open(path))
    reading = Reading(run, run.phases[phase], metric, "in the whole run")
    assert (lost in reading.phase.response_ms.censored) is (lost is not None), what
    if not says:
        assert metric_of(metric).value(reading) > 0
        return
    with pytest.raises(NoFigureError, match=says) as caught:
        metric_of(metric).value(reading)
    assert isinstance(caught.value, CensoredError) is (lost is not None)
    if isinstance(caught.value, CensoredError):
        assert caught.value.at_least == (None if timeout_s is None else 1000 * timeout_s)


def test_the_median_of_a_step_that_fails_is_censored_too(tmp_path: Path) -> None:
    path = write_comparable(tmp_path / "run", "nvme", 1, 0, 50.0, errors=800, timeout_s=5.0)
    run = measure_run(RunDirectory.open(path))
    step = run.phases[WHOLE].steps["page"]
    assert (step.median, step.at_least, step.least) == (None, 5000.0, 5000.0)
    with pytest.raises(CensoredError, match="at least 5 s"):
        metric_of("measure page").value(Reading(run, run.phases[WHOLE], "measure page", "in the whole run"))


def test_two_sides_that_fail_alike_are_not_compared_by_how_fast_they_did(tmp_path: Path) -> None:
    write_both(tmp_path, ratio=0.5, errors=10, timeout_s=30.0)
    gates = tmp_path / "gates.yml"
    gates.write_text("gates:\n- {scenario: replay, metric: p99.9, at_most_ratio: 1.1}\n")
    done = CliRunner().invoke(
        main, ["compare", str(tmp_path), "--baseline", "sata", "--candidate", "nvme", "--gates", str(gates)]
    )
    assert done.exit_code == 3, done.output
    said = " ".join(done.output.split())
    assert "its p99.9 is one of them: all that is known is that it is at least 30 s" in said
    assert "the figure is a failure's: it is at least the time-out, and has no ratio" in said


def test_a_candidate_that_alone_fails_so_often_is_worse(tmp_path: Path) -> None:
    write_both(tmp_path, timeout_s=30.0)
    for path in runs_of(tmp_path):
        table = np.fromfile(path / "requests.npy", dtype=records(0).dtype, offset=512)
        table["error"][:10] = 5
        (path / "requests.npy").write_bytes((path / "requests.npy").read_bytes()[:512] + table.tobytes())
    gates = tmp_path / "gates.yml"
    gates.write_text("gates:\n- {scenario: replay, metric: p99.9, at_most_ratio: 100}\n")
    done = CliRunner().invoke(
        main, ["compare", str(tmp_path), "--baseline", "sata", "--candidate", "nvme", "--gates", str(gates)]
    )
    assert done.exit_code == 1, done.output


def test_figures_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    path = write_comparable(tmp_path / "run", "nvme", 1, 0, 50.0, errors=3, timeout_s=30.0)
    records = load_records(path)
    took_ms = np.where(records["error"] > 0, 30_000, records["total_us"] / 1000)
    whole = measure_run(RunDirectory.open(path)).phases[WHOLE]
    assert whole.failures == 3
    assert whole.response_ms["mean"] == pytest.approx(took_ms.mean())
    assert whole.response_ms["p99"] == sorted(took_ms)[1484]
    assert whole.response_ms.shown("p99.9") == "≥ 30 s"
