"""The charts of a scripted scenario: phases, page vitals, steps and rates, by backend and run."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from plimsoll.analysis.charts.bars import Bars, Level, bars_chart
from plimsoll.analysis.charts.vitals import VITALS, PageVitals, vitals_chart
from plimsoll.analysis.page.chart import Chart
from plimsoll.analysis.report.backends import ScenarioRuns
from plimsoll.analysis.report.measured_run import MeasuredRun
from plimsoll.analysis.report.values import MeasuredValues
from plimsoll.analysis.statistics.phases import PHASES
from plimsoll.common.units import counted, significant
from plimsoll.rundir.events import PHASE
from plimsoll.rundir.runfacts import REPLAY

_MOST_STEPS, _MOST_MEASURES = 10, 6
_MOST_PHASES = 16
_MOST_BY_PHASE = 4  # measures
_SERVER = "server cpu: "
_MS = {"ms": 1.0, "s": 1000.0}
_RATES = ("MB/s",)

Levels = dict[str, Level]


def is_scripted(scenario: ScenarioRuns) -> bool:
    """Return whether the scenario's requests are steps of a script, and not those of a log."""
    facts = [run.directory.facts for run in scenario.runs]
    return not any(each.logs or each.own_scenario == REPLAY for each in facts)


def steps_chart(scenario: ScenarioRuns, of: str) -> Chart | None:
    """Return the medians of what took more than one request, and of the steps that took longest."""
    measures = {run.number: _times(run.values) for run in scenario.runs}
    steps = {run.number: _steps(run) for run in scenario.runs}
    names = _longest(measures.values())[:_MOST_MEASURES]
    names += [name for name in _longest(steps.values()) if name not in names][: _MOST_STEPS - len(names)]
    if not names:
        return None
    backends = _bars(scenario, names, lambda run: steps[run.number] | measures[run.number])
    many = any(level.n > 1 for each in backends for at in each.at for level in at)
    each = "the median of a step in one whole run" if many else "how long a step took in one run"
    caption = (
        f"Each point is {each}, each bar the median of a backend's runs. First comes what took more than one "
        "request, then the steps that took longest."
    )
    failed = [level for each in backends for at in each.at for level in at if level.at_least]
    if any(not math.isinf(level.value) for level in failed):
        caption += " ≥: half of those requests failed, and count at their time-out."
    if unknown := sum(math.isinf(level.value) for level in failed):
        caption += (
            f" {counted(unknown, 'point')} {'is' if unknown == 1 else 'are'} missing, above all others: half "
            "of those requests failed, and their time-out is not known."
        )
    title = (
        f"How long each step took{', in whole runs' if scenario.saturators else ''}{of}"
        if is_scripted(scenario)
        else f"Medians of the kinds of request{of}"
    )
    return bars_chart(f"steps-{scenario.number}", title, caption, names, backends)


def phases_chart(scenario: ScenarioRuns, of: str) -> Chart | None:
    """Return how long each phase took, such as those of an upgrade; None where nothing has phases."""
    levels = {run.number: _levels(run.values, lambda name: name.startswith(PHASE)) for run in scenario.runs}
    longest = _longest(levels.values())
    if len(longest) > _MOST_PHASES:
        longest, others = longest[: _MOST_PHASES - 1], longest[_MOST_PHASES - 1 :]
        together = f"{PHASE}{len(others):,} shorter ones, together"
        levels = {number: _folded(each, others, together) for number, each in levels.items()}
        longest.append(together)
    names = [name for name in dict.fromkeys(n for each in levels.values() for n in each) if name in longest]
    if not names:
        return None
    backends = _bars(scenario, names, lambda run: levels[run.number])
    caption = (
        "From left to right as they follow one another. Each point is one run, each bar the median of a "
        "backend's runs. A phase that was too short to be seen has no bar."
    )
    shown = [name.removeprefix(PHASE) for name in names]
    return bars_chart(f"phases-{scenario.number}", f"How long each phase took{of}", caption, shown, backends)


def _folded(levels: Levels, others: Sequence[str], name: str) -> Levels:
    """Return `levels` with those of `others` as one, the last: their sum."""
    kept = {one: level for one, level in levels.items() if one not in others}
    folded = [level for one, level in levels.items() if one in others]
    if folded:
        kept[name] = Level("", sum(level.value for level in folded), max(level.n for level in folded))
    return kept


def measures_by_phase_chart(scenario: ScenarioRuns, of: str) -> Chart | None:
    """Return what took more than one request, before, during and after; None of what has but one phase."""
    levels = {
        run.number: {
            f"{name}: {phase}": level
            for phase, values in run.phase_values.items()
            for name, level in _times(values).items()
        }
        for run in scenario.runs
    }
    longest = _longest(
        {place.rpartition(": ")[0]: level} for each in levels.values() for place, level in each.items()
    )
    known = {place for each in levels.values() for place in each}
    places = [
        places
        for name in longest
        if len(places := [place for phase in PHASES if (place := f"{name}: {phase}") in known]) > 1
    ][:_MOST_BY_PHASE]
    if not places:
        return None
    names = [place for each in places for place in each]
    backends = _bars(scenario, names, lambda run: levels[run.number])
    saturators = " and ".join(name.replace("-", " ") for name in scenario.saturators)
    caption = (
        f"During is while {saturators} ran; what took time belongs to the phase in which it began. Each "
        "point is the median of one run in that phase, each bar the median of a backend's runs."
    )
    title = f"How long it took, before, during and after{of}"
    return bars_chart(f"measures-{scenario.number}", title, caption, names, backends)


def rates_chart(scenario: ScenarioRuns, of: str) -> Chart | None:
    """Return how much each backend did a second, such as MB/s; None where no rate was measured."""
    levels = {
        run.number: {
            name: Level("", one.median, len(one.values))
            for name, one in run.values.values.items()
            if one.unit in _RATES and one.values
        }
        for run in scenario.runs
    }
    names = _longest(levels.values())
    if not names:
        return None
    return bars_chart(
        f"rates-{scenario.number}",
        f"How much a second{of}",
        "Each point is the median of one run, each bar the median of a backend's runs. More is better.",
        names,
        _bars(scenario, names, lambda run: levels[run.number]),
        unit=_RATES[0],
        said=lambda value: f"{significant(value)} {_RATES[0]}",
    )


def page_vitals_chart(scenario: ScenarioRuns, of: str) -> Chart | None:
    """Return the page vitals: p75 where most runs have four loads or more of most pages, else medians."""
    found = [
        PageVitals(
            backend.called,
            backend.shade,
            [(run.name, vital, page, one) for run in backend.runs for vital, page, one in _of(run.values)],
        )
        for backend in scenario.backends
    ]
    return vitals_chart(f"vitals-{scenario.number}", of, found) if any(each.runs for each in found) else None


def _of(each: MeasuredValues) -> Iterable[tuple[str, str, tuple[float, float | None, int]]]:
    """Yield vital, page (hostile), and the median, p75 and number of its values."""
    for name, one in each.values.items():
        vital, colon, page = name.partition(": ")
        if colon and vital in VITALS and one.values and one.unit == VITALS[vital].unit:
            yield vital, page, (one.median, one.p75, len(one.values))


def _times(each: MeasuredValues) -> Levels:
    """Return the medians in ms of what is neither a phase nor a page vital."""

    def wanted(name: str) -> bool:
        return not name.startswith((PHASE, _SERVER)) and name.partition(": ")[0] not in VITALS

    return _levels(each, wanted)


def _levels(each: MeasuredValues, wanted: Callable[[str], bool]) -> Levels:
    return {
        name: Level("", one.median * _MS[one.unit], len(one.values))
        for name, one in each.values.items()
        if one.values and one.unit in _MS and wanted(name)
    }


def _steps(run: MeasuredRun) -> Levels:
    found: Levels = {}
    for name, route in run.statistics.routes.items():
        times = route.response_ms
        # the only one is the median
        shown = "p50" if times["p50"] is not None or "p50" in times.censored else "max"
        least_ms, censored = times.least_ms(shown), shown in times.censored
        if least_ms is not None or censored:
            level = Level("", math.inf if least_ms is None else least_ms, route.requests, censored)
            found.setdefault(name.partition(" ")[2], level)
    return found


def _longest(runs: Iterable[Levels]) -> list[str]:
    longest: dict[str, float] = {}
    for levels in runs:
        for name, level in levels.items():
            longest[name] = max(longest.get(name, 0.0), level.value)
    return sorted(longest, key=lambda name: -longest[name])


def _bars(scenario: ScenarioRuns, names: Sequence[str], of: Callable[[MeasuredRun], Levels]) -> list[Bars]:
    levels = {run.number: of(run) for run in scenario.runs}
    return [
        Bars(
            backend.called,
            backend.shade,
            [
                [
                    replace(level, run=run.name)
                    for run in backend.runs
                    if (level := levels[run.number].get(name))
                ]
                for name in names
            ],
        )
        for backend in scenario.backends
    ]
