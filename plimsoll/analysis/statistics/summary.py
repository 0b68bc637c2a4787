"""`summary.json`, computed from the records themselves when a run ends."""

from pathlib import Path

from plimsoll.analysis.statistics.measures import summaries
from plimsoll.analysis.statistics.run import RunStatistics, measure
from plimsoll.common.errors import NoRequestsError
from plimsoll.common.units import hours_minutes
from plimsoll.rundir.events import Measures
from plimsoll.rundir.facts import RUN_FORMAT
from plimsoll.rundir.read import RunDirectory
from plimsoll.rundir.write import UnsentCounts

_TIMES = ("response", "service", "lag", "ttfb")


def summarise(directory: Path, measures: Measures, unsent: UnsentCounts) -> dict[str, object]:
    """Return what `summary.json` of `directory` says; figures that cannot be given are None."""
    try:
        run = measure(RunDirectory.open(directory))
    except NoRequestsError:
        run = None
    sent = run.requests + run.warmup if run else 0
    return {
        "format": RUN_FORMAT,
        "requests": {
            "total": sent + sum(unsent.skipped.values()) + unsent.unsent,
            "sent": sent,
            "ok": run.total.grinder.tests if run else 0,
            "errors": run.total.errors if run else 0,
            "failures": run.failures if run else 0,
            "status_mismatch": run.total.status_mismatch if run else 0,
            "bytes_mismatch": run.total.bytes_mismatch if run else 0,
            "queued": run.queued if run else 0,
            "client_queued": run.client_queued if run else 0,
            "client_timeouts": run.client_timeouts if run else 0,
            "retried": 0,
            "warmup": run.warmup if run else 0,
            "skipped": unsent.skipped,
            "unsent": unsent.unsent,
        },
        "duration_s": run.duration_s if run else 0.0,
        **{f"{name}_ms": _times_ms(run, name) for name in _TIMES},
        # The records do not say how late the generator was with what then waited for a connection.
        "late_ms": _times_ms(run if run and not run.queued else None, "lag"),
        **{
            f"{name}_ms": _times_ms(run, name)
            for name in ("client_wait", "unqueued")
            if run and run.client_queued
        },
        "grinder": _grinder(run),
        "measures": summaries(measures),
    }


def _times_ms(run: RunStatistics | None, name: str) -> dict[str, object]:
    if run is None:
        return dict.fromkeys(("mean", "stddev", "min", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"))
    return run.samples[name].figures().as_json()


def _grinder(run: RunStatistics | None) -> dict[str, object] | None:
    if run is None:
        return None
    row = run.total.grinder
    return {
        "tests": row.tests,
        "errors": row.errors,
        "MTT_ms": row.mtt_ms,
        "TTSD_ms": row.ttsd_ms,
        "TPS": row.tps,
        "RBPS": row.rbps,
        "MTTFB_ms": row.mttfb_ms,
        "TT": hours_minutes(run.duration_s),
    }
