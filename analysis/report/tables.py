"""The page's tables, as rows of ready text."""

from dataclasses import dataclass

from analysis.report.measured import MeasuredRun
from analysis.statistics.routes import GrinderRow, RouteFigures
from analysis.units import count, decimal, hours_minutes, plain_ms, share


@dataclass(frozen=True)
class Row:
    """A row: its name (hostile), its cells, and whether it is the total or names something amiss."""

    name: str
    cells: list[str]
    look: str = ""


@dataclass(frozen=True)
class Table:
    """A table: what it is, its columns and rows."""

    title: str
    caption: str
    columns: list[str]
    rows: list[Row]


_SAMPLES = {
    "response": "response",
    "service": "service",
    "ttfb": "first byte",
    "lag": "lag",
}
_ROUTE_PERCENTILES = ("p50", "p99", "p99.9", "max")


def percentile_table(run: MeasuredRun) -> Table:
    """Return all percentiles of all four times."""
    figures = {name: run.statistics.samples[name].figures_ms() for name in _SAMPLES}
    columns = list(figures["response"])
    rows = [
        Row(_SAMPLES[name], [plain_ms(values[column]) for column in columns])
        for name, values in figures.items()
    ]
    caption = (
        "Milliseconds. Response: from the instant a request was due to its last byte. Service: from the "
        "instant it was sent to its last byte. First byte: from the instant it was sent. Lag: how late it "
        "was sent, where it did not wait for a connection. Exact order statistics of all requests, "
        "failed ones included."
    )
    return Table("Percentiles", caption, ["", *columns], rows)


def route_table(run: MeasuredRun) -> Table:
    """Return response times, errors and mismatches of each route."""
    routes = sorted(run.statistics.routes.items(), key=lambda item: -item[1].requests)
    rows = [_route(name.partition(" ")[2], figures) for name, figures in routes]
    rows.append(_route("all", run.statistics.total, "total"))
    caption = (
        "Kinds of request, the most frequent first; response times in milliseconds. Other status, other "
        "size: responses that differ from the log's."
    )
    columns = ["", "requests", *_ROUTE_PERCENTILES, "errors", "other status", "other size"]
    return Table("By kind of request", caption, columns, rows)


def _route(name: str, figures: RouteFigures, look: str = "") -> Row:
    times = [plain_ms(figures.response_ms[percentile]) for percentile in _ROUTE_PERCENTILES]
    amiss = [
        f"{count(number)} ({share(number, figures.requests)})" if number else "0"
        for number in (figures.errors, figures.status_mismatch, figures.bytes_mismatch)
    ]
    return Row(name, [count(figures.requests), *times, *amiss], look or ("amiss" if figures.errors else ""))


def grinder_table(run: MeasuredRun) -> Table:
    """Return The Grinder's table: a row a route, and the total."""
    time = hours_minutes(run.elapsed_s)
    rows = [Row(name, _grinder(figures.grinder, time)) for name, figures in run.statistics.routes.items()]
    rows.append(Row("Total", _grinder(run.statistics.total.grinder, time), "total"))
    caption = (
        "For comparison with results of The Grinder: service times of the requests without an error. It "
        "knows no due instant, so the response times above say more of what visitors felt."
    )
    columns = ["Test", "Tests", "Errors", "MTT (ms)", "TTSD (ms)", "TPS", "RBPS", "MTTFB (ms)", "TT (h:m)"]
    return Table("The Grinder's table", caption, columns, rows)


def _grinder(row: GrinderRow, time: str) -> list[str]:
    return [
        count(row.tests),
        count(row.errors),
        decimal(row.mtt_ms, 2),
        decimal(row.ttsd_ms, 2),
        decimal(row.tps, 2),
        decimal(row.rbps, 0),
        decimal(row.mttfb_ms, 2),
        time,
    ]


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
