"""Runs as a report has them: measured and observed in one pass."""

from plimsoll.analysis.evidence.measure import Observer
from plimsoll.analysis.evidence.run import MeasuredRun as Evidence
from plimsoll.analysis.statistics.run import RunStatistics, measure
from plimsoll.rundir.read import RunDirectory


def measured_and_observed(run: RunDirectory, compared: bool = False) -> tuple[RunStatistics, Evidence]:
    """The figures of a run and what the gatekeeper saw in its records."""
    observer = Observer(run)
    return measure(run, compared=compared, watch=observer.observe), observer.run()
