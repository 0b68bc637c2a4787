"""The Grinder's table: a row a route of one run; a row a backend, where there are several runs."""

from collections.abc import Callable, Sequence
from math import sqrt

from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.report.backends import ScenarioRuns
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.statistics.routes import GrinderRow
from plimsoll.common.units import count, decimal, hours_minutes

_CAPTION = (
    "For comparison with results of The Grinder: service times of the requests without an error. It knows no "
    "due instant, so the response times above say more of what visitors felt."
)
_SHORT_S = 600.0  # hours and minutes would say 0:00 of the shortest


def grinder_table(run: MeasuredRun) -> Table:
    """Return The Grinder's table: a row a route, and the total."""
    heading, spelled = _unit([run.elapsed_s])
    time = spelled(run.elapsed_s)
    rows = [Row(name, _cells(figures.grinder, time)) for name, figures in run.statistics.routes.items()]
    rows.append(Row("Total", _cells(run.statistics.total.grinder, time), "total"))
    return Table("The Grinder's table", _CAPTION, _columns("Test", heading), rows)


def grinder_by_backend(scenarios: Sequence[ScenarioRuns]) -> Table | None:
    """Return a row a backend of each scenario, its runs together; None of a single run."""
    backends = [(scenario, backend) for scenario in scenarios for backend in scenario.backends]
    if sum(len(backend.runs) for _, backend in backends) < 2:
        return None
    took_s = [sum(run.elapsed_s for run in backend.runs) for _, backend in backends]
    heading, spelled = _unit(took_s)
    rows = [
        Row(
            backend.called if len(scenarios) == 1 else f"{scenario.name}: {backend.called}",
            [
                count(len(backend.runs)),
                *_cells(pooled([_row_of(run) for run in backend.runs]), spelled(time_s)),
            ],
        )
        for (scenario, backend), time_s in zip(backends, took_s, strict=True)
    ]
    caption = (
        f"{_CAPTION} All runs of a backend together: the rates are of the time that they took in all, which "
        "is TT."
    )
    return Table("The Grinder's table, by backend", caption, _columns("Backend", heading, "Runs"), rows)


def pooled(rows: Sequence[tuple[GrinderRow, float]]) -> GrinderRow:
    """Return the row of several runs together, each with its elapsed time in seconds. Pure.

    Means are weighted by tests; the deviation is that of all tests around their common mean.
    """
    timed = [(row, row.tests, row.mtt_ms, row.ttsd_ms or 0.0) for row, _ in rows if row.mtt_ms is not None]
    tests = sum(n for _, n, *_ in timed)
    elapsed_s = sum(s for _, s in rows)
    mean_ms = sum(n * ms for _, n, ms, _ in timed) / tests if tests else None
    squares = sum(n * (sd**2 + (ms - (mean_ms or 0.0)) ** 2) for _, n, ms, sd in timed)
    first = [(row.tests, row.mttfb_ms) for row, _ in rows if row.mttfb_ms is not None]
    answered = sum(n for n, _ in first)
    return GrinderRow(
        tests=sum(row.tests for row, _ in rows),
        errors=sum(row.errors for row, _ in rows),
        mtt_ms=mean_ms,
        ttsd_ms=sqrt(squares / tests) if tests else None,
        tps=tests / elapsed_s if elapsed_s > 0 else None,
        rbps=sum((row.rbps or 0.0) * s for row, s in rows) / elapsed_s if elapsed_s > 0 else None,
        mttfb_ms=sum(n * ms for n, ms in first) / answered if answered else None,
    )


def _row_of(run: MeasuredRun) -> tuple[GrinderRow, float]:
    """Return the run's total, and The Grinder's elapsed time: from its first start to its last end."""
    row = run.statistics.total.grinder
    return row, row.tests / row.tps if row.tps else run.elapsed_s


def _unit(took_s: Sequence[float]) -> tuple[str, Callable[[float], str]]:
    """Return the heading of TT and what spells one: seconds where all are short, else hours and minutes."""
    if max(took_s, default=0.0) < _SHORT_S:
        return "TT (s)", lambda value_s: decimal(value_s, 1)
    return "TT (h:m)", hours_minutes


def _columns(first: str, heading: str, *more: str) -> list[str]:
    return [first, *more, "Tests", "Errors", "MTT (ms)", "TTSD (ms)", "TPS", "RBPS", "MTTFB (ms)", heading]


def _cells(row: GrinderRow, time: str) -> list[str]:
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
