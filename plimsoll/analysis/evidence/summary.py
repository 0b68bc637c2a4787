"""What a run says of itself at its end: summary.json, and the lines on the terminal."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from plimsoll.analysis.evidence.measure import measure_figures
from plimsoll.analysis.evidence.run import RunStatistics
from plimsoll.analysis.statistics.measures import measures_by_phase, summaries
from plimsoll.analysis.statistics.routes import RouteFigures
from plimsoll.common.errors import NoRequestsError
from plimsoll.common.hostile import printable
from plimsoll.common.units import ABSENT, count, hours_minutes, plain_ms, significant
from plimsoll.rundir.events import MISSING_FILE, PHASES_UNKNOWN, Measures, phases_unknown, saturation
from plimsoll.rundir.facts import RUN_FORMAT
from plimsoll.rundir.read import RunDirectory, read_facts
from plimsoll.rundir.write import UnsentCounts

_TIMES = ("response", "service", "lag", "ttfb")
_MOST_ROWS = 5
_NARROW, _WIDE = 34, 60  # letters of a name


def summarise(directory: Path, measures: Measures, unsent: UnsentCounts) -> dict[str, object]:
    """Return what `summary.json` of `directory` says; figures that cannot be given are None."""
    try:
        run = measure_figures(RunDirectory.open(directory))
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
        # Only records of format 2 say how late the generator was with what then waited for a connection.
        "late_ms": _times_ms(run if run and not run.queued else None, "lag"),
        **{
            f"{name}_ms": _times_ms(run, name)
            for name in ("client_wait", "unqueued")
            if run and run.client_queued
        },
        "grinder": _grinder(run),
        **({"served": run.served} if run and run.served else {}),
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


def outcome_lines(directory: Path) -> list[str]:
    """Return a table of the steps, one of the measures, by phase too, and how the run ended."""
    lines: list[str] = []
    try:
        run = RunDirectory.open(directory)
        figures = measure_figures(run)
    except NoRequestsError:
        facts = read_facts(directory)
        return [f"{facts.status}: {printable(str(facts.reason))}", f"Run directory: {directory}"]
    lines += _step_lines(figures.routes)
    lines += _measure_lines(run)
    failed = [f"{kind} {number}" for kind, number in figures.errors.items()]
    lines.append("")
    if run.summary and run.summary.not_as_logged:
        lines.append(printable(run.summary.not_as_logged, 1000))
    if failed:
        lines.append("errors: " + ", ".join(failed) + " (events.jsonl has the site's words)")
    if (why := phases_unknown(run.events)) is not None:
        lines.append(f"{PHASES_UNKNOWN}: {printable(why, 300)}")
    lines += _missing_lines(run)
    reason = f": {printable(run.facts.reason)}" if run.facts.reason else ""
    return [*lines, f"{run.status}{reason}", f"Run directory: {directory}"]


def _step_lines(routes: Mapping[str, RouteFigures]) -> list[str]:
    """Return the table of the steps; it has p99.9 where any of them has enough requests."""
    times = [route.response_ms for route in routes.values()]
    tail = any(one["p99.9"] is not None or "p99.9" in one.censored for one in times)
    shown = ("p50", "p99", *(["p99.9"] if tail else []), "max")
    steps = {name.partition(" ")[2]: route for name, route in routes.items()}
    width = _width(steps)
    column = 13 if any(one.wrong for one in times) else 12
    lines = [
        f"{'step':<{width}} {'requests':>9} {'failed':>7}"
        + "".join(f"{one + ' ms':>{column}}" for one in shown)
    ]
    for step, route in steps.items():
        figures = "".join(f"{route.response_ms.shown(one, plain_ms):>{column}}" for one in shown)
        counts = f"{count(route.requests):>9} {count(route.failures):>7}"
        lines.append(f"{printable(step, width):<{width}} {counts}{figures}")
    return lines


def _width(names: Iterable[str]) -> int:
    """Return the width of a column of `names`, which are cut only beyond what a terminal has room for."""
    return max([_NARROW, *(min(len(name), _WIDE) for name in names)])


def _missing_lines(run: RunDirectory) -> list[str]:
    """Return the addresses of files that did not load, those first that did so most often."""
    found = Counter(
        str(event.further.get("detail"))
        for event in run.events
        if event.name == "error" and event.further.get("kind") == MISSING_FILE
    )
    lines = [f"did not load: {printable(what, 100)}" for what, _ in found.most_common(_MOST_ROWS)]
    return [*lines, f"and {len(found) - _MOST_ROWS:,} further files"] if len(found) > _MOST_ROWS else lines


def _measure_lines(run: RunDirectory) -> list[str]:
    """Return the table of the measures, each whole and then by phase; nothing where there is none."""
    by_phase = {
        phase: summaries(Measures.of(events))
        for phase, events in measures_by_phase(run.events, saturation(run.events)).items()
    }
    lines = []
    found = run.summary.measures if run.summary else {}
    width = _width(found)
    for name, one in found.items():
        lines.append(_measure_line(name, one.model_dump(by_alias=True), width))
        lines += [
            _measure_line(f"  {phase}", measures[name], width)
            for phase, measures in by_phase.items()
            if name in measures
        ]
    head = f"{'measure':<{width}} {'n':>9} {'unit':>7} {'p50':>11} {'mean':>11} {'max':>11}"
    return ["", head, *lines] if lines else []


def _measure_line(name: str, one: Mapping[str, object], width: int) -> str:
    p50, mean, largest = (
        significant(value, 4) if isinstance(value := one[key], int | float) else ABSENT
        for key in ("p50", "mean", "max")
    )
    return (
        f"{printable(name, width):<{width}} {one['count']:>9,} {printable(str(one['unit']), 7):>7} "
        f"{p50:>11} {mean:>11} {largest:>11}"
    )
