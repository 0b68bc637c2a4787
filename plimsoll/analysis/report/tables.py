"""The page's tables, as rows of ready text."""

from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.report.phase_table import FAILURES_COUNT
from plimsoll.analysis.statistics.routes import RouteFigures
from plimsoll.common.units import ABSENT, count, plain_ms, share, significant

_MOST_FAILED_STEPS = 20
_SAMPLES = {
    "response": "response",
    "service": "service",
    "ttfb": "first byte",
    "lag": "lag",
}
_ROUTE_PERCENTILES = ("p50", "p99", "p99.9", "max")
_MEASURE_COLUMNS = ("mean", "min", "p50", "p90", "p99", "max", "sum")


def percentile_table(run: MeasuredRun) -> Table:
    """Return all percentiles of all four times."""
    figures = {name: run.statistics.samples[name].figures() for name in _SAMPLES}
    columns = list(figures["response"].ms)
    rows = [
        Row(_SAMPLES[name], [values.shown(column, plain_ms) for column in columns])
        for name, values in figures.items()
    ]
    caption = (
        "Milliseconds. Response: from the instant a request was due to its last byte. Service: from the "
        "instant it was sent to its last byte. First byte: from the instant it was sent. Lag: how late it "
        "was sent, where it did not wait for a connection. Exact order statistics of all requests; of the "
        f"first byte, of those that were answered well.{_failures(run)}"
    )
    return Table("Percentiles", caption, ["", *columns], rows)


def _failures(run: MeasuredRun) -> str:
    """Return how failures count in a table of times; empty where there is none."""
    return f" {FAILURES_COUNT}" if run.statistics.failures else ""


def route_table(run: MeasuredRun) -> Table:
    """Return response times, errors and mismatches of each route."""
    routes = sorted(run.statistics.routes.items(), key=lambda item: -item[1].requests)
    logged = bool(run.directory.facts.logs)
    rows = [_route(name.partition(" ")[2], figures, logged) for name, figures in routes]
    rows.append(_route("all", run.statistics.total, logged, "total"))
    columns = ["", "requests", *_ROUTE_PERCENTILES, "failed"]
    if not run.directory.facts.logs:
        caption = f"Response times in milliseconds, the most frequent step first.{_failures(run)}"
        return Table("By step", caption, columns, rows)
    caption = (
        "Kinds of request, the most frequent first; response times in milliseconds. Failed: without a whole "
        "response, or with a status that is an error where the log has none. Other status, other size: "
        f"responses that differ from the log's.{_failures(run)}"
    )
    return Table("By kind of request", caption, [*columns, "other status", "other size"], rows)


def _route(name: str, figures: RouteFigures, logged: bool, look: str = "") -> Row:
    times = [figures.response_ms.shown(percentile, plain_ms) for percentile in _ROUTE_PERCENTILES]
    amiss = [
        f"{count(number)} ({share(number, figures.requests)})" if number else "0"
        for number in (figures.failures, figures.status_mismatch, figures.bytes_mismatch)[
            : 3 if logged else 1
        ]
    ]
    return Row(name, [count(figures.requests), *times, *amiss], look or ("amiss" if figures.failures else ""))


def measure_table(run: MeasuredRun) -> Table | None:
    """Return the figures that are no single request, whole and by phase; None where there is none."""
    rows = []
    for name, one in run.measures.items():
        failed = len(run.failed_measures.get(name, ()))
        rows.append(Row(f"{name} ({one['unit']})", _measured(one, failed), "amiss" if failed else ""))
        for phase, measures in run.measures_by_phase.items():
            if name in measures:
                failed = len(run.phase_values[phase].values[name].failed)
                rows.append(Row(f"… {phase}", _measured(measures[name], failed), "amiss" if failed else ""))
    if not rows:
        return None
    caption = "What took more than one request, or was said by the site or the browser."
    if run.failed_measures:
        caption += " Figures are of what succeeded; n says how often it failed."
    if run.measures_by_phase:
        caption += " What took time belongs to the phase in which it began."
    return Table("Measured beside the requests", caption, ["", "n", *_MEASURE_COLUMNS], rows)


def _measured(one: dict[str, object], failed: int) -> list[str]:
    n = count(_whole(one["count"])) + (f", {failed:,} failed" if failed else "")
    return [n, *(_figure(one[column]) for column in _MEASURE_COLUMNS)]


def failure_table(run: MeasuredRun) -> Table | None:
    """Return the first steps that failed, with the site's own words; None where none did."""
    failed = [event for event in run.directory.events if event.name == "error"]
    if not failed:
        return None
    rows = [
        Row(
            f"{event.t_ns / 1e9:.3f} s",
            [str(event.further.get(key, "")) for key in ("step", "kind", "detail")],
            "amiss",
        )
        for event in failed[:_MOST_FAILED_STEPS]
    ]
    shown = "" if len(failed) <= len(rows) else f" The first {len(rows)} of {len(failed):,}."
    return Table(
        "Steps that failed", f"In the site's own words.{shown}", ["at", "step", "kind", "said"], rows
    )


def _figure(value: object) -> str:
    return significant(value, 4) if isinstance(value, int | float) and value >= 0 else ABSENT


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def status_table(run: MeasuredRun) -> Table:
    """Return how often each status came, and each error."""
    requests = run.statistics.requests
    rows = [
        Row(str(status) if status else "no response", [count(number), share(number, requests)])
        for status, number in sorted(run.statistics.statuses.items(), key=lambda item: -item[1])
    ]
    rows += [
        Row(f"error: {name}", [count(number), share(number, requests)], "amiss")
        for name, number in sorted(run.statistics.errors.items(), key=lambda item: -item[1])
    ]
    return Table("Statuses and errors", "What came back.", ["", "requests", "share"], rows)
