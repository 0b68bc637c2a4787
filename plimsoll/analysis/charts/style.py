"""The style of all charts. Colours are the page's CSS variables: the page knows light from dark."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.analysis.statistics.run import RunFigures
from plimsoll.common.hostile import plotly_text
from plimsoll.rundir.events import Span

Json = dict[str, Any]
RUN_COLOURS = 8
_LABEL_LENGTH, _LABEL_PX, _LABEL_LINE_PX, _LABEL_LINES = 40, 6.5, 14, 3  # of spans
_NARROW_PX = 500  # of a plot: where it is narrower, labels may touch
_MOST_SPANS = 40
_APART = 0.09  # of the width of a chart: as much as a number takes on paper


@dataclass(frozen=True)
class Run:
    """A run as charts know it: its name (hostile), its figures, what happened during it, its colour.

    `paced_by` is what made requests due: `the log`, `the rate`, or, in a closed loop, nothing (""). `shade`
    is the number of its colour, from 0: runs of one backend share it.
    """

    name: str
    statistics: RunFigures
    spans: Sequence[Span]
    paced_by: str
    number: int
    shade: int = 0

    @property
    def label(self) -> str:
        """The name, as plotly may have it."""
        return plotly_text(self.name)

    @property
    def colour(self) -> str:
        """The run's colour; the ninth has the first's again."""
        return colour_of(self.shade)


def colour_of(shade: int) -> str:
    """Return colour number `shade`, from 0."""
    return f"var(--run-{shade % RUN_COLOURS + 1})"


@dataclass(frozen=True)
class Choice:
    """A backend (hostile name) of many: shown, or on demand. Its traces are the group `backend SHADE`."""

    name: str
    shade: int
    shown: bool


@dataclass(frozen=True)
class Chart:
    """One chart: its place on the page, what it shows in one sentence, and plotly's data and layout.

    `scale` is the first scale of the y axis, `log` or `linear`, where the reader may switch; else None.
    `tall` counts the rows below the first.
    """

    key: str
    title: str
    caption: str
    data: list[Json]
    layout: Json
    scale: str | None = None
    tall: int = 0
    choices: Sequence[Choice] = ()

    def as_json(self) -> Json:
        """Return what the page's script draws."""
        return {"title": plotly_text(self.title, 200), "data": self.data, "layout": self.layout}


@dataclass(frozen=True)
class TimeUnit:
    """The unit of a time axis, which suits the longest run (`longest_s`): seconds, minutes or hours."""

    name: str
    seconds: int
    longest_s: float

    def of(self, t_s: float) -> float:
        """Return `t_s` in this unit, to six digits."""
        return rounded(t_s / self.seconds)


def time_unit(runs: Sequence[Run]) -> TimeUnit:
    """Return the unit that suits the longest of `runs`."""
    return unit_for(max(run.statistics.duration_s for run in runs))


def unit_for(longest_s: float) -> TimeUnit:
    """Return the unit that suits `longest_s` seconds."""
    if longest_s <= 300:
        return TimeUnit("seconds", 1, longest_s)
    if longest_s <= 3 * 3600:
        return TimeUnit("minutes", 60, longest_s)
    return TimeUnit("hours", 3600, longest_s)


def rounded(value: float) -> float:
    """Return `value` to six digits: more than a screen shows, a third of the bytes."""
    return float(f"{value:.6g}")


def time_axis(unit: TimeUnit) -> Json:
    """Return the x axis of a chart over time: the same for all, to be read one below another."""
    return axis(f"{unit.name} since the start of the run") | {"range": [0, unit.of(unit.longest_s * 1.005)]}


def axis(title: str, scale: str = "linear") -> Json:
    """Return an axis in the page's colours."""
    return {
        "title": {"text": title, "standoff": 10, "font": {"size": 13}},
        "type": scale,
        "gridcolor": "var(--grid)",
        "linecolor": "var(--line)",
        "zerolinecolor": "var(--line)",
        "tickcolor": "var(--line)",
        "automargin": True,
        "exponentformat": "none",
        "separatethousands": True,
        "rangemode": "tozero",
    }


def log_ticks(values_ms: Sequence[float]) -> Json:
    """Return the ticks of a log scale for `values_ms`: the powers of ten, and 2 and 5 if those are few.

    Plotly's own ticks between two powers of ten leave the zeros out.
    """
    positive = [value for value in values_ms if value > 0]
    if not positive:
        return {}
    low, high = math.floor(math.log10(min(positive))) - 1, math.ceil(math.log10(max(positive))) + 1
    digits = (1,) if high - low > 6 else (1, 2, 5)
    return {
        "tickmode": "array",
        "tickvals": [float(f"{digit}e{power}") for power in range(low, high + 1) for digit in digits],
    }


def apart(ticks: Sequence[float], low: float, high: float) -> list[float]:
    """Return those of `ticks`, the most wanted first, that a log scale has room for."""
    kept: list[float] = []
    least = (math.log(high) - math.log(low)) * _APART
    for tick in ticks:
        if low <= tick <= high and all(abs(math.log(tick / other)) >= least for other in kept):
            kept.append(tick)
    return sorted(kept)


def in_lines(text: str, columns: int, most: int = 3) -> str:
    """Return a label (hostile) as plotly may have it, in lines of so many characters, `most` at most."""
    lines = textwrap.wrap(text, columns, max_lines=most, placeholder=" …")
    return "<br>".join(plotly_text(line, columns) for line in lines)


def layout(x_axis: Json, y_axis: Json, **more: Any) -> Json:
    """Return a chart's layout."""
    return {
        "xaxis": x_axis,
        "yaxis": y_axis,
        "margin": {"l": 64, "r": 16, "t": 8, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": "var(--text)"},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "var(--muted)", "activecolor": "var(--text)"},
        "hoverlabel": {
            "bgcolor": "var(--card)",
            "bordercolor": "var(--line)",
            "font": {"color": "var(--text)"},
            "align": "left",
        },
        "hovermode": "closest",
    } | more


def span_shapes(runs: Sequence[Run], unit: TimeUnit) -> Json:
    """Return shaded bands and their labels for what happened during the runs (saturators, interrupts)."""
    shapes: list[Json] = []
    spans: list[Span] = []
    for run in runs:
        colour = "var(--muted)" if len(runs) == 1 else run.colour
        for span in run.spans[: _MOST_SPANS // len(runs) + 1]:
            edges = {"x0": unit.of(span.start_s), "x1": unit.of(span.stop_s)}
            box = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "layer": "below", "opacity": 0.12}
            shapes.append(box | edges | {"fillcolor": colour, "line": {"width": 1, "color": colour}})
            spans.append(span)
    whole_s = max((run.statistics.duration_s for run in runs), default=1.0)
    return {"shapes": shapes, "annotations": _span_labels(spans, whole_s, unit)}


def _span_labels(spans: Sequence[Span], whole_s: float, unit: TimeUnit) -> list[Json]:
    """Return the labels of `spans`, none over another: below it, or none where there is no room.

    Spans of one name that begin about together, as of several runs, have one.
    """
    labels: list[Json] = []
    free_from_s: list[float] = []  # each line
    same_until_s: dict[str, float] = {}
    for span in sorted(spans, key=lambda span: span.start_s):
        text = plotly_text(span.name, _LABEL_LENGTH)
        wide_s = (min(len(span.name), _LABEL_LENGTH) + 1) * _LABEL_PX / _NARROW_PX * whole_s
        start_s = max(min(span.start_s, whole_s - wide_s), 0.0)
        if start_s < same_until_s.get(text, -1.0):
            continue
        line = next((at for at, free_s in enumerate(free_from_s) if free_s <= start_s), len(free_from_s))
        if line == _LABEL_LINES:
            continue
        free_from_s[line : line + 1] = [start_s + wide_s]
        same_until_s[text] = start_s + wide_s
        place = {"x": unit.of(start_s), "y": 1, "yref": "paper", "xanchor": "left", "yanchor": "top"}
        look = {"showarrow": False, "font": {"size": 11}, "yshift": -_LABEL_LINE_PX * line}
        labels.append(place | look | {"text": text})
    return labels


def points(name: str, x: list[float], y: list[float | None], **more: Any) -> Json:
    """Return one plotly trace. `name` is text that plotly may have; y is rounded, None where absent."""
    return {
        "type": "scatter",
        "name": name,
        "x": x,
        "y": [None if v is None else rounded(v) for v in y],
    } | more


def trace_name(run: Run, runs: Sequence[Run], name: str) -> str:
    """Return a legend entry: with one run what is shown, with several whose it is too."""
    return name if len(runs) == 1 else f"{run.label} {name}".strip()
