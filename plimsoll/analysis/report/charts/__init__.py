"""The charts of a report in the order of the page: to add one, write its function, and name it below.

A function returns a chart, several, or None where it has nothing to show.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.page.section import Section
from plimsoll.analysis.report.charts.over_time import lag_chart, tail_chart, throughput_chart, warming_of
from plimsoll.analysis.report.charts.scatter import scatter_of
from plimsoll.analysis.report.charts.scripted import (
    measures_by_phase_chart,
    page_vitals_chart,
    phases_chart,
    rates_chart,
    steps_chart,
)
from plimsoll.analysis.report.charts.spread import (
    curves_of,
    heat_charts,
    heat_of,
    percentile_chart,
    repeats_of,
)
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.runs import ScenarioFigures, ScenarioRuns

Charts = Chart | Sequence[Chart] | None
# Of runs, each by itself, over time: drawn where no backend has more than one run.
RUN_CHARTS: list[Callable[[Sequence[ReportRun]], Charts]] = [
    tail_chart,
    percentile_chart,
    heat_charts,
    throughput_chart,
    lag_chart,
]
# Of a scripted scenario, also of one run.
STEP_CHARTS: list[Callable[[ScenarioRuns], Charts]] = [
    measures_by_phase_chart,
    phases_chart,
    page_vitals_chart,
    steps_chart,
    rates_chart,
]
# Of one scenario on its backends, where there are several runs.
BACKEND_CHARTS: list[Callable[[ScenarioFigures], Charts]] = [
    scatter_of,
    curves_of,
    heat_of,
    repeats_of,
    warming_of,
]


Moved = Mapping[int, Chart]  # by the scenario's number: what moved at the same time as the slow windows


def chart_section(
    scenarios: Sequence[ScenarioRuns], compared: Sequence[ScenarioFigures], moved: Moved
) -> Section:
    """Return the charts that compare the backends, with what `moved` below each scatter; none of one run."""
    found: list[Chart] = []
    for each in compared if sum(len(scenario.runs) for scenario in scenarios) > 1 else ():
        found += [*step_charts(each.scenario), *_with(moved, "scatter", backend_charts(each))]
    return Section(charts=found)


def run_chart_section(scenarios: Sequence[ScenarioRuns], runs: Sequence[ReportRun], moved: Moved) -> Section:
    """Return the charts of single runs, where no backend has several."""
    found = [] if not runs or any(scenario.repeated for scenario in scenarios) else run_charts(runs)
    if len(runs) == 1:
        found = [*step_charts(scenarios[0]), *_with(moved, "tail", found)]
    return Section(charts=found)


def run_charts(runs: Sequence[ReportRun]) -> list[Chart]:
    """Return the charts of single runs."""
    return _charts(draw(runs) for draw in RUN_CHARTS)


def step_charts(scenario: ScenarioRuns) -> list[Chart]:
    """Return the charts of a scripted scenario; none of a replay."""
    return _charts(draw(scenario.few) for draw in STEP_CHARTS) if scenario.is_scripted else []


def backend_charts(figures: ScenarioFigures) -> list[Chart]:
    """Return the charts that compare the backends of a scenario."""
    return _charts(draw(figures) for draw in BACKEND_CHARTS)


def _with(moved: Moved, key: str, charts: Sequence[Chart]) -> list[Chart]:
    """Return `charts` with what moved below the one of its scenario that is called `key`."""
    found: list[Chart] = []
    for chart in charts:
        found.append(chart)
        name, _, number = chart.key.partition("-")
        if name == key and (below := moved.get(int(number or 0))):
            found.append(below)
    return found


def _charts(drawn: Iterable[Charts]) -> list[Chart]:
    found: list[Chart] = []
    for each in drawn:
        if each is not None:
            found += [each] if isinstance(each, Chart) else each
    return found
