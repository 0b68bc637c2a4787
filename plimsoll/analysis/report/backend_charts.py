"""The charts that compare the backends of one scenario; analysis/report/charts.py has their order."""

import math
from collections.abc import Sequence
from dataclasses import replace

from plimsoll.analysis.charts.failures import note_of
from plimsoll.analysis.charts.heatmap import Slices, pooled_heat_chart
from plimsoll.analysis.charts.percentiles import pooled_chart
from plimsoll.analysis.charts.scatter import Scatter, Shown, Strip, scatter_chart
from plimsoll.analysis.page.chart import Chart, Choice, Repeats, RunPoint, repeats_chart
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.report.phase_figures import BackendFigures, RepeatFigures, ScenarioFigures
from plimsoll.analysis.report.step_charts import is_scripted, steps_chart
from plimsoll.analysis.report.too_few import too_few_for_runs, too_few_for_windows
from plimsoll.analysis.statistics.sample import PERCENTILES, fewest

_MOST_HEAT_MAPS = 4
_FEWEST_OF_HEAT = 1000  # requests
_RUN_LEVEL = ("p99.9", "p99")


def scatter_of(figures: ScenarioFigures, of: str) -> Chart:
    """Return the scatter of all windows: the slow tail of each backend over time."""
    drawn = scatter_chart(
        Scatter(
            key=f"scatter-{figures.scenario.number}",
            of=of,
            backends=[_shown(each, figures.scenario.saturators) for each in figures.backends],
            shown=figures.windows.shown,
            width_s=figures.windows.width_s,
            left_out=figures.windows.left_out,
            failures=note_of(run.statistics for run in figures.scenario.runs),
            saturators=figures.scenario.saturators,
            busy_s=figures.scenario.busy_s,
            missing=too_few_for_windows(figures.few),
        )
    )
    return replace(drawn, choices=_choices(figures))


def _choices(figures: ScenarioFigures) -> list[Choice]:
    """Return which backends the reader can choose; none where all of them are shown."""
    if not figures.scenario.crowded:
        return []
    shown = {backend.shade for backend in figures.scenario.few.backends}
    each = sorted((each.backend for each in figures.backends), key=lambda one: one.shade)
    return [Choice(one.called, one.shade, one.shade in shown) for one in each]


def curves_of(figures: ScenarioFigures, of: str) -> Chart | None:
    """Return the percentile curve of each backend, in the phase that matters most."""
    when = "while the saturator ran" if figures.saturated else "of the whole run"
    failures = note_of(run.statistics for run in figures.scenario.runs)
    curves = [
        (each.backend.called, each.backend.shade, each.curve) for each in figures.backends if each.curve
    ]
    if not curves:
        return None
    drawn = pooled_chart(
        f"curves-{figures.scenario.number}", f"How slow, for how many, {when}{of}", curves, failures
    )
    return replace(drawn, choices=_choices(figures))


def heat_of(figures: ScenarioFigures, of: str) -> list[Chart]:
    """Return a heat map of each of the first backends, all their repeats together."""
    if not figures.scenario.repeated or _requests(figures) < _FEWEST_OF_HEAT:
        return []
    saturators = [name.replace("-", " ") for name in figures.scenario.saturators]
    since = f"{' or '.join(saturators)} started" if saturators else "the start of the run"
    return [
        pooled_heat_chart(
            f"heat-{figures.scenario.number}-{place}",
            f"All response times on {each.backend.called}{of}",
            since,
            figures.scenario.busy_s,
            [_slices(run) for run in each.backend.runs],
            note_of(run.statistics for run in each.backend.runs),
        )
        for place, each in enumerate(figures.few.backends[:_MOST_HEAT_MAPS])
        if any(run.statistics.timeline.heat.any() for run in each.backend.runs)
    ]


def repeats_of(figures: ScenarioFigures, of: str) -> Chart | None:
    """Return every run's p99.9 in each phase; p99 where that is too much to ask; else the steps' medians.

    None where a scripted scenario is too small for either: its steps have a chart already.
    """
    for shown in _RUN_LEVEL:
        enough = fewest(PERCENTILES[shown])
        counts = [
            phase.requests for each in figures.backends for r in each.repeats for phase in r.phases.values()
        ]
        if sum(count >= enough for count in counts) * 2 > len(counts):
            return _run_level(figures.few, f"repeats-{figures.scenario.number}", of, shown)
    return None if is_scripted(figures.scenario) else steps_chart(figures.scenario, of)


def _shown(each: BackendFigures, saturators: Sequence[str]) -> Shown:
    saturator = saturators[0].replace("-", " ") if len(saturators) == 1 else "saturator"
    return Shown(
        name=each.backend.called,
        shade=each.backend.shade,
        repeats=[(repeat.run.name, repeat.windows) for repeat in each.repeats],
        rows=[
            Strip("requests/s", "requests/s", [(r.done.t_s, r.done.value) for r in each.repeats]),
            Strip(f"{saturator} (MB/s)", "MB/s", [(r.send.t_s, r.send.value / 1e6) for r in each.repeats]),
            Strip("disk read (ms)", "ms a read", [(r.disk.t_s, r.disk.value) for r in each.repeats]),
        ],
    )


def _requests(figures: ScenarioFigures) -> int:
    return sum(run.statistics.requests for run in figures.scenario.runs)


def _slices(run: MeasuredRun) -> Slices:
    timeline = run.statistics.timeline
    zero_s = run.saturation.start_ns / 1e9 if run.saturation else 0.0
    return Slices(timeline.heat[: timeline.used], timeline.width_s, zero_s)


def _run_level(figures: ScenarioFigures, key: str, of: str, shown: str) -> Chart:
    backends = [
        Repeats(
            each.backend.called,
            each.backend.shade,
            [
                [
                    point
                    for repeat in each.repeats
                    if phase in repeat.phases and (point := _point(repeat, phase, shown))
                ]
                for phase in figures.phases
            ],
        )
        for each in figures.backends
    ]
    caption = (
        f"Each point is the {shown} of one run in that phase, each bar the median of a backend's runs. Where "
        "the points of two backends overlap, the runs do not tell the backends apart."
    )
    missing = too_few_for_runs(figures, shown)
    return repeats_chart(key, f"Every repeat, {shown}{of}", caption, figures.phases, backends, missing)


def _point(repeat: RepeatFigures, phase: str, shown: str) -> RunPoint | None:
    times = repeat.phases[phase].response_ms
    if times[shown] is None and shown not in times.censored:
        return None
    least_ms = times.least_ms(shown)
    ms = math.inf if least_ms is None else least_ms
    return RunPoint(repeat.run.name, ms, shown in times.censored, shown in times.wrong)
