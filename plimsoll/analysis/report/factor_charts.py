"""The charts of an experiment with factors: p99.9 by the level of each, and the curve of a sweep."""

from collections.abc import Sequence

from plimsoll.analysis.charts.factors import LevelLine, LevelPoint, levels_chart
from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.report.factor_figures import BACKEND, FactorFigures
from plimsoll.analysis.report.factor_section import when
from plimsoll.analysis.report.factor_sweep import NO_LIMIT, in_order, is_rate, number_of

_MOST_CHARTS = 6
_ALL = "all"


def factor_charts(figures: FactorFigures, of: str) -> list[Chart]:
    """Return a chart for each factor that was varied, what did most first. `of` ends the titles."""
    order = [effect.factor for effect in figures.effects]
    varied = [factor for factor, labels in figures.levels.items() if len(labels) > 1]
    varied.sort(key=lambda factor: order.index(factor) if factor in order else len(order))
    return [_chart(figures, factor, number, of) for number, factor in enumerate(varied[:_MOST_CHARTS])]


def _chart(figures: FactorFigures, factor: str, number: int, of: str) -> Chart:
    labels = figures.levels[factor]
    rates = is_rate(labels)
    levels = _placed(labels)
    names = [_ALL] if factor == BACKEND else figures.backends
    lines = []
    for shade, backend in enumerate(names):
        points = []
        for place, (label, _) in enumerate(levels):
            mean = figures.mean_at(factor, label, backend)
            runs = [(run.name, run.ms) for run in figures.at(factor, label, backend) if run.ms]
            if mean is not None:
                points.append(LevelPoint(place, mean.value, mean.lower, mean.upper, runs))
        if points:
            lines.append(LevelLine(backend, shade, points))
    others = set(figures.levels) - {factor, *([BACKEND] if len(names) > 1 else [])}
    several = any(len(figures.levels[other]) > 1 for other in others)
    caption = (
        f"Geometric mean of {when(figures)} at each level, with its 95 % interval; each small point is a run."
    )
    if several:
        caption += " Runs at all levels of the other factors count; what a change does alone is in the table."
    return levels_chart(
        f"factor-{figures.number}-{number}",
        f"{figures.percentile} by {factor}{of}",
        caption,
        levels,
        lines,
        figures.goal_ms if rates and figures.percentile == "p99.9" else None,
        factor,
    )


def _placed(labels: Sequence[str]) -> list[tuple[str, float]]:
    """Return levels with their places: a rate stands at its number, anything else beside the one before."""
    ordered = in_order(labels)
    if ordered is None:
        return [(label, float(at)) for at, label in enumerate(labels)]
    if not is_rate(labels):
        return [(label, float(at)) for at, label in enumerate(ordered)]
    numbers = [number for label in ordered if (number := number_of(label)) is not None]
    beyond = numbers[-1] + max((numbers[-1] - numbers[0]) * 0.22, numbers[-1] * 0.1)
    return [(label, beyond if label == NO_LIMIT else number_of(label) or 0.0) for label in ordered]
