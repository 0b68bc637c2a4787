"""Backends that have no point in a figure, since they had too few requests: named there, never dropped."""

from collections.abc import Iterator, Sequence

from plimsoll.analysis.page.chart import Missing
from plimsoll.analysis.report.phase_figures import BackendFigures, ScenarioFigures
from plimsoll.analysis.statistics.sample import PERCENTILES, fewest
from plimsoll.common.units import counted


def too_few_for_windows(figures: ScenarioFigures) -> list[Missing]:
    """Return which backends have no window in a phase of the scatter, and what would be enough."""
    there = {phase: [each for each in figures.backends if each.windows(phase)] for phase in figures.phases}
    return [
        each
        for phase, drawn in there.items()
        for each in _missing(figures, phase, figures.windows.shown, drawn)
    ]


def too_few_for_runs(figures: ScenarioFigures, shown: str) -> list[Missing]:
    """Return which backends have no run with a figure `shown` in a phase."""
    found: list[Missing] = []
    for phase in figures.phases:
        drawn = [
            each
            for each in figures.backends
            if any(
                repeat.phases[phase].requests >= _enough(shown)
                for repeat in each.repeats
                if phase in repeat.phases
            )
        ]
        found += _missing(figures, phase, shown, drawn)
    return found


def _missing(
    figures: ScenarioFigures, phase: str, shown: str, drawn: Sequence[BackendFigures]
) -> Iterator[Missing]:
    for each in figures.backends:
        counts = [repeat.phases[phase].requests for repeat in each.repeats if phase in repeat.phases]
        if each in drawn or not counts or not (drawn or any(counts)):
            continue
        yield Missing(phase, each.backend.called, each.backend.shade, _text(counts, shown))


def _text(counts: Sequence[int], shown: str) -> str:
    if not any(counts):
        return "no request was due"
    low, high = min(counts), max(counts)
    have = counted(high, "request") if low == high else f"{low:,} to {high:,} requests"
    each = " a run" if len(counts) > 1 else ""
    return f"{have}{each}: too few, {'one is' if shown == 'max' else f'a {shown} takes {_enough(shown):,}'}"


def _enough(shown: str) -> int:
    return 1 if shown == "max" else fewest(PERCENTILES[shown])
