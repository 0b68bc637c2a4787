"""What captions say of failures: how many there are, and where they stand. Pure."""

from collections.abc import Iterable

from plimsoll.analysis.charts.style import Run
from plimsoll.analysis.statistics.run import RunFigures
from plimsoll.common.units import counted, share


def failures_note(runs: Iterable[Run]) -> str:
    """Return how many requests of `runs` failed, and where they stand; empty where none did."""
    return note_of([run.statistics for run in runs])


def note_of(runs: Iterable[RunFigures]) -> str:
    """Return the same of figures."""
    failing = [run for run in runs if run.failures]
    if not failing:
        return ""
    failures, requests = sum(run.failures for run in failing), sum(run.requests for run in failing)
    of = "" if len(failing) == 1 else f" in {len(failing)} runs"
    what, verb = (
        ("request", "failed") if any(run.total.errors for run in failing) else ("wrong answer", "came")
    )
    text = f" {counted(failures, what)} ({share(failures, requests)}) {verb}{of}"
    unknown = sum(run.failures for run in failing if run.timeout_ms is None)
    if not unknown:
        return f"{text}: each stands at its time-out."
    if unknown == failures:
        return f"{text}: slower than every answer, and not drawn, since their time-out is not known."
    return (
        f"{text}: each stands at its time-out, but for {unknown:,} whose time-out is not known: those "
        "are slower than every answer, and not drawn."
    )
