"""Page vitals as a browser measured them, beside the thresholds that are published for them.

Good and poor are those of web.dev, at the 75th percentile of page loads: LCP 2.5 and 4 s
(https://web.dev/articles/lcp), INP 200 and 500 ms (https://web.dev/articles/inp), CLS 0.1 and 0.25
(https://web.dev/articles/cls), FCP 1.8 and 3 s (https://web.dev/articles/fcp), TTFB 0.8 and 1.8 s
(https://web.dev/articles/ttfb); why those: https://web.dev/articles/defining-core-web-vitals-thresholds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.analysis.charts.bars import Bars, Level, bar_traces, place_axis
from plimsoll.analysis.page.chart import Chart, Json, axis, layout
from plimsoll.common.units import milliseconds, significant

_GAP = 0.045


@dataclass(frozen=True)
class Vital:
    """One vital: what it is called, its unit, up to where it is good, and from where it is poor."""

    called: str
    unit: str
    good: float
    poor: float


VITALS = {
    "lcp": Vital("largest paint", "ms", 2500, 4000),
    "inp": Vital("slowest reaction", "ms", 200, 500),
    "cls": Vital("jumping", "score", 0.1, 0.25),
    "fcp": Vital("first paint", "ms", 1800, 3000),
    "ttfb": Vital("first byte", "ms", 800, 1800),
}


@dataclass(frozen=True)
class PageVitals:
    """One backend: its name (hostile), its colour, and of each run, vital and page (median, p75, values).

    p75 is None where there are fewer than four values.
    """

    name: str
    shade: int
    runs: list[tuple[str, str, str, tuple[float, float | None, int]]]


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
        said = milliseconds if vital.unit == "ms" else _score
        bars = [_bars(each, name, pages, by_p75) for each in backends]
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
            labels.append(
                _label(limit, f"{word} {'≤' if word == 'good' else '&gt;'} {said(limit)}", colour, number)
            )
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


def _bars(each: PageVitals, vital: str, pages: Sequence[str], by_p75: bool) -> Bars:
    at: list[list[Level]] = [[] for _ in pages]
    for run, name, page, (median, p75, count) in each.runs:
        value = p75 if by_p75 else median
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


def _label(at: float, text: str, colour: str, number: str) -> Json:
    place = {
        "x": 1.005,
        "xref": "paper",
        "xanchor": "left",
        "y": at,
        "yref": f"y{number}",
        "yanchor": "middle",
    }
    return place | {"text": text, "showarrow": False, "font": {"size": 10, "color": colour}}


def _score(value: float) -> str:
    return significant(value, 2)
