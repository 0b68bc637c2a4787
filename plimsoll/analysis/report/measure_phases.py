"""What was measured beside the requests, before, during and after: rows of ready text, for all backends."""

from collections.abc import Sequence

from plimsoll.analysis.page.section import Row, Table
from plimsoll.analysis.report.backends import BackendRuns, ScenarioRuns
from plimsoll.analysis.report.measure_medians import Medians, PhaseMedian, medians_of
from plimsoll.analysis.statistics.phases import PHASES
from plimsoll.common.units import ABSENT, counted, significant

_FEW = 5  # values, below which a median says little
_MOST_ROWS = 16  # measures in the table


def measure_phase_table(scenario: ScenarioRuns, alone: bool) -> Table | None:
    """Return every measure of each backend in each phase; None where nothing was measured in phases.

    `alone` says that the report has no other scenario.
    """
    of_backend = [(backend, medians_of(backend.runs)) for backend in scenario.backends]
    names = list(medians_of(scenario.runs))
    rows = [
        _row(name, backend, medians[name])
        for name in names[:_MOST_ROWS]
        for backend, medians in of_backend
        if name in medians
    ]
    if not rows:
        return None
    while_ = " and ".join(name.replace("-", " ") for name in scenario.saturators)
    caption = (
        "Medians: of a run's values, then of a backend's runs; in brackets the number of values, and of "
        "tries that failed, which count as at least their time-out. During is "
        f"while {while_} ran. What took time belongs to the phase in which it began. The slowest first."
    )
    if len(names) > _MOST_ROWS:
        caption += f" {counted(len(names) - _MOST_ROWS, 'further measure')} stand in the tables of the runs."
    title = "Measured before, during and after"
    return Table(
        title if alone else f"{title}: {scenario.name}",
        caption + _thin(of_backend),
        ["", *PHASES, "during ÷ before"],
        rows,
    )


def _row(name: str, backend: BackendRuns, by_phase: dict[str, PhaseMedian]) -> Row:
    cells = [f"{one.shown} ({one.counts})" if (one := by_phase.get(phase)) else ABSENT for phase in PHASES]
    return Row(f"{name}, {backend.called}", [*cells, _times(by_phase)])


def _times(by_phase: dict[str, PhaseMedian]) -> str:
    """Return how many times as much it was during as before."""
    before, during = by_phase.get("before"), by_phase.get("during")
    if before is None or during is None or before.unit != during.unit or before.value <= 0:
        return ABSENT
    if before.is_bound or during.is_bound:
        return ABSENT
    return f"{significant(during.value / before.value, 2)} ×" if during.value >= 0 else ABSENT


def _thin(of_backend: Sequence[tuple[BackendRuns, Medians]]) -> str:
    """Return which backends have too few values for their medians to say much; empty where none has."""
    found = []
    for backend, medians in of_backend:
        most = max((one.n for by_phase in medians.values() for one in by_phase.values()), default=0)
        if most < _FEW:
            found.append(f"{backend.called} has {most}")
    return f" Medians of fewer than {_FEW} values say little: {', '.join(found)}." if found else ""
