"""What a report says of several backends: tables, figures and cautions on all of them together."""

from collections.abc import Sequence
from math import inf, isfinite

from analysis.differing import differing
from analysis.figures.heatmap import Slices, pooled_heat_figure
from analysis.figures.percentiles import pooled_figure
from analysis.figures.repeats import Repeats, repeats_figure
from analysis.figures.scatter import Row, Scatter, Shown, scatter_figure
from analysis.figures.style import Figure
from analysis.report.cache import cache_figure_of, compress_ratios
from analysis.report.measured import MeasuredRun
from analysis.report.phasefigures import BackendFigures, ScenarioFigures
from analysis.report.scripted import is_scripted, scripted_figures, steps_figure
from analysis.report.tables import Row as TableRow
from analysis.report.tables import Table
from analysis.statistics.sample import PERCENTILES, fewest
from analysis.units import ABSENT, significant

_MOST_HEAT_MAPS = 4
_FEWEST_OF_HEAT = 1000  # requests
_RUN_LEVEL = ("p99.9", "p99")

# Where a clone lies is called after its backend; and that a disk is emulated is said of its clone again.
_WHERE = ("clone.folder", "clone.name", "clone.emulated")


def comparing_figures(figures: ScenarioFigures, alone: bool) -> list[Figure]:
    """Return the steps, the scatter, the percentile curves and the repeats of one scenario."""
    number, of = figures.scenario.number, "" if alone else f": {figures.scenario.name}"
    scatter = Scatter(
        key=f"scatter-{number}",
        of=of,
        backends=[_shown(each, figures.scenario.saturators) for each in figures.backends],
        shown=figures.windows.shown,
        width_s=figures.windows.width_s,
        left_out=figures.windows.left_out,
        saturators=figures.scenario.saturators,
        busy_s=_busy_s(figures.scenario.runs),
    )
    when = "while the saturator ran" if figures.saturated else "of the whole run"
    curves = [
        (each.backend.called, each.backend.shade, each.curve) for each in figures.backends if each.curve
    ]
    found = [scatter_figure(scatter)]
    if curves:
        found.append(pooled_figure(f"curves-{number}", f"How slow, for how many, {when}{of}", curves))
    arc = cache_figure_of(figures.scenario, alone, scatter.busy_s)
    found += [arc] if arc else []
    if figures.scenario.repeated and _requests(figures) >= _FEWEST_OF_HEAT:
        found += _heat(figures, of, scatter.busy_s)
    repeats = _repeats(figures, of)
    return [*scripted_figures(figures.scenario, alone), *found, *([repeats] if repeats else [])]


def _shown(each: BackendFigures, saturators: Sequence[str]) -> Shown:
    saturator = saturators[0].replace("-", " ") if len(saturators) == 1 else "saturator"
    return Shown(
        name=each.backend.called,
        shade=each.backend.shade,
        repeats=[(repeat.run.name, repeat.windows) for repeat in each.repeats],
        rows=[
            Row("requests/s", "requests/s", [(r.done.t_s, r.done.value) for r in each.repeats]),
            Row(f"{saturator} (MB/s)", "MB/s", [(r.send.t_s, r.send.value / 1e6) for r in each.repeats]),
            Row("disk read (ms)", "ms a read", [(r.disk.t_s, r.disk.value) for r in each.repeats]),
        ],
    )


def _requests(figures: ScenarioFigures) -> int:
    return sum(run.statistics.requests for run in figures.scenario.runs)


def _heat(figures: ScenarioFigures, of: str, busy_s: float | None) -> list[Figure]:
    """Return a heat map of each of the first backends, all their repeats together."""
    saturators = [name.replace("-", " ") for name in figures.scenario.saturators]
    since = f"{' or '.join(saturators)} started" if saturators else "the start of the run"
    return [
        pooled_heat_figure(
            f"heat-{figures.scenario.number}-{place}",
            f"All response times on {each.backend.called}{of}",
            since,
            busy_s,
            [_slices(run) for run in each.backend.runs],
        )
        for place, each in enumerate(figures.backends[:_MOST_HEAT_MAPS])
    ]


def _slices(run: MeasuredRun) -> Slices:
    timeline = run.statistics.timeline
    zero_s = run.saturation.start_ns / 1e9 if run.saturation else 0.0
    return Slices(timeline.heat[: timeline.used], timeline.width_s, zero_s)


def _busy_s(runs: Sequence[MeasuredRun]) -> float | None:
    """Return how long the saturator ran: the median of the runs."""
    lasted = sorted(
        ((run.elapsed_s * 1e9 if busy.stop_ns is None else busy.stop_ns) - busy.start_ns) / 1e9
        for run in runs
        if (busy := run.saturation)
    )
    return lasted[len(lasted) // 2] if lasted else None


def _repeats(figures: ScenarioFigures, of: str) -> Figure | None:
    """Return every run's p99.9 in each phase; p99 where that is too much to ask; else the steps' medians.

    None where a scripted scenario is too small for either: its steps have a figure already.
    """
    number = figures.scenario.number
    for shown in _RUN_LEVEL:
        enough = fewest(PERCENTILES[shown])
        counts = [
            phase.requests for each in figures.backends for r in each.repeats for phase in r.phases.values()
        ]
        if sum(count >= enough for count in counts) * 2 > len(counts):
            return _run_level(figures, f"repeats-{number}", of, shown)
    return None if is_scripted(figures.scenario) else steps_figure(figures.scenario, f"steps-{number}", of)


def _run_level(figures: ScenarioFigures, key: str, of: str, shown: str) -> Figure:
    backends = [
        Repeats(
            each.backend.called,
            each.backend.shade,
            [
                [
                    (repeat.run.name, value)
                    for repeat in each.repeats
                    if phase in repeat.phases
                    and (value := repeat.phases[phase].response_ms[shown]) is not None
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
    return repeats_figure(key, f"Every repeat, {shown}{of}", caption, figures.phases, backends)


def differences_table(runs: Sequence[MeasuredRun]) -> Table | None:
    """Return what differs between the backends' facts; None where fewer than two say anything."""
    facts = facts_by_backend(runs)
    if len(facts) < 2:
        return None
    rows = [
        TableRow(key, [_fact(value) for value in values])
        for key, values in differing(list(facts.values()), besides=(*_WHERE, "datasets.compress_ratio"))
    ]
    if ratios := compress_ratios(runs):
        rows.append(TableRow("compress ratio", [ratios.get(name, ABSENT) for name in facts]))
    caption = (
        "What the lab read of the storage and its host, where it is not the same for all backends. Ideally "
        "only what you want to compare stands here."
    )
    if ratios:
        caption += " The compress ratio stands here in any case; it changes with what a run writes."
    if not rows:
        caption = "Nothing of what the lab read of the storage and its host differs between the backends."
    return Table("What differs between the backends", caption, ["", *facts], rows)


def differences_json(runs: Sequence[MeasuredRun]) -> list[dict[str, object]]:
    """Return what differs between the backends, for `--json`."""
    facts = facts_by_backend(runs)
    if len(facts) < 2:
        return []
    return [
        {"key": key, "backends": {name: _finite(value) for name, value in zip(facts, values, strict=True)}}
        for key, values in differing(list(facts.values()), besides=_WHERE)
    ]


def _finite(value: object) -> object:
    """JSON has no NaN and no infinity."""
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def facts_by_backend(runs: Sequence[MeasuredRun]) -> dict[str, dict[str, object]]:
    """Return the facts of each backend by its name (hostile), from the first of its runs that has any."""
    found: dict[str, dict[str, object]] = {}
    for run in runs:
        storage = run.directory.facts.storage
        if storage and run.directory.facts.backend:
            own = {"emulated": storage.emulated, "clone": storage.clone, **storage.facts}
            found.setdefault(run.backend, own)
    return found


def _fact(value: object) -> str:
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    return significant(value, 6) if isinstance(value, float) and 0 <= value < inf else str(value)
