"""What a script measured, as bars: phases, page vitals, steps and rates, by backend and run.

A bar is the median of a backend's runs at a place, with every run as a point upon it.

Page vitals stand beside the thresholds that are published for them. Good and poor are those of web.dev, at
the 75th percentile of page loads: LCP 2.5 and 4 s (https://web.dev/articles/lcp), INP 200 and 500 ms
(https://web.dev/articles/inp), CLS 0.1 and 0.25 (https://web.dev/articles/cls), FCP 1.8 and 3 s
(https://web.dev/articles/fcp), TTFB 0.8 and 1.8 s (https://web.dev/articles/ttfb); why those:
https://web.dev/articles/defining-core-web-vitals-thresholds.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from plimsoll.analysis.page.chart import (
    Chart,
    Json,
    axis,
    choose_scale,
    colour_of,
    layout,
    log_ticks,
    points,
    rounded,
)
from plimsoll.analysis.report.measured_run import ReportRun
from plimsoll.analysis.report.runs import ScenarioRuns
from plimsoll.analysis.statistics.measures import StepFigures
from plimsoll.analysis.statistics.windows import PHASES
from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import at_least, counted, milliseconds, significant
from plimsoll.rundir.events import PHASE

_MOST_STEPS, _MOST_MEASURES = 10, 6
_MOST_PHASES = 16
_MOST_BY_PHASE = 4  # measures
_SERVER = "server cpu: "
_MS = {"ms": 1.0, "s": 1000.0}
_RATES = ("MB/s",)
_P50, _P75 = 500_000, 750_000  # parts in a million
_SPREAD = 0.8  # how much of a place the backends' bars take
_WIDEST = 0.12  # of the figure's width, one bar
_MOST_LABELLED = 16  # bars with their figure written on them; of more, the highest of each backend
_HALF = 18  # letters of a long name, from each end
_TOPS = " On the log scale only the tops of the bars mean something."
_GAP = 0.045


@dataclass(frozen=True)
class Level:
    """One run at one place: its name (hostile), its figure, and the number of values behind it.

    `at_least`: the figure is but a lower bound, without end where even that is not known.
    """

    run: str
    value: float
    n: int
    at_least: bool = False


@dataclass(frozen=True)
class Bars:
    """One backend: its name (hostile), the number of its colour, and its runs' levels at each place."""

    name: str
    shade: int
    at: list[list[Level]]


@dataclass(frozen=True)
class Vital:
    """One vital: what it is called, its unit, up to where it is good, and from where it is poor."""

    called: str
    unit: str
    good: float
    poor: float


@dataclass(frozen=True)
class PageVitals:
    """One backend: its name (hostile), its colour, and of each run, vital and page (median, p75, values).

    p75 is None where there are fewer than four values.
    """

    name: str
    shade: int
    runs: list[tuple[str, str, str, tuple[float, float | None, int]]]


Levels = dict[str, Level]


def steps_chart(scenario: ScenarioRuns) -> Chart | None:
    """Return the medians of what took more than one request, and of the steps that took longest."""
    measures = {run.number: _times(run.values) for run in scenario.runs}
    steps = {run.number: _steps(run) for run in scenario.runs}
    names = _longest(measures.values())[:_MOST_MEASURES]
    names += [name for name in _longest(steps.values()) if name not in names][: _MOST_STEPS - len(names)]
    if not names:
        return None
    backends = _backend_bars(scenario, names, lambda run: steps[run.number] | measures[run.number])
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
        f"How long each step took{', in whole runs' if scenario.saturators else ''}{scenario.title_end}"
        if scenario.is_scripted
        else f"Medians of the kinds of request{scenario.title_end}"
    )
    return bars_chart(f"steps-{scenario.number}", title, caption, names, backends)


def phases_chart(scenario: ScenarioRuns) -> Chart | None:
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
    backends = _backend_bars(scenario, names, lambda run: levels[run.number])
    caption = (
        "From left to right as they follow one another. Each point is one run, each bar the median of a "
        "backend's runs. A phase that was too short to be seen has no bar."
    )
    shown = [name.removeprefix(PHASE) for name in names]
    return bars_chart(
        f"phases-{scenario.number}", f"How long each phase took{scenario.title_end}", caption, shown, backends
    )


def _folded(levels: Levels, others: Sequence[str], name: str) -> Levels:
    """Return `levels` with those of `others` as one, the last: their sum."""
    kept = {one: level for one, level in levels.items() if one not in others}
    folded = [level for one, level in levels.items() if one in others]
    if folded:
        kept[name] = Level("", sum(level.value for level in folded), max(level.n for level in folded))
    return kept


def measures_by_phase_chart(scenario: ScenarioRuns) -> Chart | None:
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
    backends = _backend_bars(scenario, names, lambda run: levels[run.number])
    caption = (
        f"During is while {scenario.saturators_label} ran; what took time belongs to the phase in which it "
        "began. Each point is the median of one run in that phase, each bar the median of a backend's runs."
    )
    title = f"How long it took, before, during and after{scenario.title_end}"
    return bars_chart(f"measures-{scenario.number}", title, caption, names, backends)


def rates_chart(scenario: ScenarioRuns) -> Chart | None:
    """Return how much each backend did a second, such as MB/s; None where no rate was measured."""
    levels = {
        run.number: {
            name: Level("", one.value_at(_P50), len(one.values))
            for name, one in run.values.items()
            if one.unit in _RATES and one.values
        }
        for run in scenario.runs
    }
    names = _longest(levels.values())
    if not names:
        return None
    return bars_chart(
        f"rates-{scenario.number}",
        f"How much a second{scenario.title_end}",
        "Each point is the median of one run, each bar the median of a backend's runs. More is better.",
        names,
        _backend_bars(scenario, names, lambda run: levels[run.number]),
        unit=_RATES[0],
        said=lambda value: f"{significant(value)} {_RATES[0]}",
    )


def page_vitals_chart(scenario: ScenarioRuns) -> Chart | None:
    """Return the page vitals: p75 where most runs have four loads or more of most pages, else medians."""
    found = [
        PageVitals(
            backend.called,
            backend.shade,
            [
                (run.label, vital, page, one)
                for run in backend.runs
                for vital, page, one in _vitals(run.values)
            ],
        )
        for backend in scenario.backends
    ]
    return (
        vitals_chart(f"vitals-{scenario.number}", scenario.title_end, found)
        if any(each.runs for each in found)
        else None
    )


def _vitals(each: Mapping[str, StepFigures]) -> Iterable[tuple[str, str, tuple[float, float | None, int]]]:
    """Yield vital, page (hostile), and the median, p75 and number of its values."""
    for name, one in each.items():
        vital, colon, page = name.partition(": ")
        if colon and vital in VITALS and one.values and one.unit == VITALS[vital].unit:
            count = len(one.values)
            yield vital, page, (one.value_at(_P50), one.value_at(_P75) if count >= 4 else None, count)


def _times(each: Mapping[str, StepFigures]) -> Levels:
    """Return the medians in ms of what is neither a phase nor a page vital."""

    def wanted(name: str) -> bool:
        return not name.startswith((PHASE, _SERVER)) and name.partition(": ")[0] not in VITALS

    return _levels(each, wanted)


def _levels(each: Mapping[str, StepFigures], wanted: Callable[[str], bool]) -> Levels:
    return {
        name: Level("", one.value_at(_P50) * _MS[one.unit], len(one.values))
        for name, one in each.items()
        if one.values and one.unit in _MS and wanted(name)
    }


def _steps(run: ReportRun) -> Levels:
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


def _backend_bars(
    scenario: ScenarioRuns, names: Sequence[str], of: Callable[[ReportRun], Levels]
) -> list[Bars]:
    levels = {run.number: of(run) for run in scenario.runs}
    return [
        Bars(
            backend.called,
            backend.shade,
            [
                [
                    replace(level, run=run.label)
                    for run in backend.runs
                    if (level := levels[run.number].get(name))
                ]
                for name in names
            ],
        )
        for backend in scenario.backends
    ]


def bars_chart(
    key: str,
    title: str,
    caption: str,
    places: Sequence[str],
    backends: Sequence[Bars],
    *,
    unit: str = "ms",
    said: Callable[[float], str] = milliseconds,
) -> Chart:
    """Return the bars of all `backends` side by side at each of `places` (hostile names).

    Values are in `unit`; `said` spells one, with its unit.
    """
    middles = [median(level.value for level in at) for each in backends for at in each.at if at]
    data = bar_traces(backends, places, said)
    positive = [value for value in middles if 0 < value < math.inf]
    scale = choose_scale(positive, 30)
    return Chart(
        key=key,
        title=title,
        caption=caption + (_TOPS if scale == "log" else ""),
        data=data,
        layout=layout(place_axis(places), axis(unit, scale) | log_ticks(positive), bargap=0),
        scale=scale,
    )


def place_axis(places: Sequence[str]) -> Json:
    """Return an axis with a name (hostile) at each whole number from 0."""
    return axis("") | {
        "tickmode": "array",
        "tickvals": list(range(len(places))),
        "ticktext": _labels(places),
        "range": [-0.5, len(places) - 0.5],
        "showgrid": False,
        "zeroline": False,
        "rangemode": "normal",
    }


def _labels(places: Sequence[str]) -> list[str]:
    """Return a short label of each place; where two would look alike, their ends tell them apart."""
    short = [_two_lines(place) for place in places]
    labels = [
        label
        if short.count(label) == 1
        else f"{plotly_text(place[:_HALF])}<br>…{plotly_text(place[-_HALF:])}"
        for place, label in zip(places, short, strict=True)
    ]
    return [
        label if labels.count(label) == 1 else f"{label} ({at})" for at, label in enumerate(labels, start=1)
    ]


def _two_lines(place: str) -> str:
    """Return `page_load: editor` on two lines: labels that are short stand upright."""
    first, colon, rest = place.partition(": ")
    return f"{plotly_text(first, 24)}:<br>{plotly_text(rest, 24)}" if colon else plotly_text(place, 24)


def bar_traces(
    backends: Sequence[Bars],
    places: Sequence[str],
    said: Callable[[float], str],
    yaxis: str = "y",
    *,
    legend: bool = True,
) -> list[Json]:
    """Return a trace of bars and one of points a backend; one place of the legend turns both off."""
    step = min(_SPREAD / max(len(backends), 1), _WIDEST * max(len(places), 1))
    labelled = sum(bool(at) for each in backends for at in each.at) <= _MOST_LABELLED
    found: list[Json] = []
    for column, backend in enumerate(backends):
        middle = (column - (len(backends) - 1) / 2) * step
        group: Json = {"legendgroup": f"backend {backend.shade}", "yaxis": yaxis}
        found.append(_bars(backend, places, said, middle, step, labelled) | group | {"showlegend": legend})
        found.append(_points(backend, places, said, middle, step) | group)
    return found


def _bars(
    backend: Bars,
    places: Sequence[str],
    said: Callable[[float], str],
    middle: float,
    step: float,
    all_labelled: bool,
) -> Json:
    name = plotly_text(backend.name)
    shown = [
        (place, at, middle_value)
        for place, at in enumerate(backend.at)
        if at and not math.isinf(middle_value := median(level.value for level in at))
    ]
    texts = [
        _level(level, any(one.at_least and one.value <= level for one in at), said) for _, at, level in shown
    ]
    highest = max((level for *_, level in shown), default=0.0)
    labels: Json = {
        "text": [
            text if all_labelled or level == highest else ""
            for text, (*_, level) in zip(texts, shown, strict=True)
        ],
        "textposition": "inside",
        "insidetextanchor": "start",
        "textangle": 0,
        "constraintext": "none",
        "insidetextfont": {"color": "var(--text)", "size": 11},
    }
    return {
        "type": "bar",
        "name": name,
        "x": [round(place + middle, 4) for place, *_ in shown],
        "y": [rounded(level) for *_, level in shown],
        "width": round(step * 0.9, 4),
        "marker": {"color": colour_of(backend.shade), "opacity": 0.55},
        "hovertext": [
            f"{name}: <b>{text}</b><br>{plotly_text(places[place])}<br>"
            f"{'median of ' if len(at) > 1 else ''}{counted(len(at), 'run')}"
            for (place, at, _), text in zip(shown, texts, strict=True)
        ],
        "hoverinfo": "text",
        **labels,
    }


def _points(
    backend: Bars, places: Sequence[str], said: Callable[[float], str], middle: float, step: float
) -> Json:
    x: list[float] = []
    y: list[float | None] = []
    texts: list[str] = []
    for place, at in enumerate(backend.at):
        for number, level in enumerate(at):
            if math.isinf(level.value):
                continue
            apart = (number - (len(at) - 1) / 2) * min(step / max(len(at), 1), step / 6) * 0.8
            x.append(round(place + middle + apart, 4))
            y.append(level.value)
            texts.append(
                f"{plotly_text(level.run)}: <b>{_level(level.value, level.at_least, said)}</b><br>"
                f"{plotly_text(places[place])}<br>n = {level.n:,}"
            )
    look = {"size": 8, "color": colour_of(backend.shade), "line": {"width": 1, "color": "var(--card)"}}
    name = plotly_text(backend.name)
    return points(
        name, x, y, mode="markers", marker=look, hovertext=texts, hoverinfo="text", showlegend=False
    )


def _level(value: float, bound: bool, said: Callable[[float], str]) -> str:
    return at_least(said(value)) if bound else said(value)


VITALS = {
    "lcp": Vital("largest paint", "ms", 2500, 4000),
    "inp": Vital("slowest reaction", "ms", 200, 500),
    "cls": Vital("jumping", "score", 0.1, 0.25),
    "fcp": Vital("first paint", "ms", 1800, 3000),
    "ttfb": Vital("first byte", "ms", 800, 1800),
}


def vitals_chart(key: str, of: str, backends: Sequence[PageVitals]) -> Chart:
    """Return a row a vital, a place a page: bars of the backends, points of the runs, thresholds as lines.

    `of` ends the title (hostile). There is at least one value.
    """
    every = [entry for each in backends for entry in each.runs]
    by_p75 = sum(p75 is not None for *_, (_, p75, _) in every) * 2 > len(every)
    pages = list(dict.fromkeys(page for _, _, page, _ in every))
    shown = [name for name in VITALS if any(vital == name for _, vital, _, _ in every)]
    data: list[Json] = []
    shapes: list[Json] = []
    labels: list[Json] = []
    axes: Json = {}
    height = (1 + _GAP) / len(shown)
    for place, name in enumerate(shown):
        vital, number = VITALS[name], "" if not place else str(place + 1)
        said = milliseconds if vital.unit == "ms" else partial(significant, digits=2)
        bars = [_vital_bars(each, name, pages, by_p75) for each in backends]
        data += bar_traces(bars, pages, said, f"y{number}", legend=not place)
        top = max((level.value for each in bars for at in each.at for level in at), default=0.0)
        for limit, colour, word in ((vital.good, "var(--good)", "good"), (vital.poor, "var(--bad)", "poor")):
            if limit > max(top * 3, vital.good):
                continue  # so far above that the bars would vanish
            line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": f"y{number}"}
            dash = "dot" if word == "good" else "dash"
            shapes.append(
                line | {"y0": limit, "y1": limit, "line": {"color": colour, "width": 1.5, "dash": dash}}
            )
            text = f"{word} {'≤' if word == 'good' else '&gt;'} {said(limit)}"
            at: Json = {"x": 1.005, "xref": "paper", "xanchor": "left", "showarrow": False}
            at |= {"y": limit, "yref": f"y{number}", "yanchor": "middle"}
            labels.append(at | {"text": text, "font": {"size": 10, "color": colour}})
        from_top = 1 - place * height
        axes[f"yaxis{number}"] = axis(f"{name.upper()} ({vital.unit})") | {
            "domain": [max(round(from_top - height + _GAP, 4), 0), round(from_top, 4)],
            "nticks": 4,
            "title": {"text": f"{name.upper()} ({vital.unit})", "standoff": 10, "font": {"size": 12}},
        }
    x_axis = place_axis(pages) | {"anchor": f"y{len(shown)}" if len(shown) > 1 else "y"}
    y_axis = axes.pop("yaxis")
    return Chart(
        key=key,
        title=f"What the browser saw of each page{of}",
        caption=_caption(shown, by_p75),
        data=data,
        layout=layout(
            x_axis,
            y_axis,
            bargap=0,
            margin={"l": 64, "r": 96, "t": 8, "b": 48},
            shapes=shapes,
            annotations=labels,
            **axes,
        ),
        tall=max(len(shown) - 1, 0),
    )


def _vital_bars(each: PageVitals, vital: str, pages: Sequence[str], by_p75: bool) -> Bars:
    at: list[list[Level]] = [[] for _ in pages]
    for run, name, page, (middle, p75, count) in each.runs:
        value = p75 if by_p75 else middle
        if name == vital and value is not None:
            at[pages.index(page)].append(Level(run, value, count))
    return Bars(each.name, each.shade, at)


def _caption(shown: Sequence[str], by_p75: bool) -> str:
    names = ", ".join(f"{name.upper()} ({VITALS[name].called})" for name in shown)
    what = "p75" if by_p75 else "median"
    text = (
        f"{names}. Each point is the {what} of one run's page loads, each bar the median of a backend's "
        "runs. Lines are the limits that web.dev publishes for good and for poor pages, meant for the p75 of "
        "real visitors' page loads; here a browser without a window stands for them."
    )
    if not by_p75:
        text += " A p75 takes four page loads a run."
    return text
