"""A chart as data for plotly, and the one that report and compare share: every repeat as a point.

Colours are the page's CSS variables: the page knows light from dark.
"""

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from plimsoll.common.hostile import plotly_text
from plimsoll.common.units import WRONG_ANSWER, at_least, counted, milliseconds

Json = dict[str, Any]
RUN_COLOURS = 8
NARROW_PX = 500  # of a plot: where it is narrower, labels may touch
_APART = 0.09  # of the width of a chart: as much as a number takes on paper
_LETTERS_BESIDE = 80  # that fit beside each other below a chart, on paper
_SPREAD = 0.7  # how much of a place the backends' columns take
MISSING = "missing"  # the page's script keeps annotations of this name also on narrow screens
_LETTERS = 34  # of a line
_STEP = 0.1  # of the figure's height, from one annotation to the next


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


def colour_of(shade: int) -> str:
    """Return colour number `shade`, from 0."""
    return f"var(--run-{shade % RUN_COLOURS + 1})"


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
    """Return an axis in the page's colours; its title may come from anywhere."""
    return {
        "title": {"text": plotly_text(title), "standoff": 10, "font": {"size": 13}},
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


def spaced_ticks(ticks: Sequence[float], low: float, high: float) -> list[float]:
    """Return those of `ticks`, the most wanted first, that a log scale has room for."""
    kept: list[float] = []
    least = (math.log(high) - math.log(low)) * _APART
    for tick in ticks:
        if low <= tick <= high and all(abs(math.log(tick / other)) >= least for other in kept):
            kept.append(tick)
    return sorted(kept)


def wrap_label(text: str, columns: int, most: int = 3) -> str:
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


def choose_scale(values: Iterable[float], over: float, least: Callable[[list[float]], float] = min) -> str:
    """Return `log` where the highest of `values` is over so many times the `least` above 0, else `linear`."""
    positive = sorted(value for value in values if 0 < value < math.inf)
    return "log" if positive and positive[-1] > over * least(positive) else "linear"


def upper_median(values: list[float]) -> float:
    """Return the median of sorted `values`; of two in the middle the higher."""
    return values[len(values) // 2]


def points(name: str, x: list[float], y: list[float | None], **more: Any) -> Json:
    """Return one plotly trace. `name` is text that plotly may have; y is rounded, None where absent."""
    return {
        "type": "scatter",
        "name": name,
        "x": x,
        "y": [None if v is None else rounded(v) for v in y],
    } | more


@dataclass(frozen=True)
class Missing:
    """A backend (its name is hostile) without a point in a phase, and why."""

    phase: str
    backend: str
    shade: int
    why: str

    @property
    def says(self) -> str:
        """The whole sentence (hostile)."""
        return f"{self.backend}: {self.why}"


def missing_notes(missing: Sequence[Missing], at: Callable[[str], float], top: float = 0.93) -> list[Json]:
    """Return the annotations, one below another where they belong to one phase; `at` is a phase's x."""
    placed: dict[str, int] = {}
    found: list[Json] = []
    for each in missing:
        row = placed.setdefault(each.phase, 0)
        placed[each.phase] += 1
        found.append(
            {
                "name": MISSING,
                "x": at(each.phase),
                "y": max(round(top - row * _STEP, 4), 0.1),
                "yref": "paper",
                "yanchor": "top",
                "text": wrap_label(each.says, _LETTERS),
                "showarrow": False,
                "font": {"size": 12, "color": "var(--text)"},
                "bgcolor": "var(--card)",
                "bordercolor": colour_of(each.shade),
                "borderpad": 3,
                "opacity": 0.9,
            }
        )
    return found


def missing_caption(missing: Sequence[Missing]) -> str:
    """Return the same for the caption (hostile), empty where nothing is missing."""
    if not missing:
        return ""
    return f" Without a point: {'; '.join(f'{each.says} ({each.phase})' for each in missing)}."


class RunPoint(NamedTuple):
    """One run's figure, by the run's name (hostile); endless if it is unknown how long failures took.

    `at_least`: the figure is but a lower bound; `wrong`: since a wrong answer came in time.
    """

    run: str
    ms: float
    at_least: bool = False
    wrong: bool = False


@dataclass(frozen=True)
class Repeats:
    """One backend's figures at each place; its name is hostile."""

    name: str
    shade: int
    at: list[list[RunPoint]]


def repeats_chart(
    key: str,
    title: str,
    caption: str,
    places: list[str],
    backends: Sequence[Repeats],
    missing: Sequence[Missing] = (),
) -> Chart:
    """Return a column of points a backend at each of `places` (hostile names), with a bar at the median.

    `missing` names those that have no point at a place.
    """
    values = [each.ms for backend in backends for at in backend.at for each in at if 0 < each.ms < math.inf]
    step = _SPREAD / len(backends)
    data: list[Json] = []
    for column, backend in enumerate(backends):
        middle = (column - (len(backends) - 1) / 2) * step
        group: Json = {"legendgroup": f"backend {backend.shade}"}
        data += [_column(backend, places, middle, step, group), _medians(backend, middle, step, group)]
    scale = choose_scale(values, 8)
    return Chart(
        key=key,
        title=title,
        caption=caption + _failed(backends) + missing_caption(missing),
        data=data,
        layout=layout(
            _places_axis(places),
            axis("ms", scale) | log_ticks(values),
            annotations=missing_notes(missing, lambda phase: places.index(phase), top=1.0),
        ),
        scale=scale,
    )


def _column(backend: Repeats, places: list[str], middle: float, step: float, group: Json) -> Json:
    """Return a backend's points, around its `middle` of each place."""
    x, y, texts, symbols = [], [], [], []
    for place, at in enumerate(backend.at):
        for number, each in enumerate(at):
            if math.isinf(each.ms):
                continue
            apart = (number - (len(at) - 1) / 2) * min(step / max(len(at), 1), step / 6) * 0.8
            x.append(round(place + middle + apart, 4))
            y.append(each.ms or None)
            shown = at_least(milliseconds(each.ms)) if each.at_least else milliseconds(each.ms)
            shown = WRONG_ANSWER if each.wrong else shown
            texts.append(f"{plotly_text(each.run)}: <b>{shown}</b><br>{plotly_text(places[place])}")
            symbols.append("triangle-up" if each.at_least else "circle")
    look: Json = {"size": 10, "color": colour_of(backend.shade), "opacity": 0.75}
    if "triangle-up" in symbols:
        look["symbol"] = symbols
    name = plotly_text(backend.name)
    return points(name, x, y, mode="markers", marker=look, hovertext=texts, hoverinfo="text", **group)


def _places_axis(places: list[str]) -> Json:
    return axis("") | {
        "tickmode": "array",
        "tickvals": list(range(len(places))),
        "ticktext": [
            wrap_label(place, max(_LETTERS_BESIDE // max(len(places), 1), 10), 4) for place in places
        ],
        "tickangle": 0,
        "tickfont": {"size": 10},
        "range": [-0.5, len(places) - 0.5],
        "showgrid": False,
        "zeroline": False,
        "rangemode": "normal",
    }


def _failed(backends: Sequence[Repeats]) -> str:
    """Return what the caption says of figures that are failures'; empty where there is none."""
    points = [each for backend in backends for at in backend.at for each in at]
    said = ""
    if any(each.at_least and not math.isinf(each.ms) for each in points):
        said += " A triangle is a failure, at its time-out: a lower bound."
    if unknown := sum(math.isinf(each.ms) for each in points):
        are = "is a failure" if unknown == 1 else "are failures"
        said += f" {counted(unknown, 'figure')} {are} of unknown time-out: above all others, and not drawn."
    return said


def _medians(backend: Repeats, middle: float, step: float, group: Json) -> Json:
    x: list[float] = []
    y: list[float | None] = []
    for place, at in enumerate(backend.at):
        if not at:
            continue
        level = median(each.ms for each in at)
        if math.isinf(level):
            continue
        x += [round(place + middle - step * 0.42, 4), round(place + middle + step * 0.42, 4), place + middle]
        y += [level or None, level or None, None]
    return points(
        plotly_text(backend.name),
        x,
        y,
        mode="lines",
        hoverinfo="skip",
        line={"color": colour_of(backend.shade), "width": 3},
        showlegend=False,
        **group,
    )
