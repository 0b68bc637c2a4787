"""The style of all charts. Colours are the page's CSS variables: the page knows light from dark."""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.analysis.page.chart import NARROW_PX, Json, TimeUnit, colour_of, unit_for
from plimsoll.analysis.statistics.run import RunFigures
from plimsoll.common.hostile import plotly_text
from plimsoll.rundir.events import Span

_LABEL_LENGTH, _LABEL_PX, _LABEL_LINE_PX, _LABEL_LINES = 40, 6.5, 14, 3  # of spans
_MOST_SPANS = 40


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


def time_unit(runs: Sequence[Run]) -> TimeUnit:
    """Return the unit that suits the longest of `runs`."""
    return unit_for(max(run.statistics.duration_s for run in runs))


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
        wide_s = (min(len(span.name), _LABEL_LENGTH) + 1) * _LABEL_PX / NARROW_PX * whole_s
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


def trace_name(run: Run, runs: Sequence[Run], name: str) -> str:
    """Return a legend entry: with one run what is shown, with several whose it is too."""
    return name if len(runs) == 1 else f"{run.label} {name}".strip()
